"""Maintenance queries: the rows that a view gains and loses."""

from selfmaint.maintain.core_rows import for_changes, new_rows
from selfmaint.maintain.deltas import (
    Delta,
    applied,
    as_stored,
    delta,
    difference,
    gained,
    lost,
    maintenance_program,
)
from selfmaint.maintain.groups import GroupChange, group_change, keep_changes
from selfmaint.maintain.roll_up import RollUp, roll_ups

__all__ = [
    "Delta",
    "GroupChange",
    "RollUp",
    "applied",
    "as_stored",
    "delta",
    "difference",
    "for_changes",
    "gained",
    "group_change",
    "keep_changes",
    "lost",
    "maintenance_program",
    "new_rows",
    "roll_ups",
]
