"""Look-ups on Spark against those in memory, on files in some order; and what they must leave alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from datalog.model import ColumnType, Row, TypeName
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import ReadRefusedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from selfmaint.spark import SparkEngine

HOSTILE = "'; DROP TABLE r; -- ${spark.master} \\ \" ` %s \n"
NAMES = ("key", "money", "text", "day", "truth")
TYPES = [
    ColumnType(TypeName.BIGINT),
    ColumnType(TypeName.DECIMAL, 15, 2),
    ColumnType(TypeName.STRING),
    ColumnType(TypeName.DATE),
    ColumnType(TypeName.BOOLEAN),
]
DAY = dt.date(2024, 2, 29)
ROWS: list[Row] = [
    (1, Decimal("0.10"), "a", DAY, True),
    (1, Decimal("0.10"), HOSTILE, None, False),
    (2, None, "", DAY, None),
    (3, Decimal("-7.00"), None, dt.date(1, 1, 1), True),
    (None, Decimal("0.10"), "a", DAY, True),
]
EVERY = tuple(range(len(NAMES)))


@pytest.fixture
def engine(spark: SparkSession) -> Iterator[SparkEngine]:
    from selfmaint.spark import SparkEngine

    made = SparkEngine(spark)
    yield made
    made.release()


@pytest.fixture
def stored(engine: SparkEngine, tmp_path: Path) -> DataFrame:
    engine.load(ROWS, NAMES, TYPES).write.parquet(f"file://{tmp_path / 'v'}")
    return engine.spark.read.parquet(f"file://{tmp_path / 'v'}")


@pytest.mark.parametrize(
    ("columns", "keys"),
    [
        ((0,), [(1,), (9,)]),
        ((0,), [(None,), (3,)]),
        ((0,), [(Decimal("2.00"),), (Decimal("2.5"),), (2**70,)]),
        ((1,), [(-7,), (Decimal("0.101"),), (10**20,)]),
        ((2, 0), [(HOSTILE, 1), (None, 3), ("a", None)]),
        ((1, 3), [(Decimal("0.1"), DAY), (None, DAY)]),
        ((4,), [(True,), (None,)]),
    ],
)
@pytest.mark.parametrize("wanted", [EVERY, (0, 2), ()])
def test_look_ups_agree_with_the_reference(
    engine: SparkEngine, stored: DataFrame, columns: tuple[int, ...], keys: list[Row], wanted: tuple[int, ...]
) -> None:
    found = engine.look_up(stored, columns, keys, wanted, 100)
    assert found is not None
    assert frozenset(found) == MemoryEngine().look_up(frozenset(ROWS), columns, keys, wanted, 100)


def test_beyond_the_limit_nothing_is_given(engine: SparkEngine, stored: DataFrame) -> None:
    assert engine.look_up(stored, (0,), [(1,)], EVERY, 1) is None
    assert engine.fetch(stored, len(ROWS) - 1) is None
    assert engine.fetch(stored, len(ROWS)) == frozenset(ROWS)


def test_exact_values_survive_the_way_here_and_back(engine: SparkEngine, spark: SparkSession) -> None:
    """Instants on both sides of the hour that a clock goes through twice."""
    frame = spark.sql(
        "SELECT timestamp_seconds(x) AS at, x AS n FROM VALUES (1729989000L), (1729992600L), (NULL) AS t(x)"
    )
    rows = engine.fetch(frame, 10)
    assert rows is not None
    assert len(rows) == 3
    back = engine.shaped([(n, at) for at, n in rows], frame, (1, 0))
    assert back.columns == ["n", "at"]
    assert back.where("at <=> timestamp_seconds(n)").count() == 3


def test_types_without_exact_values_are_not_brought_here(engine: SparkEngine, spark: SparkSession) -> None:
    assert engine.fetch(spark.sql("SELECT double(1) AS n"), 10) is None
    frame = spark.sql("SELECT 1 AS n, X'00' AS bytes")
    assert engine.fetch(frame, 10) is None
    assert engine.look_up(frame, (0,), [(1,)], (1,), 10) is None
    assert engine.look_up(frame, (0,), [(1,)], (0,), 10) == [(1,)]


def test_the_session_is_left_as_it_was(engine: SparkEngine, stored: DataFrame, spark: SparkSession) -> None:
    before = spark.conf.getAll
    engine.look_up(stored, (0,), [(1,)], EVERY, 100)
    assert spark.conf.getAll == before
    assert spark.catalog.listTables() == []
    assert spark.catalog.listTables("global_temp") == []


def test_a_look_up_that_reads_another_name_is_refused(
    engine: SparkEngine, stored: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlglot import exp

    from selfmaint.spark import statements

    monkeypatch.setattr(statements, "select", lambda *_, **__: exp.select("1").from_("secret.item"))
    with pytest.raises(ReadRefusedError):
        engine.look_up(stored, (0,), [(1,)], EVERY, 100)


def test_the_order_of_files_is_found_and_kept(
    spark: SparkSession, engine: SparkEngine, tmp_path: Path
) -> None:
    """`k` is scattered over all files until they are written in its order, and stays so when they are replaced."""
    from selfmaint.spark.formats import writing
    from selfmaint.store.order import order_of
    from selfmaint.store.write import StagedWrites

    scattered = spark.range(20_000).selectExpr("id AS n", "id * 7919 % 20000 AS k", "id % 3 AS c")
    place = tmp_path / "v"
    spread = scattered.repartition(4)
    spread.write.parquet(f"file://{place}")
    assert engine.layout(spark.read.parquet(f"file://{place}")).ordered_by is None
    shuffled = spread.repartitionByRange(4, "k").sortWithinPartitions("k")
    shuffled.write.mode("overwrite").parquet(f"file://{place}")
    layout = engine.layout(spark.read.parquet(f"file://{place}"))
    assert (layout.rows, layout.ordered_by, dict(layout.spreads)) == (20_000, 1, {0: 20_000, 1: 20_000, 2: 3})
    with StagedWrites([place]) as writes:
        writes.add(place, writing(spread.where("n % 2 = 0")))
        writes.switch()
    assert spark.read.parquet(f"file://{place}").count() == 10_000
    assert order_of(place) in ("k", None)  # None where so few rows came into one file
