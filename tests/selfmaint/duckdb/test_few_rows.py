"""What is computed in this process instead of by a statement: the same rows, of the same types."""

from __future__ import annotations

import datetime as dt
import math
import sys
from decimal import Decimal
from typing import Any

import pytest

from datalog.budget import BudgetSpentError, limit
from datalog.model import ANY, ColumnType, Predicate, TypeName, Value, Version, WallClock
from datalog.sql.duckdb import relations
from datalog.sql.duckdb.types import type_name
from datalog.syntax import parse_program
from selfmaint.duckdb import DuckEngine
from selfmaint.duckdb.exact_rows import found_rows, listed, rows_of
from selfmaint.duckdb.relation import Relation, Stored
from selfmaint.engine.protocol import Facts
from selfmaint.errors import InputError

R, S, V = Predicate("r"), Predicate("s"), Predicate("v")
INT, BIGINT, DOUBLE, DATE = (ColumnType(TypeName[n]) for n in ("INT", "BIGINT", "DOUBLE", "DATE"))
INSTANT, CLOCK = (ColumnType(TypeName[n]) for n in ("TIMESTAMP", "TIMESTAMP_NTZ"))
DECIMAL, STRING = ColumnType(TypeName.DECIMAL, 9, 2), ColumnType(TypeName.STRING)

CASES = {
    "one type": (INT, INT, [1, 2, None], [2, None]),
    "none on the right": (INT, INT, [1, 2, None], []),
    "two types": (INT, BIGINT, [1, 2, None], [2, None]),
    "decimals": (DECIMAL, DECIMAL, [1, 2, None], [2, None]),
    "texts": (STRING, STRING, ["b", "\U0001f600", "\uffff", None], ["b", "z", None]),
    "zeros": (DOUBLE, DOUBLE, [0.0, -0.0, 1.5], [-0.0]),
    "no number": (DOUBLE, DOUBLE, [math.nan, 1.0, math.inf], [math.nan, -math.inf]),
    "instants": (
        INSTANT,
        INSTANT,
        [dt.datetime(2026, 3, 29, 2, 30), None],
        [dt.datetime(2026, 3, 29, 2, 30)],
    ),
    "clocks": (CLOCK, CLOCK, [WallClock(2026, 3, 29, 2, 30), None], [WallClock(2026, 3, 29, 2, 30, 0, 1)]),
    "days": (DATE, DATE, [dt.date(1, 1, 1), dt.date(2026, 1, 1)], [dt.date(9999, 12, 31), dt.date(1, 1, 1)]),
}
RULES = (
    "v(X) :- r(X), s(X).",
    "v(X) :- r(X), not s(X).",
    "v(X) :- r(X), s(Y), X < Y.",
    "v(X) :- r(X). v(X) :- s(X).",
    "v(X, Y) :- r(X), s(Y), X != Y, X is not null.",
    "v(X) :- r(X), not (s(Y), Y > X).",
    "v(X) :- r(X), X is not null, not (s(Y), not r(Y)), not s(X).",
    "v(X) :- r(X), X is null.",
)


HERE, BY_STATEMENT = DuckEngine(), DuckEngine(most_few=0)
"""A database takes longer to make than these questions to be answered."""


def found(engine: DuckEngine, rule: str, case: str, not_null: frozenset[int]) -> tuple[Relation, list[str]]:
    left, right, r, s = CASES[case]
    given = {
        R: engine.load([(x,) for x in r], ["x"], [left]),
        S: engine.load([(x,) for x in s], ["x"], [right]),
    }
    made = engine.evaluate(parse_program(rule), V, Facts(given, {R: not_null, S: not_null}))
    shown = sorted(
        repr([0.0 if v == 0 and type(v) is float else v for v in r]) for r in engine.sample(made, 99)
    )
    return made, shown


@pytest.mark.parametrize("promised", [frozenset[int](), frozenset({0})], ids=["", "never null"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rule", RULES)
def test_the_same_rows_of_the_same_types(rule: str, case: str, promised: frozenset[int]) -> None:
    here, rows = found(HERE, rule, case, promised)
    by_statement, expected = found(BY_STATEMENT, rule, case, promised)
    assert rows == expected
    assert here.types == by_statement.types
    assert by_statement.stored.here is None


@pytest.mark.parametrize("case", CASES)
def test_what_is_computed_here(case: str) -> None:
    made, _ = found(HERE, RULES[0], case, frozenset())
    assert (made.stored.here is None) == (case in {"two types", "no number", "days"})


def test_a_promise_that_is_broken_is_left_to_a_statement() -> None:
    made, rows = found(DuckEngine(), RULES[0], "one type", frozenset({0}))
    assert made.stored.here is None
    assert rows == ["[2]"]


def test_a_statement_reads_what_was_computed_here() -> None:
    engine = DuckEngine()
    made, _ = found(engine, RULES[1], "texts", frozenset())
    assert made.stored.here is not None
    assert sorted(map(str, made.arrow()["c0"].to_pylist())) == sorted(str(x) for (x,) in made.stored.here)


@pytest.mark.parametrize("case", ["one type", "none on the right", "texts"])
def test_from_where_to_where_values_go(case: str) -> None:
    spans = set()
    for few in (0, 100):
        made, _ = found(DuckEngine(most_few=few), RULES[3], case, frozenset())
        assert (made.stored.here is None) == (few == 0)
        spans.add(made.stored.span)
    assert spans == {(-math.inf, math.inf) if case == "texts" else (1, 2)}


@pytest.mark.parametrize("name", ["BIGINT", "INT", "SMALLINT", "TINYINT"])
@pytest.mark.parametrize("rows", [[], [(None, 1)], [(0, None), (1, -1), (None, None)]])
def test_integers_that_were_computed_here_are_those_that_statements_read(
    name: str, rows: list[tuple[int | None, ...]]
) -> None:
    engine, types = DuckEngine(), [ColumnType(TypeName[name])] * 2
    most = 2 ** {"BIGINT": 63, "INT": 31, "SMALLINT": 15, "TINYINT": 7}[name]
    rows = [*rows, *([(most - 1, -most)] if rows else [])]
    stored = engine.database.computed(frozenset(rows), tuple(types))
    made = Relation(stored, ("a", "b")).arrow()
    assert made.schema == engine.load(rows, ["a", "b"], types).arrow().schema
    assert {tuple(row.values()) for row in made.to_pylist()} == set(rows)


def test_a_join_of_many_rows_is_left_to_a_statement() -> None:
    engine = DuckEngine()
    rows = engine.load([(i,) for i in range(200)], ["x"], [INT])
    made = engine.evaluate(parse_program("v(X, Y) :- r(X), s(Y)."), V, Facts({R: rows, S: rows}))
    assert made.stored.here is None
    assert engine.count(made) == 40_000


@pytest.mark.parametrize("head", ["BXAY", "BAX", "XBA", "AXB"])
def test_the_first_rows_of_a_product_are_found_in_its_parts(head: str) -> None:
    engine = DuckEngine(most_few=0)
    engine.programs.most_multiplied = 0
    program = parse_program(f"p({', '.join(head)}) :- r(A, B), s(X, Y).")
    facts = {
        Predicate("r"): [(a, b) for a in range(30) for b in range(3)],
        Predicate("s"): [(x, y) for x in range(3) for y in range(30)],
    }
    types = [ColumnType(TypeName.INT)] * 2
    loaded = Facts({p: engine.load(rows, ["a", "b"], types) for p, rows in facts.items()})
    found = engine.evaluate(program, Predicate("p"), loaded)
    every = ((*one, *other) for one in facts[Predicate("r")] for other in facts[Predicate("s")])
    expected = sorted({tuple(row["ABXY".index(v)] for v in head) for row in every})
    assert found.stored.rows is None, "it is a product"
    assert engine.sample(found, 7) == expected[:7]
    assert engine.count(found) == len(expected)


def test_what_no_link_ties_is_not_multiplied_with_what_links_do() -> None:
    engine = DuckEngine(most_few=0)
    engine.programs.most_multiplied = 10
    program = parse_program("p(X, Y, Z) :- r(X, A), s(Y, B), t(Z, C), not (A >= B, q(A, B)).")
    rows = [(i, i % 3) for i in range(20)]
    types = [ColumnType(TypeName.INT)] * 2
    names = [Predicate(name) for name in "rstq"]
    loaded = Facts({p: engine.load(rows, ["a", "b"], types) for p in names})
    found = engine.evaluate(program, Predicate("p"), loaded)
    tied = [(x, y) for x, a in rows for y, b in rows if not (a >= b and (a, b) in rows)]
    assert found.stored.rows is None, "it is a product"
    assert engine.count(found) == len(tied) * len(rows) < len(rows) ** 3
    assert engine.nonempty(program, [Predicate("p")], loaded) == {Predicate("p")}


def test_what_several_rules_multiply_is_put_together_where_it_is_used() -> None:
    """Of keys of one part only that part is read, for each rule; of the others it is asked whether they have a row."""
    engine = DuckEngine(most_few=0)
    engine.programs.most_multiplied = 10
    program = parse_program(
        "p(X, Y) :- r(X, A), s(Y, B), t(C, C).  p(X, Y) :- r(X, A), q(Y, B).  p(X, X) :- q(X, 1)."
    )
    rows = [(i, i % 3) for i in range(20)]
    names = [Predicate(name) for name in "rstq"]
    loaded = Facts({p: engine.load(rows, ["a", "b"], [INT] * 2) for p in names})
    found = engine.evaluate(program, Predicate("p"), loaded)
    every = [(x, y) for x in range(20) for y in range(20)]
    assert found.stored.rows is None, "it is put together when it is used"
    assert engine.count(found) == len(every)
    assert engine.sample(found, 25) == every[:25]
    given = Facts({Predicate("p"): found}, {}, frozenset())
    for rule, expected in (
        ("k(X) :- p(X, Y).", {(i,) for i in range(20)}),
        ("k(X) :- p(X, X), X > 17.", {(18,), (19,)}),
        ("k(X) :- p(X, 3), not p(3, X).", set()),
    ):
        keys = engine.evaluate(parse_program(rule), Predicate("k"), given)
        assert set(engine.sample(keys, 100)) == expected, rule


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("k(X, Y) :- p(X, A), p(Y, B).", {(x, y) for x in (1, 2, 3, 4) for y in (1, 2, 3, 4)}),
        ("k(X, Y) :- p(X, A), p(A, Y).", {(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1), (4, 2)}),
        ("k(X, Y) :- p(X, A), p(Y, B), not p(Y, X).", {(x, y) for x in (3, 4) for y in (1, 2, 3, 4)}),
    ],
)
def test_each_subgoal_has_the_rows_of_all_rules(rule: str, expected: set[tuple[int, int]]) -> None:
    engine = DuckEngine(most_few=0)
    engine.programs.most_multiplied = 0
    r, s = (engine.load([(i,), (i + 1,)], ["a"], [INT]) for i in (1, 3))
    program = parse_program("p(X, Y) :- r(X), r(Y).  p(X, Y) :- s(X), r(Y).")
    found = engine.evaluate(program, Predicate("p"), Facts({R: r, S: s}))
    assert found.stored.rows is None, "it is put together when it is used"
    keys = engine.evaluate(parse_program(rule), Predicate("k"), Facts({Predicate("p"): found}))
    assert set(engine.sample(keys, 100)) == expected


@pytest.mark.parametrize("more", ["", "  p(X, X) :- r(1, X)."])
def test_rows_that_differ_in_what_nobody_uses_are_not_multiplied(more: str) -> None:
    engine, number = DuckEngine(most_few=0), 200_000
    rows = engine.load([(i, i % 3) for i in range(number)], ["a", "b"], [INT] * 2)
    program = parse_program(f"p(X, Y) :- r(A, X), r(B, Y), not r(X, Y).{more}")
    found = engine.evaluate(program, Predicate("p"), Facts({R: rows}))
    right = {(x, y) for x in range(3) for y in range(3) if x != y}
    assert set(engine.sample(found, 20)) == right | ({(1, 1)} if more else set())


def test_a_test_ends_where_what_is_linked_has_too_many_combinations() -> None:
    engine = DuckEngine(most_few=0)
    rows = engine.load([(i, i) for i in range(3_000)], ["a", "b"], [INT] * 2)
    rule = "v@depends(X, Y) :- r(X, A), r(Y, B), not (r(A, C), C < B)."
    goal, facts = Predicate("v", Version.DEPENDS), Facts({R: rows})
    with limit(1, "a test"), pytest.raises(BudgetSpentError, match="putting together 9,000,000 rows"):
        engine.evaluate(parse_program(rule), goal, facts)
    assert engine.nonempty(parse_program(rule), [goal], facts) == {goal}


def test_where_duckdb_has_no_room_it_is_said() -> None:
    engine = DuckEngine({"memory_limit": "20MB", "temp_directory": "", "threads": 1}, most_few=0)
    rows = engine.load([(i,) for i in range(3_000)], ["a"], [INT])
    with pytest.raises(InputError, match="DuckDB has no room for what it computes"):
        engine.evaluate(parse_program("v(X, Y) :- r(X), s(Y), X <= Y."), V, Facts({R: rows, S: rows}))


@pytest.mark.parametrize("most_few", [0, 100])
@pytest.mark.parametrize(
    ("rule", "promised", "holds"),
    [
        ("v(X) :- r(X, Y), X is null.", {0}, False),
        ("v(X) :- r(X, Y), X is null.", {1}, True),
        ("v(Y) :- r(X, Y), not (X is not null, Y is not null).", {0, 1}, False),
        ("v(Y) :- r(X, Y), not (X is not null, Y is not null).", {1}, True),
    ],
)
def test_nulls_are_not_looked_for_where_none_is(
    rule: str, promised: set[int], holds: bool, most_few: int
) -> None:
    engine = DuckEngine(most_few=most_few)
    rows = [(1, 2)] if not holds else [(1, 2), (None, 3)]
    given = Facts({R: engine.load(rows, ["x", "y"], [INT, INT])}, {R: frozenset(promised)})
    assert (V in engine.nonempty(parse_program(rule), [V], given)) is holds


def test_what_takes_a_large_join_may_be_left_out() -> None:
    engine = DuckEngine(most_few=0)
    rows = engine.load([(0, x) for x in range(300)], ["k", "x"], [INT, INT])
    facts = Facts({R: rows, S: rows})
    program = parse_program("v(X, Y) :- r(K, X), s(K, Y), X < Y. w(X) :- r(K, X), s(K, X).")
    goals = {V: ["x", "y"], Predicate("w"): ["x"]}
    every = engine.evaluate_all(program, goals, facts)
    assert [engine.count(every[goal]) for goal in goals] == [300 * 299 // 2, 300]
    engine.release()
    few = engine.evaluate_all(program, goals, facts, 1_000)
    assert {goal: engine.count(found) for goal, found in few.items()} == {Predicate("w"): 300}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (INT, [-(2**31), 7, None]),
        (BIGINT, [2**63 - 1, None]),
        (STRING, ["", "it's", "a\x00b", "\U0001f600", "1.50", None]),
        (ColumnType(TypeName.BOOLEAN), [True, False, None]),
        (DATE, [dt.date(1, 1, 2), dt.date(9999, 12, 30), None]),
        (DECIMAL, [Decimal("1.5"), Decimal("-9999999.99"), Decimal("0.00"), 3, None]),
        (
            ColumnType(TypeName.DECIMAL, 38, 20),
            [Decimal("1E+3"), Decimal("123456789012345678.01234567890123456789")],
        ),
        (ColumnType(TypeName.DECIMAL, 38, 0), [Decimal(10**38 - 1), 10**37 + 1, None]),
        (
            INSTANT,
            [
                dt.datetime(1, 1, 1),
                dt.datetime(2026, 3, 29, 2, 30, 0, 1),
                dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
                None,
            ],
        ),
        (CLOCK, [WallClock(1, 1, 1), WallClock(2026, 3, 29, 2, 30, 0, 1), WallClock.max, None]),
        (DOUBLE, [0.1, -0.0, 5e-324, 1.7976931348623157e308, math.inf, 2.0**53 + 2, None]),
        (ColumnType(TypeName.FLOAT), [0.10000000149011612, -0.0, 1.401298464324817e-45, -math.inf, None]),
    ],
)
def test_few_rows_enter_a_statement_as_arrow_gives_them(
    kind: ColumnType, values: list[Value], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, rows = DuckEngine().database, frozenset((value, None) for value in values)
    assert listed(rows, [kind, kind]) is not None
    in_lists = database.computed(rows, [kind, kind])
    found = [database.digest(in_lists)]
    monkeypatch.setattr("selfmaint.duckdb.database.listed", lambda *_: None)
    given = database.computed(rows, [kind, kind])
    found.append(database.digest(given))
    assert found[0] == found[1]
    types = [database.run(f"DESCRIBE {one.name}") for one in (in_lists, given)]
    assert types[0] == types[1]


def test_other_types_and_many_rows_enter_by_arrow() -> None:
    many = frozenset((number,) for number in range(101))
    assert "pyarrow" in sys.modules
    assert listed(many, [INT]) is None
    assert listed(frozenset({(None,)}), [ANY]) is None
    assert listed(frozenset(), []) is None
    assert listed(frozenset(), [INT]) == ["[]"]
    assert listed(frozenset(), [STRING]) == ["[]"]


@pytest.mark.parametrize("kind", [INSTANT, CLOCK])
@pytest.mark.parametrize(
    "texts",
    [
        ["2026-03-29 02:30:00", "2026-03-29 02:30:00.000001", "0001-01-01 00:00:00", None],
        ["9999-12-31 23:59:59.999999"],
        [],
        ["infinity"],
        ["-infinity", None],
        ["10000-01-01 00:00:00", "2026-03-29 02:30:00"],
        ["0044-03-15 (BC) 00:00:00"],
    ],
)
def test_times_come_as_arrow_gives_them(kind: ColumnType, texts: list[str | None]) -> None:
    database = DuckEngine().database
    stored = Stored(database, 0, (kind,), len(texts))
    database.run(
        f"CREATE TABLE {stored.name} AS SELECT unnest(?::VARCHAR[])::{type_name(kind)} AS c0", [texts]
    )
    query = relations.rows(stored.name, 1, ordered=True)
    said: list[Any] = []
    for read in (
        lambda: rows_of(stored, query),
        lambda: found_rows(database.rows(query, [stored.name]), 1),
    ):
        try:
            said.append([(type(value), value) for (value,) in read()])
        except InputError as failure:
            said.append(str(failure))
    assert said[0] == said[1]
