"""View definitions written in Spark SQL, read into the model."""

from datalog.sql.views.declared.column_types import column_in, column_of_text
from datalog.sql.views.read import SqlViews, read_sql
from datalog.sql.views.source import SqlText

__all__ = ["SqlText", "SqlViews", "column_in", "column_of_text", "read_sql"]
