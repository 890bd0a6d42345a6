"""Which functions of the model the calls of a text are, with their arguments in Spark's order."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from sqlglot import exp

from datalog.evaluate.times import TIMES
from datalog.model import MAX_PRECISION, Arithmetic, Call, Constant, Expression, Span, Value
from datalog.model.patterns import known_pattern, pattern_of_group, replaced
from datalog.model.times import DATE_UNITS, SPANS, TIME_UNITS, pattern_parts

Called = tuple[str, Sequence[exp.Expr]]
"""A function's name, and its arguments in Spark's order."""

_SECONDS = "%Y-%mstrict-%dstrict %Hstrict:%Mstrict:%Sstrict"
"""The pattern of `unix_timestamp` where none is written."""


def _parts(name: str, *parts: str) -> Callable[[exp.Expr], Called | None]:
    """A call whose arguments are in some parts; an argument that is not written is left out."""

    def read(node: exp.Expr) -> Called | None:
        return name, [one for part in parts if isinstance(one := node.args.get(part), exp.Expr)]

    return read


def _trim(node: exp.Expr) -> Called | None:
    if node.args.get("expression") is not None or node.args.get("collation") is not None:
        return None
    names = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
    name = names.get(str(node.args.get("position") or "").upper())
    return None if name is None else (name, [node.this])


def _pad(node: exp.Expr) -> Called | None:
    padding = node.args.get("fill_pattern") or exp.Literal.string(" ")
    return "lpad" if node.args.get("is_left") else "rpad", [node.this, node.expression, padding]


def _initcap(node: exp.Expr) -> Called | None:
    between = node.args.get("expression")
    return ("initcap", [node.this]) if between is None or between == exp.Literal.string(" ") else None


def _unix_timestamp(node: exp.Expr) -> Called | None:
    if node.text("format") != _SECONDS or isinstance(node.this, exp.CurrentTimestamp):
        return None
    return "unix_timestamp", [node.this]


def _by_unit(name: str, *parts: str) -> Callable[[exp.Expr], Called | None]:
    """A call with a unit that Spark has, before its arguments."""

    def read(node: exp.Expr) -> Called | None:
        unit = node.text("unit").lower()
        given = [_bare(node.args[part]) for part in parts]
        return (name, [exp.Literal.string(unit), *given]) if unit in SPANS else None

    return read


def _bare(node: exp.Expr) -> exp.Expr:
    """An argument without the cast to a date that sqlglot puts around it."""
    is_put = isinstance(node, exp.TsOrDsToDate | exp.TsOrDsToTimestamp) and not node.args.get("safe")
    return node.this if is_put else node


def _datediff(node: exp.Expr) -> Called | None:
    if node.args.get("unit") is not None:
        return _by_unit("timestampdiff", "expression", "this")(node)
    return "datediff", [node.this, node.expression]


def _rlike(node: exp.Expr) -> Called | None:
    is_known = _is_text(node.expression) and known_pattern(node.expression.name) is not None
    return ("rlike", [node.this, node.expression]) if is_known else None


def _regexp_replace(node: exp.Expr) -> Called | None:
    sought, instead = node.expression, node.args["replacement"]
    is_known = _is_text(sought) and _is_text(instead) and replaced(sought.name, instead.name) is not None
    is_known = is_known and node.args.get("position") is None
    return ("regexp_replace", [node.this, sought, instead]) if is_known else None


def _regexp_extract(node: exp.Expr) -> Called | None:
    sought, group = node.expression, node.args["group"]
    is_number = isinstance(group, exp.Literal) and group.name.isdecimal()
    is_known = is_number and _is_text(sought) and pattern_of_group(sought.name, int(group.name)) is not None
    return ("regexp_extract", [node.this, sought, group]) if is_known else None


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


SHAPED: Mapping[type[exp.Expr], Callable[[exp.Expr], Called | None]] = {
    exp.DateDiff: _datediff,
    exp.Initcap: _initcap,
    exp.Pad: _pad,
    exp.RegexpExtract: _regexp_extract,
    exp.RegexpLike: _rlike,
    exp.RegexpReplace: _regexp_replace,
    exp.Repeat: _parts("repeat", "this", "times"),
    exp.SplitPart: _parts("split_part", "this", "delimiter", "part_index"),
    exp.StrPosition: _parts("locate", "substr", "this", "position"),
    exp.StrToUnix: _unix_timestamp,
    exp.TimestampAdd: _by_unit("timestampadd", "expression", "this"),
    exp.TimestampDiff: _by_unit("timestampdiff", "expression", "this"),
    exp.Translate: _parts("translate", "this", "from_", "to"),
    exp.Trim: _trim,
}
"""What a call of each kind is; None of one that is more than its function."""
REGULAR = (exp.RegexpExtract, exp.RegexpLike, exp.RegexpReplace)
"""Those of them whose patterns have to be known."""
NAMED: Mapping[str, str] = {"btrim": "trim", "make_date": "make_date", "pmod": "pmod"}
"""Functions that are read by the name that they are called by, with their arguments as they stand."""


PARTS: Mapping[type[exp.Expr], str] = {
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfWeek: "dayofweek",
    exp.DayOfYear: "dayofyear",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Month: "month",
    exp.Quarter: "quarter",
    exp.Second: "second",
    exp.WeekOfYear: "weekofyear",
    exp.Year: "year",
}
"""Parts of dates and times; what sqlglot calls a date inside them is what it is of."""
CALLS: Mapping[type[exp.Expr], str] = {
    exp.AddMonths: "add_months",
    exp.LastDay: "last_day",
    exp.TsOrDsAdd: "date_add",
}
BY_NAME = frozenset({"date_format", "date_part", "date_trunc", "datepart", "trunc", "weekday"})
"""Functions that are read by the name that they are called by."""
_EXTRACTED: Mapping[str, str] = {
    **{name: name for name in ("year", "quarter", "month", "day", "hour", "minute")},
    **dict.fromkeys(("dow", "dayofweek"), "dayofweek"),
    "doy": "dayofyear",
    "week": "weekofyear",
}
_DAYS: Mapping[str, tuple[str, int]] = {
    "day": ("date_add", 1),
    "week": ("date_add", 7),
    "month": ("add_months", 1),
    "year": ("add_months", 12),
}


def extracted(node: exp.Extract) -> tuple[str, list[exp.Expr]] | None:
    """The function that a part of a date or time is; None of seconds, which have digits behind the point."""
    part = _EXTRACTED.get(node.name.lower())
    return None if part is None else (part, [node.expression])


def by_name(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """A call of a function of `BY_NAME`; None if a unit, pattern or part in it is not written out or not known."""
    name, given = node.name.lower(), list(node.expressions)
    if name == "weekday":
        return (name, given) if len(given) == 1 else None
    if len(given) != 2:  # noqa: PLR2004 - all others take two
        return None
    said = given[1 if name in ("trunc", "date_format") else 0]
    if not isinstance(said, exp.Literal) or not said.is_string:
        return None
    match name:
        case "date_part" | "datepart":
            part = _EXTRACTED.get(said.name.lower())
            return None if part is None else (part, given[1:])
        case "date_format":
            is_known = pattern_parts(said.name) is not None
        case _:
            is_known = said.name.lower() in (DATE_UNITS if name == "trunc" else TIME_UNITS)
    return (name, given) if is_known else None


def added(node: exp.Interval) -> tuple[str, int] | None:
    """The function that adds an interval to a date, of whole days or months, and their number; None of another one."""
    unit = _DAYS.get(node.text("unit").lower().removesuffix("s"))
    number = node.this
    if unit is None or not isinstance(number, exp.Literal) or not number.name.isdecimal():
        return None
    return unit[0], unit[1] * int(number.name)


def added_to_time(node: exp.Interval) -> tuple[str, int] | None:
    """The unit of an interval that is added to a time, and how many of it; None of another one."""
    unit, number = node.text("unit").lower().removesuffix("s"), node.this
    is_known = unit in SPANS and isinstance(number, exp.Literal) and number.name.isdecimal()
    return (unit, int(number.name)) if is_known else None


def call(name: str, arguments: tuple[Expression, ...], span: Span | None) -> Expression:
    """A call of a function; of days and months added to a date that is written out, the date."""
    days, *more = map(_number, arguments)
    is_date = isinstance(days, dt.date) and not isinstance(days, dt.datetime)
    if name in _OF_DATES and is_date and None not in more:
        with suppress(OverflowError, ValueError):  # a year beyond 9999 stays as it is written
            return Constant(TIMES[name](days, *more))
    return Call(name, arguments, span)


_OF_DATES = frozenset({"add_months", "date_add", "last_day"})


def _number(written: Expression) -> Value:
    """A value that is written out, as a product of two numbers, too; None of anything else."""
    match written:
        case Constant(value):
            return value
        case Arithmetic("*", Constant(int() as left), Constant(int() as right)):
            return left * right
        case _:
            return None


def names_moment(text: str) -> bool:
    """Whether a text is one of those that Spark takes for a date of their own, such as `'yesterday'`."""
    return text.strip().lower().startswith(("epoch", "now", "today", "tomorrow", "yesterday"))


def is_number_of_places(one: Expression) -> bool:
    """Whether it is a number of digits behind the point that is written out."""
    return isinstance(one, Constant) and type(one.value) is int and 0 <= one.value <= MAX_PRECISION
