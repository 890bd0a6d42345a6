"""Rules as Spark SQL: trees of sqlglot, and the one place that prints them."""

from datalog.sql.definitions import select, select_view
from datalog.sql.errors import EmissionError
from datalog.sql.merge import (
    Changes,
    changed_groups,
    changes_table,
    counted_view,
    delete_changed,
    insert_copies,
    merge,
    open_groups,
)
from datalog.sql.tables import Table, read_set
from datalog.sql.text import bound_text, text
from datalog.sql.unions import union_all

__all__ = [
    "Changes",
    "EmissionError",
    "Table",
    "bound_text",
    "changed_groups",
    "changes_table",
    "counted_view",
    "delete_changed",
    "insert_copies",
    "merge",
    "open_groups",
    "read_set",
    "select",
    "select_view",
    "text",
    "union_all",
]
