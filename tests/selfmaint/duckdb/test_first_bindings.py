"""Goals that have a row for one of the first bindings, that have one for another alone, and that have none.

Oracle: the rows that a program's definition gives, computed row by row (`sql_programs.meaning`).
"""

from __future__ import annotations

from random import Random

import pytest

from datalog.model import ColumnType, Predicate, TypeName
from datalog.syntax import parse_program
from selfmaint.duckdb import DuckEngine
from selfmaint.engine.protocol import Facts
from tests.datalog.sql.sql_programs import POOLS, Generator, meaning, random_facts, relations
from tests.datalog.sql.test_sql_matches import show
from tests.selfmaint.duckdb.test_meaning import column_type

STORED = relations(list(POOLS))
SEEDS = (12, 551, *range(1000, 1060))
"""551: where steps under a negation were cut, too, a goal would have a row that it has not."""

INT = ColumnType(TypeName.INT)


@pytest.fixture(name="engine")
def cutting() -> DuckEngine:
    """An engine that follows one binding first, where a step has two."""
    engine = DuckEngine(most_few=0)
    engine.programs.matches.many, engine.programs.matches.first = 1, 1
    return engine


@pytest.mark.parametrize(
    ("rule", "has_row"),
    [
        ("p(X) :- new(X), r(X, Y), s(Y, Z), t(Z).", True),
        ("p(X) :- new(X), r(X, Y), s(Y, Z), u(Z).", False),
        ("p(X) :- new(X), not (r(X, Y), s(Y, Z), t(Z)).", False),
        ("p(X) :- new(X), not (r(X, Y), s(Y, Z), u(Z)).", True),
        ("p(X) :- new(X), r(X, Y), not (s(Y, Z), t(Z)).", True),
        ("p(X) :- new(X), r(X, Y), not (s(Y, Z), not (t(Z))).", True),
        ("p(X) :- new(X), r(X, Y), not (r(X, V), s(V, Z), t(Z)).", False),
    ],
)
@pytest.mark.parametrize("last", [1, 5], ids=["a first binding", "a last binding"])
def test_one_binding_that_passes(engine: DuckEngine, rule: str, has_row: bool, last: int) -> None:
    rows = {
        "new": [(1,)],
        "r": [(1, y) for y in range(1, 6)],
        "s": [(y, y) for y in range(1, 6)],
        "t": [(last,)],
        "u": [(9,)],
    }
    relations = {
        Predicate(name): engine.load(its, [f"c{i}" for i in range(len(its[0]))], [INT] * len(its[0]))
        for name, its in rows.items()
    }
    facts = Facts(relations, small=frozenset({Predicate("new")}))
    goal = Predicate("p")
    found = engine.nonempty(parse_program(rule), [goal], facts)
    assert found == (frozenset({goal}) if has_row else frozenset())


def test_random_goals() -> None:
    cut, with_rows, without = 0, 0, 0
    for seed in SEEDS:
        engine = DuckEngine(most_few=0)
        engine.programs.matches.many, engine.programs.matches.first = 1, 1
        random = Random(seed)
        program, _, _ = Generator(random, STORED).program()
        rows = random_facts(random, STORED)
        small = frozenset(one.predicate for one in STORED if random.random() < 0.4)
        facts = Facts(
            {
                one.predicate: engine.load(
                    rows[one.predicate], one.table.columns, [column_type(kind) for kind in one.types]
                )
                for one in STORED
            },
            {one.predicate: one.table.not_null for one in STORED},
            small=small,
        )
        goals = list(dict.fromkeys(program.heads))
        expected = frozenset(goal for goal in goals if meaning(program, goal, rows))
        assert engine.nonempty(program, goals, facts) == expected, show(program)
        cut += engine.programs.cut > 0
        with_rows += len(expected)
        without += len(goals) - len(expected)
    assert min(cut, with_rows, without) > 0
