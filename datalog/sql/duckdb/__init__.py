"""Rules and view definitions as SQL for DuckDB, column types told: what it would do otherwise than Spark is refused."""

from datalog.sql.duckdb.files import named, nulls, texts_of
from datalog.sql.duckdb.relations import (
    Query,
    cast_rows,
    copies,
    counted,
    create,
    drop,
    expanded,
    first,
    letters,
    matching,
    minus_all,
    number,
    recounted,
    rows,
    setting,
    together,
    values_of,
)
from datalog.sql.duckdb.rules import Derived, derived, nothing
from datalog.sql.duckdb.texts import CANNOT_HOLD, INFERRED, csv, looks, settled_type, typed_texts
from datalog.sql.duckdb.types import SqlType, UnlikeSparkError, sql_type, type_name
from datalog.sql.duckdb.views import view

__all__ = [
    "CANNOT_HOLD",
    "INFERRED",
    "Derived",
    "Query",
    "SqlType",
    "UnlikeSparkError",
    "cast_rows",
    "copies",
    "counted",
    "create",
    "csv",
    "derived",
    "drop",
    "expanded",
    "first",
    "letters",
    "looks",
    "matching",
    "minus_all",
    "named",
    "nothing",
    "nulls",
    "number",
    "recounted",
    "rows",
    "setting",
    "settled_type",
    "sql_type",
    "texts_of",
    "together",
    "type_name",
    "typed_texts",
    "values_of",
    "view",
]
