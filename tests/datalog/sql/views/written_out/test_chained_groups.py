"""Groups over several LEFT JOINs: which become joins of grouped queries, and that their rows stay what they are."""

from __future__ import annotations

from collections import Counter
from itertools import chain, combinations, product
from types import MappingProxyType
from typing import Any

import duckdb
import pytest
from sqlglot import exp, parse_one

from datalog.sql.views import read_sql
from datalog.sql.views.catalogue import Catalogue
from datalog.sql.views.query import QueryReader
from datalog.sql.views.scope import Variables
from datalog.sql.views.source import Problems, SqlText
from datalog.sql.views.written_out.chained_groups import join_chains

TABLES = """create table c (id int primary key, n int);
create table o (id int primary key, c int, p int);
create table l (id int primary key, o int, q int);
create table d (id int, c int);
"""
FROM = "from c left join o on o.c = c.id left join l on l.o = o.id"
CHAINED = [
    f"select c.id, count(distinct o.id) as k, count(l.id) as m, coalesce(sum(l.q), 0) as q {FROM} group by c.id",
    f"select c.id, c.n, sum(l.q * o.p) as total, max(o.p) as most, min(l.q) {FROM} group by c.id, c.n",
    f"select c.id, avg(l.q) as mean, sum(l.q) / count(l.q) as same {FROM} where c.n > 1 group by 1",
    (
        "select c.id, count(distinct o.id) as k, sum(q) as q from c left join o on o.c = c.id and p > 1 "
        "left join l on l.o = o.id and l.q is not null group by c.id"
    ),
    (
        "select c.id, count(distinct o.id) as k, count(distinct l.id) as m from c left join o on o.c = c.id "
        "left join l on l.q = c.id group by c.id"
    ),
    "select c.n, c.id, sum(l.q) as q from c left join o on o.p = c.n left join l on l.o = o.id group by c.n, c.id",
]
OTHERS = [
    f"select c.id, count(*) as k {FROM} group by c.id",
    f"select c.id, sum(o.p) as p {FROM} group by c.id",
    f"select c.n, count(l.id) as k {FROM} group by c.n",
    f"select c.id, o.p, count(l.id) as k {FROM} group by c.id, o.p",
    f"select c.id, sum(coalesce(l.q, 1)) as k {FROM} group by c.id",
    f"select c.id, sum(l.q + c.n) as k {FROM} where o.p > 1 group by c.id",
    f"select c.id, count(distinct o.p) as k {FROM} group by c.id",
    f"select c.id, sum(l.q) as k {FROM} group by c.id having sum(l.q) > 1",
    "select c.id, sum(l.q) as k from c left join o on o.c = c.id left join l on l.q = c.id group by c.id",
    "select c.id, sum(l.q) as k from c left join o on o.c = c.id left join l on l.o = o.id and l.q = c.n group by c.id",
    "select c.id, count(l.id) as k from c left join o on o.c = c.id join l on l.o = o.id group by c.id",
    "select d.id, count(l.id) as k from d left join o on o.c = d.c left join l on l.o = o.id group by d.id",
]


def rewritten(query: str) -> exp.Select:
    made = Catalogue(lambda _: None)
    for one in read_sql(TABLES).declarations:
        made.declare((one.name,), one)
    tree = parse_one(query, read="spark")
    assert isinstance(tree, exp.Select)
    join_chains(tree, QueryReader(made, Variables(), Problems(SqlText(query)), MappingProxyType({})))
    return tree


@pytest.mark.parametrize("query", OTHERS)
def test_others_stay_as_they_are(query: str) -> None:
    assert rewritten(query) == parse_one(query, read="spark")


@pytest.mark.parametrize("query", CHAINED)
def test_rows_stay_what_they_are(query: str) -> None:
    tree = rewritten(query)
    assert tree.args.get("group") is None
    names = [column[0] for column in executed(query, {})[1]]
    assert [column[0] for column in executed(tree.sql("duckdb"), {})[1]] == names or "min(l.q)" in names
    orders, lines = [(1, 1, 2), (2, 1, 1), (3, None, 2)], [(1, 1, 1), (2, 1, None), (3, 2, 2)]
    for some in product(subsets([(1, 2), (2, 1)]), subsets(orders), subsets(lines)):
        data = dict(zip("col", some, strict=True))
        assert executed(tree.sql("duckdb"), data)[0] == executed(query, data)[0]


DUCK = duckdb.connect()
DUCK.execute(TABLES.replace(" primary key", ""))
HELD: dict[str, tuple[Any, ...]] = {}


def executed(query: str, data: dict[str, tuple[Any, ...]]) -> tuple[Counter[Any], Any]:
    for name, rows in data.items():
        if HELD.get(name) != rows:
            DUCK.execute(f"delete from {name}")
            for row in rows:
                DUCK.execute(f"insert into {name} values (?{', ?' * (len(row) - 1)})", row)
        HELD[name] = rows
    found = DUCK.execute(query)
    return Counter(found.fetchall()), found.description


def subsets(rows: list[Any]) -> list[tuple[Any, ...]]:
    return list(chain.from_iterable(combinations(rows, n) for n in range(len(rows) + 1)))
