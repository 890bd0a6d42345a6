"""What a HAVING may ask for the groups that it lets through to be kept up (`selfmaint.maintain.shown_groups`)."""

from __future__ import annotations

from datalog.model import (
    MIRRORED,
    Aggregate,
    AllOf,
    AnyOf,
    Compared,
    Condition,
    Constant,
    Expression,
    IsNull,
    Operator,
)

LEFT_OUT = "groups that its HAVING leaves out are not stored: take HAVING into a query over the view"
"""Why a view with a HAVING is not of the class of views that group."""


def asks_plainly(condition: Condition, groups: tuple[Expression, ...]) -> bool:
    """Whether a condition compares single aggregates with constants, and asks of groups nothing but their values."""
    match condition:
        case AllOf(conditions) | AnyOf(conditions):
            return all(asks_plainly(one, groups) for one in conditions)
        case IsNull(operand):
            return operand in groups or (isinstance(operand, Aggregate) and not operand.distinct)
        case Compared():
            _, left, right = aggregate_first(condition)
            if isinstance(left, Aggregate):
                return not left.distinct and isinstance(right, Constant) and right.value is not None
            return all(side in groups or isinstance(side, Constant) for side in (left, right))
        case _:
            return False


def aggregate_first(condition: Compared) -> tuple[Operator, Expression, Expression]:
    """A comparison's operator and sides, the other way round if only its right side is an aggregate."""
    operator, left, right = condition.operator, condition.left, condition.right
    if isinstance(right, Aggregate) and not isinstance(left, Aggregate):
        return MIRRORED[operator], right, left
    return operator, left, right
