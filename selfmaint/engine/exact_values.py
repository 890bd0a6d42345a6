"""Which rows of exact values the columns of a relation can hold."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Context, Decimal
from typing import Any

from datalog.model import ColumnType, Row, TypeName, Value
from selfmaint.engine.column_types import decimal_size

_WIDE = Context(prec=200)
_BITS = {TypeName.TINYINT: 8, TypeName.SMALLINT: 16, TypeName.INT: 32, TypeName.BIGINT: 64}


def fitting(rows: Collection[Row], types: Sequence[ColumnType | None]) -> list[Row]:
    """Those rows whose values the types can hold, as equal values of these types: a 5.00 is a 5 among integers.

    Args:
        rows: rows of exact values.
        types: a type a column; None for one that the language does not have, which takes values as they are.
    """
    if all(map(_are_of, zip(*rows, strict=True), types)):
        return list(rows)
    found = []
    for row in rows:
        try:
            found.append(tuple([_as(value, kind) for value, kind in zip(row, types, strict=True)]))
        except ValueError:
            continue
    return found


def _are_of(column: Collection[Value], kind: ColumnType | None) -> bool:
    """Whether all values of a column are a type's as they are; looked at together, which is faster."""
    if kind is None or not _is_sized(kind):
        return True
    expected = Decimal if kind.name is TypeName.DECIMAL else int
    return set(map(type, column)) <= {expected, type(None)} and all(
        _holds(kind, value) for value in set(column) if value is not None
    )


def _is_sized(kind: ColumnType) -> bool:
    """Whether a type holds exact numbers, and not all of them."""
    return kind.name in _BITS or kind.name is TypeName.DECIMAL


def _as(value: Value, kind: ColumnType | None) -> Value:
    """An equal value of a type.

    Raises:
        ValueError: there is none.
    """
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if not is_number or kind is None or not _is_sized(kind):
        return value
    if not _holds(kind, value):
        raise ValueError(value)
    assert isinstance(value, int | Decimal)
    return Decimal(value) if kind.name is TypeName.DECIMAL else int(value)


def _holds(kind: ColumnType, value: Any) -> bool:
    """Whether a type of whole numbers, or of decimals, holds a number."""
    if kind.name in _BITS:
        bits = _BITS[kind.name]
        return bool(value == int(value) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1))
    precision, scale = decimal_size(kind)
    scaled = Decimal(value).scaleb(scale, _WIDE)
    return scaled == scaled.to_integral_value() and abs(scaled) < 10**precision
