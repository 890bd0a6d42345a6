"""Which format a feed has, by its columns or by its name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import Enum, unique
from pathlib import Path

from msgspec import Struct

from selfmaint.errors import Code, input_error
from selfmaint.feeds.changes import Event, Kind, RecordError, RowEvent
from selfmaint.feeds.ranges import Scale
from selfmaint.feeds.record import RowReader
from selfmaint.feeds.values import Encoding
from selfmaint.store.delta import is_delta_table

CHANGE_TYPE = "_change_type"
_NO_ENCODINGS: Mapping[str, Encoding] = {}


class ColumnFormat(Struct, frozen=True):
    """A format of this kind.

    Attributes:
        name: its name for messages.
        removed: the change types of rows that go.
        added: the change types of rows that come.
        order: the column with the version.
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


class ColumnFeedReader(Struct):
    """Reads rows as mappings from columns to values."""

    format: ColumnFormat
    rows: RowReader

    def read(self, record: object) -> Event:
        """What a row says; see `changes.EventReader`."""
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


DELTA = ColumnFormat(
    name="a Delta change data feed",
    removed=frozenset({"delete", "update_preimage"}),
    added=frozenset({"insert", "update_postimage"}),
    order="_commit_version",
    scale=Scale.VERSION,
    others=frozenset({"_commit_timestamp"}),
)
"""Delta's change data feed: `_change_type`, `_commit_version` and `_commit_timestamp` beside the table's columns.

An update is a pair of rows, before (`update_preimage`) and after (`update_postimage`). Rows of one commit have no
order among them: what goes comes before what comes. Source: the Delta Lake documentation, "Change data feed".
"""
ICEBERG = ColumnFormat(
    name="an Iceberg changelog",
    removed=frozenset({"DELETE", "UPDATE_BEFORE"}),
    added=frozenset({"INSERT", "UPDATE_AFTER"}),
    order="_change_ordinal",
    scale=Scale.ORDINAL,
    others=frozenset({"_commit_snapshot_id"}),
)
"""Iceberg's changelog view: `_change_type`, `_change_ordinal` and `_commit_snapshot_id` beside the table's columns.

Copy-on-write gives a DELETE and an INSERT for each row that a rewritten file carries over; the net effect has none
of them. Source: the Iceberg documentation, Spark procedure `create_changelog_view`.
"""
_KINDS = {"insert": Kind.INSERT, "delete": Kind.DELETE}


@unique
class FeedFormat(Enum):
    """The formats."""

    DEBEZIUM = "debezium"
    DELTA = "delta"
    ICEBERG = "iceberg"
    PLAIN = "plain"
    """A directory of files of inserted and of deleted rows."""

    @property
    def columns(self) -> ColumnFormat | None:
        """The format's columns, of the formats that are told by columns of their own."""
        return {FeedFormat.DELTA: DELTA, FeedFormat.ICEBERG: ICEBERG}.get(self)


def recognised(columns: Collection[str], what: str) -> FeedFormat:
    """The format that some columns, or the keys of a record, belong to.

    >>> recognised(["id", "_change_type", "_commit_version"], "the feed").value
    'delta'
    >>> recognised(["before", "after", "op", "source"], "the feed").value
    'debezium'

    Raises:
        InputError: SM601 none, or several.
    """
    found = []
    if {"op", "after"} <= {*columns} or "payload" in columns or {*columns} == {"value"}:
        found.append(FeedFormat.DEBEZIUM)
    if CHANGE_TYPE in columns:
        found += [f for f in FeedFormat if f.columns is not None and f.columns.order in columns]
    match found:
        case [only]:
            return only
        case []:
            raise input_error(
                Code.FEED_FORMAT,
                f"{what} has no format that is known",
                note=f"its columns are {', '.join(f'`{c}`' for c in columns) or 'none'}",
                hint="Debezium's events have `op`, `before` and `after`, Delta's rows `_change_type` and "
                "`_commit_version`, Iceberg's `_change_type` and `_change_ordinal`",
            )
        case several:
            raise input_error(
                Code.FEED_FORMAT,
                f"{what} mixes formats: {' and '.join(f.value for f in several)}",
                note=f"its columns are {', '.join(f'`{c}`' for c in columns)}",
                hint="name the format, or leave the other's columns out",
            )


def is_plain(feed: object) -> bool:
    """Whether a feed is a directory of such files, which have no positions."""
    folder = Path(feed) if isinstance(feed, str | Path) else None
    return folder is not None and folder.is_dir() and not is_delta_table(folder) and any(plain_files(folder))


def plain_files(folder: Path) -> Iterator[tuple[str | None, Kind, Path]]:
    """The files of a directory that are named so: the relation (None: not in the name), the kind, and the file.

    What goes comes before what comes: a row in both files stays, and a key in both has changed.
    """
    for path in sorted(folder.iterdir()):
        pieces = path.name.rsplit(".", 2)
        if path.name.startswith(("_", ".")) or len(pieces) == 1:
            continue
        if pieces[-2] in _KINDS:
            relation = pieces[0] if len(pieces) > len(("part", "suffix")) else None
            yield relation, _KINDS[pieces[-2]], path
