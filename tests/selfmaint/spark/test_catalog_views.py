"""Views of Spark's catalog: their definitions are those that Spark has."""

from __future__ import annotations

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
