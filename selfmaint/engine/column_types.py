"""Sizes of column types, and which stored type may stand for which declared one."""

from __future__ import annotations

from datalog.model import ANY, ColumnType, TypeName


def is_integer(kind: ColumnType | str) -> bool:
    """Whether a type is one of integers; one that only an engine knows, by name, is not."""
    return isinstance(kind, ColumnType) and kind.name.is_integer


def is_floating(kind: ColumnType | str) -> bool:
    """Whether a type is one of floating-point numbers."""
    return isinstance(kind, ColumnType) and kind.name.is_floating


def fits(stored: ColumnType, declared: ColumnType) -> bool:
    """Whether every value of the stored type is a value of the declared one.

    >>> fits(ColumnType(TypeName.INT), ColumnType(TypeName.BIGINT))
    True
    >>> fits(ColumnType(TypeName.STRING), ColumnType(TypeName.BIGINT))
    False
    """
    if ANY in (stored, declared) or stored == declared:
        return True
    match declared.name:
        case TypeName.DECIMAL:
            return _fits_decimal(stored, declared)
        case TypeName.DOUBLE:
            return stored.name in (TypeName.FLOAT, TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT)
        case TypeName.FLOAT:
            return stored.name in (TypeName.TINYINT, TypeName.SMALLINT)
        case name if name.bits is not None:
            return stored.name.bits is not None and stored.name.bits <= name.bits
        case _:
            return stored.name is declared.name


def narrows(stored: ColumnType, declared: ColumnType) -> bool:
    """Whether two types are of exact numbers, and the stored one has values that the declared one has not.

    >>> narrows(ColumnType(TypeName.BIGINT), ColumnType(TypeName.INT))
    True
    >>> narrows(ColumnType(TypeName.DECIMAL, 38, 2), ColumnType(TypeName.DECIMAL, 10, 2))
    True
    >>> narrows(ColumnType(TypeName.DOUBLE), ColumnType(TypeName.DECIMAL, 10, 2))
    False
    """
    exact = (one.name.is_integer or one.precision is not None for one in (stored, declared))
    return all(exact) and not fits(stored, declared)


def _fits_decimal(stored: ColumnType, declared: ColumnType) -> bool:
    if stored.name.digits is not None:
        digits, scale = stored.name.digits, 0
    elif stored.name is TypeName.DECIMAL:
        precision, scale = stored.decimal_size
        digits = precision - scale
    else:
        return False
    if declared.precision is None:
        return True
    precision, wanted = declared.decimal_size
    return scale <= wanted and digits <= precision - wanted


def is_wider_decimal(stored: ColumnType, computed: ColumnType) -> bool:
    """Whether two types are decimals, and the stored one has every value of the computed one.

    >>> is_wider_decimal(ColumnType(TypeName.DECIMAL, 38, 2), ColumnType(TypeName.DECIMAL, 25, 2))
    True
    >>> is_wider_decimal(ColumnType(TypeName.DECIMAL, 38, 0), ColumnType(TypeName.DECIMAL, 25, 2))
    False
    """
    return stored.name is computed.name is TypeName.DECIMAL and fits(computed, stored)


def number_kind(column_type: ColumnType) -> str | None:
    """In words, which numbers a type has; types of one kind differ in their size alone. None of another type.

    >>> number_kind(ColumnType(TypeName.DECIMAL, 9, 2)), number_kind(ColumnType(TypeName.DECIMAL, 9, 0))
    ('decimal with 2 digits behind the point', 'whole number')
    """
    if column_type.name.is_integer:
        return "whole number"
    if column_type.name is TypeName.DECIMAL and column_type.precision is not None:
        scale = column_type.scale or 0
        return f"decimal with {scale} digits behind the point" if scale else "whole number"
    return column_type.name.value if column_type.name.is_floating else None


def casts_exactly(column_type: ColumnType, to: ColumnType) -> bool:
    """Whether a value of a type is the same in another, or an error where that is too narrow.

    >>> price = ColumnType(TypeName.DECIMAL, 9, 2)
    >>> casts_exactly(price, ColumnType(TypeName.DECIMAL, 20, 2)), casts_exactly(price, ColumnType(TypeName.INT))
    (True, False)
    """
    if column_type.is_open or to.is_open or column_type == to:
        return True
    if number_kind(column_type) is None or to.name.is_floating:
        return fits(column_type, to)
    if column_type.name.is_floating:
        return False
    return number_kind(to) is not None and (column_type.scale or 0) <= (to.scale or 0)


def settled(stored: ColumnType, declared: ColumnType) -> ColumnType:
    """The type to use where `stored` fits `declared`: the declared one, unless that leaves it open."""
    if declared.name is TypeName.ANY:
        return stored
    if declared.name is TypeName.DECIMAL and declared.precision is None:
        if stored.name is TypeName.DECIMAL:
            return stored
        if stored.name.digits is not None:
            return ColumnType(TypeName.DECIMAL, stored.name.digits, 0)
    return declared
