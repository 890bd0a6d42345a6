"""A short one of the long runs of `soak.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.effort import effort
from tests.follow import soak
from tests.follow.shops import HARD, logged_shop


@pytest.mark.parametrize("views", [None, HARD], ids=["easy", "hard"])
def test_a_short_soak(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch, views: dict[str, str] | None
) -> None:
    monkeypatch.setattr(soak, "LOOK_EVERY", 2)
    monkeypatch.setattr(soak, "COMPACT_EVERY", 2)
    with logged_shop(tmp_path, postgres, views) as shop:
        first, *_, last = soak.soak(shop.made(), effort(4, 20), seed=3, examine_s=effort(1, 10))
    assert last.held >= len(shop.views)
    assert last.transactions > first.transactions
    assert last.handles <= first.handles + 8
