"""What one bag has beyond another, both ways at once: what counters say of random rows."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from datalog.model import ColumnType, TypeName
from selfmaint.duckdb import DuckEngine, Relation
from tests.effort import effort

KINDS: dict[ColumnType, list[Any]] = {
    ColumnType(TypeName.INT): [1, 2, None],
    ColumnType(TypeName.STRING): ["", "a", "A", None],
    ColumnType(TypeName.DECIMAL, 5, 2): [Decimal("1.50"), Decimal("-0.00"), None],
    ColumnType(TypeName.DOUBLE): [0.0, 1.5, float("nan"), None],
    ColumnType(TypeName.TIMESTAMP): [datetime(2026, 1, 1, tzinfo=UTC), None],
    ColumnType(TypeName.BOOLEAN): [True, False, None],
}


def listed(rows: Relation) -> Counter[str]:
    return Counter(repr(tuple(row.values())) for row in pa.table(rows).to_pylist())


@pytest.mark.parametrize("seed", range(effort(25, 400)))
def test_both_ways_at_once(seed: int) -> None:
    random = Random(seed)
    kinds = [random.choice(list(KINDS)) for _ in range(random.randint(1, 3))]
    engine = DuckEngine()
    names = [f"x{i}" for i in range(len(kinds))]

    def bag() -> Relation:
        found = [tuple(random.choice(KINDS[kind]) for kind in kinds) for _ in range(random.randint(0, 8))]
        loaded = [engine.load([row], names, kinds) for row in found]
        return engine.bags.together([engine.load([], names, kinds), *loaded])

    one, other = bag(), bag()
    before = listed(one), listed(other)
    more, less = engine.beyond(one, other)
    assert (listed(more), listed(less)) == (before[0] - before[1], before[1] - before[0])
    assert more.types == less.types == one.types
