"""Views that group, keep or remove duplicates, maintained on Spark: many random batches at once, each over strings of
its own.

Oracle: the views computed from the rows after the update by `tests/oracle/aggregates.py`. The batches' databases have
no string in common, so that the groups of each are its own (a view that groups by numbers alone mixes them).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from datalog.model import ColumnType, Row, TypeName
from datalog.syntax import parse_program
from selfmaint import Update
from selfmaint.api.maintain import new_contents
from selfmaint.api.warehouse import build
from selfmaint.fallback.settle import Readable
from selfmaint.sources.protocol import Read
from selfmaint.warehouse.catalog import catalog
from tests.oracle.aggregates import Computed, Schema, View
from tests.oracle.random_stars import changed, random_database, random_roll_up, random_star, renamed
from tests.selfmaint.decide.test_group_decision import stored
from tests.selfmaint.maintain.test_shown_groups import require_right

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from selfmaint.spark import SparkEngine

SEEDS, BAG_SEEDS, BATCHES = (7, 12), (2,), 30
ROLLED_UP = 0
"""A seed of a finer view and a coarser one."""
_TYPES = {str: ColumnType(TypeName.STRING), int: ColumnType(TypeName.BIGINT)}


class FrameSource:
    """Base relations as DataFrames."""

    name = "frames"

    def __init__(self, frames: Mapping[str, DataFrame]) -> None:
        self._frames = frames

    def row_count(self, relation: str) -> int:
        return self._frames[relation].count()

    def read(
        self, relation: str, key_columns: Collection[str], keys: DataFrame | None
    ) -> tuple[DataFrame, Read]:
        frame = self._frames[relation]
        if keys is None:
            return frame, Read(relation, (), 0, frame.count(), 0, self.name)
        named = keys.toDF(*(f"k{i}" for i, _ in enumerate(key_columns)))
        same = [frame[c].eqNullSafe(named[f"k{i}"]) for i, c in enumerate(key_columns)]
        found = frame.join(named, same, "left_semi")
        return found, Read(relation, tuple(key_columns), keys.count(), found.count(), 0, self.name)

    def version(self) -> str | None:
        return None

    def close(self) -> None:
        """Nothing is held."""


def test_groups_that_having_leaves_out(spark: SparkSession) -> None:
    from selfmaint.spark import SparkEngine

    require_right(SparkEngine(spark), Random(0))


def together(parts: list[Mapping[str, frozenset[Row]]]) -> dict[str, frozenset[Row]]:
    found: dict[str, frozenset[Row]] = defaultdict(frozenset)
    for part in parts:
        for name, rows in part.items():
            found[name] |= rows
    return dict(found)


def column_types(schema: Schema, relation: str) -> list[ColumnType]:
    domains = next(r.domains for r in schema.relations if r.name == relation)
    return [_TYPES[type(next(v for v in domain if v is not None))] for domain in domains]


def types_of(schema: Schema, view: View) -> list[ColumnType]:
    kinds = {"J": _TYPES[str], "B": _TYPES[int]}
    for relation in schema.relations:
        kinds |= zip(VARIABLES[relation.name], column_types(schema, relation.name), strict=True)
    columns = [
        kinds[c] if isinstance(c, str) else _TYPES[int if isinstance(c, Computed) else type(c[1])]
        for c in view.columns
    ]
    extrema = ("min", "max")
    return [*columns, *(kinds[a.variable] if a.function in extrema else _TYPES[int] for a in view.aggregates)]


@pytest.mark.parametrize(
    ("seed", "bags"), [*((seed, 0.0) for seed in SEEDS), (ROLLED_UP, None), *((s, 0.9) for s in BAG_SEEDS)]
)
def test_many_batches_at_once(spark: SparkSession, seed: int, bags: float | None) -> None:
    from selfmaint.spark import SparkEngine

    engine: SparkEngine = SparkEngine(spark)
    random = Random(seed)
    schema = random_roll_up(random) if bags is None else random_star(random, bags)
    before, after = [], []
    for number in range(BATCHES):
        base = random_database(random, schema)
        before.append(renamed(base, f"{number}:"))
        after.append(renamed(changed(random, schema, base), f"{number}:"))
    old, new = together(before), together(after)

    def frame(name: str, rows: frozenset[Row]) -> DataFrame:
        types = column_types(schema, name)
        return engine.load(rows, [f"c{i}" for i in range(len(types))], types)

    counted = {view.name: view.is_counted for view in catalog(parse_program(schema.text)).views}

    def of_view(view: View) -> DataFrame:
        types = [*types_of(schema, view), *([_TYPES[int]] if counted[view.name] else [])]
        rows = stored(view.rows(old), is_counted=counted[view.name])
        return engine.load(rows, [f"x{i}" for i in range(len(types))], types)

    contents = {view.name: of_view(view) for view in schema.views}
    source = FrameSource({name: frame(name, rows) for name, rows in new.items()})
    readable = {name: Readable[Any](source, 1.0) for name in new}
    warehouse = build(schema.text, contents, engine, readable=readable)
    update = Update(
        {n: frame(n, new[n] - old[n]) for n in new if new[n] - old[n]},
        {n: frame(n, old[n] - new[n]) for n in new if old[n] - new[n]},
        effective=True,
    )
    found = warehouse.maintain(update, verify=True)
    assert found.differences == ()
    for view in schema.views:
        rows = new_contents(warehouse, warehouse.view(view.name), found.deltas[view.name])
        expected = stored(view.rows(new), is_counted=counted[view.name])
        assert {tuple(row) for row in rows.collect()} == expected, schema.text


VARIABLES = {"sale": ("I", "C", "A"), "cust": ("C", "R"), "reg": ("R", "N")}
