"""Aggregates under casts and roundings, and unions of figures of several types: by Spark, and by DuckDB against it."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import selfmaint
from selfmaint.api.maintain import new_contents

TABLES = """create table kinds (k string not null primary key, title string);
create table sold (
    id int not null primary key, k string not null references kinds (k), n int not null, m int, d decimal(10,2) not null
);"""
COLUMNS = "id int, k string, n int, m int, d decimal(10,2)"
VIEWS = {
    "rounded": "select k, round(sum(d), 2) as s, cast(count(*) as int) as c, round(avg(d), 1) as a "
    "from sold group by k",
    "cast_": "select k, cast(sum(d) as decimal(18,3)) as s, cast(max(d) as decimal(20,2)) as x, "
    "count(*) as c from sold group by k",
    "means": "select n, cast(sum(m) as decimal(12,1)) as s, count(m) as c, round(avg(m), 2) as a from sold group by n",
    "shares": "select k, round(sum(d) / count(*), 3) as a, round(sum(d), 2) as s, count(*) as c from sold group by k",
    "words": "select k, sum(d) - sum(n) as x, -sum(m) as y, 1.5 * sum(d) as z, sum(n) * 3 as w, count(*) as c "
    "from sold group by k",
    "figures": "select 'sum' as what, round(sum(d), 2) as v from sold union all select 'rows', count(*) from sold "
    "union all select 'most', cast(max(n) as decimal(6,1)) from sold",
    "subtotals": "select 1 as l, k, sum(d) as s, count(*) as c from sold group by k "
    "union all select 2, null, sum(n), count(*) from sold",
    "beside": "select kinds.k, title, coalesce(round(h.s, 3), 0) as s, cast(coalesce(h.c, 0) as int) as c, "
    "round(h.s / h.c, 1) as a from kinds left join (select k, round(sum(d), 2) as s, count(*) as c from sold "
    "group by k) h on h.k = kinds.k",
    "counted": "select kinds.k, cast(count(sold.id) as int) as c, round(coalesce(sum(d), 0), 2) as s from kinds "
    "left join sold on sold.k = kinds.k group by kinds.k",
}
KINDS = [("x", "a"), ("y", None), ("z", "c"), ("w", "d")]
BEFORE = [
    (1, "x", 1, None, "1.25"),
    (2, "x", 2, 5, "99999999.99"),
    (3, "y", 2, -5, "-0.05"),
    (4, "z", 1, 1, "3.00"),
]
GONE = [BEFORE[0], BEFORE[3]]
NEW = [(5, "x", 1, 7, "0.33"), (6, "w", 3, None, "2.22"), (7, "y", 2, 2, "0.04")]


def rows(some: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(*one[:-1], Decimal(one[-1])) for one in some]


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_what_is_followed_is_what_spark_gives(
    interpreting_spark: SparkSession, engine: Literal["duckdb", "spark"]
) -> None:
    spark = interpreting_spark

    def contents(some: list[tuple[Any, ...]]) -> dict[str, Any]:
        spark.createDataFrame(rows(some), COLUMNS).createOrReplaceTempView("sold")
        spark.createDataFrame(KINDS, "k string, title string").createOrReplaceTempView("kinds")
        return {name: spark.sql(text).localCheckpoint() for name, text in VIEWS.items()}

    after = [one for one in BEFORE if one not in GONE] + NEW
    right, stored = contents(after), contents(BEFORE)
    program = TABLES + "".join(f"create view {name} as {text};" for name, text in VIEWS.items())
    sides = [{"sold": spark.createDataFrame(rows(some), COLUMNS)} for some in (NEW, GONE)]
    if engine == "spark":
        made: Any = selfmaint.build(program, stored, spark=spark, effective=True)
        update = selfmaint.Update(*sides, effective=True)
    else:
        here = {name: frame.toArrow() for name, frame in stored.items()}
        made = selfmaint.build(program, here, engine="duckdb", effective=True)
        update = selfmaint.Update.from_frames(made, *[{"sold": side["sold"].toArrow()} for side in sides])
    assert all(made.check(update).values())
    found = made.maintain(update, strict=True).deltas
    for name in VIEWS:
        new = new_contents(made, made.view(name), found[name])
        its = pa.table(new) if hasattr(new, "__arrow_c_stream__") else new.toArrow()
        wanted = right[name].toArrow()
        assert Counter(map(str, its.to_pylist())) == Counter(map(str, wanted.to_pylist())), name
        assert its.schema.types == wanted.schema.types, name
    for name in ("kinds", "sold"):  # tests share the session
        spark.catalog.dropTempView(name)
