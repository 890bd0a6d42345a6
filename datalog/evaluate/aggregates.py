"""Aggregates over the values of a group, each with its number of copies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from typing import Any, assert_never

from datalog.analysis.expression_types import average_type
from datalog.evaluate.casts import rounded_to
from datalog.model import Aggregate, AggregateFunction, ColumnType, TypeName, Value, value_kind

_EXACT = Context(prec=200)


def aggregate(one: Aggregate, values: Iterable[tuple[Value, int]], operand_type: ColumnType | None) -> Value:
    """An aggregate.

    Args:
        one: which; for `count(*)` the values do not matter.
        values: the operand's values with their numbers of copies.
        operand_type: the type of the operand, which the digits of an average depend on.

    Example:
        >>> average = Aggregate(AggregateFunction.AVG, None)
        >>> aggregate(average, [(Decimal("1.00"), 2), (None, 5), (Decimal("2.00"), 1)], None)
        Decimal('1.333333')
    """
    if one.operand is None and one.function is AggregateFunction.COUNT:
        return sum(copies for _, copies in values)
    known = [(value, copies) for value, copies in values if value is not None]
    if one.distinct:
        known = [(value, 1) for value in {(value_kind(v), v): v for v, _ in known}.values()]
    if one.function is AggregateFunction.COUNT:
        return sum(copies for _, copies in known)
    if not known:
        return None
    return _of_values(one.function, known, operand_type)


def _of_values(
    function: AggregateFunction, known: Sequence[tuple[Any, int]], operand_type: ColumnType | None
) -> Value:
    number = sum(copies for _, copies in known)
    found: Value
    match function:
        case AggregateFunction.COUNT:
            return number
        case AggregateFunction.SUM:
            found = _total(known)
        case AggregateFunction.AVG:
            found = _average(_total(known), number, operand_type)
        case AggregateFunction.MIN:
            found = min(value for value, _ in known)
        case AggregateFunction.MAX:
            found = max(value for value, _ in known)
        case _:
            assert_never(function)
    return found


def _total(known: Sequence[tuple[Any, int]]) -> Any:
    if any(isinstance(value, float) for value, _ in known):
        return math.fsum(float(value) for value, copies in known for _ in range(copies))
    total: Any = 0
    for value, copies in known:
        product = _EXACT.multiply(value, Decimal(copies)) if isinstance(value, Decimal) else value * copies
        total = _EXACT.add(Decimal(total), product) if isinstance(product, Decimal) else total + product
    return total


def _average(total: Any, number: int, operand_type: ColumnType | None) -> Value:
    if not isinstance(total, Decimal):
        return float(total) / number
    if operand_type is not None and operand_type.name is TypeName.DECIMAL:
        scale = average_type(operand_type).scale or 0
    else:
        exponent = total.as_tuple().exponent
        scale = (-exponent if isinstance(exponent, int) else 0) + 4
    return rounded_to(_EXACT.divide(total, Decimal(number)), scale)
