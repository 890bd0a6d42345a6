"""Contents in local Parquet files, read without Spark: the rows that Spark gives, and only where it reads the same."""

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

from datalog.model import ColumnType, Predicate, Row, TypeName
from datalog.syntax import parse_program
from selfmaint.engine.protocol import Facts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from selfmaint.duckdb.database import Relation

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


def files_of(frame: DataFrame) -> Relation | None:
    from selfmaint.duckdb import DuckEngine
    from selfmaint.spark.local_files import local_contents

    return local_contents(frame, DuckEngine().database)


@pytest.mark.parametrize("seed", range(3))
def test_the_same_rows_as_by_spark(interpreting_spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Demanded rows of files in an order, of columns in another one, by one or two columns."""
    from selfmaint.spark import SparkEngine

    rows = some_rows(seed)
    frame = interpreting_spark.read.parquet(written(tmp_path / "v", rows)).select(
        "text", "key", "near", "day", "money"
    )
    assert files_of(frame) is not None
    program = parse_program(
        "one(T, D) :- new(K, N), v(T, K, N0, D, M). two(T, M) :- new(K, N), v(T, K, N, D, M), M > 0."
        "again(K2) :- new(K, N), v(T, K, N0, D, M), v(T2, K2, N0, D2, M2)."
    )
    stored, new = Predicate("v"), Predicate("new")
    keys = [(row[0], row[1]) for row in random.Random(seed).sample(rows, 9)]
    found = []
    for engine in (SparkEngine(interpreting_spark, 2000), SparkEngine(interpreting_spark, 0)):
        given = engine.load(keys, ["k", "n"], [ColumnType(TypeName.BIGINT), ColumnType(TypeName.INT)])
        facts = Facts({stored: frame, new: given}, small=frozenset({new}))
        goals = [Predicate(name) for name in ("one", "two", "again")]
        found.append([set(engine.sample(engine.evaluate(program, g, facts), 999)) for g in goals])
    assert found[0] == found[1]
    assert all(found[0])


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
    for schema in ("key bigint, text string", "key int, more string"):
        assert files_of(spark.read.schema(schema).parquet(uri)) is None
    assert files_of(spark.read.schema("key int, text string").parquet(uri)) is not None
    pq.write_table(pa.table({"key": pa.array([1], pa.int64())}), tmp_path / "v" / "other.parquet")
    assert files_of(spark.read.schema("key int, text string").parquet(uri)) is None


def test_days_before_the_gregorian_calendar_are_sparks(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([("key", pa.int64()), ("day", pa.date32())])
    uri = written(tmp_path / "v", [(1, dt.date(1582, 10, 4)), (2, dt.date(2024, 1, 1))], schema, files=1)
    frame = spark.read.parquet(uri)
    assert files_of(frame) is None
    assert files_of(frame.select("key")) is not None


def test_a_file_that_is_gone_is_an_error_of_reading_still(spark: SparkSession, tmp_path: Path) -> None:
    from selfmaint.errors import SelfmaintError
    from selfmaint.spark import SparkEngine

    engine = SparkEngine(spark, 2000)
    new = engine.load([(1,)], ["k"], [ColumnType(TypeName.BIGINT)])
    frame = spark.read.parquet(written(tmp_path / "v", some_rows(1)))
    facts = Facts({Predicate("v"): frame, Predicate("new"): new}, small=frozenset({Predicate("new")}))
    program = parse_program("w(T) :- new(K), v(K, N, M, T, D, B).")
    for file in (tmp_path / "v").iterdir():
        file.unlink()
    with pytest.raises(SelfmaintError):
        engine.evaluate(program, Predicate("w"), facts)


def test_the_schema_that_spark_wrote(spark: SparkSession, tmp_path: Path) -> None:
    from selfmaint.spark.local_files import stored_schema

    frame = spark.read.parquet(written(tmp_path / "v", some_rows(1)))
    assert stored_schema(tmp_path / "v") is None  # Arrow wrote it
    frame.write.parquet(f"file://{tmp_path / 'w'}")
    assert stored_schema(tmp_path / "w") == spark.read.parquet(f"file://{tmp_path / 'w'}").schema
    frame.write.partitionBy("truth").parquet(f"file://{tmp_path / 'by'}")
    assert stored_schema(tmp_path / "by") is None
