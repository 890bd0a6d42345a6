"""Values as points of their family's order, so that families differ in their domains only.

Numbers are exact rationals (a float is the rational that it stands for; the two infinities stay floats), booleans
0 and 1, dates days, timestamps microseconds since 0001-01-01, strings themselves. Strings are ordered by code
point, which is the order of their UTF-8 bytes.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias, assert_never

from datalog.model import ColumnType, TypeName, Value, WallClock

_DOUBLE = 64
_LARGEST = {32: struct.unpack("<f", b"\xff\xff\x7f\x7f")[0], 64: math.ldexp(1 - 2.0**-53, 1024)}


def least_float(point: Number | None, *, above: bool, bits: int) -> Fraction | None:
    """The least finite float of a width that is at least a number, or with `above` greater than it.

    None stands for no number: the least finite float. `bits` is 32 or 64.

    Returns:
        The float as a fraction, or None if no finite one is so great.

    >>> float(least_float(1, above=True, bits=64)) == math.nextafter(1.0, 2.0)
    True
    """
    largest = Fraction(_LARGEST[bits])
    if point is None or point < -largest:
        return -largest
    if point > largest or (above and point == largest):
        return None
    exact = Fraction(point)
    found = _nearest(exact, bits)
    while Fraction(found) < exact or (above and Fraction(found) == exact):
        found = _next(found, bits)
    return Fraction(found)


def is_float(point: Number, bits: int) -> bool:
    """Whether a number is a finite float of a width.

    >>> is_float(Fraction(1, 2), 32), is_float(Fraction(1, 10), 64), is_float(2**24 + 1, 32)
    (True, False, False)
    """
    return not isinstance(point, float) and least_float(point, above=False, bits=bits) == point


def _nearest(exact: Fraction, bits: int) -> float:
    nearest = float(exact)
    if bits == _DOUBLE:
        return nearest
    largest = _LARGEST[32]
    return float(struct.unpack("<f", struct.pack("<f", max(-largest, min(largest, nearest))))[0])


def _next(value: float, bits: int) -> float:
    """The next greater one."""
    if bits == _DOUBLE:
        return math.nextafter(value, math.inf)
    (code,) = struct.unpack("<i", struct.pack("<f", value or 0.0))
    code = code + 1 if code >= 0 else code - 1
    if code == -(2**31):
        return 0.0
    return float(struct.unpack("<f", struct.pack("<i", code))[0])


Number: TypeAlias = int | Fraction | float
Point: TypeAlias = Number | str

_EPOCH = dt.datetime(1, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
LAST_DAY = dt.date.max.toordinal()
LAST_MICROSECOND = LAST_DAY * dt.timedelta(days=1) // _MICROSECOND - 1
"""The last points that a value here stands for; the first are day 1 and microsecond 0. Data may go beyond."""


def precedes(left: Point, right: Point) -> bool:
    """Whether one point is strictly before another of its family."""
    return left < right  # type: ignore[operator]


def point_of(value: Value) -> Point:
    """The point of a value.

    Raises:
        ValueError: null, or not a number (`nan`), which have no place in an order.

    >>> point_of(True), point_of(Decimal("1.50")), point_of("a")
    (1, Fraction(3, 2), 'a')
    """
    match value:
        case None:
            raise ValueError("null has no place in an order")
        case bool() | int():
            return int(value)
        case float() if math.isinf(value):
            return value
        case Decimal() if value.is_infinite():
            return float(value)
        case float() | Decimal():
            if math.isnan(value):
                raise ValueError("not-a-number has no place in an order")
            return Fraction(value)
        case str():
            return value
        case dt.datetime():
            # One that names its zone is refused where types are checked, but other checks look at it too.
            plain = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
            return (plain - _EPOCH) // _MICROSECOND
        case dt.date():
            return value.toordinal()
        case _:
            assert_never(value)


def value_of(point: Point, family: str, column_type: ColumnType) -> Value:
    """The value of a point, as a column of the type holds it.

    Args:
        point: a point of the family, a writable one.
        family: `number`, `string`, `boolean`, `date`, `timestamp` or `timestamp_ntz`.
        column_type: for numbers: whole types give an int, `decimal` a Decimal with its scale, `float` and `double`
            a float, `any` an int or a Decimal.

    >>> value_of(Fraction(3, 2), "number", ColumnType(TypeName.DECIMAL, 5, 2))
    Decimal('1.50')
    """
    if isinstance(point, str):
        return point
    match family:
        case "boolean":
            return bool(point)
        case "date":
            return dt.date.fromordinal(int(point))
        case "timestamp":
            return _EPOCH + int(point) * _MICROSECOND
        case "timestamp_ntz":
            return WallClock.of(_EPOCH + int(point) * _MICROSECOND)
        case _:
            return _number(point, column_type)


def is_writable(point: Point, family: str) -> bool:
    """Whether a value stands for a point: not for days and times before the year 1 or after 9999."""
    match family:
        case "date":
            return precedes(0, point) and not precedes(LAST_DAY, point)
        case "timestamp" | "timestamp_ntz":
            return not precedes(point, 0) and not precedes(LAST_MICROSECOND, point)
        case _:
            return True


def _number(point: Number, column_type: ColumnType) -> Value:
    if isinstance(point, float) or column_type.name in {TypeName.FLOAT, TypeName.DOUBLE}:
        return float(point)
    exact = Fraction(point)
    if column_type.name is TypeName.DECIMAL and column_type.precision is not None:
        return _decimal(exact, column_type.scale or 0)
    if exact.denominator == 1:
        return exact.numerator
    scale = 1
    while (exact * 10**scale).denominator != 1:  # ends: denominators are products of 2 and 5
        scale += 1
    return _decimal(exact, scale)


def _decimal(exact: Fraction, scale: int) -> Decimal:
    """Built from its digits, which no context rounds."""
    scaled = exact * 10**scale
    assert scaled.denominator == 1
    digits = tuple(int(digit) for digit in str(abs(scaled.numerator)))
    return Decimal((int(scaled < 0), digits, -scale))
