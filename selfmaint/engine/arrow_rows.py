"""Rows of plain Python values as an Arrow table with exact types, and back.

A `timestamp` is an instant in Arrow, and as a plain value what the session's clock shows then, as in a literal
`TIMESTAMP '...'` of SQL. Of the hour that a change of clocks repeats the second one has `fold` set.
"""

from __future__ import annotations

import datetime as dt
import re
import textwrap
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import pyarrow as pa

from datalog.model import ANY, MAX_PRECISION, ColumnType, Row, TypeName, Value, WallClock, value_kind
from selfmaint.engine.arrow_types import arrow_type
from selfmaint.errors import Code, InputError, input_error

ArrowTable: TypeAlias = pa.Table

_INT64 = range(-(2**63), 2**63)
_NOT_HELD = (pa.ArrowException, ArithmeticError, LookupError, TypeError, ValueError)
_NOTHING: frozenset[type] = frozenset([type(None)])
_AS_IT_IS: dict[TypeName, frozenset[type]] = {
    TypeName.BOOLEAN: frozenset([bool]),
    **dict.fromkeys(
        (TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT), frozenset[type]([int])
    ),
    TypeName.DOUBLE: frozenset([float]),
    TypeName.DECIMAL: frozenset([Decimal]),
    TypeName.STRING: frozenset([str]),
    TypeName.DATE: frozenset([dt.date]),
}
"""Python's types that Arrow takes as they are: a column of them needs no look at each value."""
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - what a clock shows
_MICROSECOND = dt.timedelta(microseconds=1)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


def arrow_table(
    rows: Iterable[Row], names: Sequence[str], types: Sequence[ColumnType], zone: str
) -> ArrowTable:
    """Rows as an Arrow table with exact types.

    Args:
        rows: each as long as `names`.
        names: column names, in order.
        types: declared types; `ANY`, and `decimal` without a precision, are inferred from the values.
        zone: the session's time zone, on whose clock timestamps without a zone of their own are.

    Returns:
        One column a name, in order; an `ANY` column with nothing but nulls has Arrow's null type.

    Raises:
        InputError: SM104 rows of another length, values that the type cannot hold, or of several families.
    """
    held = [tuple(row) for row in rows]
    if any(len(row) != len(names) for row in held):
        wrong = next(len(row) for row in held if len(row) != len(names))
        raise input_error(Code.COLUMNS_DIFFER, f"a row with {wrong} values for {len(names)} columns")
    arrays = [
        arrow_column([row[i] for row in held], name, declared, zone)
        for i, (name, declared) in enumerate(zip(names, types, strict=True))
    ]
    return pa.Table.from_arrays(arrays, names=list(names))


def arrow_column(values: Sequence[Value], name: str, declared: ColumnType, zone: str) -> pa.Array:
    """One column's values as an Arrow array; see `arrow_table`."""
    actual = _inferred(values, name, declared)
    try:
        if set(map(type, values)) - _NOTHING <= _AS_IT_IS.get(actual.name, _NOTHING):
            return pa.array(values, type=arrow_type(actual))
        return pa.array([_converted(v, actual, zone) for v in values], type=arrow_type(actual))
    except _NOT_HELD as failure:
        raise _does_not_fit(values, name, declared, zone) from failure


def _inferred(values: Sequence[Value], name: str, declared: ColumnType) -> ColumnType:
    if not declared.is_open:
        return declared
    families = {value_kind(v) for v in values} - {"null"}
    if len(families) > 1:
        raise input_error(
            Code.COLUMNS_DIFFER,
            f"column `{name}` mixes values of several types: {', '.join(sorted(families))}",
            hint=f"declare the type of `{name}`, or make its values alike",
        )
    if not families:
        return declared
    family = families.pop()
    return _inferred_number(values, name, declared) if family == "number" else ColumnType(TypeName(family))


def _inferred_number(values: Sequence[Value], name: str, declared: ColumnType) -> ColumnType:
    numbers = [v for v in values if v is not None]
    if declared is ANY or declared.name is TypeName.ANY:
        if any(isinstance(v, float) for v in numbers):
            return ColumnType(TypeName.DOUBLE)
        if all(isinstance(v, int) and v in _INT64 for v in numbers):
            return ColumnType(TypeName.BIGINT)
    sizes = [_size(v) for v in numbers if isinstance(v, int | Decimal | float)]
    scale = max(s for _, s in sizes)
    precision = max(1, scale + max(d for d, _ in sizes))
    if precision > MAX_PRECISION:
        raise input_error(
            Code.COLUMNS_DIFFER,
            f"column `{name}` needs {precision} digits, and a decimal has at most {MAX_PRECISION}",
        )
    return ColumnType(TypeName.DECIMAL, precision, scale)


def _size(number: Decimal | float) -> tuple[int, int]:
    """How many digits a number has before and after the point."""
    exact = _decimal(number)
    _, digits, exponent = exact.as_tuple()
    if not isinstance(exponent, int):
        return 0, 0
    return max(0, len(digits) + exponent) if exact else 0, max(0, -exponent)


def _decimal(number: Decimal | float) -> Decimal:
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


def _converted(value: Value, declared: ColumnType, zone: str) -> Value | int:
    """A value as the Arrow type wants it, without loss; TypeError or ValueError if there is no such value."""
    if value is None:
        return None
    if not declared.accepts(value):
        raise TypeError(value_kind(value))
    match declared.name:
        case TypeName.TIMESTAMP if isinstance(value, dt.datetime):
            return _instant(value, zone)
        case TypeName.DECIMAL if isinstance(value, int | Decimal | float):
            return _decimal(value)
        case TypeName.FLOAT | TypeName.DOUBLE if isinstance(value, int | Decimal):
            return float(value)
        case TypeName.TINYINT | TypeName.SMALLINT | TypeName.INT | TypeName.BIGINT:
            return _integral(value)
        case _:
            return value


def _instant(value: dt.datetime, zone: str) -> int:
    """The microseconds since 1970: as in Spark, a time that the clock leaves out is as much later as is left out."""
    placed = value if value.tzinfo is not None else value.replace(tzinfo=zone_named(zone))
    offset = placed.utcoffset()
    assert offset is not None
    return (value.replace(tzinfo=None) - _EPOCH - offset) // _MICROSECOND


def zone_named(name: str) -> dt.tzinfo:
    """A time zone of Spark's: a region, or an offset.

    Raises:
        ZoneInfoNotFoundError: there is none of that name.

    >>> zone_named("GMT+1"), zone_named("-05:30")
    (datetime.timezone(datetime.timedelta(seconds=3600)), datetime.timezone(datetime.timedelta(days=-1, seconds=66600)))
    """
    found = _OFFSET.fullmatch(name)
    if name in ("Z", "UTC"):
        return dt.UTC
    if found is None:
        return ZoneInfo(name)
    hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
    offset = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return dt.timezone(-offset if found[1] == "-" else offset)


def _integral(value: Value) -> int:
    if type(value) is int:
        return value
    if not isinstance(value, int | Decimal | float) or value != int(value):
        raise ValueError(value)
    return int(value)


def _does_not_fit(values: Sequence[Value], name: str, declared: ColumnType, zone: str) -> InputError:
    """The error that names the first value that the type cannot hold."""
    wrong = next((v for v in values if not _holds(declared, v, zone)), None)
    shown = textwrap.shorten(repr(wrong), 60, placeholder="...")
    return input_error(
        Code.COLUMNS_DIFFER, f"column `{name}` is declared `{declared}`, which cannot hold {shown}"
    )


def _holds(declared: ColumnType, value: Value, zone: str) -> bool:
    try:
        pa.array([_converted(value, declared, zone)], type=arrow_type(declared))
    except _NOT_HELD:
        return False
    return True


def python_rows(table: ArrowTable, zone: str) -> list[Row]:
    """An Arrow table's rows as plain Python values.

    Raises:
        InputError: SM104 a date or time that plain values do not have.
    """
    if not table.num_columns:
        return [()] * table.num_rows
    shown = zone_named(zone)
    try:
        return list(zip(*(python_values(column, shown) for column in table.columns), strict=True))
    except OverflowError as failure:
        raise input_error(
            Code.COLUMNS_DIFFER,
            f"{failure}, which cannot be shown or decided here",
            hint="store dates and times of the years 1 to 9999",
        ) from None


def python_values(column: pa.ChunkedArray, shown: dt.tzinfo | None = None) -> list[Any]:
    """A column's values as plain ones, what a clock shows as `WallClock`.

    Args:
        column: the values.
        shown: the zone on whose clock instants are shown; by default they are in UTC, and know it.

    Raises:
        OverflowError: a date or time that plain values do not have.
    """
    if not pa.types.is_temporal(column.type):
        return list(column.to_pylist())
    is_time = pa.types.is_timestamp(column.type)
    try:
        values: list[Any] = (column.cast(pa.timestamp("us", "UTC")) if is_time else column).to_pylist()
        if is_time and column.type.tz is None:
            return [v and WallClock.of(v) for v in values]
        if is_time and shown is not None:
            return [v and v.astimezone(shown).replace(tzinfo=None) for v in values]
    except (OverflowError, ValueError):
        kind = "time" if is_time else "date"
        raise OverflowError(f"a {kind} lies before the year 1 or after the year 9999") from None
    return values
