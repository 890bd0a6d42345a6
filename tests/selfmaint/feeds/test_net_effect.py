"""The net effect of random histories in each format is the difference of the table's first and last state.

Oracle: the simulation of the table in `histories`, which keeps rows by key and knows nothing of feeds.
"""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import Code, InputError
from selfmaint.feeds.settings import DecimalText, FeedSettings, TimeUnit
from tests.selfmaint.feeds.histories import (
    COLUMNS,
    DELTA,
    ICEBERG,
    PROGRAM,
    History,
    debezium,
    histories,
    versions,
)

Rows = frozenset[tuple[Any, ...]]
SETTINGS = FeedSettings(decimals=DecimalText.TEXT, timestamps=TimeUnit.MICROS, full_before_images=True)
PARTIAL = FeedSettings(decimals=DecimalText.TEXT, timestamps=TimeUnit.MICROS)


def warehouse(settings: FeedSettings = SETTINGS) -> Warehouse[Rows]:
    nothing: Rows = frozenset()
    made = build(PROGRAM, {"v": nothing, "w": nothing}, MemoryEngine())
    return Warehouse(made.catalog, made.engine, made.contents, feeds=settings)


def lines(records: list[Any], folder: str) -> Path:
    path = Path(folder) / "feed.jsonl"
    path.write_text("".join(json.dumps(record, default=str) + "\n" for record in records), encoding="utf-8")
    return path


def check(update: Update[Rows], history: History) -> None:
    assert update.deleted.get("r", frozenset()) == history.deleted
    assert update.inserted.get("r", frozenset()) == history.inserted
    assert update.effective
    assert update.feed is not None
    for report in update.feed.relations:
        assert (report.deleted, report.inserted) == (len(history.deleted), len(history.inserted))


@given(histories(), st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_debezium(history: History, wrapped: bool, repeated: bool, order: random.Random) -> None:
    records = list(debezium(history, wrapped=wrapped))
    if repeated:  # delivered at least once: the end of the log again
        records += records[order.randint(0, len(records)) :]
    with tempfile.TemporaryDirectory() as folder:
        update = Update.from_feed(warehouse(), lines(records, folder))
    check(update, history)


@given(histories())
def test_debezium_without_whole_before_images(history: History) -> None:
    """What the batch itself inserted is known; a row of before it that goes is not, and is refused."""
    with tempfile.TemporaryDirectory() as folder:
        feed = lines(list(debezium(history, whole=False)), folder)
        if {s.before for c in history.commits for s in c if s.before} & {*history.start.values()}:
            with pytest.raises(InputError) as caught:
                Update.from_feed(warehouse(PARTIAL), feed)
            assert {d.code for d in caught.value.diagnostics} == {Code.FEED_BEFORE_IMAGE}
        else:
            check(Update.from_feed(warehouse(PARTIAL), feed), history)


@given(histories(), st.sampled_from(["delta", "iceberg"]), st.randoms(use_true_random=False))
def test_rows_with_versions(history: History, format_: str, order: random.Random) -> None:
    names, column = (DELTA, "_commit_version") if format_ == "delta" else (ICEBERG, "_change_ordinal")
    records = [
        {**dict(zip(COLUMNS, row, strict=True)), "_change_type": change, column: version}
        for change, version, row in versions(history, names)
    ]
    order.shuffle(records)
    check(Update.from_feed(warehouse(), {"r": records}), history)


@given(histories(), st.integers(0, 4))
def test_two_batches_are_one(history: History, cut: int) -> None:
    """A batch up to a version and the one after it, one applied after the other, are the whole."""
    records = [
        {**dict(zip(COLUMNS, row, strict=True)), "_change_type": change, "_commit_version": version}
        for change, version, row in versions(history, DELTA)
    ]
    table = set(history.start.values())
    for bounds in ({"upto": 2 + cut}, {"after": 2 + cut}):
        update = Update.from_feed(warehouse(), {"r": records}, **bounds)
        deleted = update.deleted.get("r", frozenset())
        assert deleted <= table
        table = (table - deleted) | update.inserted.get("r", frozenset())
    assert table == set(history.end.values())
