"""Functions of dates and times, on the clock of the session."""

from __future__ import annotations

import datetime as dt
from calendar import monthrange
from collections.abc import Callable, Mapping

from datalog.model import Value, WallClock
from datalog.model.times import DATE_UNITS, SPANS, TIME_UNITS, pattern_parts

_MONTHS, _DAYS = 12, 32
"""Of a year; and more than a month has."""


def _time(value: dt.date) -> dt.datetime:
    """A time without its kind: midnight of a date."""
    if isinstance(value, dt.datetime):
        return dt.datetime.combine(value.date(), value.time())
    return dt.datetime.combine(value, dt.time())


def _date(value: dt.date) -> dt.date:
    return _time(value).date()


def _truncated_date(value: dt.date, unit: str) -> dt.date | None:
    day = _date(value)
    match DATE_UNITS.get(unit.lower()):
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=3 * _quarter(day) - 2, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - dt.timedelta(days=day.weekday())
        case _:
            return None


def _truncated_time(unit: str, value: dt.date) -> dt.datetime | None:
    at = _time(value)
    match TIME_UNITS.get(unit.lower()):
        case None:
            return None
        case "day":
            return _time(at.date())
        case "hour":
            return at.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return at.replace(second=0, microsecond=0)
        case "second":
            return at.replace(microsecond=0)
        case "millisecond":
            return at.replace(microsecond=at.microsecond // 1000 * 1000)
        case "microsecond":
            return at
        case larger:
            day = _truncated_date(at, larger)
            return None if day is None else _time(day)


def _quarter(day: dt.date) -> int:
    return (day.month + 2) // 3


def _add_months(value: dt.date, months: int) -> dt.date:
    day = _date(value)
    year, month = divmod(day.year * _MONTHS + day.month - 1 + months, _MONTHS)
    return dt.date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _microseconds(value: dt.date) -> int:
    """Since the begin of 1970."""
    return (_time(value) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # noqa: DTZ001 - on UTC's clock


def _format(value: dt.date, pattern: str) -> str:
    at = _time(value)
    fields = {
        "yyyy": f"{at.year:04d}",
        "MM": f"{at.month:02d}",
        "dd": f"{at.day:02d}",
        "HH": f"{at.hour:02d}",
        "mm": f"{at.minute:02d}",
        "ss": f"{at.second:02d}",
    }
    parts = pattern_parts(pattern)
    if parts is None:
        raise ValueError
    return "".join(fields[text] if is_field else text for text, is_field in parts)


def _add(unit: str, number: int, value: dt.date) -> dt.datetime:
    """A time so many units later."""
    months, micros = SPANS[unit]
    at = _time(value) + dt.timedelta(microseconds=number * micros)
    found = dt.datetime.combine(_add_months(at, number * months), at.time())
    return WallClock.of(found) if isinstance(value, WallClock) else found


def _between(unit: str, start: dt.date, end: dt.date) -> int:
    """How many whole units lie between two times; of months as Java counts: 31 January to 28 February is none."""
    months, micros = SPANS[unit]
    if micros:
        distance = _microseconds(end) - _microseconds(start)
        return abs(distance) // micros * (1 if distance > 0 else -1)
    one, other = _time(start), _time(end)
    day = other.date()
    if day != one.date():  # the last day is a whole one, or does not count
        day -= dt.timedelta(days=(day > one.date()) * (other.time() < one.time()))
        day += dt.timedelta(days=(other.date() < one.date()) * (other.time() > one.time()))
    distance = ((day.year - one.year) * _MONTHS + day.month - one.month) * _DAYS + day.day - one.day
    return abs(distance) // _DAYS // months * (1 if distance > 0 else -1)


TIMES: Mapping[str, Callable[..., Value]] = {
    "add_months": _add_months,
    "date_add": lambda day, days: _date(day) + dt.timedelta(days=days),
    "date_format": _format,
    "date_trunc": _truncated_time,
    "datediff": lambda end, start: (_date(end) - _date(start)).days,
    "day": lambda day: day.day,
    "dayofweek": lambda day: day.isoweekday() % 7 + 1,
    "dayofyear": lambda day: day.timetuple().tm_yday,
    "hour": lambda at: _time(at).hour,
    "last_day": lambda day: _date(day).replace(day=monthrange(day.year, day.month)[1]),
    "make_date": dt.date,
    "minute": lambda at: _time(at).minute,
    "month": lambda day: day.month,
    "quarter": _quarter,
    "second": lambda at: _time(at).second,
    "timestampadd": _add,
    "timestampdiff": _between,
    "trunc": _truncated_date,
    "unix_seconds": lambda at: _microseconds(at) // 1_000_000,
    "unix_timestamp": lambda at: (
        _microseconds(at) // 1_000_000 + (_microseconds(at) < 0 < _microseconds(at) % 1_000_000)
    ),
    "weekday": lambda day: day.weekday(),
    "weekofyear": lambda day: day.isocalendar().week,
    "year": lambda day: day.year,
}
"""The functions by their names; arguments are never null."""
