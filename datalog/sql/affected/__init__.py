"""Which rows of a query's result a change of a base relation may reach, and which base rows these results depend on."""

from datalog.sql.affected.additive import Additive, additive
from datalog.sql.affected.by_order import columns_by_order
from datalog.sql.affected.choice import (
    Keyed,
    NotKeyed,
    Step,
    differing,
    keyed,
    keyed_by_periods,
    keys_of_changes,
)
from datalog.sql.affected.determined import has_one_result_by_keys, key_of, nullable_outputs
from datalog.sql.affected.gone_rows import shown_key, tables_read
from datalog.sql.affected.names import UnknownShapeError
from datalog.sql.affected.periods import VALUE, ZONES, Period, Span, merged
from datalog.sql.affected.plan import Plan, Query, Table
from datalog.sql.affected.read import plan_of_definition, plan_of_text
from datalog.sql.affected.seen import Seen, seen, selection
from datalog.sql.affected.shown_rows import ShownRows, shown_rows
from datalog.sql.affected.sums import are_only_shown, inexact_sums

__all__ = [
    "VALUE",
    "ZONES",
    "Additive",
    "Keyed",
    "NotKeyed",
    "Period",
    "Plan",
    "Query",
    "Seen",
    "ShownRows",
    "Span",
    "Step",
    "Table",
    "UnknownShapeError",
    "additive",
    "are_only_shown",
    "columns_by_order",
    "differing",
    "has_one_result_by_keys",
    "inexact_sums",
    "key_of",
    "keyed",
    "keyed_by_periods",
    "keys_of_changes",
    "merged",
    "nullable_outputs",
    "plan_of_definition",
    "plan_of_text",
    "seen",
    "selection",
    "shown_key",
    "shown_rows",
    "tables_read",
]
