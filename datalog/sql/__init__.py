"""Rules as Spark SQL: trees of sqlglot, and the one place that prints them."""

from datalog.sql.definitions import select, select_view
from datalog.sql.errors import EmissionError
from datalog.sql.merge import (
    Steps,
    changes_table,
    counted_view,
    delete_changed,
    insert_copies,
    insert_rows,
    merge,
    merge_rows,
    select_in_steps,
)
from datalog.sql.tables import Table, read_set
from datalog.sql.text import bound_text, text
from datalog.sql.unions import union_all

__all__ = [
    "EmissionError",
    "Steps",
    "Table",
    "bound_text",
    "changes_table",
    "counted_view",
    "delete_changed",
    "insert_copies",
    "insert_rows",
    "merge",
    "merge_rows",
    "read_set",
    "select",
    "select_in_steps",
    "select_view",
    "text",
    "union_all",
]
