"""View definitions written in Spark SQL, read into the model."""

from datalog.sql.views.column_types import (
    BINARY_HINT,
    OTHER_HINT,
    PADDED_HINT,
    column_of_text,
)
from datalog.sql.views.read import SqlViews, read_sql
from datalog.sql.views.source import SqlText

__all__ = ["BINARY_HINT", "OTHER_HINT", "PADDED_HINT", "SqlText", "SqlViews", "column_of_text", "read_sql"]
