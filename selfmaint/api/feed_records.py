"""Feeds that are at hand as records or JSON lines, for the memory engine."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from datalog.model import Row
from selfmaint.errors import Code, InputError, input_error
from selfmaint.feeds.changes import Change, split
from selfmaint.feeds.column_feed import ColumnFeedReader
from selfmaint.feeds.debezium import DebeziumReader
from selfmaint.feeds.events import EventReader, RecordError, RowEvent
from selfmaint.feeds.formats import FeedFormat, recognised
from selfmaint.feeds.lines import PlacedEvent, Tally, first_record, placed_events, require_range
from selfmaint.feeds.positions import Bounds
from selfmaint.feeds.record import RowReader
from selfmaint.feeds.table_names import TableNames

THE_RECORDS = "the records"
"""Where events are that come from no file."""


@dataclass(slots=True)
class Events:
    """A relation's changes, and how many events they are of."""

    changes: list[Change] = field(default_factory=list)
    count: int = 0


def records_changes(
    feed: str | Path | Iterable[Mapping[str, object]],
    names: TableNames,
    named: FeedFormat | None,
    within: Bounds,
    *,
    initial_load: bool,
) -> tuple[dict[str, Events], Tally]:
    """The changes of each relation in a JSON lines file, or in records.

    Raises:
        InputError: SM103 no such file; SM601, SM602, ... records that cannot be read.
    """
    tally = Tally()
    if isinstance(feed, str | Path):
        path = Path(feed)
        if not path.is_file():
            raise input_error(Code.MISSING_CONTENTS, f"there is no change feed `{path}`")
        first = first_record([path])
        reader = _reader(first, f"`{path}`", names, named, initial_load=initial_load)
        placed = placed_events([path], reader, within, tally)
    else:
        records = list(feed)
        reader = _reader(
            records[0] if records else None, THE_RECORDS, names, named, initial_load=initial_load
        )
        placed = iter(_placed(records, reader, within, tally))
    is_file_of_events = isinstance(reader, DebeziumReader)
    found: dict[str, Events] = {}
    for entry in placed:
        events = found.setdefault(entry.event.relation, Events())
        # Rows of one version are one event: only lines of Debezium's events are in an order of their own.
        place = (entry.file, entry.line) if is_file_of_events else (None, 0)
        events.changes.extend(replace(c, row=_in_utc(c.row)) for c in split(entry.event, *place))
        events.count += 1
    tally.check_sources()
    return found, tally


def _in_utc(row: Row) -> Row:
    """The row with instants as times on the clock of UTC: an engine without a session has no other zone."""
    return tuple(
        v.astimezone(dt.UTC).replace(tzinfo=None) if isinstance(v, dt.datetime) and v.tzinfo else v
        for v in row
    )


def _placed(
    records: Iterable[object], reader: EventReader, within: Bounds, tally: Tally
) -> Iterable[PlacedEvent]:
    for number, record in enumerate(records, 1):
        try:
            event = reader.read(record)
            if isinstance(event, RowEvent):
                require_range(event, within)
        except RecordError as error:
            raise InputError([error.diagnostic]) from None
        if tally.admits(event, within) and isinstance(event, RowEvent):
            yield PlacedEvent(event, THE_RECORDS, number)


def _reader(
    first: object, what: str, names: TableNames, named: FeedFormat | None, *, initial_load: bool
) -> EventReader:
    format_ = named
    if format_ is None:
        format_ = recognised(first, what) if isinstance(first, Mapping) else FeedFormat.DEBEZIUM
    if format_ is FeedFormat.DEBEZIUM:
        return DebeziumReader(names, initial_load)
    if format_.columns is None or names.only is None:
        raise input_error(Code.FEED_FORMAT, f"nothing says of which base relation {what} is")
    return ColumnFeedReader(format_.columns, RowReader(names.relations[names.only], names.settings))
