"""Contents in local Parquet files, read without Spark: the rows that Spark gives, and only where it reads the same."""

from __future__ import annotations

import datetime as dt
import json
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
from selfmaint.store.expected import Expected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from selfmaint.duckdb.relation import Relation

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


PLAIN = pa.schema(
    [
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("narrow", pa.decimal128(5, 2)),
        ("wide", pa.decimal128(38, 10)),
        ("half", pa.float32()),
        ("ratio", pa.float64()),
        *SCHEMA,
    ]
)


def plain_rows() -> list[Row]:
    odd = [float("nan"), -0.0, 0.0, float("inf"), None, 0.1]
    some = (
        (n % 128, -n, Decimal(n).scaleb(-2), Decimal(n).scaleb(-10), odd[n % 6], odd[(n + 1) % 6])
        for n in range(300)
    )
    return [(*one, *row) for one, row in zip(some, some_rows(7), strict=False)]


def expected(schema: pa.Schema) -> Expected:
    from selfmaint.engine.arrow_types import column_type

    return Expected("v", tuple(schema.names), tuple(column_type(field.type) for field in schema))


def shown(table: pa.Table) -> list[str]:
    """The rows in an order, with the signs of zeros."""
    return sorted(str(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_spark_hears_of_such_files_when_it_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    from selfmaint.spark.local_files import FileFrame
    from selfmaint.spark.near import NearRows
    from selfmaint.spark.tables import read_contents

    uri = written(tmp_path / "v", plain_rows(), PLAIN)
    by_spark = spark.read.parquet(uri)
    frame = read_contents(spark, str(tmp_path / "v"), expected(PLAIN))
    assert isinstance(frame, FileFrame)
    assert frame.schema == by_spark.schema
    assert frame.columns == by_spark.columns
    near = NearRows(spark)
    here = near.brought(frame)
    assert "_jdf" not in vars(frame)
    assert here is not None
    assert shown(near.rows(here)) == shown(frame.toArrow()) == shown(by_spark.toArrow())
    assert NearRows(spark, 20).brought(frame) is None


def test_columns_in_another_order_are_found_by_name(spark: SparkSession, tmp_path: Path) -> None:
    from selfmaint.spark.local_files import local_frame

    uri = written(tmp_path / "v", some_rows(2))
    other = pa.schema(reversed(list(SCHEMA)))
    frame = local_frame(spark, str(tmp_path / "v"), expected(other))
    assert frame is not None
    assert shown(frame.toArrow()) == shown(spark.read.parquet(uri).select(*other.names).toArrow())


@pytest.mark.parametrize(
    ("stored", "declared"),
    [
        ([("key", pa.int32())], [("key", pa.int64())]),
        ([("key", pa.uint8())], [("key", pa.int16())]),
        ([("key", pa.int64()), ("more", pa.int64())], [("key", pa.int64())]),
        ([("key", pa.int64()), ("KEY", pa.int64())], [("key", pa.int64()), ("KEY", pa.int64())]),
        ([("at", pa.timestamp("us"))], [("at", pa.timestamp("us"))]),
        ([("at", pa.timestamp("us", "UTC"))], [("at", pa.timestamp("us", "UTC"))]),
        ([("key", pa.null())], [("key", pa.null())]),
    ],
)
def test_what_is_to_be_cast_or_refused_is_sparks(
    spark: SparkSession, tmp_path: Path, stored: list[Any], declared: list[Any]
) -> None:
    from selfmaint.spark.local_files import local_frame

    pq.write_table(pa.schema(stored).empty_table(), tmp_path / "v.parquet")
    assert local_frame(spark, str(tmp_path / "v.parquet"), expected(pa.schema(declared))) is None


def test_what_spark_may_see_otherwise_is_sparks(spark: SparkSession, tmp_path: Path) -> None:
    from selfmaint.spark.local_files import local_frame

    def is_read(name: str) -> bool:
        return local_frame(spark, str(tmp_path / name), expected(SCHEMA)) is not None

    for name in ("plain", "summary", "unlike", "folders"):
        written(tmp_path / name, some_rows(3))
    assert is_read("plain")
    pq.write_metadata(SCHEMA, tmp_path / "summary" / "_common_metadata")
    pq.write_table(pa.table({"key": pa.array([1], pa.int64())}), tmp_path / "unlike" / "other.parquet")
    written(tmp_path / "folders" / "a=1", some_rows(3))
    assert not any(map(is_read, ("summary", "unlike", "folders", "nothing")))
    assert local_frame(spark, f"file://{tmp_path / 'plain'}", expected(SCHEMA)) is None
    for kind, is_same in (("string", True), ("integer", False), ("string collate UNICODE_CI", False)):
        said = {"name": "text", "type": kind, "nullable": True, "metadata": {}}
        note = json.dumps({"type": "struct", "fields": [said]})
        text = pa.schema([("text", pa.string())], {"org.apache.spark.sql.parquet.row.metadata": note})
        pq.write_table(text.empty_table(), tmp_path / "noted.parquet")
        frame = local_frame(spark, str(tmp_path / "noted.parquet"), expected(text))
        assert (frame is not None) == is_same


def test_files_that_have_changed_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    from selfmaint.errors import InputError
    from selfmaint.spark.near import NearRows
    from selfmaint.spark.tables import read_contents

    written(tmp_path / "v", some_rows(3), files=1)
    frame = read_contents(spark, str(tmp_path / "v"), expected(SCHEMA))
    pq.write_table(SCHEMA.empty_table(), tmp_path / "v" / "part-0.parquet")
    with pytest.raises(InputError, match="changed"):
        NearRows(spark).brought(frame)
    (tmp_path / "v" / "part-0.parquet").unlink()
    with pytest.raises(InputError, match="gone"):
        frame.count()


@pytest.mark.parametrize("seed", range(2))
def test_what_reads_one_relation_of_files_is_asked_without_spark(
    interpreting_spark: SparkSession, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Joined and compared, nulls, with negations of what is here; not a relation that is negated, or there twice."""
    from selfmaint.spark import SparkEngine
    from selfmaint.spark.programs import Programs
    from selfmaint.spark.tables import read_contents

    written(tmp_path / "v", some_rows(seed))
    program = parse_program(
        "a(K) :- v(K, N, M, T, D, B), K is null, N is null. b(K) :- v(K, N, M, T, D, B), T is null, not new(K, N)."
        "c(T) :- v(K, N, M, T, D, B), new(K, N), M > 100. d(T) :- v(K, N, M, T, D, B), new(N, K)."
        "e(K) :- v(K, N, M, T, D, B), N > 38, B = true, M < 0. f(K) :- v(K, N, M, T, D, B), N > 40."
        "g(K) :- new(K, N), not v(K, N, M, T, D, B). h(K) :- v(K, N, M, T, D, B), v(N, K, M2, T2, D2, B2)."
    )
    goals = [Predicate(name) for name in "abcdefgh"]
    keys = [(row[0], row[1]) for row in random.Random(seed).sample(some_rows(seed), 9)]
    found, asked = [], list[Predicate]()
    have_rows = Programs._have_rows

    def noted(programs: Programs, open_: Any, *rest: Any) -> frozenset[int]:
        asked.extend(open_.values())
        return have_rows(programs, open_, *rest)

    for engine in (SparkEngine(interpreting_spark, 0), SparkEngine(interpreting_spark, 2000)):
        frame = read_contents(interpreting_spark, str(tmp_path / "v"), expected(SCHEMA))
        new = engine.load(keys, ["k", "n"], [ColumnType(TypeName.BIGINT), ColumnType(TypeName.INT)])
        facts = Facts({Predicate("v"): frame, Predicate("new"): new}, small=frozenset({Predicate("new")}))
        found.append(engine.nonempty(program, goals, facts))
        monkeypatch.setattr(Programs, "_have_rows", noted)
    assert found[0] == found[1]
    assert found[0] not in (frozenset(), frozenset(goals))
    assert not set(asked) & set(goals[:6])
