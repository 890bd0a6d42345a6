"""Aggregates of distinct values that no two rows of a group share, written without DISTINCT.

    SELECT c.region, count(DISTINCT o.id) FROM orders o JOIN customer c ON o.customer = c.id GROUP BY c.region
    SELECT c.region, count(o.id)          FROM orders o JOIN customer c ON o.customer = c.id GROUP BY c.region

are the same, as keys say: what is grouped by and the value together determine the row that each table has in a match,
and tables with keys have it once. A null is no value. What adds up is followed by the update alone; not so a sum of
doubles beside it, of which the DISTINCT stays: such a view is better computed from others.
"""

from __future__ import annotations

from datalog.copies import replace
from datalog.model import (
    Aggregate,
    AggregateFunction,
    Call,
    Case,
    Constant,
    Expression,
    Variable,
    aggregates_of,
    map_condition,
    map_expression,
    variables_of,
)
from datalog.sql.views.joins import Declared
from datalog.sql.views.scope import Draft, Variables
from datalog.sql.views.split.row_keys import RowKeys


def without_distinct(draft: Draft, variables: Variables, declared: Declared) -> Draft:
    """A draft that takes no value of a group once that is there once; any other as it is."""
    aggregates = aggregates_of([*draft.outputs, *draft.having])
    if not any(one.distinct for one in aggregates) or any(_is_inexact(one, variables) for one in aggregates):
        return draft
    keys, by = RowKeys.of(draft.body, declared), draft.groups
    if keys is None or by is None:
        return draft
    every = frozenset(variables_of(keys.atoms))

    def change(value: Expression) -> Expression | None:
        if not isinstance(value, Aggregate) or not value.distinct or value.operand is None:
            return None
        known = _if_not_null(value.operand)
        is_once = known is not None and keys.determined([*by, known]) >= every
        return replace(value, distinct=False) if is_once else None

    outputs = tuple(map_expression(change, one) for one in draft.outputs)
    return replace(draft, outputs=outputs, having=tuple(map_condition(change, one) for one in draft.having))


def _is_inexact(one: Aggregate, variables: Variables) -> bool:
    """Whether an aggregate adds up doubles."""
    adds = one.function in (AggregateFunction.SUM, AggregateFunction.AVG)
    kind = None if one.operand is None else variables.type_of(one.operand)
    return adds and kind is not None and kind.name.is_floating


def _if_not_null(value: Expression) -> Variable | None:
    """The column whose value a value is, unless it is null."""
    match value:
        case Variable():
            return value
        case Call("nullif", (Variable() as column, _)):
            return column
        case Case(branches, otherwise):
            results = {*(result for _, result in branches), otherwise} - {Constant(None)}
            first = next(iter(results), None)
            return first if isinstance(first, Variable) and len(results) == 1 else None
        case _:
            return None
