"""The retail star: the verdicts that its README tells of, and a day from end to end."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from datalog.syntax import parse_program
from selfmaint.audit.matrix import audited
from selfmaint.audit.search import Search
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.situation import Situation
from tests.command_line import run

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "star"


@pytest.fixture
def star(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The example as a module; it and its data are forgotten afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "data", raising=False)
    spec = importlib.util.spec_from_file_location("star_run", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("data", None)


def test_only_the_gold_customers_are_in_doubt() -> None:
    schema = catalog(parse_program((FOLDER / "views.dl").read_text(encoding="utf-8")))
    words = audited(Search(schema, Situation(effective=True))).words()
    assert {key for key, word in words.items() if word != "always"} == {
        ("gold_sales", "sales", "insert"),
        ("gold_sales", "sales", "update"),
        ("gold_sales", "sales", "any"),
        ("gold_sales", "*", "any"),
    }


def test_the_readme_shows_what_is_printed() -> None:
    shown = (FOLDER / "README.md").read_text(encoding="utf-8").split("<!-- audit -->")[1].split("```")[1]
    printed = run("audit", str(FOLDER / "warehouse.toml")).stdout
    lines = [line.rstrip() for line in printed.splitlines()]
    assert [line for line in shown.splitlines()[2:] if line] == [line for line in lines if line]


def test_a_day(star: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert star.main(["--sales", "160", "--work", str(tmp_path / "work")]) == 0
    printed = capsys.readouterr().out
    assert "verified: recomputing every view from its sources gives the same rows" in printed
    assert "without `sales`: nothing breaks" in printed
    assert not (tmp_path / "work").exists()
