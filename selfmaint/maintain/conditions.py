"""Conditions of views, negated: where null makes one unknown it does not hold."""

from __future__ import annotations

from datalog.model import OPPOSITE, AllOf, AnyOf, Compared, Condition, IsNull


def negation(condition: Condition) -> Condition:
    """Whether a condition is not true: false or unknown."""
    match condition:
        case Compared(operator, left, right):
            return AnyOf((IsNull(left), IsNull(right), Compared(OPPOSITE[operator], left, right)))
        case IsNull(operand, negated):
            return IsNull(operand, not negated)
        case AllOf(conditions):
            return AnyOf(tuple(negation(c) for c in conditions))
        case AnyOf(conditions):
            return AllOf(tuple(negation(c) for c in conditions))
        case _:
            raise AssertionError("no boolean expression is compared here")


def is_never(condition: Condition) -> bool:
    """Whether a condition is false by its form."""
    match condition:
        case AllOf(conditions):
            return any(is_never(c) for c in conditions)
        case AnyOf(conditions):
            return all(is_never(c) for c in conditions)
        case _:
            return False
