"""Queries over the views on Spark: the same states and values as by DuckDB, in Spark's SQL, and nothing but reading."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import selfmaint
from selfmaint.errors import Code, InputError
from tests.selfmaint.store.test_lake import Row, Shop
from tests.selfmaint.store.test_lake_on_spark import VALUES, bits, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A lake that is only read."""
    made = Shop(tmp_path_factory.mktemp("still"))
    assert made.command("init").status == 0
    return made


def rows_of(found: pa.Table) -> Counter[Row]:
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


def test_every_state_and_no_temporary_view_is_left(spark: SparkSession, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    assert shop.command("init").status == 0
    before = shop.expected()
    update = shop.update("monday", {"sale": {(9, 2, 77)}}, {"sale": {(1, 1, 10)}})
    assert shop.command("maintain", "--update", update, "--id", "monday").status == 0
    tables = len(spark.catalog.listTables())
    with selfmaint.load(shop.toml, spark) as warehouse:
        for name, rows in shop.expected().items():
            assert rows_of(warehouse.query(name)) == rows
            assert rows_of(warehouse.query(f"select * from `{name}`", as_of=3)) == before[name]
            assert rows_of(warehouse.query(f"with x as (select * from {name}) select * from x")) == rows
        down = warehouse.query("select id from lines order by id desc").column(0).to_pylist()
    assert down == sorted(down, reverse=True)
    assert len(spark.catalog.listTables()) == tables
    done = shop.command("query", "--engine", "spark", "--as-of", "monday", "--format", "json")
    assert json.loads(done.stdout)["rows"] == [[name, rows.total()] for name, rows in shop.expected().items()]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_every_type_as_duckdb_has_it(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in VALUES.items())
    (tmp_path / "v.sql").write_text(
        f"create table r (id int not null primary key, {columns});\n"
        f"create view v as select id, {', '.join(VALUES)} from r;",
        encoding="utf-8",
    )
    (tmp_path / "w.toml").write_text(
        'program = "v.sql"\n[store]\nkind = "lake"\npath = "lake"\n', encoding="utf-8"
    )
    rows = table(range(6))
    pq.write_table(rows, tmp_path / "v.parquet")
    selfmaint.init(tmp_path / "w.toml", engine="duckdb", origins={"v": tmp_path / "v.parquet"})
    kept = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        with selfmaint.load(tmp_path / "w.toml", spark) as warehouse:
            by_spark = warehouse.query("select * from v")
    finally:
        spark.conf.set("spark.sql.session.timeZone", kept)
    with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as warehouse:
        by_duckdb = warehouse.query("select * from v")
    assert bits(by_spark) == bits(by_duckdb) == bits(rows, "lake")
    assert by_spark.schema.field("m").type == by_duckdb.schema.field("m").type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("insert into lines values (1, 1, 1, 'x')", Code.QUERY),
        ("create temporary view x as select 1", Code.QUERY),
        ("drop view lines", Code.QUERY),
        ("select 1; select 2", Code.QUERY),
        ("selec 1", Code.QUERY),
        ("select nothing from lines", Code.QUERY),
        ("select java_method('java.lang.System', 'exit', 1) from lines", Code.QUERY),
        ("select * from parquet.`{folder}/base/sale.parquet`", Code.QUERY),
        ("select * from linez", Code.UNKNOWN_RELATION),
        ("select * from sale", Code.UNKNOWN_RELATION),
        ("select * from mine_alone", Code.UNKNOWN_RELATION),
    ],
)
def test_anything_but_a_select_over_the_views_is_refused(
    sql: str, code: Code, spark: SparkSession, still: Shop
) -> None:
    spark.range(1).createOrReplaceTempView("mine_alone")
    try:
        with selfmaint.load(still.toml, spark) as warehouse, pytest.raises(InputError) as caught:
            warehouse.query(sql.format(folder=still.folder))
    finally:
        spark.catalog.dropTempView("mine_alone")
    (found,) = caught.value.diagnostics
    assert found.code is code
    assert "java." not in found.message
    assert "linez" not in sql or found.hint == "a view `lines` exists"


def test_a_temporary_view_of_the_same_name_is_left_alone(spark: SparkSession, still: Shop) -> None:
    spark.range(7).createOrReplaceTempView("lines")
    try:
        with selfmaint.load(still.toml, spark) as warehouse, pytest.raises(InputError) as caught:
            warehouse.query("select * from lines")
        assert spark.table("lines").count() == 7
    finally:
        spark.catalog.dropTempView("lines")
    assert "lines" in str(caught.value)


def test_views_that_are_tables_of_the_catalog(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("create table asked_v (x bigint, y string) using parquet")
    try:
        spark.sql("insert into asked_v values (1, 'a'), (2, null)")
        (tmp_path / "v.dl").write_text("v(X, Y) :- r(X, Y).", encoding="utf-8")
        (tmp_path / "w.toml").write_text('program = "v.dl"\n[views.v]\ntable = "asked_v"\n', encoding="utf-8")
        with selfmaint.load(tmp_path / "w.toml") as warehouse:
            assert warehouse.engine.name == "spark"
            assert rows_of(warehouse.query("select y, x from v")) == Counter([("a", 1), (None, 2)])
    finally:
        spark.sql("drop table asked_v")
