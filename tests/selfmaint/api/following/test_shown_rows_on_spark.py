"""Views of first rows on Spark: the change that what they show tells.

Oracle: the views' queries, run by DuckDB over the new rows.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import selfmaint
from tests.selfmaint.api.following.test_shown_rows import TABLE, VIEWS, Rows, computed, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS: Rows = tuple((i, 1 + i % 3 if i % 7 else None, i * 5 % 11, "abx"[i % 3 - 1], "y") for i in range(30))
GONE: Rows = ROWS[4:6]
COME: Rows = (
    *((i, g, o, s, "changed") for i, g, o, s, _ in GONE),
    (40, 2, 99, "a", None),
    (41, 9, None, "b", None),
)


def rows_of(shown: pa.Table) -> Counter[Any]:
    return Counter(zip(*(column.to_pylist() for column in shown.columns), strict=True))


def test_first_rows_are_told_on_spark_too(spark: SparkSession) -> None:
    queries = {
        f"v{n}": VIEWS[name]
        for n, name in enumerate(["latest", "ranks", "values", "a number is shown", "two parts"])
    }
    text = "".join(f"create view {name} as {query};" for name, query in queries.items())
    stored = {name: computed(query, ROWS) for name, query in queries.items()}
    after = tuple(row for row in ROWS if row not in GONE) + COME
    with selfmaint.build(f"{TABLE} {text}", stored, engine="spark", spark=spark) as warehouse:
        sides = [{"r": table(its)} for its in (COME, GONE)]
        update = selfmaint.Update.from_frames(warehouse, *sides, effective=True)
        maintained = warehouse.maintain(update, strict=True)
        assert all(maintained.verdicts.values())
        for name, query in queries.items():
            found = rows_of(stored[name])
            found.update(map(tuple, maintained.deltas[name].gained.collect()))
            found.subtract(map(tuple, maintained.deltas[name].lost.collect()))
            assert +found == rows_of(computed(query, after)), query
