"""UNION ALL of grouped queries that constants tell apart, and copies of tables without a key, by Spark."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pyspark.sql import SparkSession

import selfmaint
from selfmaint.api.maintain import new_contents

PROGRAM = """
create table a (id int not null primary key, k string not null, n int not null);
create table log (k string, n int, gone boolean);
create view totals as select 'rows' as w, count(*) as n from a union all select 'gone', count(*) from log where gone;
create view copies as select n, k, gone from log;
create view medians as select k, percentile(n, 0.5) as m from log where not gone group by k;
"""
TABLES = {"a": "id int, k string, n int", "log": "k string, n int, gone boolean"}


def test_they_are_followed_on_spark(interpreting_spark: SparkSession) -> None:
    spark = interpreting_spark
    before = {
        "a": [(1, "x", 5), (2, "y", 6)],
        "log": [("x", 1, False), ("x", 1, False), ("y", 3, True), (None, 2, None)],
    }
    new = {"a": [(3, "x", 7)], "log": [("x", 4, False), ("y", 1, False)]}
    gone: dict[str, list[Any]] = {"a": [(1, "x", 5)], "log": [("x", 1, False)]}
    texts = {
        line.split()[2]: line.split(" as ", 1)[1].rstrip(";")
        for line in PROGRAM.splitlines()
        if "view" in line
    }

    def frames(rows: dict[str, list[Any]]) -> dict[str, Any]:
        return {name: spark.createDataFrame(rows[name], TABLES[name]) for name in TABLES}

    def contents(rows: dict[str, list[Any]]) -> dict[str, Any]:
        for name, frame in frames(rows).items():
            frame.createOrReplaceTempView(name)
        return {name: spark.sql(text).localCheckpoint() for name, text in texts.items()}

    after = {
        name: list((Counter(before[name]) - Counter(gone[name]) + Counter(new[name])).elements())
        for name in TABLES
    }
    warehouse = selfmaint.build(PROGRAM, contents(before), spark=spark, effective=True)
    update = selfmaint.Update(frames(new), frames(gone), effective=True)
    assert all(warehouse.check(update).values())
    found = warehouse.maintain(update, strict=True)
    for name, right in contents(after).items():
        rows = new_contents(warehouse, warehouse.view(name), found.deltas[name])
        if name == "copies":
            rows = warehouse.engine.bags.expanded(rows)
        assert Counter(map(tuple, rows.collect())) == Counter(map(tuple, right.collect())), name
    for name in TABLES:  # tests share the session
        spark.catalog.dropTempView(name)
