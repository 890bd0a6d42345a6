"""Views over views that cannot be analysed, and whose change is known; and rows written in a view.

Oracle: DuckDB, which computes the views from their tables.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import selfmaint
from selfmaint.api.check import decided
from selfmaint.api.following import lower_views
from selfmaint.api.maintain import new_contents
from selfmaint.decide.searched import determined_delta
from selfmaint.decide.unions import deltas_of_unions
from selfmaint.decide.verdict import SelfMaintainable

TABLES = """
create table customer (id bigint primary key, name string not null, city bigint);
create table orders (id bigint primary key, customer bigint not null, total bigint, placed date not null);
"""
BELOW = {
    "unknown": "select id, name, city from customer union all select -1, 'n/a', null",
    "ranked": "select id, name, row_number() over (order by id) as city from customer",
    "written": "select 1 as id, 'one' as name, 7 as city union all select 2, 'two', null",
    "values": "select * from (values (1, 'one', 7), (2, 'two', null), (3, 'one', 8)) as t(id, name, city)",
    "a double": "select id, name, cast(city as double) as city from customer union all select -1, 'n/a', null",
    "rolled": "select city as id, max(name) as name, count(*) as city from customer group by rollup(city)",
}
OVER = {
    "joined": "select o.id, u.name, u.city from orders o join u on u.id = o.customer",
    "shown beside": "select o.id, o.total, u.name from orders o left join u on u.id = o.customer",
    "each with orders": "select u.id, u.name, count(o.id) as n, coalesce(sum(o.total), 0) as t "
    "from u left join orders o on o.customer = u.id group by u.id, u.name",
    "by name": "select u.name, count(*) as n, sum(o.total) as t from orders o "
    "join u on u.id = o.customer group by u.name",
    "without": "select u.id, u.name from u where not exists (select 1 from orders o where o.customer = u.id)",
}
UPDATES = {
    "orders": (
        {"orders": "(50, 1, 5, date '2026-01-05'), (51, -1, null, date '2026-01-05')"},
        {"orders": "id = 3"},
    ),
    "customer": ({"customer": "(9, 'nine', 3)"}, {"customer": "id = 4"}),
    "both": ({"customer": "(9, 'nine', 3)", "orders": "(52, 9, 1, date '2026-01-05')"}, {}),
}


def shop() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.sql("create table customer (id bigint, name varchar, city bigint)")
    con.sql("create table orders (id bigint, customer bigint, total bigint, placed date)")
    con.sql("insert into customer values (1, 'a', 1), (2, 'b', 1), (3, 'c', null), (4, 'd', 2)")
    con.sql(
        "insert into orders select i, i % 4, case when i % 5 > 0 then i end, date '2026-01-01' + (i % 3)::int "
        "from range(12) t(i)"
    )
    return con


def rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def maintained(views: dict[str, str], change: str) -> tuple[selfmaint.Verdicts, set[str]]:
    """The verdicts, and of the views with a "yes" those whose new rows are not what DuckDB computes."""
    con = shop()
    for name, query in views.items():
        con.sql(f"create view {name} as {query}")
    text = TABLES + "".join(f"create view {name} as {query};\n" for name, query in views.items())
    wh = selfmaint.build(text, {name: con.table(name).to_arrow_table() for name in views})
    inserted, deleted = UPDATES[change]
    come = {
        n: con.sql(f"select * from {n} where false union all values {v}").to_arrow_table()
        for n, v in inserted.items()
    }
    gone = {n: con.sql(f"from {n} where {which}").to_arrow_table() for n, which in deleted.items()}
    update = selfmaint.Update.from_frames(wh, inserted=come, deleted=gone, effective=True)
    facts, situation = wh.given(update)
    known = wh.decision.knowledge(wh.engine, facts, situation)
    found = decided(wh, update, known, known.catalog.views)
    verdicts = wh.check(update)
    for name, values in inserted.items():
        con.sql(f"insert into {name} values {values}")
    for name, which in deleted.items():
        con.sql(f"delete from {name} where {which}")
    wrong = set()
    for name in views:
        parts = [part.name for part in wh.catalog.parts(wh.catalog.view(name))]
        told = {part: its for part in parts if isinstance(its := found[part], SelfMaintainable)}
        if len(told) < len(parts):
            continue
        deltas = {part: determined_delta(known, its) for part, its in told.items()}
        change_ = deltas_of_unions(wh.catalog, wh.engine, facts, deltas)[name]
        view = wh.catalog.view(name)
        new = new_contents(wh, view, change_)
        its = wh.engine.bags.expanded(new) if view.is_counted else new
        if Counter(wh.engine.sample(its, 999)) != rows(con.table(name).to_arrow_table()):
            wrong.add(name)
    return verdicts, wrong


@pytest.mark.parametrize("change", UPDATES)
@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("below", BELOW)
def test_what_is_said_is_what_all_rows_give(below: str, over: str, change: str) -> None:
    views = {"copy": "select id, customer, total, placed from orders", "u": BELOW[below], "v": OVER[over]}
    verdicts, wrong = maintained(views, change)
    assert not wrong
    assert bool(verdicts["u"]) == (
        below != "rolled" or change == "orders"
    )  # else nobody knows the groups' maxima
    assert bool(verdicts["v"]) == bool(verdicts["u"]), str(verdicts["v"])


@pytest.mark.parametrize("over", OVER)
def test_the_key_of_many_rows_is_counted(over: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lower_views, "MOST_ROWS", 3)
    views = {"copy": "select id, customer, total, placed from orders", "u": BELOW["unknown"], "v": OVER[over]}
    verdicts, wrong = maintained(views, "orders")
    assert verdicts["v"]
    assert not wrong
    monkeypatch.setattr(lower_views, "MOST_COUNTED", 4)
    assert not maintained(views | {"v": OVER["by name"]}, "orders")[1]


def test_what_may_be_null_is_in_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """All columns of a UNION tell its rows apart, null like a value: that is no key of a table."""
    monkeypatch.setitem(UPDATES, "customer", ({}, {"customer": "id in (1, 3)"}))
    views = {
        "u": "select id, upper(name) as name, city from customer union select 1, 'X', null",
        "v": "select city, count(*) as k, max(id) as m, sum(id) as t from u group by city",
    }
    verdicts, wrong = maintained(views, "customer")
    assert (bool(verdicts["u"]), bool(verdicts["v"]), wrong) == (True, True, set())


def test_a_spine_of_days() -> None:
    views = {
        "days": "select unnest(generate_series(date '2026-01-01', date '2026-01-09', interval 1 day))::date as day",
        "daily": "select d.day, count(o.id) as n from days d left join orders o on o.placed = d.day group by d.day",
    }
    con = shop()
    for name, query in views.items():
        con.sql(f"create view {name} as {query}")
    spine = "select explode(sequence(date '2026-01-01', date '2026-01-09', interval 1 day)) as day"
    text = f"{TABLES}create view days as {spine}; create view daily as {views['daily']};"
    wh = selfmaint.build(text, {name: con.table(name).to_arrow_table() for name in views})
    more = con.sql(
        "select 99::bigint as id, 1::bigint as customer, 1::bigint as total, date '2026-01-07' as placed"
    )
    found = wh.maintain(
        selfmaint.Update.from_frames(wh, inserted={"orders": more.to_arrow_table()}, effective=True)
    )
    assert [*map(str, found.verdicts["daily"].remarks)] == ["`days` stays as it is"]
    sides = (wh.engine.sample(side, 9) for side in (found.deltas["daily"].gained, found.deltas["daily"].lost))
    day = dt.date(2026, 1, 7)
    assert [*sides] == [[(day, 1)], [(day, 0)]]


def test_rows_of_which_two_are_equal_are_no_table() -> None:
    """`u` has its written row twice: nothing is said of a view over it."""
    twice = "select id, name, city from customer union all select 1, 'a', 1"
    verdicts, wrong = maintained({"u": twice, "v": OVER["joined"]}, "orders")
    assert (verdicts["u"].kind.value, verdicts["v"].kind.value, wrong) == ("yes", "undecided", set())


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("select id, name from customer union select 4, 'd'", "yes"),
        ("select id, name from customer where city > 0 union select 4, 'd' union select -1, 'n/a'", "yes"),
        ("select name, city from customer union select 'd', 2", "yes"),
        ("select name, city from customer union select 'x', 2", "no"),
        ("select id, name from customer union select 2 + 2, 'd'", "undecided"),
        ("select id, name from customer union select 4, 'd' where 1 = 2", "undecided"),
        (
            "select id, name from customer union select 4, 'd' from (select 'x' as s) t where s = 'y'",
            "undecided",
        ),
        ("select id, city from customer union select 4, 2.4", "yes"),
    ],
)
def test_a_written_row_of_a_union_stays_where_another_row_like_it_goes(query: str, kind: str) -> None:
    """Customer 4, `d`, goes; without the key another one may be like them, and of computed rows nothing is known."""
    verdicts, wrong = maintained({"u": query}, "customer")
    assert not wrong
    assert verdicts["u"].kind == kind


WRITTEN = {
    "joined": (
        "select o.id, o.total, m.label from orders o join (values (1, 'one'), (2, 'two'), (3, null)) "
        "as m(customer, label) on m.customer = o.customer"
    ),
    "alone": "select m.col0 as a, m.col1 as b from (values (1, 'a'), (2, 'b')) as m(col0, col1)",
    "in a query": (
        "with m(customer, rate) as (values (1, 0.5), (2, 0.25)) "
        "select o.id, m.rate from orders o join m on m.customer = o.customer where o.total > 3"
    ),
}


@pytest.mark.parametrize("change", UPDATES)
@pytest.mark.parametrize("written", WRITTEN)
def test_rows_that_are_written_within_a_query_are_decided(written: str, change: str) -> None:
    views = {"copy": "select id, customer, total, placed from orders", "v": WRITTEN[written]}
    verdicts, wrong = maintained(views, change)
    assert not wrong
    assert verdicts["v"], str(verdicts["v"])
