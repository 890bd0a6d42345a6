"""Aggregates of the rows that belong to a row: as which joins they are read. That it is right the random SQL holds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

import selfmaint
from datalog.sql.views import read_sql
from datalog.sql.views.written_out.scalar_subqueries import join_scalars
from selfmaint.api.file.programs import catalog_of

V0 = "select c.id as v0, (select count(*) from o where o.c = c.id) as n, v0 + 1 as m from c"
TABLES = """create table c (id int primary key, n string not null, d int);
create table o (id int primary key, c int not null, t int, d int not null);
"""


def joined(query: str) -> str:
    tree = sqlglot.parse_one(query, dialect="spark")
    assert isinstance(tree, exp.Select)
    join_scalars(tree)
    return tree.sql("spark").lower()


def test_one_join_for_all_of_the_same_rows() -> None:
    query = """select id, d, (select count(*) from o where o.c = c.id) as k,
        coalesce((select sum(t) from o where c = c.id), 0) + 1 as t,
        (select max(d) from o x where x.c = c.id and x.t > 1) as m from c where n > 'a'"""
    assert joined(query) == (
        "select id, d, coalesce(o.v0, 0) as k, coalesce(o.v1, 0) + 1 as t, x.v0 as m from c "
        "left join (select o.c as kk_0, count(*) as v0, sum(t) as v1 from o group by o.c) as o on o.kk_0 = c.id "
        "left join (select x.c as kk_0, max(d) as v0 from o as x where x.t > 1 group by x.c) as x on x.kk_0 = c.id "
        "where n > 'a'"
    )


def test_a_table_that_stands_outside_too() -> None:
    assert joined("select o.id, (select count(*) from o x where x.c = o.id) + 1 as n from o") == (
        "select o.id, coalesce(x.v0, 0) + 1 as n from o "
        "left join (select x.c as k0, count(*) as v0 from o as x group by x.c) as x on x.k0 = o.id"
    )


def test_names_that_stand_for_items_are_no_columns_of_the_join() -> None:
    """An alias that the select list uses is found only where no source has a column of its name."""
    tables = f"{TABLES} create table r (id int primary key);"
    text = "select c.id as c, (select count(*) from o where o.c = c.id) as n, c as again from c join r on c.d = r.id"
    made = catalog_of(f"{tables} create view v as {text}; create view w as {V0};")
    number, some = pa.int32(), pa.int64()
    rows = {
        "v": pa.table(
            {
                "c": pa.array([1], number),
                "n": pa.array([1], some),
                "again": pa.array([1], number),
            }
        ),
        "w": pa.table({"v0": pa.array([1], number), "n": pa.array([1], some), "m": pa.array([2], number)}),
    }
    warehouse: Any = selfmaint.build(
        f"{tables} create view v as {text}; create view w as {V0};", rows, engine="duckdb"
    )
    gone = pa.table(
        {
            "id": pa.array([7], number),
            "c": pa.array([1], number),
            "t": pa.array([None], number),
            "d": pa.array([1], number),
        }
    )
    found = warehouse.maintain(
        selfmaint.Update.from_frames(warehouse, {}, {"o": gone}, effective=True), strict=True
    )
    assert set(made.outer) == {"v", "w"}
    assert pa.table(found.deltas["v"].gained).to_pylist() == [{"c": 1, "n": 0, "again": 1}]
    assert pa.table(found.deltas["w"].gained).to_pylist() == [{"v0": 1, "n": 0, "m": 2}]


@pytest.mark.parametrize(
    "query",
    [
        "select id, (select count(*) from o) as k from c",
        "select id, (select count(*) from o where o.c > c.id) as k from c",
        "select id, (select count(*) from o where o.c = c.id or o.t = 1) as k from c",
        "select id, (select t from o where o.id = c.id) as k from c",
        "select id, (select count(*) from o where o.c = c.id group by o.t) as k from c",
        "select id, (select max(o.t + c.d) from o where o.c = c.id) as k from c",
        "select id, (select count(*) from o where o.c = c.id) from c",
        "select *, (select count(*) from o where o.c = c.id) as k from c",
        "select n, (select count(*) from o where o.c = max(c.id)) as k from c group by n",
    ],
)
def test_others_stay(query: str) -> None:
    assert joined(query) == sqlglot.parse_one(query, dialect="spark").sql("spark").lower()


@pytest.mark.parametrize(
    ("query", "is_told"),
    [
        ("select c.id, (select count(*) from o where o.c = c.id) as k from c", True),
        (
            "select id, (select count(*) from o where c = c.id) k, (select max(t) from o where c = c.id) m from c",
            True,
        ),
        ("select c.id, (select max(t) from o where o.c = c.id) as m from c", False),
        # of these `e` is a column of neither, and `n` one of the table outside
        ("select c.id, (select count(*) from o where o.c = c.id and n = 'x') as k from c", False),
    ],
)
def test_views_of_them(query: str, is_told: bool) -> None:
    (view,) = read_sql(f"{TABLES} create view v as {query};").opaque
    assert (view.outer is not None) is is_told
