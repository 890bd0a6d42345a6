"""The TPC-H example: what its README says of the views, and the tour from end to end at a small scale."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import duckdb
import pytest

import selfmaint
from datalog.syntax import parse_program
from selfmaint.decide.decision import Decision
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
    assert file["store"] == {"kind": "lake", "path": "lake"}
    assert not file.get("views")
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
    monkeypatch.setitem(sys.modules, spec.name, module)  # where its dataclasses look
    spec.loader.exec_module(module)
    yield module
    for name in ("contents", "data", "database"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("spark")
def test_the_tour_on_spark_too(
    demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It prints what the README shows, and makes the views that `contents.sql` says."""
    monkeypatch.setenv("COLUMNS", "110")
    work = tmp_path / "work"
    assert demo.main(["--work", str(work), "--keep"]) == 0
    printed = capsys.readouterr().out.splitlines()
    shown = (FOLDER / "README.md").read_text(encoding="utf-8").split("<!-- tour -->")[1].split("```")[1]
    lines = [plain(line) for line in shown.splitlines()[1:]]
    assert lines == [plain(line) for line in printed[: len(lines)]]
    assert len(printed) == len(lines) + 2  # how long it took, and where the files are
    excerpt = (ROOT / "README.md").read_text(encoding="utf-8").split("<!-- not run: it is of the tour")[1]
    (command,) = excerpt.split("```console\n$ ")[1].split("\n```")[0].split("\n$ ")
    assert command in "\n".join(printed)
    after = {name: changed(work, name) for name in demo.data.SCHEMAS}
    before = {name: read_parquet(work / "base" / f"{name}.parquet") for name in demo.data.SCHEMAS}
    for version, base in ((3, before), (4, after), (5, before), (6, after)):
        assert by_hand(base) == in_lake(work, version)


MEASURED = re.compile(r"[0-9.]+ s\b")
AGREEING = re.compile(r"[0-9]+ of 8 verdicts agree")
MOMENT = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9:]{8}[+-][0-9:]{5}")
SIZE = re.compile(r"[0-9,]+ *│$")


def plain(line: str) -> str:
    """A line without what is another one in each run: seconds and what is done in them, moments, sizes of files."""
    timeless = MOMENT.sub("MOMENT", MEASURED.sub("SECONDS", AGREEING.sub("SOME", line))).rstrip()
    return SIZE.sub("SIZE │", timeless) if "MOMENT" in timeless else timeless


def read_parquet(path: Path) -> str:
    return f"(FROM read_parquet('{path}'))"


def changed(work: Path, name: str) -> str:
    """The rows of a base relation after the update."""
    rows = read_parquet(work / "base" / f"{name}.parquet")
    for part, how in (("delete", "EXCEPT ALL"), ("insert", "UNION ALL")):
        file = work / "update" / f"{name}.{part}.parquet"
        rows = f"({rows} {how} {read_parquet(file)})" if file.exists() else rows
    return rows


def by_hand(base: dict[str, str]) -> dict[str, Counter[tuple[object, ...]]]:
    contents = sys.modules.get("contents") or importlib.import_module("contents")
    with duckdb.connect() as database:
        for name, rows in base.items():
            database.execute(f"CREATE VIEW {name} AS FROM {rows}")
        return {name: Counter(database.sql(text).fetchall()) for name, text in contents.statements().items()}


def in_lake(work: Path, version: int) -> dict[str, Counter[tuple[object, ...]]]:
    with selfmaint.load(work / "warehouse.toml", engine="duckdb") as warehouse:
        found = {view.name: warehouse.query(view.name, as_of=version) for view in warehouse.catalog.views}
    return {
        name: Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        for name, rows in found.items()
    }


def test_a_tour_that_goes_wrong_says_so(demo: ModuleType, tmp_path: Path) -> None:
    tour = demo.Tour(tmp_path)
    (tmp_path / "warehouse.toml").write_text('program_text = "v(X) :- r(X)."\n', encoding="utf-8")
    tour.command("check", "--update", "none")
    assert tour.problems == ["`selfmaint check warehouse.toml --update none` ends with status 2"]
