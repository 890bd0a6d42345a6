"""Types of columns in DuckDB, and in which pairs of them it compares as Spark does.

Where DuckDB converts a side by itself, it is to a type that holds both exactly, or a double, where Spark converts to
a double too. All other pairs are refused: a big decimal and a double, a float and a whole number of 32 bits or more,
numbers and texts, decimals that together need more than 38 digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from sqlglot import exp

from datalog.analysis.types import as_decimal, constant_type
from datalog.errors import EmissionError
from datalog.model import ANY, MAX_PRECISION, ColumnType, TypeName, Value
from datalog.sql.duckdb.templates import filled, without_places

SqlType: TypeAlias = ColumnType | str
"""A type of the language, `any` of a column of nothing but nulls; or the name of one that the language lacks."""

Typed: TypeAlias = "tuple[exp.Expr, SqlType]"
"""The tree of a value, and its type."""

_EXACT_IN_DOUBLE = 15
"""A decimal of at most so many digits becomes the nearest double in DuckDB, as it does in Spark."""

WHOLE, PLACES, _DIGITS_OF_DOUBLE = 16, 4, 17
"""A double of so many digits before the point has none behind; its shortest text has at most 17; both fit in 38."""
_NAMES = {
    TypeName.BOOLEAN: "BOOLEAN",
    TypeName.TINYINT: "TINYINT",
    TypeName.SMALLINT: "SMALLINT",
    TypeName.INT: "INTEGER",
    TypeName.BIGINT: "BIGINT",
    TypeName.FLOAT: "FLOAT",
    TypeName.DOUBLE: "DOUBLE",
    TypeName.STRING: "VARCHAR",
    TypeName.DATE: "DATE",
    TypeName.TIMESTAMP: "TIMESTAMP WITH TIME ZONE",
    TypeName.TIMESTAMP_NTZ: "TIMESTAMP",
}
_INTEGERS = tuple(name for name in TypeName if name.is_integer)
TIMES = (TypeName.TIMESTAMP, TypeName.TIMESTAMP_NTZ)
"""The session's zone is UTC: there a clock shows an instant as it is counted."""
DOUBLE = ColumnType(TypeName.DOUBLE)
_TEXTS = (TypeName.BOOLEAN, *_INTEGERS)
"""Types whose values have one text."""
_LAST_YEAR = 9999
OTHERWISE = "is another one in Spark"
"""What an error says of a value of which it is known that Spark has another one."""
_NUMBERS = (TypeName.DECIMAL, *_INTEGERS)
_SHOWN = ColumnType(TypeName.TIMESTAMP_NTZ)


class UnlikeSparkError(EmissionError):
    """What DuckDB would do otherwise than Spark, or not at all."""


def type_name(kind: SqlType) -> str:
    """The type's name in DuckDB; a column of nothing but nulls is one of integers there."""
    if isinstance(kind, str):
        return kind
    if kind.name is TypeName.DECIMAL:
        precision, scale = kind.decimal_size
        return f"DECIMAL({precision}, {scale})"
    return _NAMES.get(kind.name, "INTEGER")


def sql_type(name: str) -> SqlType:
    """The type of a name in DuckDB.

    >>> str(sql_type("DECIMAL(15,2)")), sql_type("BLOB")
    ('decimal(15,2)', 'BLOB')
    """
    if name.startswith("DECIMAL("):
        precision, scale = name[len("DECIMAL(") : -1].split(",")
        return ColumnType(TypeName.DECIMAL, int(precision), int(scale))
    return next((ColumnType(known) for known, text in _NAMES.items() if text == name), name)


def cast(tree: exp.Expr, kind: SqlType) -> exp.Expr:
    """The value as a type."""
    # `exp.cast` leaves out a cast of a decimal to one of another size.
    return exp.Cast(this=tree, to=_type(type_name(kind)).copy())


@lru_cache(maxsize=1_000)
def _type(name: str) -> exp.DataType:
    """The tree of a type's name, which is parsed once; a copy is put into trees."""
    return without_places(exp.DataType.build(name, dialect="duckdb"))


def call(function: str, *arguments: exp.Expr) -> exp.Expr:
    """A call of a function of DuckDB, by its name."""
    return exp.Anonymous(this=function, expressions=list(arguments))


def unless(wrong: exp.Expr, message: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A value, or an error where something is wrong."""
    return exp.Case(ifs=[exp.If(this=wrong, true=call("error", message))], default=value)


def decimal(precision: int, scale: int) -> ColumnType:
    """A decimal type."""
    return ColumnType(TypeName.DECIMAL, precision, scale)


def digits(kind: ColumnType) -> tuple[int, int] | None:
    """The digits before and behind the point of an exact number; None of anything else."""
    if kind.name.digits is not None:
        return kind.name.digits, 0
    if kind.name is TypeName.DECIMAL:
        precision, scale = kind.decimal_size
        return precision - scale, scale
    return None


def common(kinds: Iterable[SqlType]) -> SqlType:
    """The type in which DuckDB compares, or unites, values of some types as Spark does.

    Raises:
        UnlikeSparkError: there is none.

    >>> str(common([ColumnType(TypeName.INT), ColumnType(TypeName.DECIMAL, 5, 2), ANY]))
    'decimal(12,2)'
    >>> str(common([ColumnType(TypeName.BIGINT), ColumnType(TypeName.DECIMAL, 9, 2)]))
    'decimal(22,2)'
    """
    found: SqlType = ANY
    for kind in kinds:
        found = _common(found, kind)
    return found


def _common(left: SqlType, right: SqlType) -> SqlType:
    if right in {left, ANY}:
        return left
    if left == ANY:
        return right
    if isinstance(left, str) or isinstance(right, str):
        raise UnlikeSparkError(f"a column of type `{left}` meets one of type `{right}`")
    if TypeName.DATE in (left.name, right.name):  # a date is a time at its first moment
        time = next((one for one in (left, right) if one.name in TIMES), None)
        if time is not None:
            return time
    if left.family != right.family:
        raise UnlikeSparkError(f"a column of type `{left}` meets one of type `{right}`")
    if left.name.is_floating or right.name.is_floating:
        return _common_float(left, right)
    if left.name.is_integer and right.name.is_integer:
        return max(left, right, key=lambda kind: kind.name.bits or 0)
    if digits(left) is None or digits(right) is None:
        raise UnlikeSparkError(f"a column of type `{left}` meets one of type `{right}`")
    (p1, s1), (p2, s2) = as_decimal(left), as_decimal(right)
    whole, scale = max(p1 - s1, p2 - s2), max(s1, s2)
    if whole + scale > MAX_PRECISION:
        raise UnlikeSparkError(f"`{left}` and `{right}` together need more than {MAX_PRECISION} digits")
    return decimal(whole + scale, scale)


def _common_float(left: ColumnType, right: ColumnType) -> ColumnType:
    others = [kind for kind in (left, right) if not kind.name.is_floating]
    has_float = TypeName.FLOAT in (left.name, right.name)
    for other in others:
        sizes = digits(other)
        assert sizes is not None
        if other.name is TypeName.DECIMAL and sum(sizes) > _EXACT_IN_DOUBLE:
            raise UnlikeSparkError(f"a column of type `{left}` meets one of type `{right}`")
        if has_float and other.name not in (TypeName.TINYINT, TypeName.SMALLINT):
            raise UnlikeSparkError(f"a column of type `{left}` meets one of type `{right}`")
    return DOUBLE


def whole_numbers(arguments: Sequence[Typed], to: ColumnType, of: str) -> list[exp.Expr]:
    """Arguments of whole numbers in another type of these; `of` says in an error what takes them.

    Raises:
        UnlikeSparkError: one is something else.
    """
    if any(isinstance(kind, str) or not (kind.name.is_integer or kind == ANY) for _, kind in arguments):
        raise UnlikeSparkError(f"{of} of other than whole numbers")
    return [cast(tree, to) for tree, _ in arguments]


def value_type(value: Value) -> SqlType:
    """The type of a constant; `any` of null.

    Raises:
        UnlikeSparkError: a number of more than 38 digits.
    """
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        value = Decimal(value)
    found = constant_type(value)
    if found is None:
        return ANY
    if isinstance(value, Decimal):
        sign_and_digits = value.as_tuple()
        exponent = sign_and_digits.exponent
        if not isinstance(exponent, int) or _needed(len(sign_and_digits.digits), exponent) > MAX_PRECISION:
            raise UnlikeSparkError(f"the number `{value}` has more than {MAX_PRECISION} digits")
    return found


def _needed(written: int, exponent: int) -> int:
    """How many digits a decimal type has that holds a number of so many digits."""
    return max(written + max(0, exponent), -exponent)


def as_type(tree: exp.Expr, kind: SqlType, to: SqlType) -> exp.Expr:
    """A value of one type as another's: an error where it does not fit, as in Spark.

    Refused: texts as anything else (DuckDB rounds '1.5' to a whole number, and reads fewer kinds of dates),
    floating-point numbers as texts or wide decimals (their digits differ), anything as `float`.

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
        if kind.name in (TypeName.DATE, *TIMES):
            return within_four_digits(
                tree, cast(cast(tree, _SHOWN) if kind.name is TypeName.TIMESTAMP else tree, to)
            )
        if kind.name is TypeName.DECIMAL:
            return _decimal_text(tree, *kind.decimal_size)
        return cast(tree, to) if kind.name in _TEXTS else None
    if to.name is TypeName.DOUBLE:
        return as_double(tree, kind)
    if to.name in _NUMBERS:
        return _as_exact_number(tree, kind, to)
    if to.name is TypeName.BOOLEAN and kind.name.is_integer:
        return cast(tree, to)
    dates = (TypeName.DATE, *TIMES)
    return cast(tree, to) if to.name in dates and kind.name in dates else None


def _decimal_text(tree: exp.Expr, precision: int, scale: int) -> exp.Expr:
    """A decimal's text. Of a type without digits before the point DuckDB writes none: `.50`."""
    to = ColumnType(TypeName.STRING)
    if precision > scale:
        return cast(tree, to)
    if precision < MAX_PRECISION:
        return cast(cast(tree, decimal(precision + 1, scale)), to)
    return filled(r"regexp_replace(CAST(:x AS VARCHAR), '^(-?)\.', '\10.')", x=tree)


def within_four_digits(day: exp.Expr, shown: exp.Expr) -> exp.Expr:
    """A text that shows a year, or an error where the year is before 1 or after 9999: Spark gives it a sign."""
    is_far = filled(f"NOT year(:day) BETWEEN 1 AND {_LAST_YEAR}", day=day)
    message = f"the text of a year before 1 or after {_LAST_YEAR} {OTHERWISE}"
    return unless(is_far, exp.Literal.string(message), shown)


def as_double(tree: exp.Expr, kind: ColumnType) -> exp.Expr | None:
    """A number as the nearest double. DuckDB divides a decimal's digits, of which many are rounded twice."""
    if kind.name is TypeName.DOUBLE:
        return tree
    if kind.name is TypeName.DECIMAL and kind.decimal_size[0] > _EXACT_IN_DOUBLE:
        return cast(cast(tree, ColumnType(TypeName.STRING)), DOUBLE)
    return cast(tree, DOUBLE) if kind.name in (*_NUMBERS, TypeName.FLOAT, TypeName.BOOLEAN) else None


def rounded_double(tree: exp.Expr, places: int) -> exp.Expr:
    """A double of at most `WHOLE` digits before the point as a decimal: its shortest text, halves away from zero.

    Args:
        tree: the double; what has more digits, or is no number, is an error.
        places: how many digits are kept behind the point, at most `PLACES`.
    """
    exact = decimal(MAX_PRECISION, places + _DIGITS_OF_DOUBLE)
    return cast(cast(cast(tree, ColumnType(TypeName.STRING)), exact), decimal(MAX_PRECISION, places))


def _as_exact_number(tree: exp.Expr, kind: ColumnType, to: ColumnType) -> exp.Expr | None:
    if kind.name.is_integer or (kind.name is TypeName.BOOLEAN and to.name.is_integer):
        return cast(tree, to)
    if to.name is TypeName.DECIMAL:
        if kind.name is TypeName.DOUBLE:
            precision, scale = to.decimal_size
            fits = scale <= PLACES and precision - scale <= WHOLE
            return cast(rounded_double(tree, scale), to) if fits else None
        return cast(tree, to) if kind.name is TypeName.DECIMAL else None
    if kind.name is TypeName.DECIMAL or kind.name.is_floating:
        return cast(call("trunc", tree), to)  # a plain cast rounds
    return None
