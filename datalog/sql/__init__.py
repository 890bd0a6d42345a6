"""Rules as Spark SQL: trees of sqlglot, made of rules in the shape of a query, and the one place that prints them."""

import logging

from datalog.errors import EmissionError
from datalog.sql.definitions import select, select_above, select_table, select_view
from datalog.sql.merge import (
    Steps,
    changes_table,
    counted_view,
    delete_changed,
    held_table,
    insert_changed,
    insert_copies,
    insert_rows,
    merge,
    merge_rows,
    select_in_steps,
    temporary_view,
)
from datalog.sql.tables import Query, Table, read_set, stands_alone
from datalog.sql.text import bound_text, text
from datalog.sql.unions import union_all

# What sqlglot has to say of trees that are only compared is not printed, unless a program logs.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())

__all__ = [
    "EmissionError",
    "Query",
    "Steps",
    "Table",
    "bound_text",
    "changes_table",
    "counted_view",
    "delete_changed",
    "held_table",
    "insert_changed",
    "insert_copies",
    "insert_rows",
    "merge",
    "merge_rows",
    "read_set",
    "select",
    "select_above",
    "select_in_steps",
    "select_table",
    "select_view",
    "stands_alone",
    "temporary_view",
    "text",
    "union_all",
]
