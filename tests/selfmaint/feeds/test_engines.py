"""Change feeds on both engines: many random histories in one statement, each format against the simulated table.

Oracle: `histories`, which knows nothing of feeds.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfmaint import Update, Warehouse
from selfmaint.api.platforms.platform import platform_of
from selfmaint.api.warehouse import build
from selfmaint.duckdb import DuckEngine
from selfmaint.errors import Code, InputError
from selfmaint.feeds.settings import DecimalText, FeedSettings, TimeUnit
from selfmaint.store.exchange import Spill
from tests.many_statements import interpreting
from tests.selfmaint.feeds.histories import (
    COLUMNS,
    DELTA,
    ICEBERG,
    PROGRAM,
    History,
    Row,
    Statement,
    debezium,
    histories,
    image,
    versions,
)

SETTINGS = FeedSettings(decimals=DecimalText.TEXT, timestamps=TimeUnit.MICROS, full_before_images=True)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("day", pa.date32()),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
IMAGE = pa.struct(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("day", pa.int32()),
        ("price", pa.string()),
        ("at", pa.int64()),
    ]
)
SOURCE = pa.struct([("table", pa.string()), ("lsn", pa.int64())])
ENVELOPE = pa.schema([("before", IMAGE), ("after", IMAGE), ("op", pa.string()), ("source", SOURCE)])
U = pa.schema([("a", pa.int32()), ("b", pa.string())])
few = settings(max_examples=3, deadline=None)
many = st.lists(histories(), min_size=8, max_size=25)
both = pytest.mark.parametrize("engine", ["duckdb", "spark"], indirect=True)


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    if getattr(request, "param", "duckdb") == "duckdb":
        yield DuckEngine()
        return
    from selfmaint.spark import SparkEngine

    with interpreting(request.getfixturevalue("spark")) as spark:
        yield SparkEngine(spark, near_values=0)


def warehouse(engine: Any) -> Warehouse[Any]:
    fitted = platform_of(engine).exchange.entered
    empty = {"v": Spill(SCHEMA, Path()), "w": Spill(U, Path())}
    made = build(PROGRAM, {name: fitted(rows) for name, rows in empty.items()}, engine)
    return Warehouse(made.catalog, made.engine, made.contents, feeds=SETTINGS)


def frame(engine: Any, table: pa.Table) -> Any:
    """A DataFrame with Spark, else the table."""
    return engine.spark.createDataFrame(table).repartition(3) if engine.name == "spark" else table


def moved(row: Row | None, by: int) -> Row | None:
    return None if row is None else (row[0] + by, *row[1:])


def together(found: list[History]) -> History:
    """One history of all their tables side by side, on keys of their own."""
    start, end = {}, {}
    commits: list[list[Any]] = []
    for number, history in enumerate(found):
        by = 10 * number
        start |= {key + by: moved(row, by) for key, row in history.start.items()}
        end |= {key + by: moved(row, by) for key, row in history.end.items()}
        for i, commit in enumerate(history.commits):
            commits.extend([] for _ in range(i + 1 - len(commits)))
            commits[i] += [type(s)(moved(s.before, by), moved(s.after, by)) for s in commit]
    return History(start, commits, end)


def rows(engine: Any, found: Any) -> set[Row]:
    return set() if found is None else set(engine.sample(found, 10_000))


def check(engine: Any, update: Update[Any], history: History) -> None:
    assert rows(engine, update.deleted.get("r")) == history.deleted
    assert rows(engine, update.inserted.get("r")) == history.inserted
    assert update.effective
    assert update.feed is not None
    for report in update.feed.relations:
        assert (report.deleted, report.inserted) == (len(history.deleted), len(history.inserted))


def write_lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record, default=str) + "\n" for record in records), encoding="utf-8")
    return path


@both
@few
@given(found=many, wrapped=st.booleans())
def test_debezium_files(engine: Any, found: list[History], wrapped: bool) -> None:
    history = together(found)
    records = list(debezium(history, wrapped=wrapped))
    with tempfile.TemporaryDirectory() as folder, warehouse(engine) as opened:
        middle = len(records) // 2
        write_lines(Path(folder) / "1.jsonl", records[:middle])
        write_lines(Path(folder) / "0.jsonl", records[max(0, middle - 5) :])  # some delivered again
        check(engine, Update.from_feed(opened, folder), history)


@both
@few
@given(found=many, as_text=st.booleans())
def test_debezium_frames(engine: Any, found: list[History], as_text: bool) -> None:
    history = together(found)
    records = list(debezium(history, wrapped=as_text))
    if as_text:
        table = pa.table({"value": pa.array([json.dumps(r, default=str) for r in records], pa.string())})
    else:
        table = pa.Table.from_pylist([record for record in records if record], ENVELOPE)
    with warehouse(engine) as opened:
        check(engine, Update.from_feed(opened, {"r": frame(engine, table)}), history)


def versioned(changes: list[Any], column: str = "_commit_version") -> pa.Table:
    schema = pa.schema([("_change_type", pa.string()), (column, pa.int32()), *SCHEMA])
    records = [dict(zip(schema.names, in_zone(change), strict=True)) for change in changes]
    return pa.Table.from_pylist(records, schema)


def in_zone(row: Row) -> Row:
    return tuple(v.replace(tzinfo=dt.UTC) if isinstance(v, dt.datetime) else v for v in row)


@both
@few
@given(found=many, format_=st.sampled_from(["delta", "iceberg"]))
def test_rows_with_versions(engine: Any, found: list[History], format_: str) -> None:
    history = together(found)
    names, column = (DELTA, "_commit_version") if format_ == "delta" else (ICEBERG, "_change_ordinal")
    table = versioned([(change, version, *row) for change, version, row in versions(history, names)], column)
    with warehouse(engine) as opened:
        check(engine, Update.from_feed(opened, {"r": frame(engine, table)}), history)


def test_rows_with_versions_in_files(engine: Any, tmp_path: Path) -> None:
    (tmp_path / "feed").mkdir()
    changes = [("insert", 4, *B), ("delete", 4, *A), ("insert", 7, 9, *A[1:])]
    for number, part in enumerate((changes[:1], changes[1:], [])):
        pq.write_table(versioned(part), tmp_path / "feed" / f"{number}.parquet")
    lines = [
        {"_change_type": change, "_commit_version": version, "id": 1, "name": name, "day": "2026-01-31",
         "price": 1.5, "at": "2026-01-31T12:00:00"}
        for change, version, name in (
            ("update_postimage", 4, "b"), ("update_preimage", 4, "a"), ("delete", 5, "b"), ("insert", 6, "c")
        )
    ]  # fmt: skip
    for feed in (tmp_path / "feed", write_lines(tmp_path / "feed.jsonl", lines)):
        with warehouse(engine) as opened:
            update = Update.from_feed(opened, {"r": feed}, upto=4)
        assert {row[1] for row in rows(engine, update.deleted["r"])} == {"a"}
        assert {row[1] for row in rows(engine, update.inserted["r"])} == {"b"}
        assert update.feed is not None
        assert update.feed.outside == (1 if feed.is_dir() else 2)
        assert update.feed.relations[0].upto == "4"


def test_parquet_files_that_cannot_be_read(engine: Any, tmp_path: Path) -> None:
    other, damaged = tmp_path / "other", tmp_path / "damaged"
    for folder in (other, damaged):
        folder.mkdir()
        pq.write_table(versioned([("insert", 4, *A)]), folder / "0.parquet")
    pq.write_table(versioned([("insert", 4, *B)]).drop_columns(["name"]), other / "1.parquet")
    (damaged / "1.parquet").write_bytes(b"PAR1 and no more PAR1")
    at = pa.array([1], pa.timestamp("ns", "UTC"))
    finer = versioned([("insert", 4, *A)]).set_column(6, "at", at)
    record = pa.StructArray.from_arrays([pa.array([1]), *[pa.nulls(1)] * 3, at], COLUMNS)
    events = pa.table({"op": ["d"], "before": record, "after": pa.nulls(1)})
    for feed, code in ((other, "SM104"), (damaged, "SM104"), (finer, "SM104"), (events, "SM602")):
        with warehouse(engine) as opened, pytest.raises(InputError) as caught:
            Update.from_feed(opened, {"r": feed})
        assert [d.code.value for d in caught.value.diagnostics] == [code]


@both
def test_plain_files(engine: Any, tmp_path: Path) -> None:
    (tmp_path / "insert.csv").write_text("a,b\n1,new\n2,same\n2,same\n", encoding="utf-8")
    (tmp_path / "delete.jsonl").write_text('{"a": 2, "b": "same"}\n{"a": 3, "b": "old"}\n', encoding="utf-8")
    with warehouse(engine) as opened:
        update = Update.from_feed(opened, {"u": tmp_path})
        assert rows(engine, update.inserted["u"]) == {(1, "new")}
        assert rows(engine, update.deleted["u"]) == {(3, "old")}
        assert not update.effective, "without a key two rows may look the same"


def test_events_beyond_what_is_held_go_through_files(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from selfmaint.feeds import spilled
    from selfmaint.store import exchange

    monkeypatch.setattr(spilled, "BATCH_CHANGES", 7)
    monkeypatch.setattr(exchange, "MEMORY_LIMIT_BYTES", 1000)
    changes = [event("c", None, (i, "a", None, None, None), lsn=i) for i in range(100)]
    changes += [event("d", (i, "a", None, None, None), None, lsn=100 + i) for i in range(0, 100, 2)]
    with warehouse(engine) as opened:
        update = Update.from_feed(opened, write_lines(tmp_path / "feed.jsonl", changes))
    assert {row[0] for row in rows(engine, update.inserted["r"])} == {*range(1, 100, 2)}
    assert rows(engine, update.deleted["r"]) == set()


# --------------------------------------------------------------------------------------------- a Delta table


def delta_table(path: Path, history: History) -> None:
    """The history as a Delta table with a change data feed, a version for each statement."""
    from deltalake import DeltaTable, write_deltalake

    def table(found: list[Row]) -> pa.Table:
        instants = [(*row[:4], None if row[4] is None else row[4].replace(tzinfo=dt.UTC)) for row in found]
        columns = list(zip(*instants, strict=True)) or [[]] * len(COLUMNS)
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)

    enabled = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(str(path), table(list(history.start.values())), configuration=enabled)
    for commit in history.commits:
        for statement in commit:
            made = DeltaTable(str(path))
            if statement.before is None and statement.after is not None:
                write_deltalake(str(path), table([statement.after]), mode="append")
            elif statement.before is not None and statement.after is None:
                made.delete(f"id = {statement.before[0]}")
            elif statement.before is not None and statement.after is not None:
                (
                    made.merge(table([statement.after]), f"t.id = {statement.before[0]}", "s", "t")
                    .when_matched_update_all()
                    .execute()
                )


@both
def test_a_delta_table(engine: Any, tmp_path: Path) -> None:
    old, new = (1, "a", None, None, None), (1, "b", dt.date(2026, 1, 31), None, dt.datetime(2026, 1, 31, 12))
    history = History(
        {1: old, 2: (2, "x", None, None, None)},
        [
            [Statement(old, new)],
            [Statement(None, (3, "c", None, None, None)), Statement((2, "x", None, None, None), None)],
            [Statement((3, "c", None, None, None), None), Statement(new, (7, *new[1:]))],
        ],
        {7: (7, *new[1:])},
    )
    delta_table(tmp_path / "t", history)
    with warehouse(engine) as opened:
        update = Update.from_feed(opened, {"r": tmp_path / "t"}, after=0)
        check(engine, update, history)
        assert update.feed is not None
        assert update.feed.relations[0].upto == "5"
        whole = Update.from_feed(opened, {"r": tmp_path / "t"})
        assert rows(engine, whole.inserted["r"]) == set(history.end.values())
        part = Update.from_feed(opened, {"r": tmp_path / "t"}, after=0, upto=1)
        assert (rows(engine, part.deleted["r"]), rows(engine, part.inserted["r"])) == ({old}, {new})
        none = Update.from_feed(opened, {"r": tmp_path / "t"}, after=5)
        assert (rows(engine, none.deleted["r"]), rows(engine, none.inserted["r"])) == (set(), set())


def test_a_delta_table_without_the_package(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "_delta_log").mkdir()
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with warehouse(engine) as opened, pytest.raises(InputError) as caught:
        Update.from_feed(opened, {"r": tmp_path})
    assert [d.code for d in caught.value.diagnostics] == [Code.FEED_PACKAGE]


def test_a_delta_table_without_a_feed(engine: Any, tmp_path: Path) -> None:
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "t"), pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}))
    with warehouse(engine) as opened, pytest.raises(InputError) as caught:
        Update.from_feed(opened, {"u": tmp_path / "t"})
    assert [d.code for d in caught.value.diagnostics] == [Code.FEED_UNREADABLE]


# ---------------------------------------------------------------------------------------------------- refused


def event(op: str, before: Row | None, after: Row | None, **source: Any) -> dict[str, Any]:
    return {"op": op, "before": image(before), "after": image(after), "source": {"table": "r", **source}}


A, B = (1, "a", None, None, None), (1, "b", None, None, None)


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([event("c", None, A, lsn=1), event("c", None, B, lsn=2)], "SM604"),
        ([event("d", A, None, lsn=1), event("d", B, None, lsn=2)], "SM604"),
        ([event("c", None, A, lsn=1), event("d", B, None, lsn=2)], "SM604"),
        ([event("d", A, None, ts_ms=1), event("c", None, A, ts_ms=1)], "SM603"),
        ([event("d", A, None, ts_ms=1), event("c", None, A, lsn=1)], "SM603"),
        ([event("d", A, None), event("c", None, A)], "SM603"),
        ([event("c", None, A, lsn=1), event("t", None, None, lsn=2)], "SM606"),
        ([event("r", None, A, lsn=1)], "SM606"),
        ([event("x", None, A, lsn=1)], "SM601"),
        ([event("d", None, None, lsn=1)], "SM605"),
        ([event("u", None, A, lsn=1)], "SM605"),
        ([event("c", None, (1, "a", None, None, dt.datetime(1, 1, 1)), lsn=-1)], "SM602"),
        ([{"op": "c", "after": {"id": 1}, "source": {"table": "r"}}], "SM104"),
    ],
)
def test_events_of_a_frame_that_are_refused(engine: Any, events: list[Any], code: str) -> None:
    table = pa.table({"value": [json.dumps(found, default=str) for found in events]})
    with warehouse(engine) as opened, pytest.raises(InputError) as caught:
        Update.from_feed(opened, {"r": table})
    assert {d.code.value for d in caught.value.diagnostics} == {code}


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ([("insert", 1, *A), ("insert", 1, *B)], "SM603", "at commit version 1"),
        ([("insert", 1, *A), ("insert", 2, *B)], "SM604", "at commit version 2"),
        ([("UPDATE_BEFORE", 1, *A)], "SM601", "`UPDATE_BEFORE` is no change type"),
        ([("delete", None, *A)], "SM602", "without `_commit_version`"),
        ([("delete", 1, None, *A[1:])], "SM602", "null"),
    ],
)
def test_rows_of_a_frame_that_are_refused(engine: Any, changes: list[Any], code: str, said: str) -> None:
    with warehouse(engine) as opened, pytest.raises(InputError) as caught:
        Update.from_feed(opened, {"r": frame(engine, versioned(changes))})
    (found,) = caught.value.diagnostics
    assert found.code.value == code
    assert said in found.message


@both
def test_a_change_that_cannot_be_is_shown_with_the_one_before(engine: Any) -> None:
    changes = [event("d", (1, "gone", None, None, None), None, lsn=3), event("c", None, A, lsn=2)]
    table = pa.table({"value": [*(json.dumps(found, default=str) for found in changes), "{"]})
    with warehouse(engine) as opened:
        with pytest.raises(InputError, match=r"SM602.*no JSON value"):
            Update.from_feed(opened, {"r": frame(engine, table)})
        with pytest.raises(InputError) as caught:
            Update.from_feed(opened, {"r": frame(engine, table.slice(0, 2))})
    (found,) = caught.value.diagnostics
    assert found.message == (
        "the feed of `r` deletes another row than it has inserted before: (id=1, name='gone', day=null, price=null, "
        "at=null), not (id=1, name='a', day=null, price=null, at=null) at log sequence number 3"
    )
