"""DISTINCT within aggregates: left out where keys say that no value of a group is there twice, and only there."""

from __future__ import annotations

import pytest

from datalog.model import Aggregate, walk
from datalog.sql.views import read_sql
from tests.effort import effort
from tests.keyed_queries import require_right

TABLES = """create table s (f int primary key, d int, e int not null unique);
create table r (a int primary key, b int, c int);
create table log (a int, b int);
create table pair (x int, y int, primary key (x, y));
"""
JOINED = "from r join s on r.b = s.f"
ONCE = [
    "select b, count(distinct a) as n from r group by b",
    "select count(distinct a) as n, sum(distinct a) + 1 as m, avg(distinct a) as o from r",
    "select b, sum(c) as m from r group by b having count(distinct a) > 1",
    "select b, count(distinct a) filter (where c > 1) as n from r group by b",
    "select b, count(distinct case when c > 2 then a end) as m from r group by b",
    "select b, count(distinct nullif(a, 2)) as n from r group by b",
    f"select s.d, count(distinct r.a) as n {JOINED} group by s.d",
    f"select s.e, count(distinct r.a) as n {JOINED} and s.d > 1 group by s.e",
    "select x, count(distinct y) as n from pair group by x",
    "select d, count(distinct e) as n from s group by d",
    "select q.b, q.n from (select b, count(distinct a) as n from r group by b) q join s on s.f = q.b",
]
SEVERAL = [
    "select b, count(distinct c) as n from r group by b",
    f"select s.d, count(distinct s.f) as n, sum(r.c) as m {JOINED} group by s.d",
    f"select count(distinct r.b) as n {JOINED}",
    "select b, count(distinct a) as n from log group by b",
    "select count(distinct y) as n from pair",
    "select b, count(distinct a + c) as n from r group by b",
    "select b, count(distinct case when c > 2 then a else c end) as n from r group by b",
    "select b, count(distinct case when c > 2 then a else 0 end) as n from r group by b",
    "select r.b, count(distinct r.a) as n from r join log on r.b = log.b group by r.b",
]


def takes_once(query: str) -> list[bool]:
    found = read_sql(f"{TABLES}create view v as {query};")
    blocks = (block for view in found.views for block in view.blocks)
    values = (one for block in blocks for value in (*block.outputs, *block.having) for one in walk(value))
    return [one.distinct for one in values if isinstance(one, Aggregate)]


@pytest.mark.parametrize("query", ONCE)
def test_a_value_that_is_once_in_its_group_needs_no_distinct(query: str) -> None:
    assert not any(takes_once(query))


@pytest.mark.parametrize("query", SEVERAL)
def test_others_keep_it(query: str) -> None:
    assert any(takes_once(query))


@pytest.mark.parametrize(
    "query",
    [
        "select b, count(distinct a) as n, sum(distinct a) as m from r group by b",
        "select b, count(distinct case when c > 1 then a end) as n, count(*) as m from r group by b",
        f"select s.d, count(distinct r.a) as n, count(distinct r.a) filter (where r.c > 1) as m {JOINED} group by s.d",
        "select s.d, count(distinct s.f) as n, count(*) as m from r join s on r.b = s.f group by s.d",
        "select s.f, s.d, count(distinct r.a) as n, sum(r.c) as m from s left join r on r.b = s.f group by s.f, s.d",
        "select r.b, count(distinct r.a) as n from r join s on r.b = s.d group by r.b",
    ],
)
def test_rows_are_what_recomputing_gives(query: str) -> None:
    require_right(query, effort(4, 60))
