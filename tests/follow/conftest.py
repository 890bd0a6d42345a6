"""Shops in PostgreSQL whose log is followed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.follow.shops import HARD, LoggedShop, logged_shop


@pytest.fixture
def shop(tmp_path: Path, postgres: str) -> Iterator[LoggedShop]:
    """A shop with its views."""
    with logged_shop(tmp_path, postgres) as made:
        yield made


@pytest.fixture
def hard(tmp_path: Path, postgres: str) -> Iterator[LoggedShop]:
    """One whose views are hard."""
    with logged_shop(tmp_path, postgres, HARD) as made:
        yield made
