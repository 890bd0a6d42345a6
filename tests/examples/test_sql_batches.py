"""The views of the three SQL examples through mixed batches of generated changes, verified."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "sql" / "batches.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sql_batches", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["sql_batches"] = made
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("name", ["cheapest", "orders", "retail"])
def test_no_batch_leaves_a_difference(script: ModuleType, name: str) -> None:
    found = list(script.batches(name, 4))
    assert sum(batch.differences for batch in found) == 0
    assert sum(batch.rows_changed for batch in found) > 10


def test_the_script_runs(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["batches.py", "2"])
    assert script.main() == 0
    assert capsys.readouterr().out.endswith("views that differ from what recomputing gives: 0\n")
