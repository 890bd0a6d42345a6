"""Change feeds on Spark: many random histories in one statement, each format against the simulated table.

Oracle: `tests.feeds.histories`, which knows nothing of feeds. The memory engine is held against it elsewhere.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfmaint import Update, Warehouse, build
from selfmaint.errors import Code, InputError
from selfmaint.feeds.settings import DecimalText, FeedSettings, TimeUnit
from tests.feeds.histories import (
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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTINGS = FeedSettings(decimals=DecimalText.TEXT, timestamps=TimeUnit.MICROS, full_before_images=True)
SCHEMA = "id bigint, name string, day date, price decimal(10,2), at timestamp"
few = settings(max_examples=3, deadline=None)
many = st.lists(histories(), min_size=8, max_size=25)


def warehouse(spark: SparkSession) -> Warehouse[DataFrame]:
    made = build(
        PROGRAM,
        {"v": spark.createDataFrame([], SCHEMA), "w": spark.createDataFrame([], "a int, b string")},
        spark=spark,
    )
    return Warehouse(made.catalog, made.engine, made.contents, feeds=SETTINGS)


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


def rows(frame: DataFrame | None) -> set[Row]:
    return set() if frame is None else {tuple(row) for row in frame.collect()}


def check(update: Update[DataFrame], history: History) -> None:
    assert rows(update.deleted.get("r")) == history.deleted
    assert rows(update.inserted.get("r")) == history.inserted
    assert update.effective
    assert update.feed is not None
    for report in update.feed.relations:
        assert (report.deleted, report.inserted) == (len(history.deleted), len(history.inserted))


def write_lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record, default=str) + "\n" for record in records), encoding="utf-8")
    return path


@few
@given(found=many, wrapped=st.booleans())
def test_debezium_files(spark: SparkSession, found: list[History], wrapped: bool) -> None:
    history = together(found)
    records = list(debezium(history, wrapped=wrapped))
    with tempfile.TemporaryDirectory() as folder, warehouse(spark) as opened:
        middle = len(records) // 2
        write_lines(Path(folder) / "1.jsonl", records[:middle])
        write_lines(Path(folder) / "0.jsonl", records[max(0, middle - 5) :])  # some delivered again
        check(Update.from_feed(opened, folder), history)


@few
@given(found=many, as_text=st.booleans())
def test_debezium_frames(spark: SparkSession, found: list[History], as_text: bool) -> None:
    history = together(found)
    texts = [json.dumps(record, default=str) for record in debezium(history, wrapped=as_text)]
    frame = spark.createDataFrame([(text,) for text in texts], "value string").repartition(3)
    if not as_text:
        row = "struct<id: bigint, name: string, day: int, price: string, at: bigint>"
        source = "struct<table: string, lsn: bigint>"
        envelope = f"struct<before: {row}, after: {row}, op: string, source: {source}>"
        frame = frame.where("value <> 'null'").selectExpr(f"from_json(value, '{envelope}') e").select("e.*")
    with warehouse(spark) as opened:
        check(Update.from_feed(opened, {"r": frame}), history)


def versioned(spark: SparkSession, history: History, format_: str) -> DataFrame:
    names, column = (DELTA, "_commit_version") if format_ == "delta" else (ICEBERG, "_change_ordinal")
    found = [(change, version, *row) for change, version, row in versions(history, names)]
    return spark.createDataFrame(found, f"_change_type string, {column} int, {SCHEMA}").repartition(3)


@few
@given(found=many, format_=st.sampled_from(["delta", "iceberg"]))
def test_rows_with_versions(spark: SparkSession, found: list[History], format_: str) -> None:
    history = together(found)
    with warehouse(spark) as opened:
        check(Update.from_feed(opened, {"r": versioned(spark, history, format_)}), history)


def test_rows_with_versions_in_files(spark: SparkSession, tmp_path: Path) -> None:
    history = History({}, [], {})
    frame = versioned(spark, history, "delta")
    frame.write.parquet(str(tmp_path / "feed.parquet"))
    records = [
        {"_change_type": change, "_commit_version": version, "id": 1, "name": name, "day": "2026-01-31",
         "price": 1.5, "at": "2026-01-31T12:00:00"}
        for change, version, name in (
            ("update_preimage", 4, "a"), ("update_postimage", 4, "b"), ("delete", 5, "b"), ("insert", 6, "c")
        )
    ]  # fmt: skip
    write_lines(tmp_path / "feed.jsonl", records)
    with warehouse(spark) as opened:
        nothing = Update.from_feed(opened, {"r": tmp_path / "feed.parquet"})
        assert rows(nothing.inserted["r"]) == set()
        update = Update.from_feed(opened, {"r": tmp_path / "feed.jsonl"}, upto=4)
        assert {row[1] for row in rows(update.deleted["r"])} == {"a"}
        assert {row[1] for row in rows(update.inserted["r"])} == {"b"}
        assert update.feed is not None
        assert update.feed.outside == 2
        assert update.feed.relations[0].upto == "4"


def test_plain_files(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "insert.csv").write_text("a,b\n1,new\n2,same\n2,same\n", encoding="utf-8")
    (tmp_path / "delete.jsonl").write_text('{"a": 2, "b": "same"}\n{"a": 3, "b": "old"}\n', encoding="utf-8")
    with warehouse(spark) as opened:
        update = Update.from_feed(opened, {"u": tmp_path})
        assert rows(update.inserted["u"]) == {(1, "new")}
        assert rows(update.deleted["u"]) == {(3, "old")}
        assert not update.effective, "without a key two rows may look the same"


# --------------------------------------------------------------------------------------------- a Delta table


def delta_table(path: Path, history: History) -> None:
    """The history as a Delta table with a change data feed, a version for each statement."""
    from deltalake import DeltaTable, write_deltalake

    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("name", pa.string()),
            pa.field("day", pa.date32()),
            pa.field("price", pa.decimal128(10, 2)),
            pa.field("at", pa.timestamp("us", "UTC")),
        ]
    )

    def table(found: list[Row]) -> pa.Table:
        instants = [(*row[:4], None if row[4] is None else row[4].replace(tzinfo=dt.UTC)) for row in found]
        columns = list(zip(*instants, strict=True)) or [[]] * len(COLUMNS)
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)

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


def test_a_delta_table(spark: SparkSession, tmp_path: Path) -> None:
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
    with warehouse(spark) as opened:
        update = Update.from_feed(opened, {"r": tmp_path / "t"}, after=0)
        check(update, history)
        assert update.feed is not None
        assert update.feed.relations[0].upto == "5"
        whole = Update.from_feed(opened, {"r": tmp_path / "t"})
        assert rows(whole.inserted["r"]) == set(history.end.values())
        part = Update.from_feed(opened, {"r": tmp_path / "t"}, after=0, upto=1)
        assert (rows(part.deleted["r"]), rows(part.inserted["r"])) == ({old}, {new})
        none = Update.from_feed(opened, {"r": tmp_path / "t"}, after=5)
        assert (rows(none.deleted["r"]), rows(none.inserted["r"])) == (set(), set())


def test_a_delta_table_without_the_package(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "_delta_log").mkdir()
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with warehouse(spark) as opened, pytest.raises(InputError) as caught:
        Update.from_feed(opened, {"r": tmp_path})
    assert [d.code for d in caught.value.diagnostics] == [Code.FEED_PACKAGE]


def test_a_delta_table_without_a_feed(spark: SparkSession, tmp_path: Path) -> None:
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "t"), pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}))
    with warehouse(spark) as opened, pytest.raises(InputError) as caught:
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
def test_events_of_a_frame_that_are_refused(spark: SparkSession, events: list[Any], code: str) -> None:
    texts = [(json.dumps(found, default=str),) for found in events]
    with warehouse(spark) as opened, pytest.raises(InputError) as caught:
        Update.from_feed(opened, {"r": spark.createDataFrame(texts, "value string")})
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
def test_rows_of_a_frame_that_are_refused(
    spark: SparkSession, changes: list[Any], code: str, said: str
) -> None:
    frame = spark.createDataFrame(changes, f"_change_type string, _commit_version int, {SCHEMA}")
    with warehouse(spark) as opened, pytest.raises(InputError) as caught:
        Update.from_feed(opened, {"r": frame})
    (found,) = caught.value.diagnostics
    assert found.code.value == code
    assert said in found.message
