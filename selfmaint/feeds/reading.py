"""A feed as changes of relations: which format it has, and what reads it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic

from msgspec import Struct

from datalog.diagnostics import Diagnostic
from datalog.model import ColumnType, TypeName
from datalog.sql import changes as sql
from selfmaint.engine.protocol import D, Engine
from selfmaint.errors import Code, input_error
from selfmaint.feeds.changes import EventReader, Kind
from selfmaint.feeds.condense import Changes
from selfmaint.feeds.debezium import DebeziumReader
from selfmaint.feeds.formats import (
    CHANGE_TYPE,
    ColumnFeedReader,
    ColumnFormat,
    FeedFormat,
    is_plain,
    known_changes,
    plain_files,
    recognised,
    unknown_change,
)
from selfmaint.feeds.frames import delta_frame, parquet_frame, stream_frame
from selfmaint.feeds.lines import PlacedEvent, Tally, first_record, frame_records, line_records, placed_events
from selfmaint.feeds.ranges import Bounds, Scale
from selfmaint.feeds.record import RowReader
from selfmaint.feeds.spilled import spilled
from selfmaint.feeds.table import FeedTable, TableNames
from selfmaint.store.delta import is_delta_table
from selfmaint.store.exchange import Exchange, Frame
from selfmaint.store.expected import Expected
from selfmaint.store.formats import data_files
from selfmaint.store.frames import ArrowStream

LINE_SUFFIXES = (".jsonl", ".ndjson", ".json", ".gz")
_STRING, _BIGINT = ColumnType(TypeName.STRING), ColumnType(TypeName.BIGINT)


class Wanted(Struct, frozen=True):
    """What is wanted of a feed.

    Attributes:
        tables: the relations that it may be of.
        within: the positions to take.
        named: its format; None: by its columns.
        initial_load: whether the relations were empty before.
    """

    tables: TableNames
    within: Bounds
    named: FeedFormat | None
    initial_load: bool

    def table(self, what: str) -> FeedTable:
        """The one relation that the feed is of.

        Raises:
            InputError: SM601 nothing says which.
        """
        if self.tables.only is None:
            raise input_error(
                Code.FEED_FORMAT,
                f"nothing says of which base relation {what} is",
                hint="give the feed as `RELATION=PATH`",
            )
        return self.tables.relations[self.tables.only]

    def reader(self, format_: FeedFormat, what: str) -> EventReader:
        """The reader of a format's records."""
        if format_ is FeedFormat.DEBEZIUM:
            return DebeziumReader(self.tables, self.initial_load)
        if format_.columns is None:
            raise input_error(Code.FEED_FORMAT, f"{what} is no directory of insert and delete files")
        return ColumnFeedReader(format_.columns, RowReader(self.table(what), self.tables.settings))

    def reader_of(self, first: object, what: str) -> EventReader:
        """The reader of records of which the first that is not null is known."""
        format_ = self.named
        if format_ is None:
            format_ = recognised(first, what) if isinstance(first, Mapping) else FeedFormat.DEBEZIUM
        return self.reader(format_, what)

    def events(self, feed: Iterable[object], what: str, tally: Tally) -> Iterator[PlacedEvent]:
        """The events of JSON lines files, or of records at hand; errors come as they are read."""
        given, problems = list(feed), list[Diagnostic]()
        files = [one for one in given if isinstance(one, Path)]
        first = first_record(files) if files else next((one for one in given if one is not None), None)
        records = line_records(files, problems) if files else ((what, i, r) for i, r in enumerate(given, 1))
        return placed_events(records, self.reader_of(first, what), self.within, tally, problems)


class FeedReading(Struct, Generic[D], frozen=True):
    """How a feed is read for an engine.

    Attributes:
        exchange: how rows enter it.
        folder: where larger feeds are held.
    """

    engine: Engine[D]
    exchange: Exchange[D]
    wanted: Wanted
    folder: Path

    def read(self, feed: object) -> tuple[dict[str, Changes[D]], Tally]:
        """The changes of each relation in a frame, a file, a directory or a Delta table, and what else was read.

        Raises:
            InputError: SM102 an unknown table; SM103 no such file; SM104 other columns; SM601, SM602, SM603, SM605,
                SM606, SM607, see the codes' pages.
        """
        frame = self.exchange.frame(feed)
        if frame is None and isinstance(feed, ArrowStream):
            frame = stream_frame(feed, "the frame", self.exchange, self._file())
        if frame is not None:
            return self._frame(frame, "the DataFrame")
        if isinstance(feed, Iterable) and not isinstance(feed, str):
            tally = Tally()
            return self._events(self.wanted.events(feed, "the records", tally), tally)
        path = Path(str(feed))
        if not path.exists():
            raise input_error(Code.MISSING_CONTENTS, f"there is no change feed `{path}`")
        if path.is_dir() and is_delta_table(path):
            self._require_named(FeedFormat.DELTA, f"`{path}`")
            return self._frame(
                delta_frame(path, self.wanted.within, self.exchange, self._file()), f"`{path}`"
            )
        if is_plain(path) or (path.is_dir() and self.wanted.named is FeedFormat.PLAIN):
            self._require_named(FeedFormat.PLAIN, f"`{path}`")
            return self._plain(path), Tally()
        return self._files(path)

    def _file(self) -> Path:
        return self.folder / f"{uuid.uuid4().hex}.parquet"

    def _files(self, feed: Path) -> tuple[dict[str, Changes[D]], Tally]:
        """A feed of JSON lines or Parquet files."""
        files, tally = data_files(feed), Tally()
        kinds = {".jsonl" if file.suffix in LINE_SUFFIXES else file.suffix for file in files}
        match sorted(kinds):
            case []:
                raise input_error(Code.MISSING_CONTENTS, f"the change feed `{feed}` holds no files")
            case [".jsonl"]:
                return self._events(self.wanted.events(files, f"`{feed}`", tally), tally)
            case [".parquet"]:
                return self._frame(
                    parquet_frame(files, f"`{feed}`", self.exchange, self._file()), f"`{feed}`"
                )
            case [other]:
                message = f"`{feed}`: a change feed is no `{other}` file"
            case several:
                message = f"`{feed}` mixes files of several kinds: {', '.join(f'`{k}`' for k in several)}"
        raise input_error(
            Code.FEED_FORMAT, message, hint="give JSON lines, Parquet, a Delta table, or a DataFrame"
        )

    def _events(
        self, events: Iterable[PlacedEvent], tally: Tally, always: Sequence[str] = ()
    ) -> tuple[dict[str, Changes[D]], Tally]:
        """Events that are decoded one by one, with what else was read."""
        tables = self.wanted.tables.relations
        found = spilled(events, tables, always, self.folder, self.exchange.zone)
        exact = [scale for scale in Scale if scale.is_exact]
        return {
            name: Changes(
                sql.events(len(tables[name].columns)),
                [self.exchange.entered(spill)],
                [] if tables[name].key is None else exact,
            )
            for name, spill in found.items()
        }, tally

    def _frame(self, frame: Frame[D], what: str) -> tuple[dict[str, Changes[D]], Tally]:
        format_ = self.wanted.named or recognised(frame.columns, what)
        table = self.wanted.table(what)
        if format_.columns is None:
            problems, tally, reader = list[Diagnostic](), Tally(), self.wanted.reader(format_, what)
            records = frame_records(frame.records(), problems)
            events = placed_events(records, reader, self.wanted.within, tally, problems)
            return self._events(events, tally, always=[table.name])
        own = format_.columns
        missing = {CHANGE_TYPE, own.order} - {*frame.columns}
        if missing:
            shown = ", ".join(f"`{name}`" for name in sorted(missing))
            raise input_error(Code.FEED_FORMAT, f"{what} is no {format_.value} feed: it has no {shown}")
        table.check_columns([c for c in frame.columns if c not in own.own], f"the feed of `{table.name}`")
        wanted = Expected(
            table.name, (*table.columns, CHANGE_TYPE, own.order), (*table.types, _STRING, _BIGINT)
        )
        return self._versions(frame.rows(wanted), own, table)

    def _versions(self, rows: D, own: ColumnFormat, table: FeedTable) -> tuple[dict[str, Changes[D]], Tally]:
        """Rows with a change type and a version (Delta, Iceberg)."""
        width = len(table.columns)
        ends = [
            None if end is None else end[0] for end in (self.wanted.within.after, self.wanted.within.upto)
        ]
        types = [("unknown", _BIGINT), ("one", _STRING), ("unordered", _BIGINT), ("outside", _BIGINT)]
        counted = self.exchange.computed(
            lambda names: sql.misfits(names[0], width, own.change_types, *ends), [rows], types
        )
        ((unknown, one, unordered, outside),) = self.engine.sample(counted, 1)
        if unknown:
            message = f"in the feed of `{table.name}`, {unknown_change(own, one)}"
            raise input_error(Code.FEED_FORMAT, message, hint=known_changes(own))
        if unordered:
            message = f"the feed of `{table.name}` has rows without `{own.order}`"
            raise input_error(Code.FEED_UNREADABLE, message)
        query = sql.versions(width, sorted(own.added), own.scale.name, *ends)
        return {table.name: Changes(query, [rows])}, Tally(outside=int(str(outside)))

    def _plain(self, feed: Path) -> dict[str, Changes[D]]:
        if not self.wanted.within.is_open:
            raise input_error(
                Code.FEED_UNORDERED,
                f"the files in `{feed}` have no positions to take a range of",
                hint="give all of them, without a position",
            )
        found: dict[str, list[tuple[Kind, D]]] = {}
        for relation, kind, path in self._plain_files(feed):
            table = self.wanted.tables.relations[relation]
            expected = Expected(table.name, table.columns, table.types, unread=table.unread)
            found.setdefault(relation, []).append(
                (kind, self.exchange.stored(str(path.absolute()), expected))
            )
        tables = self.wanted.tables.relations
        return {
            name: Changes(
                sql.sets(len(tables[name].columns), [kind for kind, _ in parts], Scale.PARTS.name),
                [rows for _, rows in parts],
                [] if tables[name].has_twins else [Scale.PARTS],  # equal rows may be two
            )
            for name, parts in found.items()
        }

    def _plain_files(self, feed: Path) -> Iterator[tuple[str, Kind, Path]]:
        """The files of inserted and of deleted rows, with their relations."""
        for named, kind, path in plain_files(feed):
            relation = named or self.wanted.table(f"`{path}`").name
            if self.wanted.tables.only not in (None, relation):
                continue
            if relation not in self.wanted.tables.relations:
                raise input_error(Code.UNKNOWN_RELATION, f"`{path}`: `{relation}` is no base relation")
            yield relation, kind, path

    def _require_named(self, actual: FeedFormat, what: str) -> None:
        if self.wanted.named is not None and self.wanted.named is not actual:
            raise input_error(
                Code.FEED_FORMAT, f"{what} is a {actual.value} feed, not {self.wanted.named.value}"
            )
