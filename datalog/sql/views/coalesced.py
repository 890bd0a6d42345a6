"""`coalesce` around counts and sums of groups that have rows, written as counts and sums.

    coalesce(count(x), 0)   count(x), which is never null
    coalesce(sum(x), 0)     sum(x) of what is never null; else sum(coalesce(x, 0))

Both are the same for any rows but none: so this holds under GROUP BY, and not of all rows of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from datalog.model import (
    Aggregate,
    AggregateFunction,
    Call,
    Constant,
    Expression,
    TypeName,
    Variable,
    is_some,
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
            (Aggregate(AggregateFunction.SUM, operand, distinct=False) as total, Constant(value=zero)),
        ) if operand is not None and isinstance(zero, int | Decimal) and zero is not False and zero == 0:
            kind = variables.type_of(operand)
            if variables.type_of(value) != variables.type_of(total) or kind is None or kind.is_open:
                return None
            if is_some(operand, is_never_null):
                return total
            nothing = Constant(Decimal(0).scaleb(-(kind.scale or 0)) if kind.name is TypeName.DECIMAL else 0)
            filled = Call("coalesce", (operand, nothing))
            is_same = variables.type_of(filled) == kind and not kind.name.is_floating
            return replace(total, operand=filled) if is_same else None
        case _:
            return None
