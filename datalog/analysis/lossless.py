"""Casts and roundings that change the type of a number, and not the number.

    cast(count(*) as int)      round(sum(price), 2)      cast(sum(price) as decimal(18, 2))

A number that does not fit its new type is an error, as in Spark's ANSI mode: what is stored has lost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datalog.analysis.expression_types import expression_type, settled
from datalog.model import Call, Cast, ColumnType, Constant, Expression, TypeName, Variable


def inside(value: Expression) -> Expression:
    """What stands within casts and roundings.

    >>> from datalog.model import Aggregate, AggregateFunction
    >>> count = Aggregate(AggregateFunction.COUNT)
    >>> inside(Call("round", (Cast(count, ColumnType(TypeName.INT)), Constant(2)))) == count
    True
    """
    match value:
        case Cast(operand, safe=False) | Call("round", (operand, *_)):
            return inside(operand)
        case _:
            return value


def is_lossless(value: Expression, types: Mapping[Variable, ColumnType]) -> bool:
    """Whether the casts and roundings around something keep all digits of its numbers, whatever they are.

    >>> price, x = ColumnType(TypeName.DECIMAL, 9, 2), Variable("X")
    >>> [is_lossless(Call("round", (x, Constant(places))), {x: price}) for places in (1, 2, 3)]
    [False, True, True]
    """
    match value:
        case Cast(operand, to, safe=False):
            kind, kept = expression_type(operand, types), _scale(settled(to))
        case Call("round", (operand, *places)):
            kind, kept = expression_type(operand, types), _places(places)
        case _:
            return True
    scale = _scale(kind)
    is_kept = scale is not None and kept is not None and scale <= kept
    is_kept |= kind is not None and isinstance(value, Cast) and kind == value.type
    return is_kept and is_lossless(operand, types)


def _scale(kind: ColumnType | None) -> int | None:
    """How many digits behind the point numbers of a type have at most; None of doubles, and where it is not known."""
    if kind is None or kind.is_open:
        return None
    return kind.scale or 0 if kind.name is TypeName.DECIMAL or kind.name.is_integer else None


def _places(places: Sequence[Expression]) -> int | None:
    """To how many digits behind the point is rounded; None if that is not said, or before it."""
    if not places:
        return 0
    (wanted,) = places
    given = wanted.value if isinstance(wanted, Constant) else None
    return given if isinstance(given, int) and not isinstance(given, bool) and given >= 0 else None
