"""Look-ups in local Parquet files without Spark: the rows that Spark gives, and only where it would read the same."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datalog.model import Row
from selfmaint.engine.memory import MemoryEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from selfmaint.spark.local_parquet import LocalParquet

NAMES = ("key", "near", "money", "text", "day", "truth")
SCHEMA = pa.schema(
    [
        ("key", pa.int64()),
        ("near", pa.int32()),
        ("money", pa.decimal128(9, 2)),
        ("text", pa.string()),
        ("day", pa.date32()),
        ("truth", pa.bool_()),
    ]
)
EVERY = tuple(range(len(NAMES)))


def some_rows(seed: int) -> list[Row]:
    """Distinct rows in the order of their first value, with nulls everywhere."""
    choice = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if choice.random() < 0.1 else value

    return list(
        dict.fromkeys(
            (
                maybe(n // 3),
                maybe(choice.randrange(40)),
                maybe(Decimal(choice.randrange(-500, 500)).scaleb(-2)),
                maybe(choice.choice(["", "a", "A", "é", "'; DROP", "long" * 50])),
                maybe(dt.date(1990, 1, 1) + dt.timedelta(choice.randrange(30))),
                maybe(choice.random() < 0.5),
            )
            for n in range(600)
        )
    )


def written(folder: Path, rows: list[Row], schema: pa.Schema = SCHEMA, files: int = 3) -> str:
    """Several files of small row groups: their URI."""
    folder.mkdir()
    step = -(-len(rows) // files)
    for number in range(files):
        part = rows[number * step : (number + 1) * step]
        table = pa.Table.from_arrays(
            [
                pa.array(values, field.type)
                for values, field in zip(zip(*part, strict=True), schema, strict=True)
            ],
            schema=schema,
        )
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=50)
    return f"file://{folder}"


def files_of(frame: DataFrame) -> LocalParquet | None:
    from selfmaint.spark.local_parquet import local_parquet

    return local_parquet(frame)


@pytest.mark.parametrize("seed", range(4))
def test_the_same_rows_as_in_memory(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rows, choice = some_rows(seed), random.Random(seed)
    files = files_of(spark.read.parquet(written(tmp_path / "v", rows)))
    assert files is not None
    reference = MemoryEngine()
    for _ in range(60):
        columns = tuple(choice.sample(EVERY, choice.choice([1, 1, 1, 2, 3])))
        wanted = tuple(choice.sample(EVERY, choice.randrange(len(EVERY) + 1)))
        keys = {tuple([choice.choice(rows)[c] for c in columns]) for _ in range(choice.choice([1, 3, 20]))}
        for limit in (5, 50) if len(columns) == 1 else (1000,):
            expected = reference.look_up(frozenset(rows), columns, keys, wanted, limit)
            assert files.look_up(columns, keys, wanted, limit) == expected
    found = files.rows(len(rows))
    assert found is not None
    assert sorted(map(repr, found)) == sorted(map(repr, rows))
    assert files.rows(len(rows) - 1) is None


def test_columns_in_another_order_and_under_other_names(spark: SparkSession, tmp_path: Path) -> None:
    rows = some_rows(7)
    frame = spark.read.parquet(written(tmp_path / "v", rows)).select("text", "key").toDF("key", "x y`z")
    files = files_of(frame)
    assert files is not None
    wanted = MemoryEngine().look_up(frozenset((r[3], r[0]) for r in rows), (1,), [(5,), (None,)], (0, 1), 99)
    assert files.look_up((1,), [(5,), (None,)], (0, 1), 99) == wanted


@pytest.mark.parametrize(
    "changed",
    [
        lambda frame: frame.where("key > 3"),
        lambda frame: frame.selectExpr("key + 1 AS key"),
        lambda frame: frame.selectExpr("cast(near AS bigint) AS near"),
        lambda frame: frame.union(frame),
        lambda frame: frame.limit(3),
        lambda frame: frame.distinct(),
        lambda frame: frame.selectExpr("key", "1 AS one"),
        lambda frame: frame.selectExpr("cast(key AS double) AS key"),
        lambda frame: frame.selectExpr("key", "_metadata.file_name AS name"),
        lambda frame: frame.select(),
    ],
)
def test_more_than_columns_of_files_is_sparks(
    spark: SparkSession, tmp_path: Path, changed: Callable[[DataFrame], DataFrame]
) -> None:
    assert files_of(changed(spark.read.parquet(written(tmp_path / "v", some_rows(1))))) is None


def test_other_files_are_sparks(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.parquet(written(tmp_path / "v", some_rows(1)))
    frame.write.partitionBy("truth").parquet(f"file://{tmp_path / 'by'}")
    frame.write.csv(f"file://{tmp_path / 'text'}")
    frame.selectExpr("key", "timestamp'2024-01-01 00:00:00' AS at").write.parquet(f"file://{tmp_path / 'at'}")
    assert files_of(spark.read.parquet(f"file://{tmp_path / 'by'}")) is None
    assert files_of(spark.read.schema("a bigint").csv(f"file://{tmp_path / 'text'}")) is None
    assert files_of(spark.read.parquet(f"file://{tmp_path / 'at'}")) is None


def test_what_is_stored_in_another_type_or_not_in_every_file_is_sparks(
    spark: SparkSession, tmp_path: Path
) -> None:
    narrow = pa.schema([("key", pa.int32()), ("text", pa.string())])
    uri = written(tmp_path / "v", [(1, "a"), (2, "b")], narrow, files=1)
    wider = files_of(spark.read.schema("key bigint, text string").parquet(uri))
    other = files_of(spark.read.schema("KEY int, text string").parquet(uri))
    lacking = files_of(spark.read.schema("key int, more string").parquet(uri))
    for files in (wider, other, lacking):
        assert files is None or files.look_up((0,), [(1,)], (0, 1), 9) is None
    same = files_of(spark.read.schema("key int, text string").parquet(uri))
    assert same is not None
    assert same.look_up((0,), [(1,)], (1,), 9) == {("a",)}


def test_days_before_the_gregorian_calendar_are_sparks(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([("key", pa.int64()), ("day", pa.date32())])
    uri = written(tmp_path / "v", [(1, dt.date(1582, 10, 4)), (2, dt.date(2024, 1, 1))], schema, files=1)
    files = files_of(spark.read.parquet(uri))
    assert files is not None
    assert files.look_up((0,), [(2,)], (0, 1), 9) is None
    assert files.look_up((0,), [(2,)], (0,), 9) == {(2,)}
    assert files.rows(9) is None


def test_a_file_that_is_gone_is_an_error_of_reading_still(spark: SparkSession, tmp_path: Path) -> None:
    from selfmaint.errors import SelfmaintError
    from selfmaint.spark import SparkEngine

    frame = spark.read.parquet(written(tmp_path / "v", some_rows(1)))
    files = files_of(frame)
    assert files is not None
    for file in (tmp_path / "v").iterdir():
        file.unlink()
    assert files.look_up((0,), [(1,)], (0,), 9) is None
    with pytest.raises(SelfmaintError):
        SparkEngine(spark).look_up(frame, (0,), [(1,)], (0,), 9)


def test_the_schema_that_spark_wrote(spark: SparkSession, tmp_path: Path) -> None:
    from selfmaint.spark.local_parquet import stored_schema

    frame = spark.read.parquet(written(tmp_path / "v", some_rows(1)))
    assert stored_schema(tmp_path / "v") is None  # Arrow wrote it
    frame.write.parquet(f"file://{tmp_path / 'w'}")
    assert stored_schema(tmp_path / "w") == spark.read.parquet(f"file://{tmp_path / 'w'}").schema
    frame.write.partitionBy("truth").parquet(f"file://{tmp_path / 'by'}")
    assert stored_schema(tmp_path / "by") is None


def test_columns_without_null(spark: SparkSession, tmp_path: Path) -> None:
    from selfmaint.spark import SparkEngine

    schema = pa.schema([("key", pa.int64()), ("text", pa.string()), ("day", pa.date32())])
    day = dt.date(2024, 1, 1)
    uri = written(tmp_path / "v", [(n, "a" if n != 149 else None, day) for n in range(150)], schema)
    frame = spark.read.parquet(uri)
    engine = SparkEngine(spark)
    assert engine.layout(frame).never_null == {0, 2}
    assert engine.layout(frame.select("day", "text")).never_null == {0}
    assert engine.layout(frame.selectExpr("nullif(key, 3) AS key")).never_null == set()
    pq.write_table(
        pq.read_table(tmp_path / "v" / "part-0.parquet"), tmp_path / "one.parquet", write_statistics=False
    )
    assert engine.layout(spark.read.parquet(f"file://{tmp_path / 'one.parquet'}")).never_null == set()
