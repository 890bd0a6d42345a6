"""What a HAVING may ask for the groups that it lets through to be kept up (`selfmaint.maintain.shown_groups`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

from datalog.analysis.expression_types import expression_type
from datalog.model import (
    ANY,
    MIRRORED,
    Aggregate,
    AggregateFunction,
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
from selfmaint.warehouse.grouped import Measure

LEFT_OUT = "groups that its HAVING leaves out are not stored: take HAVING into a query over the view"
"""Why a view with a HAVING is not of the class of views that group."""
NOT_TOLD = "groups that add up to 0 are not told from none: show a count of their rows, too"
"""Why one that shows sums other than 0 is not."""


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


def shows_nonzero_sums(
    having: Sequence[Condition], measures: Sequence[Measure], never_null: Collection[int]
) -> bool:
    """Whether groups are shown where some sum of a view is not 0: `selfmaint.maintain.nonzero_sums`, condition 1.

    `measures` are those that the view shows.
    """
    of = {
        repr(m.aggregate)
        for m in measures
        if m.aggregate.function is AggregateFunction.SUM
        and not m.aggregate.distinct
        and (m.column in never_null or len(measures) == 1)
    }
    if len(having) != 1 or len(of) != len(measures):
        return False
    (one,) = having
    return {_asked(test) for test in (one.conditions if isinstance(one, AnyOf) else having)} == of


def _asked(condition: Condition) -> str | None:
    """The sum that a condition asks to be other than 0."""
    match condition:
        case Compared("!=", Aggregate() as one, Constant(value)) if value == 0 and not isinstance(
            value, bool
        ):
            return repr(one)
        case _:
            return None
