"""A warehouse whose program is SQL, on Spark: plain views are decided and maintained, the others say why not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import selfmaint
from selfmaint.api.following.not_maintained import NotMaintainedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
create table customer (id int not null primary key, name string not null);
create table other (id int not null primary key, name string not null);
create view customers as select id, name from customer;
create view letters as select substring(name, 1, 1) as letter, count(*) as n from customer group by 1;
create view lonely as select * from customer c left join other d on c.id = d.id + 1;
"""


def test_plain_views_of_a_sql_warehouse(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    rows = session.createDataFrame([(1, "a"), (2, "b")], "id int, name string")
    rows.write.parquet(str(tmp_path / "customers"))
    session.createDataFrame([("a", 1), ("b", 1)], "letter string, n bigint").write.parquet(
        str(tmp_path / "letters")
    )
    session.createDataFrame([(1,)], "anything int").write.parquet(str(tmp_path / "lonely"))
    (tmp_path / "views.sql").write_text(SQL, encoding="utf-8")
    places = "".join(f'[views.{name}]\npath = "{name}"\n' for name in ("customers", "letters", "lonely"))
    (tmp_path / "w.toml").write_text(f'program = "views.sql"\n{places}', encoding="utf-8")
    with selfmaint.load(tmp_path / "w.toml", session) as warehouse:
        inserted = session.createDataFrame([(3, "c")], "id int, name string")
        update = selfmaint.Update({"customer": inserted}, effective=True)
        verdicts = warehouse.check(update)
        assert isinstance(verdicts["customers"], selfmaint.SelfMaintainable)
        assert isinstance(verdicts["letters"], selfmaint.SelfMaintainable)
        assert isinstance(verdicts["lonely"], selfmaint.Undecided)
        assert any("LEFT JOIN" in reason for reason in verdicts["lonely"].reasons)
        with pytest.raises(NotMaintainedError):
            warehouse.maintain(update)


def test_a_warehouse_is_built_from_sql_and_frames(spark: SparkSession) -> None:
    session = spark.newSession()
    rows = session.createDataFrame([(1, "a")], "id int, name string")
    plain = ";".join(SQL.split(";")[:3])
    with selfmaint.build(plain, {"customers": rows}, spark=session) as warehouse:
        inserted = session.createDataFrame([(3, "c")], "id int, name string")
        update = selfmaint.Update({"customer": inserted}, effective=True)
        maintained = warehouse.maintain(update)
        assert [tuple(row) for row in maintained.deltas["customers"].gained.collect()] == [(3, "c")]


def test_a_window_over_a_table_that_a_view_tells_is_computed_from_that_view(spark: SparkSession) -> None:
    session = spark.newSession()
    sql = (
        ";".join(SQL.split(";")[:3])
        + "; create view shares as select id, count(*) over () as k from customer;"
    )
    rows = session.createDataFrame([(1, "a"), (2, "b")], "id int, name string")
    shares = session.createDataFrame([(1, 2), (2, 2)], "id int, k bigint")
    with selfmaint.build(sql, {"customers": rows, "shares": shares}, spark=session) as warehouse:
        inserted = session.createDataFrame([(3, "c")], "id int, name string")
        update = selfmaint.Update({"customer": inserted}, effective=True)
        assert warehouse.check(update)["shares"]
        maintained = warehouse.maintain(update)
        assert maintained.reads == ()
        gained = maintained.deltas["shares"].gained.collect()
        assert sorted(tuple(row)[:2] for row in gained) == [(1, 3), (2, 3), (3, 3)]
