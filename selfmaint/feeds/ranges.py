"""Positions in change feeds, and the ranges of them that an update takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum, unique
from typing import TypeAlias

from msgspec import Struct

from selfmaint.errors import Code, input_error

End: TypeAlias = str | int | None
"""A position, or None for an open side."""

Ends: TypeAlias = "End | Mapping[str | None, str | int] | Mapping[str, str | int]"
"""One end for all feeds, or by relation; that under None is for all others."""
Position: TypeAlias = tuple[int, ...]
"""Such as a log sequence number, a binary log's file and offset, or a commit's version."""

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")
_BINLOG = re.compile(r"[^:]*\.([0-9]{1,19}):([0-9]{1,19})(?::([0-9]{1,19}))?")
_SQL_SERVER = re.compile(r"([0-9A-Fa-f]{8}):([0-9A-Fa-f]{8}):([0-9A-Fa-f]{4})")
_NUMBERS = re.compile(r"[0-9]{1,19}(:[0-9]{1,19})*")


class Ranges(Struct, frozen=True):
    """Where the feeds of a batch begin and end.

    Attributes:
        after: by relation, the position where the batch before ended; under None that of all others.
        upto: by relation, the position where this batch ends.
    """

    after: Mapping[str | None, str | int]
    upto: Mapping[str | None, str | int]

    def of(self, relation: str | None) -> Bounds:
        """The range of the feed that is of a relation; None: of a feed that says its relations itself.

        >>> ranges({"orders": 17, None: 3}, 20, ["orders", None]).of("orders")
        Bounds(after=(17,), upto=(20,))

        Raises:
            InputError: SM603 what is no position, or an empty range.
        """
        after, upto = (part.get(relation, part.get(None)) for part in (self.after, self.upto))
        return bounds(after, upto)


def ranges(after: Ends, upto: Ends, feeds: Iterable[str | None]) -> Ranges:
    """The ranges that are said for some feeds.

    A feed under None says its relations itself.

    Raises:
        InputError: SM102 an end of a relation that has no feed of its own; SM603 what is no position, or an empty
            range.
    """
    known = list(feeds)
    found = Ranges(by_relation(after), by_relation(upto))
    for name in (*found.after, *found.upto):
        if name is not None and name not in known:
            raise input_error(
                Code.UNKNOWN_RELATION,
                f"a position is given for `{name}`, which has no feed of its own",
                hint="a feed that holds several relations has one position: give it without a relation",
            )
    for name in known:
        found.of(name)
    return found


def by_relation(ends: Ends) -> dict[str | None, str | int]:
    """Ends by relation; under None that of all others."""
    if isinstance(ends, Mapping):
        return dict(ends.items())
    return {} if ends is None else {None: ends}


@unique
class Scale(Enum):
    """What positions count."""

    LSN = "log sequence number"
    BINLOG = "binary log position"
    SQL_SERVER = "commit and change sequence number"
    SCN = "system change number"
    TIME = "commit time"
    LINE = "line"
    """Nothing: events are in the order of their lines."""
    VERSION = "commit version"
    ORDINAL = "change ordinal"
    PARTS = "insert and delete files"
    """Nothing: one deleted and one inserted row of a key at most."""

    @property
    def is_exact(self) -> bool:
        """Whether one event has one position, so that an equal event at an equal position is the same event."""
        return self in {Scale.LSN, Scale.BINLOG, Scale.SQL_SERVER}

    @property
    def follows_lines(self) -> bool:
        """Whether later lines of one file must be later positions: a clock may go backwards."""
        return self in {Scale.SCN, Scale.TIME}

    @property
    def has_range(self) -> bool:
        """Whether a range can be taken."""
        return self not in {Scale.LINE, Scale.PARTS}


class Bounds(Struct, frozen=True):
    """A range of positions.

    Attributes:
        after: events at this position and before are left out: the batch before ended there.
        upto: events behind this position are left out; a shorter position includes all that begin with it.
    """

    after: Position | None = None
    upto: Position | None = None

    def holds(self, position: Position) -> bool:
        """Whether a position is within.

        >>> bounds = Bounds(after=(3,), upto=(5,))
        >>> [bounds.holds((3, 9)), bounds.holds((4,)), bounds.holds((5, 9)), bounds.holds((6,))]
        [False, True, True, False]
        """
        if self.after is not None and position[: len(self.after)] <= self.after:
            return False
        return self.upto is None or position[: len(self.upto)] <= self.upto

    @property
    def is_open(self) -> bool:
        """Whether everything is within."""
        return self.after is None and self.upto is None


def bounds(after: str | int | None, upto: str | int | None) -> Bounds:
    """The range that two texts say; None leaves a side open.

    Raises:
        InputError: SM603 a text that is no position, or a range that is empty.
    """
    low = None if after is None else position_of(str(after))
    high = None if upto is None else position_of(str(upto))
    if low is not None and high is not None and high[: len(low)] < low[: len(high)]:
        raise input_error(Code.FEED_UNORDERED, f"the range after `{after}` up to `{upto}` is empty")
    return Bounds(low, high)


def position_of(text: str) -> Position:
    """The position that a text says.

    >>> position_of("17"), position_of("0/16B3748"), position_of("mysql-bin.000003:154")
    ((17,), (23803720,), (3, 154))
    >>> position_of("00000025:00000b58:0003")
    (37, 2904, 3)

    Raises:
        InputError: SM603 it is none.
    """
    if found := _LSN.fullmatch(text):
        return ((int(found[1], 16) << 32) | int(found[2], 16),)
    if found := _SQL_SERVER.fullmatch(text):
        return tuple(int(part, 16) for part in found.groups())
    if found := _BINLOG.fullmatch(text):
        return tuple(int(part) for part in found.groups() if part is not None)
    if _NUMBERS.fullmatch(text):
        return tuple(int(part) for part in text.split(":"))
    raise input_error(
        Code.FEED_UNORDERED,
        f"`{text}` is no position",
        hint="a version or log sequence number such as `17` or `0/16B3748`, or `FILE:OFFSET` as in "
        "`mysql-bin.000003:154`",
    )


def shown(position: Position) -> str:
    """The numbers with `:` between; `position_of` takes them back.

    >>> shown((3, 154))
    '3:154'
    """
    return ":".join(str(part) for part in position)
