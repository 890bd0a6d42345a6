"""Casts that give in DuckDB what they give in Spark (ANSI mode); all others are refused.

Refused: texts as anything else (DuckDB rounds '1.5' to a whole number, and reads fewer kinds of dates), floating-point
numbers as texts or decimals (their digits differ), anything as `float`.
"""

from __future__ import annotations

from sqlglot import exp

from datalog.model import ANY, ColumnType, TypeName
from datalog.sql.duckdb.types import (
    DOUBLE,
    EXACT_IN_DOUBLE,
    FLOATS,
    TIMES,
    WHOLE,
    SqlType,
    UnlikeSparkError,
    cast,
    decimal_digits,
)

_TEXTS = (TypeName.BOOLEAN, TypeName.DECIMAL, TypeName.DATE, *TIMES, *WHOLE)
"""Types whose values have one text."""
_NUMBERS = (TypeName.DECIMAL, *WHOLE)
_SHOWN = ColumnType(TypeName.TIMESTAMP_NTZ)


def as_type(tree: exp.Expr, kind: SqlType, to: SqlType) -> exp.Expr:
    """A value of one type as another's: an error where it does not fit, as in Spark.

    Raises:
        UnlikeSparkError: DuckDB would give another value for some.
    """
    if to in {kind, ANY}:
        return tree
    if kind == ANY:
        return cast(tree, to)
    found = None if isinstance(kind, str) or isinstance(to, str) else _as_type(tree, kind, to)
    if found is None:
        raise UnlikeSparkError(f"a cast of `{kind}` to `{to}`")
    return found


def _as_type(tree: exp.Expr, kind: ColumnType, to: ColumnType) -> exp.Expr | None:
    if to.name is kind.name is not TypeName.DECIMAL:
        return tree
    if to.name is TypeName.STRING:
        shown = cast(tree, _SHOWN) if kind.name is TypeName.TIMESTAMP else tree  # without the zone
        return cast(shown, to) if kind.name in _TEXTS else None
    if to.name is TypeName.DOUBLE:
        return as_double(tree, kind)
    if to.name in _NUMBERS:
        return _as_exact_number(tree, kind, to)
    if to.name is TypeName.BOOLEAN and kind.name in WHOLE:
        return cast(tree, to)
    dates = (TypeName.DATE, *TIMES)
    return cast(tree, to) if to.name in dates and kind.name in dates else None


def as_double(tree: exp.Expr, kind: ColumnType) -> exp.Expr | None:
    """A number as the nearest double. DuckDB divides a decimal's digits, of which many are rounded twice."""
    if kind.name is TypeName.DOUBLE:
        return tree
    if kind.name is TypeName.DECIMAL and decimal_digits(kind)[0] > EXACT_IN_DOUBLE:
        return cast(cast(tree, ColumnType(TypeName.STRING)), DOUBLE)
    return cast(tree, DOUBLE) if kind.name in (*_NUMBERS, TypeName.FLOAT, TypeName.BOOLEAN) else None


def _as_exact_number(tree: exp.Expr, kind: ColumnType, to: ColumnType) -> exp.Expr | None:
    if kind.name in WHOLE or (kind.name is TypeName.BOOLEAN and to.name in WHOLE):
        return cast(tree, to)
    if to.name is TypeName.DECIMAL:
        return cast(tree, to) if kind.name is TypeName.DECIMAL else None
    if kind.name is TypeName.DECIMAL or kind.name in FLOATS:
        return cast(exp.Anonymous(this="trunc", expressions=[tree]), to)  # a plain cast rounds
    return None
