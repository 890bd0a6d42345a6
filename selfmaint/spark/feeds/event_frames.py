"""DataFrames of Debezium's events as changes: decoded by the executors, with the reader that reads files."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

import pyarrow as pa
from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from datalog.diagnostics import Diagnostic
from selfmaint.errors import Code, InputError, input_error
from selfmaint.feeds.changes import Change, split
from selfmaint.feeds.events import EventReader, Ignored, RecordError, RowEvent
from selfmaint.feeds.lines import MAX_PROBLEMS, Tally, parsed, require_range
from selfmaint.feeds.positions import Bounds
from selfmaint.feeds.table import FeedTable
from selfmaint.spark.failures import translated
from selfmaint.spark.feeds.change_frames import arrow_batch, arrow_schema, numbered_positions
from selfmaint.spark.frames import rows, session_zone

Batches: TypeAlias = Iterable[pa.RecordBatch]
_JSON_OPTIONS = {
    "ignoreNullFields": "false",
    # By default, microseconds are cut off.
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_SAID = "said"
"""The column with what is wrong with an event, or what became of one that changes no row."""
_MOST_SAID = 1000
_IGNORED, _OUTSIDE, _SOURCE, _WRONG = "ignored:", "outside", "source:", "wrong:"


def event_changes(
    frame: DataFrame, reader: EventReader, table: FeedTable, within: Bounds
) -> tuple[DataFrame, Tally]:
    """The changes of one relation in a frame of events, decoded now and held by the executors.

    Args:
        frame: events as structs in `before`, `after`, `op` and `source` (or in `payload`), or as JSON texts in the
            only column `value`. Rows of a frame have no order: only the events' log positions give one.
        reader: of envelopes.
        table: the relation.
        within: the positions to take.

    Raises:
        InputError: SM601, SM602, ... events that cannot be read.
    """
    zone = session_zone(frame.sparkSession)
    schema = arrow_schema(table).append(pa.field(_SAID, pa.string()))
    texts = frame.select(_as_text(frame).alias("text"), f.monotonically_increasing_id().alias("event"))
    spark_schema = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    decode = _decoder(reader, table, within, zone, schema)
    with _python_in_executors(), translated():
        held = texts.mapInArrow(decode, spark_schema).localCheckpoint(eager=True)
        seen = rows(
            held.where(f"{_SAID} IS NOT NULL").groupBy(_SAID).count(), MAX_PROBLEMS + len(Ignored) + 1
        )
    tally, problems = _tallied(table, {str(said): int(str(times)) for said, times in seen})
    if problems:
        raise InputError(problems)
    changes = held.where(f"{_SAID} IS NULL").drop(_SAID)
    return numbered_positions(changes), tally


@contextlib.contextmanager
def _python_in_executors() -> Iterator[None]:
    """Turns what executors say whose Python cannot import this package into an error of that kind.

    Raises:
        InputError: SM501.
    """
    try:
        yield
    except PythonException as failure:
        if "ModuleNotFoundError" not in str(failure):
            raise
        raise input_error(
            Code.NO_ENGINE,
            "the Python of Spark's executors cannot decode the events: a package is missing there",
            hint="install selfmaint into it (`PYSPARK_PYTHON` says which it is), or give the events as JSON lines",
        ) from failure


def _as_text(frame: DataFrame) -> Column:
    """An event as JSON, with the nulls that it has."""
    if frame.columns == ["value"]:
        return f.col("value").cast("string")
    return f.to_json(f.struct(*(f.col(f"`{name}`") for name in frame.columns)), _JSON_OPTIONS)


def _decoder(
    reader: EventReader, table: FeedTable, within: Bounds, zone: str, schema: pa.Schema
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """What turns batches of texts into batches of changes; it runs in the executors."""

    def decode(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            changes: list[Change] = []
            said: list[str] = []
            sources: set[str] = set()
            texts, events = (batch.column(name).to_pylist() for name in ("text", "event"))
            for text, event in zip(texts, events, strict=True):
                found = _read(reader, text, within)
                if isinstance(found, str):
                    said.append(found)
                else:
                    sources.add(_SOURCE + found.table)
                    changes.extend(split(found, None, event))
            plain = arrow_batch(changes, table, zone, arrow_schema(table))
            yield pa.RecordBatch.from_arrays(
                [*plain.columns, pa.nulls(len(changes), pa.string())], schema=schema
            )
            said += sources
            if said:
                empty = [pa.nulls(len(said), field.type) for field in arrow_schema(table)]
                yield pa.RecordBatch.from_arrays([*empty, pa.array(said, pa.string())], schema=schema)

    return decode


def _read(reader: EventReader, text: str | None, within: Bounds) -> RowEvent | str:
    """The event, or what became of it."""
    try:
        event = reader.read(None if text is None else parsed(text))
        if isinstance(event, RowEvent):
            require_range(event, within)
    except RecordError as error:
        found = error.diagnostic
        return _WRONG + json.dumps([found.code.value, found.message, found.hint, found.note])
    except ValueError as error:
        return _WRONG + json.dumps(
            [Code.FEED_UNREADABLE.value, f"an event of the feed is no JSON value: {error}", None, None]
        )
    tally = Tally()
    if tally.admits(event, within) and isinstance(event, RowEvent):
        return event
    return _IGNORED + event.name if isinstance(event, Ignored) else _OUTSIDE


def _tallied(table: FeedTable, seen: Mapping[str, int]) -> tuple[Tally, list[Diagnostic]]:
    """What became of the events that are no changes, and what is wrong with some."""
    tally, problems = Tally(), []
    for said, times in sorted(seen.items()):
        if said.startswith(_IGNORED):
            tally.ignored[Ignored[said.removeprefix(_IGNORED)]] = times
        elif said == _OUTSIDE:
            tally.outside = times
        elif said.startswith(_SOURCE):
            tally.sources.setdefault(table.name, set()).add(said.removeprefix(_SOURCE))
        else:
            code, message, hint, note = json.loads(said.removeprefix(_WRONG))
            problems.append(Diagnostic(Code(code), message, hint=hint, note=note))
    return tally, problems[:MAX_PROBLEMS]
