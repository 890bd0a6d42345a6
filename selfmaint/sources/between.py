"""Rows of a base relation whose value in a column of dates or times lies in one of some spans."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from datalog.model import ColumnType, TypeName, WallClock

Ends: TypeAlias = tuple[dt.date | None, dt.date | None]
"""From a date or time, to before another one; None where there is no end."""


class Between(Struct, frozen=True):
    """Which rows are asked for.

    Attributes:
        column: the column's name.
        type: its declared type.
        spans: in order, apart from each other: dates, or times on the clock of UTC.
        with_null: whether rows without a value are asked for, too.
    """

    column: str
    type: ColumnType
    spans: tuple[Ends, ...]
    with_null: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether all rows are asked for."""
        return self.with_null and (None, None) in self.spans

    @property
    def number(self) -> int:
        """How many spans are asked for."""
        return len(self.spans) + self.with_null

    @property
    def texts(self) -> tuple[tuple[str | None, str | None], ...]:
        """The spans as SQL writes dates and times, instants with their zone."""
        zone = "+00" if self.type.name is TypeName.TIMESTAMP else ""
        written = [[None if at is None else f"{at}{zone}" for at in ends] for ends in self.spans]
        return tuple((start, end) for start, end in written)

    def has(self, value: dt.date | None) -> bool:
        """Whether a row with a value is asked for."""
        if value is None:
            return self.with_null
        return any((a is None or a <= value) and (b is None or value < b) for a, b in self.spans)


def between(
    column: str,
    kind: ColumnType,
    spans: Iterable[tuple[dt.datetime | None, dt.datetime | None]],
    *,
    with_null: bool,
) -> Between:
    """The rows with a value in one of some spans of times: of dates every day that is touched.

    A span without an end has all that is before or after it: beyond the years from 1 to 9999 there may be other times.
    """
    spans = tuple(spans)
    if kind.name is TypeName.TIMESTAMP_NTZ:
        on_clock = ((a and WallClock.of(a), b and WallClock.of(b)) for a, b in spans)
        return Between(column, kind, tuple(on_clock), with_null)
    if kind.name is not TypeName.DATE:
        return Between(column, kind, spans, with_null)
    return Between(column, kind, tuple((a and a.date(), b and _day_behind(b)) for a, b in spans), with_null)


def _day_behind(end: dt.datetime) -> dt.date | None:
    """The first day that lies behind an end, if there is one."""
    if end.time() == dt.time.min:
        return end.date()
    return end.date() + dt.timedelta(days=1) if end.date() < dt.date.max else None
