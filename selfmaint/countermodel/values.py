"""Values that are likely to be in no database: whether one will do is asked afterwards, by the definition."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

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
            digits = (type_.precision or 10) - (type_.scale or 0)
            return (
                -(Decimal(10) ** max(digits, 1)) + number
                if digits > 0
                else Decimal(number).scaleb(-(type_.scale or 0))
            )
        case _:
            return -_TOP.get(type_.name, 9_000_000_000) + number
