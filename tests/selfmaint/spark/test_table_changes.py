"""Views that are tables of Spark's catalog: what their format takes is done, what it does not is refused and printed.

Spark brings no format that deletes rows. So the MERGE runs on PostgreSQL, transpiled by sqlglot, with the very rows
that it would have had. Oracle: the views by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import sqlglot

import selfmaint
from selfmaint.errors import InputError
from tests.command_line import run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROGRAM = """
create table sale (id int not null primary key, region string, amount double);
create view sales as select id, region, amount from sale;
create view regions as select region, amount from sale;
create view totals as select region, count(*) as n from sale group by region;
"""
WAREHOUSE = """
program = "views.sql"
[views.sales]
table = "changed_sales"
[views.regions]
table = "`changed_regions`"
[views.totals]
path = "totals.csv"
[update]
effective = true
"""
ROWS = [(1, "n", 1.0), (2, "n", 1.0), (3, None, None), (4, "n", -0.0), (5, "n", 1.0), (6, None, None)]
Row = tuple[Any, ...]


@pytest.fixture
def toml(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    sales = spark.createDataFrame(ROWS, "id int, region string, amount double").coalesce(1)
    sales.write.saveAsTable("changed_sales", format="parquet", mode="overwrite")
    sales.select("amount", "region").write.saveAsTable("changed_regions", format="parquet", mode="overwrite")
    (tmp_path / "totals.csv").write_text("region,n\nn,4\n,2\n", encoding="utf-8")
    (tmp_path / "views.sql").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "w.toml").write_text(WAREHOUSE, encoding="utf-8")
    yield tmp_path / "w.toml"
    for name in ("changed_sales", "changed_regions"):
        spark.sql(f"drop table if exists {name}")


def stored(spark: SparkSession, toml: Path) -> tuple[Counter[Row], Counter[Row], set[str]]:
    sales, regions = (
        Counter(tuple(row) for row in spark.table(name).select(*columns).collect())
        for name, columns in (
            ("changed_sales", ("id", "region", "amount")),
            ("changed_regions", ("region", "amount")),
        )
    )
    return sales, regions, set((toml.parent / "totals.csv").read_text(encoding="utf-8").splitlines()[1:])


def test_rows_are_added_where_the_format_can(spark: SparkSession, toml: Path) -> None:
    """Twice, by one warehouse: it goes on with the tables' new rows."""
    more = [(7, "n", 1.0), (8, "n", 1.0)], [(9, None, 2.0)]
    with selfmaint.load(toml, spark) as warehouse:
        for rows in more:
            added = spark.createDataFrame(rows, "id int, region string, amount double")
            update = selfmaint.Update.from_frames(warehouse, {"sale": added})
            written = warehouse.apply(warehouse.maintain(update))
            assert [one.name for one in written] == ["sales", "regions", "totals"]
            assert [one.path for one in written][:2] == ["changed_sales", "`changed_regions`"]
    every = [*ROWS, *more[0], *more[1]]
    expected = Counter(every), Counter(row[1:] for row in every), {"n,6", ",3"}
    assert stored(spark, toml) == expected


def test_what_the_format_cannot_is_printed_and_nothing_is_changed(spark: SparkSession, toml: Path) -> None:
    """The file of `totals` could have been written."""
    before = stored(spark, toml)
    update = toml.parent / "up"
    update.mkdir()
    (update / "sale.delete.csv").write_text("id,region,amount\n1,n,1.0\n", encoding="utf-8")
    (update / "sale.insert.csv").write_text("id,region,amount\n7,s,1.0\n", encoding="utf-8")
    done = run("maintain", str(toml), "--update", str(update), "--engine", "spark")
    assert done.status == 2
    assert done.stderr.count("error[SM405]") == 2
    assert "does not support MERGE" in done.stderr
    for view in ("sales", "regions"):
        assert f"MERGE INTO `changed_{view}` AS `old` USING `{view}_changes`" in done.stderr
    assert "Traceback" not in done.stderr
    assert stored(spark, toml) == before
    assert not spark.catalog.listTables(pattern="selfmaint_*")
    duck = run("maintain", str(toml), "--update", str(update), "--engine", "duckdb")
    assert "[SM502]" in duck.stderr


def test_a_statement_that_fails_says_which_tables_have_changed(
    spark: SparkSession, toml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second table goes while the first one is written to."""
    from selfmaint.spark import table_changes

    plain = table_changes._require_possible

    def possible(writes: table_changes.TableWrites) -> None:
        plain(writes)
        spark.sql("drop table changed_regions")

    monkeypatch.setattr(table_changes, "_require_possible", possible)
    with selfmaint.load(toml, spark) as warehouse:
        added = spark.createDataFrame([(7, "n", 1.0)], "id int, region string, amount double")
        found = warehouse.maintain(selfmaint.Update.from_frames(warehouse, {"sale": added}))
        with pytest.raises(selfmaint.SelfmaintError) as failed:
            warehouse.apply(found)
    (said,) = failed.value.diagnostics
    assert (said.code.value, said.note) == ("SM405", "changed already: `sales`")
    assert "n,4" in (toml.parent / "totals.csv").read_text(encoding="utf-8"), "files are put back"


def test_the_merge_gives_the_rows_of_a_bag_exactly(
    spark: SparkSession, toml: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from selfmaint.spark import table_changes

    seen: dict[str, tuple[str, list[Row]]] = {}
    plain = table_changes._rows

    def rows(change: Any) -> DataFrame:
        found = plain(change)
        seen[change.view] = ("", [tuple(row) for row in found.collect()])
        return found

    def possible(writes: table_changes.TableWrites) -> None:
        for view, statement in writes.shown.items():
            seen[view] = (statement, seen[view][1])
        raise InputError([])

    monkeypatch.setattr(table_changes, "_rows", rows)
    monkeypatch.setattr(table_changes, "_require_possible", possible)
    schema = "id int, region string, amount double"
    gone, new = [ROWS[0], ROWS[2], ROWS[3]], [(7, "n", 1.0), (8, "s", None), (9, "s", None)]
    with selfmaint.load(toml, spark) as warehouse:
        frames = [spark.createDataFrame(part, schema) for part in (new, gone)]
        update = selfmaint.Update.from_frames(warehouse, *({"sale": frame} for frame in frames))
        found = warehouse.maintain(update)
        with pytest.raises(InputError):
            warehouse.apply(found)
    left = [row for row in ROWS if row not in gone] + new
    for view, columns in (
        ("sales", "id int, region text, amount float8"),
        ("regions", "region text, amount float8"),
    ):
        statement, changes = seen[view]
        width = columns.count(",") + 1
        with psycopg.connect(postgres) as connection, connection.cursor() as cursor:
            cursor.execute(f"create temp table changed_{view} ({columns})".encode())
            cursor.execute(f"create temp table {view}_changes ({columns}, is_lost bool)".encode())
            for table, given in (
                (f"changed_{view}", [row[-width:] for row in ROWS]),
                (f"{view}_changes", changes),
            ):
                marks = ", ".join(["%s"] * len(given[0]))
                cursor.executemany(f"insert into {table} values ({marks})".encode(), given)
            cursor.execute(sqlglot.transpile(statement, read="spark", write="postgres")[0].encode())
            after = cursor.execute(f"select * from changed_{view}".encode()).fetchall()
        assert Counter(map(repr, after)) == Counter(repr(row[-width:]) for row in left), view
