"""Rules and view definitions as SQL for DuckDB, column types told: what it would do otherwise than Spark is refused."""

from datalog.sql.duckdb.relations import (
    Query,
    cast_rows,
    copies,
    create,
    drop,
    expanded,
    first,
    minus_all,
    number,
    recounted,
    rows,
    setting,
    values_of,
)
from datalog.sql.duckdb.rules import Derived, derived
from datalog.sql.duckdb.types import SqlType, UnlikeSparkError, sql_type, type_name
from datalog.sql.duckdb.views import view

__all__ = [
    "Derived",
    "Query",
    "SqlType",
    "UnlikeSparkError",
    "cast_rows",
    "copies",
    "create",
    "derived",
    "drop",
    "expanded",
    "first",
    "minus_all",
    "number",
    "recounted",
    "rows",
    "setting",
    "sql_type",
    "type_name",
    "values_of",
    "view",
]
