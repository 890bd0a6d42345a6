"""`coalesce` around counts and sums of groups that have rows, written as counts and sums.

    coalesce(count(x), 0)   count(x), which is never null
    coalesce(sum(x), 0)     sum(x) of what is never null; else sum(coalesce(x, 0))

Both are the same for any rows but none: so this holds under GROUP BY, and not of all rows of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from datalog.model import (
    Aggregate,
    AggregateFunction,
    Call,
    Constant,
    Expression,
    Variable,
    map_condition,
    map_expression,
)
from datalog.sql.views.scope import Draft, Variables


def without_coalesced(draft: Draft, variables: Variables, is_never_null: Callable[[Variable], bool]) -> Draft:
    """A draft that groups, with plain counts and sums; any other as it is."""
    if not draft.groups:
        return draft

    def change(value: Expression) -> Expression | None:
        return plain_aggregate(value, variables, is_never_null)

    outputs = tuple(map_expression(change, one) for one in draft.outputs)
    return replace(draft, outputs=outputs, having=tuple(map_condition(change, one) for one in draft.having))


def plain_aggregate(
    value: Expression, variables: Variables, is_never_null: Callable[[Variable], bool]
) -> Expression | None:
    """A count or a sum that is the same as a `coalesce` of one, of some rows; None if there is none."""
    match value:
        case Call("coalesce", (Aggregate(AggregateFunction.COUNT) as count, Constant())):
            return count if variables.type_of(value) == variables.type_of(count) else None
        case Call(
            "coalesce",
            (
                Aggregate(AggregateFunction.SUM, operand, distinct=False) as total,
                Constant(value=int() as zero) as other,
            ),
        ) if operand is not None and zero == 0 and zero is not False:
            kind, filled = variables.type_of(operand), Call("coalesce", (operand, other))
            same = variables.type_of(value) == variables.type_of(total) and variables.type_of(filled) == kind
            if not same or kind is None or kind.is_open or kind.name.is_floating:
                return None
            is_sure = isinstance(operand, Variable) and is_never_null(operand)
            return total if is_sure else replace(total, operand=filled)
        case _:
            return None
