"""Tables without keys on Spark: what their views gain and lose is what DuckDB says they do."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import selfmaint
from tests.end_to_end.test_tables_without_keys import (
    COLUMNS,
    QUERIES,
    TABLES,
    Bag,
    arrow,
    changed,
    database,
    truth,
)
from tests.keyed_queries import bag

BY_THEMSELVES = (QUERIES[0], "select * from log", "select a, b from log where c > 0 or c is null", QUERIES[5])
"""Of views over one table that show or count all of its rows no base row is needed."""


@pytest.mark.parametrize("seed", range(2))
def test_both_engines_give_the_same_changes(spark: SparkSession, seed: int) -> None:
    choice = random.Random(seed)
    before = database(choice)
    after = {**changed(choice, before), "note": before["note"], "dim": before["dim"]}
    found = {}
    for engine in ("spark", "duckdb"):
        views = {f"v{i}": truth(text, before) for i, text in enumerate(BY_THEMSELVES)}
        program = TABLES + "".join(f"create view v{i} as {text};\n" for i, text in enumerate(BY_THEMSELVES))
        given: Any = {"spark": spark} if engine == "spark" else {"engine": engine}
        warehouse = selfmaint.build(program, views, effective=True, **given)
        inserted, deleted = (
            {"log": arrow(difference(one["log"], other["log"]), COLUMNS["log"])}
            for one, other in ((after, before), (before, after))
        )
        done = warehouse.maintain(selfmaint.Update.from_frames(warehouse, inserted, deleted, effective=True))
        found[engine] = {
            name: [
                bag(rows if isinstance(rows, pa.Table) else pa.table(rows)) for rows in (one.gained, one.lost)
            ]
            for name, one in done.deltas.items()
        }
    assert any(rows for sides in found["spark"].values() for rows in sides)
    assert found["spark"] == found["duckdb"]


def difference(one: Bag, other: Bag) -> Bag:
    return list((Counter(one) - Counter(other)).elements())
