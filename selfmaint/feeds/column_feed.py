"""Feeds whose rows have the relation's columns and some of their own: the kind of change, and its version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from selfmaint.errors import Code
from selfmaint.feeds.changes import Event, RecordError, RowEvent
from selfmaint.feeds.ranges import Scale
from selfmaint.feeds.record import RowReader
from selfmaint.feeds.values import Encoding

CHANGE_TYPE = "_change_type"
_NO_ENCODINGS: Mapping[str, Encoding] = {}


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """A format of this kind.

    Attributes:
        name: its name for messages.
        removed: the change types of rows that go.
        added: the change types of rows that come.
        order: the column with the version.
        scale: what that counts.
        others: further columns of the format's own.
    """

    name: str
    removed: frozenset[str]
    added: frozenset[str]
    order: str
    scale: Scale
    others: frozenset[str]

    @property
    def own(self) -> frozenset[str]:
        """The columns that are not the relation's."""
        return self.others | {CHANGE_TYPE, self.order}

    @property
    def change_types(self) -> tuple[str, ...]:
        """All change types, for messages."""
        return tuple(sorted(self.removed | self.added))


@dataclass(slots=True)
class ColumnFeedReader:
    """Reads rows as mappings from columns to values."""

    format: ColumnFormat
    rows: RowReader

    def read(self, record: object) -> Event:
        """What a row says; see `events.EventReader`."""
        own = self.format
        if not isinstance(record, Mapping) or CHANGE_TYPE not in record or own.order not in record:
            found = ", ".join(f"`{c}`" for c in record) if isinstance(record, Mapping) else "none"
            raise RecordError(
                Code.FEED_FORMAT,
                f"a record that is no row of {own.name}",
                note=f"it needs `{CHANGE_TYPE}` and `{own.order}`; its columns are {found}",
            )
        change, version = record[CHANGE_TYPE], record[own.order]
        if not isinstance(change, str) or change not in own.removed | own.added:
            raise RecordError(Code.FEED_FORMAT, unknown_change(own, change), hint=known_changes(own))
        if isinstance(version, bool) or not isinstance(version, int):
            raise RecordError(Code.FEED_UNREADABLE, f"`{own.order}` is `{version}`, not a number")
        image = {name: value for name, value in record.items() if name not in own.own}
        row = self.rows.row(image, "the row", _NO_ENCODINGS)
        gone, come = (row, None) if change in own.removed else (None, row)
        return RowEvent(self.rows.table.name, (version,), own.scale, gone, come)


def unknown_change(own: ColumnFormat, change: object) -> str:
    """That a change type is not the format's."""
    return f"`{change}` is no change type of {own.name}"


def known_changes(own: ColumnFormat) -> str:
    """What the change types are."""
    return f"they are {', '.join(f'`{c}`' for c in own.change_types)}; a feed holds one format"
