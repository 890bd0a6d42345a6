"""Values of a column's type for databases that are made up.

Those of an example that is shown are counted up from small ones, and say what they are of (`values_of`). Those that
stand for nothing known are counted from the far end of their type (`fresh_value`): whether they are fresh is asked
afterwards, by the definition. `cross_examine/domains.py`, which shares no code with either, has values of its own.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Iterator
from decimal import Decimal
from itertools import count

from datalog.model import ColumnType, TypeName, Value, WallClock

NUMBER = ColumnType(TypeName.DOUBLE)
"""The type that is assumed of undeclared columns that are compared in order."""

_TOP = {TypeName.TINYINT: 127, TypeName.SMALLINT: 32_767, TypeName.INT: 2_147_483_647}
_LAST_DAY = dt.date(9999, 12, 31)


def fresh_value(type_: ColumnType, number: int, *, high: bool = False) -> Value:
    """A value of a type that is likely to be fresh; each number gives another.

    Args:
        type_: the type.
        number: 1, 2, ...
        high: from the other end of the type's order, where that is known.
    """
    value = _value(type_, number)
    if high and isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return -value
    return dt.date(1, 1, 1) + dt.timedelta(days=number) if high and type_.name is TypeName.DATE else value


def _value(type_: ColumnType, number: int) -> Value:
    match type_.name:
        case TypeName.STRING | TypeName.ANY:
            return f"new{number}"
        case TypeName.BOOLEAN:
            return number % 2 == 0  # one of the two: whether it will do is asked afterwards
        case TypeName.DATE:
            return _LAST_DAY - dt.timedelta(days=number)
        case TypeName.TIMESTAMP:
            return dt.datetime(9999, 12, 31) - dt.timedelta(days=number)
        case TypeName.TIMESTAMP_NTZ:
            return WallClock(9999, 12, 31) - dt.timedelta(days=number)
        case TypeName.FLOAT | TypeName.DOUBLE:
            return -1e6 - number
        case TypeName.DECIMAL:
            scale = type_.scale or 0
            whole = (type_.precision or 10) - scale
            return number - Decimal(10) ** whole if whole > 0 else Decimal(number).scaleb(-scale)
        case _:
            return -_TOP.get(type_.name, 9_000_000_000) + number


def new_value(its: ColumnType, name: str, taken: Container[Value]) -> Value:
    """A value of a type that is none of some; of a type of few values it may be one of them."""
    return next((v for v in values_of(its, name) if v not in taken), True)


def values_of(its: ColumnType, name: str) -> Iterator[Value]:
    """Values of a type that are easy to read, one after another; of a type of few values these, and no more."""
    if its.name is TypeName.BOOLEAN:
        yield from (True, False)
        return
    for number in count(1):
        match its.name:
            case TypeName.STRING | TypeName.ANY:
                yield f"{name} {number}"
            case TypeName.DATE:
                yield dt.date(2026, 1, 1) + dt.timedelta(days=number - 1)
            case TypeName.TIMESTAMP:
                yield dt.datetime(2026, 1, 1) + dt.timedelta(hours=number - 1)
            case TypeName.TIMESTAMP_NTZ:
                yield WallClock(2026, 1, 1) + dt.timedelta(hours=number - 1)
            case TypeName.FLOAT | TypeName.DOUBLE:
                yield float(number)
            case TypeName.DECIMAL:
                scale = its.scale or 0
                is_whole = number < 10 ** ((its.precision or 10) - scale)
                yield Decimal(number) if is_whole else Decimal(number).scaleb(-scale)
            case _:
                yield number
