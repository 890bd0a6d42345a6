"""Feeds that come as Arrow: frames of pandas, polars, Arrow and DuckDB, Parquet files, Delta tables."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from datalog.model import ANY, Unmodelled
from datalog.model.schema import OTHER_HINT
from selfmaint.engine.arrow_types import arrow_type, column_type
from selfmaint.engine.column_types import settled
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, InputError, SelfmaintError, first_line, input_error
from selfmaint.feeds.ranges import Bounds
from selfmaint.store.delta import delta_table
from selfmaint.store.exchange import Exchange, Spill
from selfmaint.store.expected import Expected, require_names, require_types
from selfmaint.store.frames import ArrowStream, added_by_pandas, held_type, with_plain_texts

_BATCH_ROWS = 20_000
_ArrowBatch: TypeAlias = pa.RecordBatch
_ArrowSchema: TypeAlias = pa.Schema


class ArrowFrame(Struct, Generic[D], frozen=True):
    """A `Frame` of batches, which are gone through once.

    Attributes:
        what: what they are, for messages.
        exchange: of the engine that the rows are for.
        file: where they are held if they are many.
    """

    schema: _ArrowSchema
    batches: Iterable[_ArrowBatch]
    what: str
    exchange: Exchange[D]
    file: Path

    @property
    def columns(self) -> Sequence[str]:
        """See `Frame`."""
        return tuple(self.schema.names)

    def records(self) -> Iterator[object]:
        """See `Frame`."""
        try:
            for batch in self.batches:
                if batch.schema.names == ["value"]:
                    yield from batch.column(0).cast(pa.string()).to_pylist()
                else:
                    yield from map(_plain, batch.to_pylist())
        except (pa.ArrowException, ValueError) as failure:
            raise self._not_held(failure) from failure

    def rows(self, expected: Expected) -> D:
        """See `Frame`."""
        require_names(self.columns, expected, extra_allowed=True)
        fields = [self.schema.field(name) for name in expected.columns]
        stored = [None if (kind := held_type(field.type)) is None else column_type(kind) for field in fields]
        shown = [
            kind or Unmodelled(str(field.type), OTHER_HINT)
            for kind, field in zip(stored, fields, strict=True)
        ]
        require_types(shown, expected)
        types = [
            arrow_type(settled(kind or ANY, to)) for kind, to in zip(stored, expected.types, strict=True)
        ]
        schema = pa.schema(list(zip(expected.columns, types, strict=True)))
        try:
            with Spill(schema, self.file) as spill:
                for batch in self.batches:
                    spill.add(with_plain_texts(batch.select(list(expected.columns))).cast(schema))
        except (pa.ArrowException, KeyError) as failure:
            raise self._not_held(failure) from failure
        return self.exchange.entered(spill)

    def _not_held(self, failure: Exception) -> InputError:
        message = f"{self.what} cannot be held: {first_line(failure)}"
        return input_error(Code.COLUMNS_DIFFER, message, "round its values before")


def stream_frame(rows: ArrowStream, what: str, exchange: Exchange[D], file: Path) -> ArrowFrame[D]:
    """A frame of another library."""
    reader = pa.RecordBatchReader.from_stream(rows)
    index = added_by_pandas(reader.schema)
    schema = pa.schema([field for field in reader.schema if field.name not in index])
    batches = (
        b.select(schema.names).slice(i, _BATCH_ROWS)
        for b in reader
        for i in range(0, b.num_rows, _BATCH_ROWS)
    )
    return ArrowFrame(schema, batches, what, exchange, file)


def parquet_frame(files: Sequence[Path], what: str, exchange: Exchange[D], file: Path) -> ArrowFrame[D]:
    """Parquet files, all with the columns of the first.

    Raises:
        InputError: SM104 they cannot be read, now or as they are read.
    """

    def batches() -> Iterator[_ArrowBatch]:
        for path in files:
            yield from pq.ParquetFile(path).iter_batches(_BATCH_ROWS)

    def damaged(failure: Exception) -> SelfmaintError:
        return input_error(Code.COLUMNS_DIFFER, f"{what} cannot be read as Parquet: {first_line(failure)}")

    try:
        schema = pq.read_schema(files[0])
    except (pa.ArrowException, OSError) as failure:
        raise damaged(failure) from failure
    return ArrowFrame(schema, _guarded(batches(), damaged), what, exchange, file)


def _guarded(batches: Iterable[_ArrowBatch], error: Any) -> Iterator[_ArrowBatch]:
    """The batches; what goes wrong as they are read becomes an error of this package."""
    try:
        yield from batches
    except Exception as failure:
        raise error(failure) from failure


def _plain(value: Any) -> Any:
    """A value of a record, as JSON has it: bytes in base64."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case _:
            return value


def delta_frame(path: Path, within: Bounds, exchange: Exchange[D], file: Path) -> ArrowFrame[D]:
    """The rows of a table's change data feed, batch by batch through bounded memory.

    Where Spark has Delta's jars, its `readChangeFeed` gives a DataFrame with the same columns instead.

    Without a beginning from the first version; `file` is where a larger feed is held.

    Raises:
        InputError: SM607 `deltalake` is not installed; SM602 the feed cannot be read in that range, for example
            because it was not enabled.
    """
    first = 0 if within.after is None else within.after[0] + 1
    last = None if within.upto is None else within.upto[0]

    def unreadable(failure: Exception) -> SelfmaintError:
        return input_error(
            Code.FEED_UNREADABLE,
            f"the change data feed of `{path}` cannot be read: {first_line(failure)}",
            hint="it must be enabled (`delta.enableChangeDataFeed`), and the versions not vacuumed",
        )

    try:
        table = delta_table(path)
        if first > table.version():
            first, last = table.version() + 1, table.version()
        reader = pa.RecordBatchReader.from_stream(
            table.load_cdf(starting_version=first, ending_version=last, allow_out_of_range=True)
        )
    except SelfmaintError:
        raise
    except Exception as failure:
        raise unreadable(failure) from failure
    kinds = [
        (f.name, pa.int64() if f.type == pa.uint64() else f.type) for f in reader.schema
    ]  # of the versions
    schema = pa.schema(kinds)
    batches = _guarded((batch.cast(schema) for batch in reader), unreadable)
    return ArrowFrame(schema, batches, f"`{path}`", exchange, file)
