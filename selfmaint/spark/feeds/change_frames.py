"""Changes as DataFrames: from events that arrive one by one, and from rows with a kind and a version.

Columns: `c0`, `c1`, ... (the row, in declared types), `kind` (0 it goes, 1 it comes), `partial`, `position` (an array
of numbers), `scale`, `file`, `line`, and `leads` (whether the change is its event's first). See `feeds.changes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from selfmaint.engine.arrow_rows import arrow_column
from selfmaint.engine.arrow_types import arrow_type
from selfmaint.feeds.changes import Change, split
from selfmaint.feeds.events import RowEvent
from selfmaint.feeds.positions import Scale, shown
from selfmaint.feeds.table import FeedTable
from selfmaint.spark.exchange import SparkExchange
from selfmaint.store.spill import Spill

BATCH_CHANGES = 20_000
"""How many changes are held as Python values."""

PLACE_FIELDS = (
    ("kind", pa.int8()),
    ("partial", pa.bool_()),
    ("position", pa.string()),
    ("scale", pa.string()),
    ("file", pa.string()),
    ("line", pa.int64()),
    ("leads", pa.bool_()),
)
ArrowBatch: TypeAlias = pa.RecordBatch
ArrowSchema: TypeAlias = pa.Schema


def arrow_schema(table: FeedTable) -> ArrowSchema:
    """The Arrow schema of a relation's changes; positions are text here."""
    columns = [(f"c{i}", arrow_type(t)) for i, t in enumerate(table.types)]
    return pa.schema([*columns, *PLACE_FIELDS])


def arrow_batch(changes: Sequence[Change], table: FeedTable, zone: str, schema: ArrowSchema) -> ArrowBatch:
    """Changes as a batch."""
    arrays = [
        arrow_column([change.row[i] for change in changes], name, declared, zone)
        for i, (name, declared) in enumerate(zip(table.columns, table.types, strict=True))
    ]
    places = [_place(change) for change in changes]
    arrays += [pa.array([place[i] for place in places], kind) for i, (_, kind) in enumerate(PLACE_FIELDS)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _place(change: Change) -> tuple[object, ...]:
    position = shown(change.position)
    place = (change.scale.name, change.file, change.line)
    return int(change.kind), change.partial, position, *place, change.leads


class ChangesSpill:
    """Collects the events of one relation, a bounded number in memory."""

    def __init__(self, table: FeedTable, file: Path, zone: str) -> None:
        self._table = table
        self._zone = zone
        self._schema = arrow_schema(table)
        self._spill = Spill(self._schema, file)
        self._waiting: list[Change] = []
        self._is_closed = False

    def add(self, event: RowEvent, file: str | None, line: int) -> None:
        """Takes an event."""
        self._waiting.extend(split(event, file, line))
        if len(self._waiting) >= BATCH_CHANGES:
            self._flush()

    def close(self) -> None:
        """Ends the file, whether it is complete or not."""
        if not self._is_closed:
            self._is_closed = True
            self._spill.__exit__(None, None, None)

    def frame(self, spark: SparkSession) -> DataFrame:
        """The changes, once all were added."""
        self._flush()
        self.close()
        return numbered_positions(SparkExchange(spark).entered(self._spill))

    def _flush(self) -> None:
        if self._waiting:
            self._spill.add(arrow_batch(self._waiting, self._table, self._zone, self._schema))
            self._waiting.clear()


def numbered_positions(frame: DataFrame) -> DataFrame:
    """The frame with positions as arrays of numbers."""
    position = f.col("position")
    numbers = f.split(position, ":").cast("array<bigint>")
    return frame.withColumn(
        "position", f.when(position == "", f.array().cast("array<bigint>")).otherwise(numbers)
    )


def with_place(frame: DataFrame, kind: Column, position: Column, scale: Scale) -> DataFrame:
    """Rows as changes: all of one position are one event, in which what goes comes before what comes.

    Args:
        frame: the relation's columns, and those that `kind` and `position` are made from.
        kind: 0 or 1.
        position: an array of numbers.
        scale: what it counts.
    """
    return frame.select(
        *(f.col(name) for name in frame.columns if name[1:].isdigit()),
        kind.cast("tinyint").alias("kind"),
        f.lit(False).alias("partial"),
        position.cast("array<bigint>").alias("position"),
        f.lit(scale.name).alias("scale"),
        f.lit(None).cast("string").alias("file"),
        f.lit(0).cast("bigint").alias("line"),
        f.lit(True).alias("leads"),
    )
