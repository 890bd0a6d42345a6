"""What every engine for data of any size does, beside the in-memory one."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from datalog.model import (
    ANY,
    Atom,
    ColumnType,
    Comparison,
    Constant,
    Literal,
    NullTest,
    Predicate,
    Program,
    Row,
    TypeName,
    Variable,
    Version,
    ViewDefinition,
    block,
)
from datalog.syntax import parse_program
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Engine, Facts
from selfmaint.errors import Code, InputError, ReadRefusedError

INT, BIGINT = ColumnType(TypeName.INT), ColumnType(TypeName.BIGINT)
R, S, E = Predicate("r"), Predicate("s"), Predicate("e")
HOSTILE = "'; DROP TABLE r; -- ${spark.master} \\ \" ` %s \n\u00e9\u4e2d"
ROWS: dict[Predicate, frozenset[Row]] = {
    R: frozenset({(1, "a"), (2, "b"), (2, None), (None, "a"), (None, None), (3, HOSTILE)}),
    S: frozenset({("a", 10), ("b", 2), (None, 7), (HOSTILE, None)}),
    E: frozenset(),
}


@pytest.fixture(params=["duckdb", "duckdb alone", "spark", "spark alone"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine[Any]]:
    made: Engine[Any]
    if request.param.startswith("spark"):
        from selfmaint.spark import SparkEngine

        spark = request.getfixturevalue("spark")
        made = SparkEngine(spark, 0) if request.param == "spark alone" else SparkEngine(spark)
    else:
        from selfmaint.duckdb import DuckEngine

        made = DuckEngine(most_few=0) if request.param == "duckdb alone" else DuckEngine()
    yield made
    made.release()


@pytest.fixture
def facts(engine: Engine[Any]) -> Facts[Any]:
    types = {R: [BIGINT, ANY], S: [ANY, INT], E: [BIGINT]}
    relations = {
        p: engine.load(rows, [f"c{i}" for i in range(len(types[p]))], types[p]) for p, rows in ROWS.items()
    }
    return Facts(relations, small=frozenset({R}))


PROGRAM = """
    join_(X, Z) :- r(X, Y), s(Y, Z).
    guarded(X, Z) :- r(X, Y), Y is not null, s(Y, Z).
    anti(X, Y) :- r(X, Y), not s(Y, Z).
    nested(X) :- r(X, Y), not (s(Y, Z), not r(Z, W)).
    compared(X, Z) :- r(X, Y), s(Y, Z), Z > X.
    either(Y) :- r(X, Y).
    either(Y) :- s(Y, Z), Z >= 7.
    twice(X) :- either(X), s(X, Z), not anti(Z, X).
    cross(X, Z) :- r(X, "a"), s(Z, 2).
    nothing(X) :- e(X), r(X, Y).
    constants(1, "x", null).
    constants(2, "y", null) :- r(X, Y).
    any_row() :- r(X, Y).
    no_row() :- e(X).
"""


def test_every_goal_has_the_rows_that_the_reference_gives(engine: Engine[Any], facts: Facts[Any]) -> None:
    program = parse_program(PROGRAM)
    for goal in program.heads:
        expected = MemoryEngine().evaluate(program, goal, Facts(ROWS))
        found = engine.sample(engine.evaluate(program, goal, facts), 1000)
        assert sorted(found, key=repr) == sorted(expected, key=repr), goal


def test_nonempty_agrees_with_the_reference(engine: Engine[Any], facts: Facts[Any]) -> None:
    program = parse_program(PROGRAM)
    goals = [*program.heads, R, E, Predicate("undefined"), program.heads[0]]
    expected = MemoryEngine().nonempty(program, goals, Facts(ROWS))
    assert engine.nonempty(program, goals, facts) == expected
    assert engine.nonempty(program, [], facts) == frozenset()
    assert engine.nonempty(Program(), [E, R], facts) == frozenset({R})


def test_a_predicate_named_like_the_mark_is_still_itself(engine: Engine[Any], facts: Facts[Any]) -> None:
    program = parse_program("goal(X) :- r(X, Y).  goal_(X) :- goal(X), not r(X, Y).")
    goals = [Predicate("goal"), Predicate("goal_")]
    assert engine.nonempty(program, goals, facts) == frozenset({Predicate("goal")})


def test_columns_are_named_as_asked(engine: Engine[Any], facts: Facts[Any]) -> None:
    program = parse_program("v(X, Y) :- r(X, Y).")
    hostile = ["a`b", "${c}"]
    assert engine.columns(engine.evaluate(program, Predicate("v"), facts, hostile)) == tuple(hostile)
    assert engine.columns(engine.evaluate(program, Predicate("v"), facts)) == ("c0", "c1")
    assert engine.columns(engine.evaluate(program, R, facts, ["x", "y"])) == ("x", "y")
    empty = engine.evaluate(program, Predicate("undefined"), facts, ["x"])
    assert engine.columns(empty) == ("x",)
    assert engine.count(empty) == 0


def test_a_predicate_without_facts_is_refused(engine: Engine[Any], facts: Facts[Any]) -> None:
    base = Predicate("item", Version.BEFORE)
    program = parse_program("v(X) :- r(X, Y), not item@before(X).  w(X) :- r(X, Y).")
    with pytest.raises(ReadRefusedError, match="item@before"):
        engine.evaluate(program, Predicate("v"), facts)
    with pytest.raises(ReadRefusedError) as refused:
        engine.nonempty(program, [Predicate("v")], facts)
    assert refused.value.diagnostics[0].code is Code.READ_REFUSED
    assert engine.nonempty(program, [Predicate("w")], facts)
    assert base not in facts.relations


@pytest.mark.parametrize(
    ("rows", "declared"),
    [
        ([(1,), ("1",)], ANY),
        ([(True,), (1,)], ANY),
        ([(2**31,)], INT),
        ([(Decimal("1.5"),)], INT),
        ([("1",)], INT),
        ([(Decimal("1.234"),)], ColumnType(TypeName.DECIMAL, 10, 2)),
        ([(Decimal(10) ** 30, 0)], ANY),
        ([(Decimal(10) ** 38,)], ANY),
        ([(float("nan"),)], ColumnType(TypeName.DECIMAL)),
        ([(dt.datetime(2024, 1, 1),)], ColumnType(TypeName.DATE)),
    ],
)
def test_values_that_do_not_fit_are_bad_input(
    rows: list[Row], declared: ColumnType, engine: Engine[Any]
) -> None:
    with pytest.raises(InputError) as refused:
        engine.load(rows, ["n"], [declared])
    assert refused.value.diagnostics[0].code is Code.COLUMNS_DIFFER


def test_a_timestamp_with_a_zone_becomes_the_sessions_wall_clock(engine: Engine[Any]) -> None:
    aware = dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert engine.sample(engine.load([(aware,)], ["t"], [ANY]), 1) == [(dt.datetime(2024, 1, 1, 10),)]


def test_relations_without_columns_have_at_most_one_row(engine: Engine[Any]) -> None:
    true, false = engine.load([(), ()], [], []), engine.load([], [], [])
    assert engine.sample(true, 5) == [()]
    assert engine.count(false) == 0
    program = parse_program("v(X) :- r(X), flag().")
    for flag, expected in ((true, 1), (false, 0)):
        given = Facts({R: engine.load([(1,)], ["x"], [ANY]), Predicate("flag"): flag})
        assert engine.count(engine.evaluate(program, Predicate("v"), given)) == expected


def test_sample_is_bounded(engine: Engine[Any], facts: Facts[Any]) -> None:
    assert len(engine.sample(facts.relations[R], 2)) == 2


def test_union_and_minus_go_by_position_and_nulls_are_equal(engine: Engine[Any]) -> None:
    left = engine.load([(1, None), (None, None), (2, "b")], ["x", "y"], [INT, ANY])
    right = engine.load([(1, None), (None, None)], ["y", "x"], [BIGINT, ANY])
    assert engine.sample(engine.minus(left, right), 9) == [(2, "b")]
    together = engine.union([left, right, left])
    assert engine.columns(together) == ("x", "y")
    assert engine.count(together) == 3
    assert engine.columns(engine.minus(left, right)) == ("x", "y")
    assert engine.count(engine.union([left])) == 3


def test_a_selection_leaves_rows_with_their_columns(engine: Engine[Any]) -> None:
    """Nulls are selected by a null test alone; more rows of the same relation are read later, too."""
    kinds = [BIGINT, ColumnType(TypeName.STRING)]
    data = engine.load([(1, "a"), (2, "b"), (3, None), (None, "a")], ["n", "t"], kinds)
    columns = (Variable("C0"), Variable("C1"))

    def rows(*tests: Literal) -> set[Row]:
        made = block("v", 0, [Atom(Predicate("v"), columns), *tests], columns)
        found = engine.selected(ViewDefinition("v", ("n", "t"), (made,)), data)
        assert engine.columns(found) == ("n", "t")
        return set(engine.sample(engine.minus(found, engine.empty(data)), 9))

    assert rows(Comparison("=", columns[1], Constant("a"))) == {(1, "a"), (None, "a")}
    assert rows(Comparison(">", columns[0], Constant(1))) == {(2, "b"), (3, None)}
    assert rows(NullTest(columns[1], negated=False)) == {(3, None)}
    assert rows(Comparison("<", columns[0], Constant(0))) == set()


def test_bags_are_counted_added_and_expanded(engine: Engine[Any]) -> None:
    names, types = ["x", "n"], [ANY, BIGINT]
    one, other = (
        engine.load(rows, names, types)
        for rows in ([("a", 2), (None, 1), ("b", 1)], [("a", 1), (None, 1), ("b", 3)])
    )
    assert engine.bags.copies(one) == 4
    assert engine.bags.copies(engine.empty(one)) == 0
    left = engine.bags.recounted([(one, 1), (other, -1)])
    assert engine.sample(left, 9) == [("a", 1)]
    both = engine.bags.recounted([(one, 1), (other, 1)])
    assert engine.columns(both) == ("x", "n")
    rows = engine.sample(engine.bags.expanded(both), 99)
    assert sorted(rows, key=repr) == sorted([("a",)] * 3 + [("b",)] * 4 + [(None,)] * 2, key=repr)
    rest = engine.minus_all(engine.bags.expanded(both), engine.bags.expanded(one))
    assert sorted(engine.sample(rest, 99), key=repr) == sorted([("a",)] + [("b",)] * 3 + [(None,)], key=repr)
    more, less = engine.beyond(engine.bags.expanded(other), engine.bags.expanded(one))
    assert (engine.sample(more, 99), engine.sample(less, 99)) == ([("b",)] * 2, [("a",)])
    assert engine.columns(less) == engine.columns(more) == ("x",)


def test_few_rows_and_many_are_taken_from_each_other(engine: Engine[Any]) -> None:
    many = Counter({(number, None if number % 5 == 0 else "x"): 1 + number % 3 for number in range(40)})
    few = Counter({(0, None): 1, (5, None): 3, (5, "x"): 1, (8, "x"): 2, (99, "x"): 1, (None, None): 1})

    def bag(rows: Counter[Any]) -> Any:
        given = [(*row, number) for row, number in rows.items()]
        return engine.bags.expanded(
            engine.load(given, ["n", "t", "number"], [INT, ColumnType(TypeName.STRING), BIGINT])
        )

    held = {name: engine.keep(bag(rows)) for name, rows in (("many", many), ("few", few))}
    found = [
        Counter(engine.sample(engine.minus_all(held[one], held[other]), 999))
        for one, other in (("many", "few"), ("few", "many"), ("few", "few"))
    ]
    assert found == [many - few, few - many, Counter()]


def test_rows_are_fetched_up_to_a_limit(engine: Engine[Any], facts: Facts[Any]) -> None:
    data = facts.relations[R]
    assert engine.fetch(data, 5) is None
    assert frozenset(engine.fetch(data, 6) or ()) == ROWS[R]
    doubles = engine.load([(0.5,)], ["d"], [ANY])
    assert engine.fetch(doubles, 9) is None


def test_rows_take_the_types_and_names_of_others(engine: Engine[Any]) -> None:
    wide = engine.load([(1, Decimal("2.50"))], ["a", "b"], [BIGINT, ColumnType(TypeName.DECIMAL, 10, 2)])
    narrow = engine.load([(7, Decimal("0.5"))], ["x", "y"], [INT, ColumnType(TypeName.DECIMAL, 4, 1)])
    found = engine.like(wide, narrow)
    assert engine.columns(found) == ("x", "y")
    assert [str(v) for v in engine.sample(found, 9)[0]] == ["1", "2.5"]
    assert engine.sample(engine.empty(narrow), 9) == []
    assert engine.keep(engine.keep(found)) is not None


def test_columns_of_nothing_but_nulls_have_any_type(engine: Engine[Any]) -> None:
    given = {
        R: engine.load([(None, 1), (None, 2)], ["x", "y"], [ANY, ANY]),
        S: engine.load([("a",), (None,)], ["z"], [ANY]),
    }
    program = parse_program(
        "both(X, Y) :- r(X, Y), s(X).  anti(Z) :- s(Z), not r(Z, W).  most(X) :- r(X, Y), X > 1."
        "all(X) :- r(X, Y).  all(Z) :- s(Z)."
    )
    expected = {"both": {(None, 1), (None, 2)}, "anti": {("a",)}, "most": set(), "all": {(None,), ("a",)}}
    for name, rows in expected.items():
        assert set(engine.sample(engine.evaluate(program, Predicate(name), Facts(given)), 9)) == rows
