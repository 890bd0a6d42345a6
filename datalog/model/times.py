"""The units and patterns of Spark's functions of dates and times."""

from __future__ import annotations

import re
from collections.abc import Mapping

DATE_UNITS: Mapping[str, str] = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "week": "week",
}
"""What `trunc` cuts a date to, by the names in lower case; a week starts on a Monday."""
TIME_UNITS: Mapping[str, str] = {
    **DATE_UNITS,
    **dict.fromkeys(("day", "dd"), "day"),
    **{unit: unit for unit in ("hour", "minute", "second", "millisecond", "microsecond")},
}
"""What `date_trunc` cuts a time to."""
SPANS: Mapping[str, tuple[int, int]] = {
    "microsecond": (0, 1),
    "millisecond": (0, 1_000),
    "second": (0, 1_000_000),
    "minute": (0, 60_000_000),
    "hour": (0, 3_600_000_000),
    "day": (0, 86_400_000_000),
    "week": (0, 7 * 86_400_000_000),
    "month": (1, 0),
    "quarter": (3, 0),
    "year": (12, 0),
}
"""What `timestampadd` and `timestampdiff` count in, on the clock of UTC: months, and microseconds."""
CLOCK_CALLS = frozenset(
    {"date_format", "date_trunc", "hour", "minute", "second", "timestampadd", "timestampdiff"}
)
"""Functions of which the value for a date or a time without a zone depends on a zone."""
_PART = re.compile(r"(yyyy|MM|dd|HH|mm|ss)|([-/:. _,]+)|'([^']+)'")


def pattern_parts(pattern: str) -> tuple[tuple[str, bool], ...] | None:
    """The parts of a pattern of `date_format`, each with whether it is a field; None of one that is not known.

    >>> pattern_parts("yyyyMM'T'HH")
    (('yyyy', True), ('MM', True), ('T', False), ('HH', True))
    >>> pattern_parts("MMM y") is None
    True
    """
    found: list[tuple[str, bool]] = []
    at = 0
    while at < len(pattern):
        part = _PART.match(pattern, at)
        if part is None or (found and found[-1] == (part[0], True)):
            return None
        text = part[2] or part[3]
        found.append((part[0], True) if text is None else (text, False))
        at = part.end()
    return tuple(found)
