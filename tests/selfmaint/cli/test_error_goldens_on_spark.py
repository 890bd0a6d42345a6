"""What the command line says about bad input is the same with Spark: some cases of each kind, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import cases, check_golden


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", cases(spark=True))
def test_golden(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_golden(name, tmp_path, monkeypatch)
