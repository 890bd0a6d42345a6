"""Columns of a view with LEFT JOINs that are computed from several sides, or from aggregates: over its other columns.

    SELECT c.id, h.n, CASE WHEN h.n > 1 THEN 'many' END AS kind FROM c LEFT JOIN (...) h ON h.c = c.id

`kind` says nothing of its own: it is computed from `n`, which is null in a row without a partner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from datalog.model import (
    Case,
    Compared,
    Comparison,
    Condition,
    Constant,
    Expression,
    IsNull,
    Literal,
    NullTest,
    expressed_by,
)
from datalog.rewrite.branches import column
from datalog.sql.views.outer.outer_sources import Sides


def computed_value(
    its: Sides,
    what: Expression,
    shown: Iterable[tuple[int, Expression, Expression, Constant | None, int]],
    told: Mapping[int, Literal],
) -> Expression | None:
    """A column that is computed from several sides, or from aggregates, over the view's other columns.

    Args:
        its: the sources.
        what: what it is.
        shown: of the other columns which they are, what they are, what of that a row with a partner has, what one
            without has instead of null, and the side.
        told: for each side what of a row says that it has a partner.

    Returns:
        The value over `branches.column(i)`; None if the other columns do not tell it.
    """
    values: dict[str, Expression] = {}
    for i, whole, plain, given, number in shown:
        if given is None:
            values.setdefault(repr(plain), column(i))
        elif number in told:
            values.setdefault(repr(plain), with_partner(told[number], column(i)))
        values.setdefault(repr(whole), its.as_shown(whole, plain, column(i)))
    for number, columns in its.grouped.items():
        inner = {repr(w): values[repr(one)] for one, w in columns.items() if repr(one) in values}
        for one, whats in columns.items():
            found = expressed_by(whats, inner)
            if repr(one) not in values and found is not None and number in told:
                values[repr(one)] = with_partner(told[number], found)
    return expressed_by(what, values)


def with_partner(told: Literal, value: Expression) -> Expression:
    """A value in rows that have a partner; in others null."""
    match told:
        case NullTest(term, negated):
            test: Condition = IsNull(term, negated)
        case Comparison(operator, left, right):
            test = Compared(operator, left, right)
        case _:
            return value  # all that it is of is null in a row without a partner
    return Case(((test, value),), Constant(None))
