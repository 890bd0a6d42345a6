"""What a HAVING may ask for the groups that it lets through to be kept up (`selfmaint.maintain.shown_groups`)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from datalog.analysis.expression_types import expression_type
from datalog.model import (
    ANY,
    MIRRORED,
    Aggregate,
    AllOf,
    AnyOf,
    ColumnType,
    Compared,
    Condition,
    Constant,
    Expression,
    IsNull,
    Operator,
    Variable,
)

LEFT_OUT = "groups that its HAVING leaves out are not stored: take HAVING into a query over the view"
"""Why a view with a HAVING is not of the class of views that group."""


def asks_plainly(
    condition: Condition, groups: tuple[Expression, ...], types: Mapping[Variable, ColumnType]
) -> bool:
    """Whether a condition compares single aggregates with constants, and asks of groups nothing but their values."""
    match condition:
        case AllOf(conditions) | AnyOf(conditions):
            return all(asks_plainly(one, groups, types) for one in conditions)
        case IsNull(operand):
            return operand in groups or (isinstance(operand, Aggregate) and not operand.distinct)
        case Compared():
            _, left, right = aggregate_first(condition)
            if not _are_alike(left, right, types):
                return False
            if isinstance(left, Aggregate):
                return not left.distinct and isinstance(right, Constant) and right.value is not None
            return all(side in groups or isinstance(side, Constant) for side in (left, right))
        case _:
            return False


def _are_alike(left: Expression, right: Expression, types: Mapping[Variable, ColumnType]) -> bool:
    """Whether two sides are compared as they are, whatever is known of their types: none is cast, and loses digits."""
    kinds = [expression_type(side, types) for side in (left, right)]
    if any(kind is None or kind == ANY for kind in kinds) or len({kind.family for kind in kinds if kind}) > 1:
        return False
    constants = [side.value for side in (left, right) if isinstance(side, Constant)]
    is_near = any(kind.name.is_floating for kind in kinds if kind)
    return not is_near or all(not isinstance(v, int | Decimal) or float(v) == v for v in constants)


def aggregate_first(condition: Compared) -> tuple[Operator, Expression, Expression]:
    """A comparison's operator and sides, the other way round if only its right side is an aggregate."""
    operator, left, right = condition.operator, condition.left, condition.right
    if isinstance(right, Aggregate) and not isinstance(left, Aggregate):
        return MIRRORED[operator], right, left
    return operator, left, right
