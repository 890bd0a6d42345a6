"""DuckDB against meaning: random programs and views, as the engine writes and runs them.

Oracles: the rows that a program's definition gives, computed row by row (`sql_programs.meaning`), and the evaluator of
view definitions, which `tests/datalog/sql/duckdb` holds against Spark's own answers.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datalog.evaluate import evaluate_view
from datalog.model import ColumnType, TypeName
from selfmaint.duckdb import DuckEngine
from selfmaint.engine.protocol import Facts
from selfmaint.errors import Code, InputError
from tests.datalog.sql import sql_views
from tests.datalog.sql.sql_programs import POOLS, Generator, meaning, random_facts, relations
from tests.datalog.sql.test_sql_matches import show
from tests.datalog.sql.views.test_views_on_spark import read, same

STORED = relations(list(POOLS))
SEEDS, VIEWS = 6, 20
LEAST_COMPUTED = 0.9
"""At least such a share of the views that can be read is computed; the others are refused."""

ENGINE = DuckEngine(most_few=0)
IN_THIS_PROCESS = DuckEngine()
IN_PARTS = DuckEngine(most_few=0)
IN_PARTS.programs.most_multiplied = 0
FIRST_MATCHES = DuckEngine(most_few=0)
FIRST_MATCHES.programs.matches.many, FIRST_MATCHES.programs.matches.first = 0, 2


def column_type(kind: str) -> ColumnType:
    name, _, sizes = kind.replace("name", "string").partition("(")
    return ColumnType(TypeName(name), *(int(n) for n in sizes.rstrip(")").split(",") if sizes))


@pytest.mark.parametrize(
    "engine",
    [ENGINE, IN_THIS_PROCESS, IN_PARTS, FIRST_MATCHES],
    ids=["statements", "in this process", "in parts", "by the first matches"],
)
@given(random=st.randoms(use_true_random=False))
def test_programs_have_the_rows_that_they_mean(engine: DuckEngine, random: Random) -> None:
    program, goal, _ = Generator(random, STORED).program()
    facts = random_facts(random, STORED)
    loaded = Facts(
        {
            one.predicate: engine.load(
                facts[one.predicate], one.table.columns, [column_type(kind) for kind in one.types]
            )
            for one in STORED
        },
        {one.predicate: one.table.not_null for one in STORED},
    )
    expected = meaning(program, goal, facts)
    found = engine.evaluate(program, goal, loaded)
    assert Counter(engine.sample(found, 10_000)) == Counter(expected), show(program)
    assert engine.nonempty(program, [goal], loaded) == (frozenset({goal}) if expected else frozenset())


@pytest.mark.parametrize("seed", range(SEEDS))
def test_views_have_the_rows_that_they_mean(seed: int) -> None:
    random = Random(seed)
    bags = {p: Counter(set(rows)) for p, rows in sql_views.random_bags(random).items()}
    types = sql_views.column_types()
    facts = Facts(
        {p: ENGINE.load(rows, [f"c{i}" for i in range(len(types[p]))], types[p]) for p, rows in bags.items()}
    )
    known = [view for query in sql_views.views(random, VIEWS) if (view := read(query)) is not None]
    refused = 0
    for view in known:
        try:
            like = ENGINE.evaluate_view(view, facts, types)
        except InputError as error:
            if error.diagnostics[0].code is not Code.ENGINE_DIFFERS:
                raise
            refused += 1
            continue
        expected: Counter[tuple[object, ...]] = Counter()
        for row, copies in evaluate_view(view, bags, types).items():
            expected[tuple(map(same, row))] += copies
        found = ENGINE.recompute(view, facts, types, like)
        rows = ENGINE.sample(found, 100_000)
        assert Counter(tuple(map(same, row)) for row in rows) == expected, view
        assert {tuple(map(same, row)) for row in ENGINE.sample(like, 100_000)} == set(expected), view
    assert refused <= (1 - LEAST_COMPUTED) * len(known) + 2
