"""Functions of dates and times as Spark has them in a session whose clock is that of UTC; those of texts are refused.

DuckDB computes them on times without a zone: it has a calendar of its own for those with one. An error when they come:
texts of years before 1 or after 9999.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from datalog.model import ANY, ColumnType, TypeName
from datalog.model.times import DATE_UNITS, TIME_UNITS, pattern_parts
from datalog.sql.duckdb.types import TIMES, Typed, UnlikeSparkError, call, cast, within_four_digits

_INT, _DATE, _CLOCK = (ColumnType(n) for n in (TypeName.INT, TypeName.DATE, TypeName.TIMESTAMP_NTZ))
_INSTANT = ColumnType(TypeName.TIMESTAMP)
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
    day = _as(function, arguments[0], _DATE)
    if function == "dayofweek":
        found: exp.Expr = exp.Add(this=call("dayofweek", day), expression=exp.Literal.number(1))
    else:
        found = exp.Sub(this=call("isodow", day), expression=exp.Literal.number(1))
    return cast(exp.Paren(this=found), _INT)


def _days_later(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    day, (days, of) = arguments
    if isinstance(of, str) or of.name is not TypeName.INT:
        raise UnlikeSparkError(f"`{function}` of a `{of}`")
    return exp.Paren(
        this=exp.Add(this=_closed(_as(function, day, _DATE)), expression=_closed(cast(days, of)))
    )


def _months_later(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    day, (months, of) = arguments
    if isinstance(of, str) or of.name is not TypeName.INT:
        raise UnlikeSparkError(f"`{function}` of a `{of}`")
    interval = call("to_months", cast(months, of))
    return cast(exp.Add(this=_closed(_as(function, day, _DATE)), expression=interval), _DATE)


def _last_day(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    return call(function, _as(function, arguments[0], _DATE))


def _days_between(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    end, start = (_closed(_as(function, one, _DATE)) for one in arguments)
    return cast(exp.Paren(this=exp.Sub(this=end, expression=start)), _INT)


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
    if any(isinstance(kind, str) or not (kind.name.is_integer or kind == ANY) for _, kind in arguments):
        raise UnlikeSparkError(f"`{function}` of other than whole numbers")
    return call(function, *(cast(tree, _INT) for tree, _ in arguments))


def _seconds(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """Seconds since 1970: `unix_timestamp` cuts their digits off, and `unix_seconds` rounds down."""
    every = call("epoch_us", _as(function, arguments[0], _CLOCK))
    unit = exp.Literal.number(1_000_000)
    if function == "unix_timestamp":
        return exp.Paren(this=exp.IntDiv(this=every, expression=unit))
    rest = exp.Paren(this=exp.Mod(this=every, expression=unit))
    down = exp.Sub(
        this=every.copy(),
        expression=exp.Paren(
            this=exp.Mod(
                this=exp.Paren(this=exp.Add(this=rest, expression=unit.copy())), expression=unit.copy()
            )
        ),
    )
    return exp.Paren(this=exp.IntDiv(this=exp.Paren(this=down), expression=unit.copy()))


def _closed(tree: exp.Expr) -> exp.Expr:
    return tree if isinstance(tree, exp.Column | exp.Cast | exp.Paren) else exp.Paren(this=tree)


TIMES_OF: Mapping[str, Callable[[str, Sequence[Typed]], exp.Expr]] = {
    "add_months": _months_later,
    "date_add": _days_later,
    "date_format": _formatted,
    "datediff": _days_between,
    "last_day": _last_day,
    "make_date": _made_date,
    **dict.fromkeys(("unix_seconds", "unix_timestamp"), _seconds),
    **dict.fromkeys(("date_trunc", "trunc"), _truncated),
    **dict.fromkeys(("day", "dayofyear", "month", "quarter", "weekofyear", "year"), _part_of_date),
    **dict.fromkeys(("dayofweek", "weekday"), _day_of_week),
    **dict.fromkeys(("hour", "minute", "second"), _part_of_time),
}
"""The functions of dates and times, by their names."""
