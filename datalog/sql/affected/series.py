"""Whole numbers, or dates, from one to another, of which each is a row: calendars, the nights of a stay.

    SELECT explode(sequence(DATE '2026-01-01', DATE '2026-12-31', INTERVAL 1 WEEK)) AS week
    SELECT s.id, n.night FROM stay s LATERAL VIEW explode(sequence(s.arrival, date_sub(s.departure, 1))) n AS night

Spark's `sequence`: the last value is one of them if a step leads to it. Without a step they go up or down by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from datalog.model import ColumnType, TypeName
from datalog.sql.affected.names import UnknownShapeError
from datalog.sql.affected.plan import Linked, Plan, Series

_UNITS = {"day": (1, "day"), "week": (7, "day"), "month": (1, "month"), "year": (12, "month")}


def series_in(tree: exp.Expr) -> exp.Expr | None:
    """The call of `sequence` whose values are rows, if a tree is that."""
    while isinstance(tree, exp.Alias | exp.Paren):
        tree = tree.this
    # Not `explode_outer` and `posexplode`, which are kinds of it here, and have other rows.
    inside = tree.this if type(tree) is exp.Explode and not tree.expressions else None
    return inside if isinstance(inside, exp.GenerateSeries) else None


def series_over(plan: Plan, number: int, call: exp.Expr, inner: Sequence[Linked]) -> Series:
    """A plan with each of its rows as often as a sequence has values, which are the new column.

    `inner` are the subqueries in the call.

    Raises:
        UnknownShapeError: it is not known what it makes.
    """
    if inner:
        raise UnknownShapeError("a sequence has a subquery in it")
    return Series(plan, number, call.args["start"], call.args["end"], _step(call.args.get("step")))


def written_type(first: exp.Expr) -> ColumnType | None:
    """The type of a sequence that begins with a date, or an int, that is written out."""
    while isinstance(first, exp.Paren):
        first = first.this
    if isinstance(first, exp.TsOrDsToDate) or (isinstance(first, exp.Cast) and first.to.is_type("date")):
        return ColumnType(TypeName.DATE)
    return ColumnType(TypeName.INT) if isinstance(first, exp.Literal) and first.is_int else None


def _step(step: exp.Expr | None) -> tuple[int, str] | None:
    """By how many of what values go on."""
    if step is None:
        return None
    if isinstance(step, exp.Neg) and isinstance(step.this, exp.Interval):
        forward = _step(step.this)
        return forward and (-forward[0], forward[1])
    number, unit = _number(step), "number"
    if isinstance(step, exp.Interval) and isinstance(step.unit, exp.Var):
        each, unit = _UNITS.get(step.unit.name.lower().removesuffix("s"), (0, ""))
        number = (_number(step.this) or 0) * each
    if not number:
        raise UnknownShapeError("a sequence has a step that is not known")
    return number, unit


def _number(tree: exp.Expr | None) -> int | None:
    """The whole number that is written."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Neg):
        inside = _number(tree.this)
        return None if inside is None else -inside
    if not isinstance(tree, exp.Literal):
        return None
    text = tree.name.strip()
    return int(text) if text.removeprefix("-").isdecimal() and text.isascii() else None
