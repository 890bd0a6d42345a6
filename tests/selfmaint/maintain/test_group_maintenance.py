"""Views that group through random mixed batches: what maintenance gives is what recomputing gives.

Oracle: the views computed from the rows after each batch by `tests/oracle/aggregates.py`. Base rows may be read where
a verdict is no yes; `verify` compares with the product's own recomputation besides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest

from datalog.model import Row
from datalog.syntax import parse_program
from selfmaint import Update
from selfmaint.api.maintain import new_contents
from selfmaint.api.maintained import Maintained
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.decide.verdict import SelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from selfmaint.fallback.settle import Readable
from selfmaint.sources.memory import RowsSource
from selfmaint.warehouse.catalog import catalog
from tests.effort import effort
from tests.large_engine import LargeEngine
from tests.no_search import without_search
from tests.oracle.aggregates import Schema
from tests.oracle.random_groups import random_groups
from tests.oracle.random_stars import changed, random_database, random_roll_up, random_star
from tests.selfmaint.decide.test_group_decision import stored

BLOCKS, WAREHOUSES, BATCHES = 2, effort(5, 60), 10


def warehouse_of(
    schema: Schema,
    contents: Mapping[str, frozenset[Row]],
    base: Mapping[str, frozenset[Row]],
    engine: MemoryEngine,
) -> Warehouse[frozenset[Row]]:
    columns = {r.name: tuple(f"c{i}" for i in range(len(r.domains))) for r in schema.relations}
    source = RowsSource("base", {name: (columns[name], rows) for name, rows in base.items()})
    readable = {name: Readable[Any](source, 1.0) for name in base}
    return build(schema.text, contents, engine, readable=readable)


@pytest.mark.parametrize(
    ("stored", "lost", "new"),
    [
        ((1, 3, 5), (7, 1, 3, 2), (1, 0, 3)),  # the other sum says that a row is left, and each has an amount
        ((1, 3, 5), (7, 1, 2, 5), None),  # whether one of the others is null is not known
        ((1, 3, 5), (7, 1, 3, 5), None),
    ],
)
def test_a_sum_of_0_is_over_some_row_where_another_says_so(stored: Row, lost: Row, new: Row | None) -> None:
    program = (
        ".decl r(i: int not null, g: int not null, a: int not null, b: int) key(i).\n"
        "v(G, sum(A), sum(B)) :- r(I, G, A, B)."
    )
    made = build(program, {"v": frozenset({stored})}, MemoryEngine())
    update = Update({}, {"r": frozenset({lost})}, effective=True)
    assert isinstance(made.check(update)["v"], SelfMaintainable) == (new is not None)
    if new is not None:
        assert new_contents(made, made.view("v"), made.maintain(update).deltas["v"]) == {new}


@pytest.mark.parametrize("make", [random_star, random_roll_up, random_groups])
@pytest.mark.parametrize("block", range(BLOCKS))
def test_maintenance_is_recomputation(make: Callable[[Random], Schema], block: int) -> None:
    assert maintained(range(block * WAREHOUSES, (block + 1) * WAREHOUSES), make) > WAREHOUSES


def maintained(seeds: range, make: Callable[[Random], Schema]) -> int:
    """How many batches of some random warehouses, each followed as recomputing does, needed no base row."""
    decided = 0
    for seed in seeds:
        random = Random(seed)
        schema = make(random)
        engine = LargeEngine() if seed % 3 == 0 else MemoryEngine()
        base = random_database(random, schema)
        counted = {view.name: view.is_counted for view in catalog(parse_program(schema.text)).views}
        contents = stored_views(schema, counted, base)
        for _ in range(BATCHES):
            after = changed(random, schema, base)
            warehouse = warehouse_of(schema, contents, after, engine)
            update = Update(
                {name: rows - base[name] for name, rows in after.items() if rows - base[name]},
                {name: base[name] - rows for name, rows in after.items() if base[name] - rows},
                effective=True,
            )
            with without_search():
                found = warehouse.maintain(update, verify=True)
            assert not found.differences
            if all(isinstance(verdict, SelfMaintainable) for verdict in found.verdicts.values()):
                assert not found.reads
                decided += 1
            contents = applied(warehouse, found)
            base = after
            assert contents == stored_views(schema, counted, base), f"{schema.text}\n{update}"
    return decided


def stored_views(
    schema: Schema, counted: Mapping[str, bool], base: Mapping[str, frozenset[Row]]
) -> dict[str, frozenset[Row]]:
    return {v.name: stored(v.rows(base), is_counted=counted[v.name]) for v in schema.views}


def applied(
    warehouse: Warehouse[frozenset[Row]], found: Maintained[frozenset[Row]]
) -> dict[str, frozenset[Row]]:
    return {
        view.name: new_contents(warehouse, view, found.deltas[view.name]) for view in warehouse.catalog.views
    }
