"""`selfmaint explain` for people and for machines: what each part of an explanation is printed as."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest
from rich.console import Console

from datalog.model import Row
from selfmaint.api.explain import explain
from selfmaint.api.explanation import Explanation
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.decide.search_budget import SearchBudget
from selfmaint.decide.verdict import NotSelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from selfmaint.possible.new_state import TwoDatabases
from selfmaint.report.explanation import explanation_json, explanation_sql, render
from tests.large_engine import LargeEngine

_KEYED = (
    ".decl r(x: bigint not null, y: bigint not null) key(x) foreign(y) references s(y)."
    ".decl s(y: bigint not null, z: bigint not null) key(y)."
    ".decl t(z: bigint not null)."
)


def explained(
    program: str, inserted: dict[str, frozenset[Row]], view: str = "v", **stored: frozenset[Row]
) -> Explanation:
    warehouse = build(program, stored, MemoryEngine())
    return explain(warehouse, Update(inserted, effective=True), view)


def printed(explanation: Explanation) -> list[str]:
    console = Console(width=120, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(render(explanation))
    return [line.rstrip() for line in capture.get().splitlines()]


def a_no() -> Explanation:
    views = "v(X, Y, Z) :- r(X, Y), s(Y, Z), t(Z). w(Y, Z) :- s(Y, Z)."
    stored = {"v": frozenset({(1, 1, 1)}), "w": frozenset({(1, 1), (2, 2)})}
    return explained(_KEYED + views, {"r": frozenset({(5, 2)})}, **stored)


def test_no_cell_of_the_two_databases_ends_in_an_empty_line() -> None:
    lines = printed(a_no())
    start = next(i for i, line in enumerate(lines) if line.startswith("┡"))
    table = lines[start + 1 : next(i for i, line in enumerate(lines) if line.startswith("└"))]
    assert [line.replace(" ", "") for line in table] == [
        "│r│(1,1)│(1,1)│+(5,2)│",
        "├──────────┼────────────────┼─────────────────┼────────────┤",
        "│s│(1,1)│(1,1)││",
        "││(2,2)│(2,2)││",
        "├──────────┼────────────────┼─────────────────┼────────────┤",
        "│t│(1)│(1)││",
        "│││(2)││",
    ]


def test_what_a_read_settles_is_named_where_no_databases_are_shown() -> None:
    views = (
        "v(X, Y, Z) :- r(X, Y), s(Y, Z), t(Z). w(Y, Z) :- s(Y, Z). p(X) :- r(X, Y), t(Y)."  # `p` is a doubt
    )
    stored = {"v": frozenset({(1, 1, 1)}), "w": frozenset({(1, 1), (2, 2)}), "p": frozenset[Row]()}
    program = _KEYED.replace(" foreign(y) references s(y)", "") + views
    warehouse = build(program, stored, LargeEngine())
    warehouse.search = SearchBudget(rows=1)
    update = Update({"r": frozenset({(5, 2)})}, effective=True)
    lines = printed(explain(warehouse, update, "v"))
    assert lines[0] == "v: undecided"
    assert "one of these reads would settle whether there is t(2):" in lines
    assert "one of these reads would settle the first witness:" in printed(a_no())


def test_what_is_ruled_out_names_subgoals_only_once() -> None:
    ruled_out = [line for line in printed(a_no()) if "would have a row that it does not store" in line]
    assert ruled_out == ["  s(Y, Z): `w` would have a row that it does not store"]


def test_a_referenced_row_that_is_ruled_out_is_said_to_be_one() -> None:
    views = "v(X, Y) :- r(X, Y), t(Y). w(Y, Z) :- s(Y, Z)."
    found = explained(_KEYED + views, {"t": frozenset({(1,)})}, v=frozenset(), w=frozenset({(1, 1)}))
    assert "  a referenced row s(Y, _): `w` would have a row that it does not store" in printed(found)
    (entry,) = explanation_json(found)["ruled_out"]  # type: ignore[call-overload,index]
    assert entry == {"subgoals": [], "referenced": ["s(Y, _)"], "view": "w"}


def test_a_free_value_is_named_by_its_column() -> None:
    program = (
        ".decl line(order: bigint not null, number: int not null) key(order, number)."
        ".decl orders(id: bigint not null) key(id)."
        "v(O, L) :- line(O, L), orders(O)."
    )
    found = explained(program, {"orders": frozenset({(1,)})}, v=frozenset())
    assert "  line(O, L) (with any value for L in `line.number`): possible" in printed(found)
    (entry,) = explanation_json(found)["tested"]  # type: ignore[call-overload,index]
    assert entry["fresh"] == [{"variable": "L", "relation": "line", "column": "number"}]  # type: ignore[call-overload,index]


def test_json_has_what_the_second_database_lacks() -> None:
    found = explanation_json(a_no())
    assert found["counterexample"]["removed"] == {}  # type: ignore[call-overload,index]


@pytest.mark.parametrize(
    ("views", "stored", "update"),
    [
        (
            "create view v as select h, max(id) as m from b group by h;",
            {"v": frozenset({(1, 5)})},
            {"b": frozenset({(5, 1)})},
        ),
        (
            "create view u as select distinct h, x from b; create view v as select h, count(*) as k from u group by h;",
            {"u": frozenset({(1, 5), (1, 6)}), "v": frozenset({(1, 2)})},
            {"b": frozenset({(7, 1, 5)})},
        ),
    ],
)
def test_the_script_of_a_view_that_groups_shows_two_databases_that_differ(
    views: str, stored: dict[str, frozenset[Row]], update: dict[str, frozenset[Row]]
) -> None:
    more = ", x int not null" if " x " in views else ""
    program = f"create table b (id int primary key, h int not null{more});{views}"
    warehouse = build(program, stored, MemoryEngine())
    explanation = explain(warehouse, Update({}, update, effective=True), "v")
    assert explanation.counterexample is not None
    statements = (
        explanation_sql(explanation).replace("`", '"').replace("FROM VALUES", "FROM (VALUES").split(";")
    )
    found = [Counter(duckdb.sql(_closed(one)).fetchall()) for one in statements if one.strip()]
    assert found[0] == found[1] == Counter(stored["v"])
    assert found[2] != found[3]
    assert explanation_json(explanation)["counterexample"]["sql"] == explanation_sql(explanation)  # type: ignore[index,call-overload]


def _closed(statement: str) -> str:
    """Spark's inline table as DuckDB has it."""
    return statement.replace(' AS "facts"', ') AS "facts"')


def test_many_facts_are_not_listed_as_what_a_verdict_hangs_on() -> None:
    pair = TwoDatabases({"r": frozenset()}, {"r": frozenset((i,) for i in range(9))}, (3,))
    assert NotSelfMaintainable("v", (), databases=pair).because == (
        "v(3) may or may not be a row: two databases differ in 9 facts"
    )
