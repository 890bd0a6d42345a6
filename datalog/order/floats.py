"""Floating point numbers as the discrete order that they are."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

from datalog.order.points import Number

_DOUBLE = 64
_LARGEST = {32: struct.unpack("<f", b"\xff\xff\x7f\x7f")[0], 64: math.ldexp(1 - 2.0**-53, 1024)}


def least_float(point: Number | None, *, above: bool, bits: int) -> Fraction | None:
    """The least finite float of a width that is at least a number, or with `above` greater than it.

    Args:
        point: the number; None for the least finite float.
        above: whether the float must be greater.
        bits: 32 or 64.

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
