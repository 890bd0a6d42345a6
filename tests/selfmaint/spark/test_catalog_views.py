"""Views of Spark's catalog: their definitions are those that Spark has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import selfmaint
from datalog.model import Column, ColumnType, Declaration, TypeName
from datalog.syntax import show
from selfmaint.api.file.warehouse_file import read_warehouse_file
from selfmaint.errors import Code, InputError
from selfmaint.spark.catalog_views import read_catalog_views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INT = ColumnType(TypeName.INT)


def test_views_are_read_with_the_tables_and_views_below(spark: SparkSession) -> None:
    spark.sql("create database catalog_views")
    spark.sql("create table catalog_views.item (id int, name string) using parquet")
    spark.sql("create table catalog_views.sale (id int, item int, price decimal(9,2)) using parquet")
    spark.sql("create view catalog_views.cheap as select * from catalog_views.sale where price < 10")
    spark.sql(
        "create view catalog_views.sold (sale, what) comment 'cheap ones' as "
        "select c.id, name from catalog_views.cheap c join catalog_views.item i on i.id = c.item"
    )
    try:
        keyed = Declaration("sale", (Column("id", INT), Column("item", INT), Column("price")), key=("id",))
        found = read_catalog_views(spark, ["catalog_views.sold"], [keyed])
        (view,) = found.views
        assert view.columns == ("sale", "what")
        assert show(view).replace("\n    ", " ").splitlines()[1] == (
            "sold(Id, Name) :- sale(Id, Item, Price), Price < 10, item(Item, Name)."
        )
        assert show(found.declarations[1]) == ".decl item(id: int, name: string)."
        with pytest.raises(InputError) as caught:
            read_catalog_views(spark, ["catalog_views.nothing"])
        assert caught.value.diagnostics[0].code is Code.MISSING_CONTENTS
    finally:
        spark.sql("drop database catalog_views cascade")


def test_a_warehouse_file_takes_its_views_from_the_catalog(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.sql("create database of_file")
    session.sql("create table of_file.item (id int, name string) using parquet")
    session.sql("create view of_file.named as select * from of_file.item where name is not null")
    session.sql("create view of_file.items as select id, name from of_file.named")
    (tmp_path / "keys.sql").write_text("create table of_file.item (id int primary key, name string);")
    stored = session.createDataFrame([(1, "a")], "id int, name string")
    stored.write.parquet(str(tmp_path / "items"))
    rest = 'tables = "keys.sql"\n[views.items]\npath = "items"\n'
    try:
        for key in ('catalog = "of_file"', 'catalog = ["of_file.items"]'):
            (tmp_path / "w.toml").write_text(f"{key}\n{rest}")
            with selfmaint.load(tmp_path / "w.toml", session) as warehouse:
                assert [view.name for view in warehouse.catalog.views] == ["items"]
                update = selfmaint.Update({"item": stored.selectExpr("id + 1 as id", "name")}, effective=True)
                assert isinstance(warehouse.check(update)["items"], selfmaint.SelfMaintainable)
        (tmp_path / "w.toml").write_text(f'catalog = "of_file"\n{rest}[views.gone]\npath = "items"\n')
        with pytest.raises(InputError) as caught:
            read_warehouse_file(tmp_path / "w.toml", session)
        assert caught.value.diagnostics[0].code is Code.MISSING_CONTENTS
    finally:
        session.sql("drop database of_file cascade")


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("spark.sql.ansi.enabled", "false", "was `false`, and goes by that; here it is `true`"),
        ("spark.sql.session.timeZone", "Asia/Tokyo", "was `Asia/Tokyo`, and goes by that; here it is `UTC`"),
    ],
)
def test_a_view_that_spark_reads_by_other_settings_is_refused(
    spark: SparkSession, setting: str, value: str, said: str
) -> None:
    session, creating = spark.newSession(), spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    creating.conf.set(setting, value)
    session.sql("create database by_settings")
    session.sql("create table by_settings.t (id int, a int, at timestamp) using parquet")
    try:
        creating.sql("create view by_settings.v as select id, 1 / a as q, date(at) as day from by_settings.t")
        session.sql("create view by_settings.same as select id from by_settings.t")
        session.sql("create view by_settings.over as select id from by_settings.v")
        with pytest.raises(InputError, match=re.escape(said)) as refused:
            read_catalog_views(session, ["by_settings.v"])
        assert refused.value.diagnostics[0].code is Code.NO_ENGINE
        with pytest.raises(InputError, match=re.escape(said)):  # it would be unfolded
            read_catalog_views(session, ["by_settings.over"])
        session.sql("drop view by_settings.over")
        assert len(read_catalog_views(session, ["by_settings.same"]).views) == 1
    finally:
        session.sql("drop database by_settings cascade")


def test_tables_are_those_that_spark_means(spark: SparkSession) -> None:
    """Of two databases with a table of one name, and of a view that was created in another database than its own."""
    session = spark.newSession()
    for name, column in (("raw", "a"), ("mart", "b")):
        session.sql(f"create database {name}_of_two")
        session.sql(f"create table {name}_of_two.t (id int, {column} int) using parquet")
    session.sql("create view raw_of_two.v as select id, a from raw_of_two.t")
    session.sql("create view mart_of_two.w as select id, b from mart_of_two.t")
    try:
        found = read_catalog_views(session, ["raw_of_two.v", "mart_of_two.w"])
        assert [[p.name for p in view.reads] for view in found.views] == [["raw_of_two.t"], ["mart_of_two.t"]]
        session.sql("use raw_of_two")
        session.sql("create view mart_of_two.x as select id from t")
        with pytest.raises(InputError, match="created in the database `raw_of_two`"):
            read_catalog_views(session, ["mart_of_two.x"])
        session.sql("drop view mart_of_two.x")
        session.sql("create view mart_of_two.v as with t as (select 1 as id) select id from t")
        with pytest.raises(InputError, match="`v` is in several databases"):
            read_catalog_views(session, ["raw_of_two.v", "mart_of_two.w"])
    finally:
        for name in ("raw", "mart"):
            session.sql(f"drop database {name}_of_two cascade")
