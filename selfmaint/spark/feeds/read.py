"""A feed as changes of relations: which format it has, and what reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from selfmaint.errors import Code, input_error
from selfmaint.feeds.column_feed import ColumnFeedReader
from selfmaint.feeds.debezium import DebeziumReader
from selfmaint.feeds.events import EventReader
from selfmaint.feeds.formats import FeedFormat, recognised
from selfmaint.feeds.lines import Tally, first_record
from selfmaint.feeds.plain import plain_files
from selfmaint.feeds.positions import Bounds
from selfmaint.feeds.record import RowReader
from selfmaint.feeds.table import FeedTable
from selfmaint.feeds.table_names import TableNames
from selfmaint.spark.failures import translated
from selfmaint.spark.feeds.column_frames import column_changes, plain_changes
from selfmaint.spark.feeds.delta_table import delta_feed, is_delta_table
from selfmaint.spark.feeds.event_frames import event_changes
from selfmaint.spark.feeds.event_lines import line_changes
from selfmaint.spark.formats import spark_path
from selfmaint.store.formats import data_files

LINE_SUFFIXES = (".jsonl", ".ndjson", ".json", ".gz")
Found: TypeAlias = tuple[dict[str, DataFrame], Tally]
"""The changes by relation, and what else was read."""


@dataclass(frozen=True, slots=True)
class FeedReading:
    """How a feed is to be read.

    Attributes:
        spark: the session.
        tables: the relations that it may be of.
        within: the positions to take.
        named: its format; None: by its columns.
        initial_load: whether the relations were empty before.
        folder: where larger feeds are held.
    """

    spark: SparkSession
    tables: TableNames
    within: Bounds
    named: FeedFormat | None
    initial_load: bool
    folder: Path

    def read(self, feed: DataFrame | Path) -> Found:
        """The changes of each relation.

        Raises:
            InputError: SM102 an unknown table; SM103 no such file; SM104 other columns; SM601, SM602, SM603, SM605,
                SM606, SM607, see the codes' pages.
        """
        if isinstance(feed, DataFrame):
            return self._frame(feed, "the DataFrame")
        if not feed.exists():
            raise input_error(Code.MISSING_CONTENTS, f"there is no change feed `{feed}`")
        if feed.is_dir() and is_delta_table(feed):
            self._require_named(FeedFormat.DELTA, f"`{feed}`")
            table = self._table(f"the Delta table `{feed}`")
            return self._frame(delta_feed(self.spark, feed, table, self.within, self._file()), f"`{feed}`")
        if feed.is_dir() and (self.named is FeedFormat.PLAIN or any(plain_files(feed))):
            self._require_named(FeedFormat.PLAIN, f"`{feed}`")
            return self._plain(feed)
        return self._files(feed)

    def _file(self) -> Path:
        return self.folder / f"{len(list(self.folder.iterdir()))}.parquet"

    def _files(self, feed: Path) -> Found:
        """A feed of JSON lines or Parquet files."""
        files = data_files(feed)
        kinds = {".jsonl" if file.suffix in LINE_SUFFIXES else file.suffix for file in files}
        match sorted(kinds):
            case []:
                raise input_error(Code.MISSING_CONTENTS, f"the change feed `{feed}` holds no files")
            case [".jsonl"]:
                return self._lines(feed, files)
            case [".parquet"]:
                with translated():
                    frame = self.spark.read.parquet(spark_path(str(feed)))
                return self._frame(frame, f"`{feed}`")
            case [other]:
                message = f"`{feed}`: a change feed is no `{other}` file"
            case several:
                message = f"`{feed}` mixes files of several kinds: {', '.join(f'`{k}`' for k in several)}"
        raise input_error(
            Code.FEED_FORMAT, message, hint="give JSON lines, Parquet, a Delta table, or a DataFrame"
        )

    def _lines(self, feed: Path, files: Sequence[Path]) -> Found:
        first = first_record(files)
        format_ = self.named
        if format_ is None and isinstance(first, dict):
            format_ = recognised(first, f"`{feed}`")
        reader = self._reader(format_ or FeedFormat.DEBEZIUM, f"`{feed}`")
        found = line_changes(self.spark, files, reader, self.tables.relations, self.within, self.folder)
        found[1].check_sources()
        return found

    def _reader(self, format_: FeedFormat, what: str) -> EventReader:
        """The reader of a format's records."""
        if format_ is FeedFormat.DEBEZIUM:
            return DebeziumReader(self.tables, self.initial_load)
        if format_.columns is None:
            raise input_error(Code.FEED_FORMAT, f"{what} is no directory of insert and delete files")
        return ColumnFeedReader(format_.columns, RowReader(self._table(what), self.tables.settings))

    def _frame(self, frame: DataFrame, what: str) -> Found:
        format_ = self.named or recognised(frame.columns, what)
        table = self._table(what)
        if format_.columns is not None:
            missing = {"_change_type", format_.columns.order} - {*frame.columns}
            if missing:
                shown = ", ".join(f"`{name}`" for name in sorted(missing))
                raise input_error(Code.FEED_FORMAT, f"{what} is no {format_.value} feed: it has no {shown}")
            changes, outside = column_changes(frame, format_.columns, table, self.within)
            return {table.name: changes}, Tally(outside=outside)
        reader = self._reader(format_, what)
        changes, tally = event_changes(frame, reader, table, self.within)
        tally.check_sources()
        return {table.name: changes}, tally

    def _plain(self, feed: Path) -> Found:
        if not self.within.is_open:
            raise input_error(
                Code.FEED_UNORDERED, f"the files in `{feed}` have no positions to take a range of"
            )
        found: dict[str, DataFrame] = {}
        for named, kind, path in plain_files(feed):
            relation = named or self._table(f"`{path}`").name
            if self.tables.only is not None and relation != self.tables.only:
                continue
            table = self._known(relation, path)
            changes = plain_changes(self.spark, str(path.absolute()), kind, table)
            found[relation] = found[relation].union(changes) if relation in found else changes
        return found, Tally()

    def _known(self, relation: str, path: Path) -> FeedTable:
        if relation not in self.tables.relations:
            raise input_error(Code.UNKNOWN_RELATION, f"`{path}`: `{relation}` is no base relation")
        return self.tables.relations[relation]

    def _table(self, what: str) -> FeedTable:
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

    def _require_named(self, actual: FeedFormat, what: str) -> None:
        if self.named is not None and self.named is not actual:
            raise input_error(Code.FEED_FORMAT, f"{what} is a {actual.value} feed, not {self.named.value}")
