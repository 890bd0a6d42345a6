"""What `selfmaint sql` prints for views of which the text is kept, run by Spark as it is.

Oracle: the view's own text, run by Spark over all rows. At large DuckDB shows it (`test_printed_texts.py`).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from selfmaint.api.printing.printed import StatementKind
from tests.selfmaint.api.printing.test_printed_texts import (
    BELOW,
    COLUMNS,
    OF_OWN_ROWS,
    OVER,
    Rows,
    changes,
    nights,
    script,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def in_a_database(interpreting_spark: SparkSession) -> Iterator[SparkSession]:
    """The session in a database of its own, for tables that are written; afterwards as it was."""
    spark = interpreting_spark
    spark.sql("CREATE DATABASE printed_texts")
    spark.sql("USE printed_texts")
    yield spark
    for name in ("r", "s", "r_inserted", "r_deleted", "v", *BELOW):
        spark.catalog.dropTempView(name)
    spark.sql("USE default")
    spark.sql("DROP DATABASE printed_texts CASCADE")


def fill(spark: SparkSession, view: str, name: str, rows: Rows) -> None:
    kinds = {c: "string" if c == "t" else "int" for c in COLUMNS[name]}
    shown = ", ".join(f"CAST(c{i} AS {kind}) AS {c}" for i, (c, kind) in enumerate(kinds.items()))
    values = ", ".join(
        f"({', '.join('NULL' if v is None else repr(v) for v in row)})"
        for row in (rows or [(0,) * len(kinds)])
    )
    names = ", ".join(f"c{i}" for i in range(len(kinds)))
    where = "" if rows else " WHERE FALSE"
    spark.sql(f"SELECT {shown} FROM VALUES {values} AS v({names}){where}").createOrReplaceTempView(view)


def rows_of(spark: SparkSession, query: str) -> Counter[tuple[object, ...]]:
    return Counter(map(tuple, spark.sql(query).collect()))


@pytest.mark.parametrize("name", ["running", "last two"])
def test_changes_by_own_rows_are_spark_s_sql(in_a_database: SparkSession, name: str) -> None:
    spark, query, followed = in_a_database, OF_OWN_ROWS[name], 0
    draw = random.Random(name)
    parser = spark._jsparkSession.sessionState().sqlParser()
    for _ in range(2):
        old, new = nights(draw)
        for side, rows in (
            ("r", old["r"]),
            ("r_inserted", new["r"] - old["r"]),
            ("r_deleted", old["r"] - new["r"]),
        ):
            fill(spark, side, "r", rows)
        spark.sql(query).createOrReplaceTempView("v")
        left, is_unsettled = rows_of(spark, "SELECT * FROM v"), False
        for one in script(query, {}, changes(old, new)):
            match one.kind:
                case StatementKind.TEST:
                    is_unsettled = bool(spark.sql(one.sql).collect())
                case StatementKind.CHANGES:
                    rows_made = spark.sql(one.sql.partition(" AS\n")[2]).collect()
                    left -= Counter(tuple(row)[:-1] for row in rows_made if not row["is_there"])
                    left += Counter(tuple(row)[:-1] for row in rows_made if row["is_there"])
                case _:
                    parser.parsePlan(one.sql)
        fill(spark, "r", "r", new["r"])
        if not is_unsettled:
            followed += 1
            assert left == rows_of(spark, query)
    assert followed


@pytest.mark.parametrize("name", ["words", "joined"])
def test_tables_computed_anew_are_spark_s_sql(in_a_database: SparkSession, name: str) -> None:
    spark, query = in_a_database, OVER[name]
    old, new = nights(random.Random(name))
    for state in (old, new):
        for table, rows in state.items():
            fill(spark, table, table, rows)
        for below, text in BELOW.items():
            spark.sql(text).createOrReplaceTempView(below)
        spark.sql(f"CREATE TABLE IF NOT EXISTS v USING parquet AS {query}")
    (one,) = script(query, BELOW, changes(old, new))
    before, expected = rows_of(spark, "SELECT * FROM v"), rows_of(spark, query)
    for table in COLUMNS:
        spark.catalog.dropTempView(table)
    spark.sql(one.sql)
    assert before != expected
    assert rows_of(spark, "SELECT * FROM v") == expected
