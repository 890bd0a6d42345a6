"""Functions of dates and times as Spark has them in a session whose clock is that of UTC; those of texts are refused.

DuckDB computes them on times without a zone: it has a calendar of its own for those with one. An error when they come:
texts of years before 1 or after 9999.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sqlglot import exp

from datalog.model import ColumnType, TypeName
from datalog.model.times import DATE_UNITS, SPANS, TIME_UNITS, pattern_parts
from datalog.sql.duckdb.templates import filled
from datalog.sql.duckdb.types import (
    TIMES,
    Typed,
    UnlikeSparkError,
    call,
    cast,
    whole_numbers,
    within_four_digits,
)

_INT, _DATE, _CLOCK = (ColumnType(n) for n in (TypeName.INT, TypeName.DATE, TypeName.TIMESTAMP_NTZ))
_BIGINT = ColumnType(TypeName.BIGINT)
_INSTANT = ColumnType(TypeName.TIMESTAMP)
_UNIT = 1_000_000  # microseconds
_FIELDS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_PLACE_OF_UNIT = {"date_trunc": 0, "trunc": 1, "date_format": 1}


def _as(function: str, argument: Typed, to: ColumnType) -> exp.Expr:
    """A date or time as a date, or as a time without a zone."""
    tree, kind = argument
    if isinstance(kind, str) or kind.name not in (TypeName.DATE, *TIMES):
        raise UnlikeSparkError(f"`{function}` of `{kind}`")
    return tree if kind == to else cast(tree, to)


def _written(function: str, argument: Typed) -> str:
    """A unit or pattern, written out."""
    tree, _ = argument
    tree = tree.this if isinstance(tree, exp.Cast) else tree
    if not isinstance(tree, exp.Literal) or not tree.is_string:
        raise UnlikeSparkError(f"`{function}` with a unit or pattern that is not written out")
    return tree.name


def _part_of_date(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    return cast(call(function, _as(function, arguments[0], _DATE)), _INT)


def _part_of_time(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    return cast(call(function, _as(function, arguments[0], _CLOCK)), _INT)


def _day_of_week(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """From Sunday, 1, to Saturday; `weekday` from Monday, 0. DuckDB counts from Sunday, 0, or Monday, 1."""
    template = "dayofweek(:day) + 1" if function == "dayofweek" else "isodow(:day) - 1"
    return cast(filled(template, day=_as(function, arguments[0], _DATE)), _INT)


def _later(template: str, function: str, arguments: Sequence[Typed]) -> exp.Expr:
    day, (number, of) = arguments
    if isinstance(of, str) or of.name is not TypeName.INT:
        raise UnlikeSparkError(f"`{function}` of a `{of}`")
    return filled(template, day=_as(function, day, _DATE), number=cast(number, of))


def _last_day(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    return call(function, _as(function, arguments[0], _DATE))


def _days_between(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    end, start = (_as(function, one, _DATE) for one in arguments)
    return filled("CAST(:end - :start AS INTEGER)", end=end, start=start)


def _truncated(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    place = _PLACE_OF_UNIT[function]
    unit, value = _written(function, arguments[place]), arguments[1 - place]
    known = (DATE_UNITS if function == "trunc" else TIME_UNITS).get(unit.lower())
    if known is None:
        raise UnlikeSparkError(f"`{function}` to `{unit}`")
    to, kind = (_DATE, _DATE) if function == "trunc" else (_CLOCK, _INSTANT)
    cut = call("date_trunc", exp.Literal.string(known), _as(function, value, to))
    return cast(cut if to == kind else cast(cut, to), kind)


def _formatted(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    parts = pattern_parts(_written(function, arguments[1]))
    if parts is None:
        raise UnlikeSparkError(f"this pattern of `{function}`")
    at = _as(function, arguments[0], _CLOCK)
    pattern = "".join(_FIELDS[text] if is_field else text.replace("%", "%%") for text, is_field in parts)
    shown = call("strftime", at, exp.Literal.string(pattern))
    return within_four_digits(at, shown)


def _made_date(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    return call(function, *whole_numbers(arguments, _INT, f"`{function}`"))


def _seconds(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """Seconds since 1970: `unix_timestamp` cuts their digits off, and `unix_seconds` rounds down."""
    every = call("epoch_us", _as(function, arguments[0], _CLOCK))
    down = f"(:every - (:every % {_UNIT} + {_UNIT}) % {_UNIT})"
    return filled(f"({':every' if function == 'unix_timestamp' else down} // {_UNIT})", every=every)


def _span(function: str, argument: Typed) -> tuple[int, int]:
    months, micros = SPANS.get(_written(function, argument), (0, 0))
    if not months and not micros:
        raise UnlikeSparkError(f"this unit of `{function}`")
    return months, micros


def _add(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """A time so many units later."""
    unit, number, (tree, kind) = arguments
    months, micros = _span(function, unit)
    (count,) = whole_numbers([number], _BIGINT, f"`{function}`")
    made = "to_months(CAST(:count * :months AS INTEGER))" if months else "to_microseconds(:count * :micros)"
    at = _as(function, (tree, kind), _CLOCK)
    later = filled(f"(:at + {made})", at=at, count=count, months=months, micros=micros)
    return later if kind == _CLOCK else cast(later, _INSTANT)


def _between(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """How many whole units lie between two times, as a number below zero if the second is earlier."""
    unit, *times = arguments
    months, micros = _span(function, unit)
    start, end = (_as(function, one, _CLOCK) for one in times)
    if micros:
        return filled(f"((epoch_us(:end) - epoch_us(:start)) // {micros})", start=start, end=end)
    return filled(
        f"({_MONTHS_BETWEEN} // {months})", start=start, end=filled(_LAST_DAY, start=start, end=end)
    )


_LAST_DAY = """
    CASE WHEN CAST(:end AS DATE) > CAST(:start AS DATE) AND CAST(:end AS TIME) < CAST(:start AS TIME)
    THEN CAST(:end AS DATE) - 1
    WHEN CAST(:end AS DATE) < CAST(:start AS DATE) AND CAST(:end AS TIME) > CAST(:start AS TIME)
    THEN CAST(:end AS DATE) + 1 ELSE CAST(:end AS DATE) END
"""
"""The day of the end, if it is a whole one; else the one towards the start."""
_MONTHS_BETWEEN = """
    ((((year(:end) - year(:start)) * 12 + month(:end) - month(:start)) * 32 + day(:end) - day(:start)) // 32)
"""
"""As Java's calendar counts whole months: 31 January to 28 February is none."""


TIMES_OF: Mapping[str, Callable[[str, Sequence[Typed]], exp.Expr]] = {
    "add_months": partial(_later, "CAST(:day + to_months(:number) AS DATE)"),
    "date_add": partial(_later, "(:day + :number)"),
    "date_format": _formatted,
    "datediff": _days_between,
    "last_day": _last_day,
    "make_date": _made_date,
    "timestampadd": _add,
    "timestampdiff": _between,
    **dict.fromkeys(("unix_seconds", "unix_timestamp"), _seconds),
    **dict.fromkeys(("date_trunc", "trunc"), _truncated),
    **dict.fromkeys(("day", "dayofyear", "month", "quarter", "weekofyear", "year"), _part_of_date),
    **dict.fromkeys(("dayofweek", "weekday"), _day_of_week),
    **dict.fromkeys(("hour", "minute", "second"), _part_of_time),
}
"""The functions of dates and times, by their names."""
