"""Events as stored changes: a bounded number in this process, the rest in files.

Columns: `c0`, `c1`, ... (the row, in declared types), and those of `datalog.sql.changes.PLACE`.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from datalog.sql.changes import POSITION_DIGITS
from selfmaint.engine.arrow_rows import arrow_column
from selfmaint.engine.arrow_types import arrow_type
from selfmaint.feeds.changes import Change, split
from selfmaint.feeds.lines import PlacedEvent
from selfmaint.feeds.table import FeedTable
from selfmaint.store.exchange import Spill

BATCH_CHANGES = 20_000
"""How many changes are held as Python values."""
_PLACE = (
    ("kind", pa.int32()),
    ("partial", pa.bool_()),
    ("position", pa.string()),
    ("scale", pa.string()),
    ("file", pa.string()),
    ("line", pa.int64()),
    ("leads", pa.bool_()),
)
ArrowBatch: TypeAlias = pa.RecordBatch


def spilled(
    events: Iterable[PlacedEvent],
    tables: Mapping[str, FeedTable],
    always: Collection[str],
    folder: Path,
    zone: str,
) -> dict[str, Spill]:
    """The changes of each relation that has some.

    Those in `always` are given back even without changes; `folder` is where larger ones are held.
    """
    waiting: dict[str, list[Change]] = {name: [] for name in always}
    found: dict[str, Spill] = {}
    with ExitStack() as opened:

        def flush(name: str) -> None:
            batch = _batch(waiting[name], tables[name], zone)
            if name not in found:
                spill = Spill(batch.schema, folder / f"{uuid.uuid4().hex}.parquet")
                found[name] = opened.enter_context(spill)
            found[name].add(batch)
            waiting[name].clear()

        for placed in events:
            name = placed.event.relation
            changes = waiting.setdefault(name, [])
            changes.extend(split(placed.event, placed.file, placed.line))
            if len(changes) >= BATCH_CHANGES:
                flush(name)
        for name in waiting:
            flush(name)
    return found


def _batch(changes: Sequence[Change], table: FeedTable, zone: str) -> ArrowBatch:
    columns = enumerate(zip(table.columns, table.types, strict=True))
    arrays = [arrow_column([c.row[i] for c in changes], name, kind, zone) for i, (name, kind) in columns]
    places = [_place(change) for change in changes]
    arrays += [pa.array([place[i] for place in places], kind) for i, (_, kind) in enumerate(_PLACE)]
    row = [(f"c{i}", arrow_type(kind)) for i, kind in enumerate(table.types)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*row, *_PLACE]))


def _place(change: Change) -> tuple[object, ...]:
    """Positions of one scale are in the order of these texts."""
    position = ":".join(str(number).zfill(POSITION_DIGITS) for number in change.position)
    place = (change.scale.name, change.file, change.line)
    return int(change.kind), change.partial, position, *place, change.leads
