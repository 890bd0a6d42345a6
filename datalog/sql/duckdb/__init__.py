"""Rules and view definitions as SQL for DuckDB, column types told: what it would do otherwise than Spark is refused."""

from datalog.sql.duckdb.relations import Query
from datalog.sql.duckdb.types import SqlType, UnlikeSparkError

__all__ = ["Query", "SqlType", "UnlikeSparkError"]
