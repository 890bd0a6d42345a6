"""Types of constants, and the type that holds the values of two types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import assert_never

from datalog.model.schema import ANY, ColumnType, TypeName
from datalog.model.terms import Value, WallClock

_MOST_DIGITS = 38
_UNSIZED = ColumnType(TypeName.DECIMAL)
_BOOLEAN = ColumnType(TypeName.BOOLEAN)
_INT = ColumnType(TypeName.INT)
_BIGINT = ColumnType(TypeName.BIGINT)
_DOUBLE = ColumnType(TypeName.DOUBLE)
_STRING = ColumnType(TypeName.STRING)
_DATE = ColumnType(TypeName.DATE)
_TIMESTAMP = ColumnType(TypeName.TIMESTAMP)
_TIMESTAMP_NTZ = ColumnType(TypeName.TIMESTAMP_NTZ)

_WHOLE_DIGITS = {TypeName.TINYINT: 3, TypeName.SMALLINT: 5, TypeName.INT: 10, TypeName.BIGINT: 20}
"""Whole-number types, narrow to wide, and the digits of a decimal that holds them (as Spark has them)."""


def constant_type(value: Value) -> ColumnType | None:
    """The narrowest type that a constant has in SQL; null has every type, so none.

    >>> str(constant_type(3)), str(constant_type(2**40)), str(constant_type(Decimal("1.50")))
    ('int', 'bigint', 'decimal(3,2)')
    """
    match value:
        case None:
            return None
        case bool():
            return _BOOLEAN
        case int():
            return _whole_type(value)
        case float():
            return _DOUBLE
        case Decimal():
            return _decimal_type(value)
        case str():
            return _STRING
        case WallClock():
            return _TIMESTAMP_NTZ
        case dt.datetime():
            return _TIMESTAMP
        case dt.date():
            return _DATE
        case _:
            assert_never(value)


def common_type(left: ColumnType, right: ColumnType) -> ColumnType | None:
    """The narrowest type that holds the values of both, or none if the families differ.

    Args:
        left: a type; `any` holds everything.
        right: a type.

    Semantics:
        Numbers widen as in Spark: whole numbers to the wider one, with decimals to a decimal of at most 38
        digits, with `float` or `double` to `double`. A decimal without a size stays one.

    Example:
        >>> str(common_type(ColumnType(TypeName.INT), ColumnType(TypeName.DECIMAL, 5, 2)))
        'decimal(12,2)'
    """
    if left == right:
        return left
    if TypeName.ANY in (left.name, right.name):
        return ANY
    if left.family != right.family:
        return None
    if left.family != "number":
        return left
    whole = [name for name in _WHOLE_DIGITS if name in (left.name, right.name)]
    if left.name in _WHOLE_DIGITS and right.name in _WHOLE_DIGITS:
        return ColumnType(whole[-1])
    if TypeName.DECIMAL in (left.name, right.name) and _is_exact(left) and _is_exact(right):
        return _common_decimal(left, right)
    return _DOUBLE


def _is_exact(column_type: ColumnType) -> bool:
    return column_type.name is TypeName.DECIMAL or column_type.name in _WHOLE_DIGITS


def _common_decimal(left: ColumnType, right: ColumnType) -> ColumnType:
    if _UNSIZED in (left, right):
        return _UNSIZED
    left_whole, left_scale = _digits(left)
    right_whole, right_scale = _digits(right)
    whole, scale = max(left_whole, right_whole), max(left_scale, right_scale)
    # Too many digits: the whole part is kept, as far as there is room.
    precision = min(_MOST_DIGITS, whole + scale)
    return ColumnType(TypeName.DECIMAL, precision, max(0, min(scale, precision - whole)))


def _digits(column_type: ColumnType) -> tuple[int, int]:
    """The digits before and after the point."""
    if column_type.precision is None:
        return _WHOLE_DIGITS[column_type.name], 0
    scale = column_type.scale or 0
    return column_type.precision - scale, scale


def _whole_type(value: int) -> ColumnType:
    if -(2**31) <= value < 2**31:
        return _INT
    if -(2**63) <= value < 2**63:
        return _BIGINT
    return ColumnType(TypeName.DECIMAL, _MOST_DIGITS, 0)


def _decimal_type(value: Decimal) -> ColumnType:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return _DOUBLE
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > _MOST_DIGITS:
        return ColumnType(TypeName.DECIMAL, _MOST_DIGITS, min(scale, _MOST_DIGITS))
    return ColumnType(TypeName.DECIMAL, precision, scale)
