"""The TPC-H example: what its README says of the views, and the tour from end to end at a small scale."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from datalog.syntax import parse_program
from selfmaint.decide.procedure import Decision
from selfmaint.warehouse.catalog import Catalog, catalog
from selfmaint.warehouse.situation import Situation
from tests.command_line import run

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "tpch"
CHANGED = frozenset({"customer", "orders", "lineitem"})
UPDATE = Situation(inserted=CHANGED, deleted=CHANGED, effective=True)


def schema(without: str = "") -> Catalog:
    program = parse_program((FOLDER / "views.dl").read_text(encoding="utf-8"))
    return catalog(
        type(program)(
            tuple(r for r in program.rules if r.head.predicate.name != without), program.declarations
        )
    )


def in_doubt(given: Catalog) -> dict[str, set[frozenset[str]]]:
    """For each view the sets of base relations that could hold unknown facts, as far as the rules tell."""
    decision = Decision(given)
    return {
        view.name: {
            frozenset(rules.new_facts.instance.body[j].predicate.name for j in rules.new_facts.subgoals)
            for rules in decision.depends(view, UPDATE)
        }
        for view in given.views
    }


def test_every_view_is_in_the_class_that_is_decided_exactly() -> None:
    assert not schema().limited_views


def test_what_the_rules_leave_in_doubt() -> None:
    found = in_doubt(schema())
    assert found.pop("order_lines") == {frozenset({"lineitem"})}
    assert found.pop("sales") == {
        frozenset({"part"}),
        frozenset({"supplier"}),
        frozenset({"part", "supplier"}),
    }
    assert not any(found.values())


def test_the_self_join_is_what_makes_the_orders_known() -> None:
    assert in_doubt(schema(without="same_day_orders"))["building_orders"] == {frozenset({"orders"})}


def test_the_warehouse_file_and_the_contents_name_every_view() -> None:
    names = {view.name for view in schema().views}
    file = tomllib.loads((FOLDER / "warehouse.toml").read_text(encoding="utf-8"))
    assert set(file["views"]) == names
    assert set(file["relations"]) == set(schema().relations)
    statements = (FOLDER / "contents.sql").read_text(encoding="utf-8")
    assert {
        line.removeprefix("-- view: ") for line in statements.splitlines() if line.startswith("-- view")
    } == names


def test_the_readme_shows_the_audit() -> None:
    shown = (FOLDER / "README.md").read_text(encoding="utf-8").split("<!-- audit -->")[1].split("```")[1]
    printed = run("audit", str(FOLDER / "warehouse.toml"), "--no-advice").stdout
    lines = [line.rstrip() for line in printed.split("\n\n", maxsplit=1)[0].splitlines()]
    assert shown.strip().splitlines()[2:] == lines


def test_the_guide_shows_an_audit() -> None:
    shown = (
        (ROOT / "docs" / "guide" / "audit.md")
        .read_text(encoding="utf-8")
        .split("<!-- audit -->")[1]
        .split("```")[1]
    )
    printed = run("audit", str(FOLDER / "warehouse.toml"), "--view", "order_lines").stdout
    lines = [line.rstrip() for line in printed.splitlines()]
    assert shown.strip().splitlines()[1:] == ["$ selfmaint audit warehouse.toml --view order_lines", *lines]


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The demo as a module; it and what it imports from its folder are forgotten afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("tpch_demo", FOLDER / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in ("contents", "data", "database"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("spark")
def test_the_tour_on_spark_too(demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["--scale", "0.001", "--orders", "4", "--work", str(tmp_path / "work")]) == 0
    printed = capsys.readouterr().out
    assert "(both engines print the same: yes)" in printed
    assert "verified: recomputing every view from its sources gives the same rows" in printed
    assert "written: customers, building_orders, same_day_orders, order_lines, sales" in printed
    assert not (tmp_path / "work").exists()
