"""Views whose rows are the same whatever the database: none, or the one of what aggregates no rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from datalog.model import Row
from selfmaint import Update
from selfmaint.api.explain import explain
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.canonical import contributions
from selfmaint.decide.decision import Decision
from selfmaint.decide.procedure import check
from selfmaint.decide.saturation import saturated
from selfmaint.decide.table1 import diff_program
from selfmaint.decide.verdict import SelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import Code, InputError
from selfmaint.fallback.settle import Readable
from selfmaint.maintain import Delta
from selfmaint.sources.memory import RowsSource
from selfmaint.warehouse.catalog import GroupedView
from selfmaint.warehouse.situation import Situation
from tests.large_engine import LargeEngine

TABLE = """create table t (
    id int not null primary key, a int not null, b tinyint not null, s string not null, d date not null,
    f boolean not null, m decimal(9,2) not null);
"""
ROW: Row = (1, 1, 7, "x", dt.date(2024, 1, 15), True, Decimal("-2.25"))
NEVER = [
    "a > 5 and a < 3",
    "a > 1 and a < 2",
    "a = 1 and a = 2",
    "a <> a",
    "a > b and b > a",
    "b > 127",
    "b = 200",
    "a > 2147483647",
    "m > 9999999.99",
    "m = 10000000",
    "m = 0.125",
    "d < date '2024-01-01' and d > date '2024-02-01'",
    "s = 'x' and s = 'y'",
    "f = true and f = false",
    "f > true",
    "a is null",
    "a in (1) and a not in (1)",
]
QUERIES = {
    "plain": "select id, a, b, s, d, f, m from t where {}",
    "bag": "select s from t where {}",
    "distinct": "select distinct s from t where {}",
    "group": "select s, count(*) as n, avg(a) as x from t where {} group by s having count(*) > 1",
    "total": "select count(*) as n, sum(a) as x, coalesce(max(a), 0) + 1 as y, count(distinct a) as z from t where {}",
}


def warehouse(condition: str, kind: str, rows: frozenset[Row]) -> Warehouse[frozenset[Row]]:
    program = f"{TABLE}create view v as {QUERIES[kind].format(condition)};"
    return build(program, {"v": rows}, MemoryEngine())


def rows_of(kind: str) -> frozenset[Row]:
    return frozenset({(0, None, 1, 0)}) if kind == "total" else frozenset()


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("condition", NEVER)
def test_a_view_whose_condition_never_holds_stays_as_it_is(condition: str, kind: str) -> None:
    made = warehouse(condition, kind, rows_of(kind))
    (view,) = made.catalog.views
    assert (view.body, view.limitation) == ((), None)
    assert not isinstance(view, GroupedView)
    assert bool(view.always_empty) != bool(view.always_one) == (kind == "total")
    found = made.maintain(Update({"t": frozenset({ROW})}, {}, effective=True))
    assert isinstance(found.verdicts["v"], SelfMaintainable)
    assert found.deltas["v"] == Delta(frozenset(), frozenset())
    (warning,) = [d for d in made.catalog.warnings if d.code is Code.ALWAYS_EMPTY]
    assert warning.message == f"the view {view.unchanging}"


def test_an_empty_view_is_no_evidence_against_what_its_conditions_forbid() -> None:
    """Beside `big`, which is always empty, `by_order` was said to stay as it is."""
    program = """
        create table ord (o_id bigint not null primary key, o_status string not null);
        create table line (
            l_id bigint not null primary key, l_ord bigint not null references ord (o_id),
            l_amt decimal(9,2) not null);
        create view big as select distinct o_id, o_status, l_id from ord join line on o_id = l_ord
            where l_amt > 9999999.99;
        create view by_order as select o_id, o_status, count(*) as n from ord join line on o_id = l_ord
            group by o_id, o_status;
    """
    before: dict[str, frozenset[Row]] = {"big": frozenset(), "by_order": frozenset({(10, "a", 1)})}
    update = Update({"ord": frozenset({(10, "b")})}, {"ord": frozenset({(10, "a")})}, effective=True)
    verdicts = build(program, before, MemoryEngine()).check(update)
    assert [isinstance(verdicts[name], SelfMaintainable) for name in ("big", "by_order")] == [True, False]


def test_a_union_is_its_rules_that_can_have_rows() -> None:
    text = f"{TABLE}create view v as select id, a, b, s, d, f, m from t where b > 200 or a = 3 or a is null;"
    (view,) = catalog_of(text).views
    assert (view.limitation, view.always_empty) == (None, None)
    assert view.head.terms[1] == view.body[0].terms[1]


@pytest.mark.parametrize("stored", [frozenset(), frozenset({(0, 0, 1, 0)}), frozenset({(1, None, 1, 0)})])
def test_what_aggregates_no_rows_must_be_stored_as_it_is(stored: frozenset[Row]) -> None:
    made = warehouse("a > 5 and a < 3", "total", stored)
    with pytest.raises(InputError, match="SM201"):
        made.check(Update({"t": frozenset({ROW})}, {}, effective=True))


def test_what_aggregates_no_rows_is_verified_explained_and_audited() -> None:
    text = f"{TABLE}create view v as {QUERIES['total'].format('b > 127')};"
    source = Readable(RowsSource("here", {"t": (("id", "a", "b", "s", "d", "f", "m"), frozenset({ROW}))}))
    update = Update({"t": frozenset({ROW})}, {}, effective=True)
    made = build(text, {"v": rows_of("total")}, MemoryEngine(), readable={"t": source})
    assert made.maintain(update, verify=True).differences == ()
    assert "has one row, whatever the database" in str(explain(made, update, "v"))
    situation = Situation(inserted=frozenset({"t"}))
    assert (
        diff_program(made.catalog, situation, contributions(made.catalog), made.catalog.view("v")).rules == ()
    )
    assert set(made.audit().audit.words().values()) == {"always"}


def test_what_was_found_holds_for_one_question() -> None:
    """The same facts, said to be effective or not, are other knowledge."""
    engine = MemoryEngine()
    made = build(".decl t(a: int). v(A) :- t(A).", {"v": frozenset({(1,)})}, engine)
    decision = Decision(made.catalog)
    facts, effective = made.given(Update({"t": frozenset({(1,), (2,)})}, {}, effective=True))
    known = decision.knowledge(engine, facts, effective)
    assert check(known, made.catalog.views)["v"]
    assert saturated(known) is known
    assert known.kept
    other = known.learning(facts, Situation(inserted=frozenset({"t"})))
    assert (other.situation, other.kept) == (Situation(inserted=frozenset({"t"})), {})


@pytest.mark.parametrize("changed", ["r", "s", "t", "other"])
def test_a_view_of_any_class_stays_as_it_is_if_it_reads_nothing_that_changes(changed: str) -> None:
    program = """
    .decl r(x: int). .decl s(x: int). .decl t(x: int). .decl other(x: int).
    either(X) :- r(X).
    either(X) :- s(X).
    over(X) :- either(X), not t(X).
    """
    contents: dict[str, frozenset[Row]] = {"either": frozenset({(1,)}), "over": frozenset({(1,)})}
    here = build(program, contents, MemoryEngine())
    update = Update({changed: frozenset({(2,)})}, effective=True)
    found = here.check(update)
    stays = {"either", "over"} if changed == "other" else {"either"}
    assert {name for name, verdict in found.items() if verdict} == stays
    # What a rule of `either` gains is determined, too.
    stays = {"either", "over"} if changed == "other" else {"either"}
    found = build(program, contents, LargeEngine()).check(update)
    assert {name for name, verdict in found.items() if verdict} == stays
    empty = here.maintain(Update({changed: frozenset[Row]()}, effective=True))
    assert all(not change.gained and not change.lost for change in empty.deltas.values())
