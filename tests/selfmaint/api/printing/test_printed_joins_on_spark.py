"""What `selfmaint sql` prints for views with LEFT JOINs, of unions and of rows without a match, run by Spark.

Oracle: the view's own text, run by DuckDB over all rows. That the statements follow it at large DuckDB shows
(`test_printed_joins.py`); of those that change a table Spark runs the query, and parses the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from selfmaint.api.file.programs import catalog_of
from selfmaint.api.printing.printed import StatementKind
from tests.selfmaint.api.printing.test_printed_joins import (
    BESIDE,
    COLUMNS,
    TABLES,
    VIEWS,
    fill,
    on_duckdb,
    script,
)
from tests.selfmaint.api.printing.test_printed_on_spark import bind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows_of(query: str, tables: dict[str, set[tuple[Any, ...]]]) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, rows in tables.items():
            fill(lambda text: on_duckdb(connection, text), name, rows)
        return Counter(on_duckdb(connection, query))


OLD: dict[str, set[tuple[Any, ...]]] = {
    "customer": {(1, "a", None), (2, "b", 1), (3, "b", None)},
    "orders": {(1, 1, 2), (2, None, 3)},
    "line": {(1, 1, 0)},
}
NEW = {**OLD, "orders": OLD["orders"] | {(3, 1, 2), (4, None, 2)}, "line": {(1, 1, 0), (2, 2, 2)}}


@pytest.fixture(autouse=True)
def _without_views(spark: SparkSession) -> Iterator[None]:
    """The session as it was: others would find the temporary views."""
    before = {table.name for table in spark.catalog.listTables()}
    yield
    for table in spark.catalog.listTables():
        if table.isTemporary and table.name not in before:
            spark.catalog.dropTempView(table.name)


@pytest.mark.parametrize("name", ["by any value", "model", "totals", "small", "union of groups"])
def test_what_is_printed_is_spark_s_sql(interpreting_spark: SparkSession, name: str) -> None:
    spark = interpreting_spark
    query, old, new = VIEWS[name], OLD, NEW
    assert rows_of(query, old) != rows_of(query, new)
    bind(
        spark,
        "v",
        catalog_of(f"{TABLES}create view v as {query};").view("v").columns,
        rows_of(query, old).elements(),
    )
    for table, columns in COLUMNS.items():
        bind(spark, f"{table}_inserted", columns, new[table] - old[table])
        bind(spark, f"{table}_deleted", columns, old[table] - new[table])
    bind(spark, "ordered", COLUMNS["orders"], old["orders"])  # each total is above 0
    bind(spark, "customers", COLUMNS["customer"], old["customer"])
    left, is_open = rows_of(query, old), False
    parser = spark._jsparkSession.sessionState().sqlParser()
    for statement in script(query, ["orders", "line"], BESIDE):
        match statement.kind:
            case StatementKind.CHANGES:
                rows = spark.sql(statement.sql.partition(" AS\n")[2]).collect()
                left -= Counter(tuple(row)[:-1] for row in rows if not row["is_there"])
                left += Counter(tuple(row)[:-1] for row in rows if row["is_there"])
            case StatementKind.DELETE | StatementKind.INSERT:
                parser.parsePlan(statement.sql)
            case StatementKind.GAINED:
                left += Counter(map(tuple, spark.sql(statement.sql).collect()))
            case StatementKind.LOST:
                left -= Counter(map(tuple, spark.sql(statement.sql).collect()))
            case StatementKind.TEST | StatementKind.OPEN:
                is_open |= bool(spark.sql(statement.sql).collect())
            case _:
                spark.sql(statement.sql)
    spark.catalog.clearCache()
    assert not is_open
    assert left == rows_of(query, new)
