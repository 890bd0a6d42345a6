"""Views that read the current date or time: definitions are those of one moment, and change as time goes on.

A warehouse's contents are of a moment that its store knows. Up to the next day (or moment, where the time is read) the
definitions say the same, and everything is decided by those. After it, the contents are still those of the old
definitions, and what the new ones give is computed anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selfmaint.warehouse.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Clock:
    """The moment that definitions are of.

    Attributes:
        reads_time: whether some read the time; else they read the date alone, in UTC.
        at: the catalog at another moment; those of the last few are kept.
        began: when the definitions were read first.
        digest: that of what they were read from, of which the same definitions come at every moment.
    """

    moment: datetime
    reads_time: bool = field(compare=False)
    at: Callable[[datetime], Catalog] = field(compare=False)
    began: datetime | None = field(default=None, compare=False)
    digest: str = field(default="", compare=False)

    def __reduce__(self) -> tuple[object, ...]:
        """Another process, which gets a copy, asks for no other moment."""
        return Clock, (self.moment, self.reads_time, _no_other)

    def current(self) -> datetime:
        """The moment that counts as now: when the definitions were read, if that is a moment ago."""
        moment = now()
        is_recent = self.began is not None and timedelta() <= moment - self.began < _AGO
        return self.began if self.began is not None and is_recent and self.began > self.moment else moment

    def says_the_same(self, moment: datetime) -> bool:
        """Whether the definitions of another moment are these."""
        here, there = self.moment.astimezone(UTC), moment.astimezone(UTC)
        return here == there if self.reads_time else here.date() == there.date()

    @property
    def note(self) -> str:
        """Of which date or time what is said of the views is."""
        what = "time" if self.reads_time else "date"
        return f"views that read the current {what} are taken as of {self.shown(self.moment)}, and later computed anew"

    def shown(self, moment: datetime) -> str:
        """A moment, as far as definitions read it."""
        here = moment.astimezone(UTC)
        return f"{here:%Y-%m-%d %H:%M:%S} UTC" if self.reads_time else f"{here:%Y-%m-%d}"


def _no_other(moment: datetime) -> Catalog:
    raise ValueError(f"a copy of a clock does not know of {moment}")


MOMENTS = 4
"""Of so many moments definitions are kept: when they were read, of the contents, and of none."""
_AGO = timedelta(minutes=1)
LATER = timedelta(days=1000)
"""After so long definitions that read the date or time say something else."""


def now() -> datetime:
    """The current moment."""
    return datetime.now(UTC)
