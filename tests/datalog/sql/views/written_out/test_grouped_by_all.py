"""GROUP BY ALL as places, in trees and texts alike."""

from __future__ import annotations

import pytest
from sqlglot import exp

from datalog.model import OpaqueView, ViewDefinition
from datalog.sql.views import SqlText, read_sql
from datalog.sql.views.written_out.as_written import parsed

TABLES = "create table r (a int, b int, c string);\ncreate table s (`all` int, d int);\n"
WRITTEN = {
    "select a, b + 1 as x, sum(b) as n from r group by all": "group by 1, 2",
    "select count(*) as n, a, max(c) m, b from r Group  By /* every */ All having count(*) > 1": "group by 2, 4",
    "select sum(b) as n from r group by all": "",
    "select a, b from r group by all": "group by 1, 2",
    "select x, sum(n) as n from (select a as x, b, count(*) as n from r group by all) q group by all": "group by 1",
    "with q as (select a, max(b) as m from r group by all) select m, count(*) as n from q group by all": "group by 1",
    "select a, sum(case when b > 1 then b end) + 1 as n, 'k' as k from r group by all": "group by 1, 3",
}
STAYS = [
    "select *, count(*) over () as n from r group by all",
    "select a, sum(sum(b)) over (order by a) as n from r group by all",
    "select a, (select max(d) from s) as m, count(*) as n from r group by all",
    "select a, count(*) as n from r group by all with rollup",
    "select a, count(*) as n from r group by all, rollup (a)",
]


def read(query: str, tables: str) -> ViewDefinition | OpaqueView:
    found = read_sql([SqlText(tables, "tables"), SqlText(query, "v")])
    return (*found.views, *found.opaque)[0]


@pytest.mark.parametrize(("query", "by"), WRITTEN.items(), ids=str)
def test_it_is_written_out(query: str, by: str) -> None:
    view = read(query, TABLES.splitlines()[0])
    text = view.text
    assert text is not None
    groups = list(parsed(text).find_all(exp.Group))
    shown = groups[0].sql("spark").lower().strip() if groups else ""
    assert shown == by
    assert "all" not in text.lower().replace("/* every */", "").split()


@pytest.mark.parametrize("query", STAYS)
def test_what_is_not_known_to_aggregate_stays(query: str) -> None:
    view = read(query, TABLES.splitlines()[0] + "create table s (d int);")
    assert isinstance(view, OpaqueView)
    assert view.text == query


def test_a_column_that_is_called_so_is_grouped_by_in_spark() -> None:
    query = "select d, count(*) as n from s group by all"
    view = read(query, TABLES)
    assert isinstance(view, OpaqueView)
    assert view.text == query


def test_what_the_parser_would_lose_is_kept() -> None:
    view = read("select a, percentile(b, 0.5, a) as m from r group by a", TABLES.splitlines()[0])
    assert isinstance(view, OpaqueView)
    assert isinstance(parsed(view.text).expressions[1].this, exp.Anonymous)


@pytest.mark.parametrize("by", ["all", "2"])
def test_a_column_that_is_not_read_keeps_its_place(by: str) -> None:
    tables = "create table t (k int not null primary key, s string, b int not null, c int);"
    found = read_sql(f"{tables} create view v as select count(distinct k, s) as x, b from t group by {by};")
    assert [view.name for view in found.opaque] == ["v"]
    assert [one.message for one in found.warnings] == ["a count of several columns cannot be analysed"]
