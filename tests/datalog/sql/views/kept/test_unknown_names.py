"""Names that mean nothing, in queries that no definition can hold: found, and at their place."""

from __future__ import annotations

import pytest

from datalog.diagnostics import Diagnostic, ProgramError
from datalog.sql.views import read_sql

TABLES = """create table customer (id bigint primary key, name string not null, region int);
create table orders (id bigint primary key, customer bigint, total int not null);
"""
LEFT = "from orders o left join customer c on c.id = o.customer"


def found(query: str) -> tuple[Diagnostic, ...]:
    try:
        read_sql(f"{TABLES}create view v as\n{query};")
    except ProgramError as error:
        return error.diagnostics
    return ()


@pytest.mark.parametrize(
    ("query", "code", "at", "hint"),
    [
        (f"select o.id, c.nmae {LEFT}", "DL404", "c.nmae", "a column `name` exists"),
        ("select id from orders order by totla limit 5", "DL404", "totla", "a column `total` exists"),
        (
            "select customer, sum(total) as t from orders group by customer order by sum(totla) desc limit 5",
            "DL404",
            "totla",
            "a column `total` exists",
        ),
        (f"select o.id, c.name {LEFT} and c.idd > 1", "DL404", "c.idd", "a column `id` exists"),
        (f"select o.id, c.name {LEFT} where o.totla > 1", "DL404", "o.totla", "a column `total` exists"),
        (f"select o.id, cc.name {LEFT}", "DL101", "cc.name", "a table `c` exists"),
        (f"select id, c.name {LEFT}", "DL403", "id,", "say which: `o.id`, `c.id`"),
        (
            "select o.id from orders o left join custmer c on c.id = o.id",
            "DL101",
            "custmer",
            "a relation `customer` exists",
        ),
        (
            f"select o.id, count(c.idd) as n {LEFT} group by o.id",
            "DL404",
            "c.idd",
            "a column `id` exists",
        ),
        (
            f"select o.id, count(c.id) as n {LEFT} group by o.idd",
            "DL404",
            "o.idd",
            "a column `id` exists",
        ),
        (
            f"select o.id, count(c.id) as n {LEFT} group by o.id having max(c.nam) > 'a'",
            "DL404",
            "c.nam",
            "a column `name` exists",
        ),
        (
            "select id from customer c where not exists (select 1 from orders o where o.custmer = c.id)",
            "DL404",
            "o.custmer",
            "a column `customer` exists",
        ),
        (
            "select id from customer c where not exists (select 1 from orders o where o.customer = c.idd)",
            "DL404",
            "c.idd",
            "a column `id` exists",
        ),
        (
            "select id from customer c where not exists (select 1 from orders o where o.customer = b.id)",
            "DL101",
            "b.id",
            "its tables are `o`, `c`",
        ),
        (
            "select id from customer where id not in (select custmer from orders)",
            "DL404",
            "custmer",
            "a column `customer` exists",
        ),
        (
            "select id from customer where id not in (select customer from oders)",
            "DL101",
            "oders",
            "a relation `orders` exists",
        ),
        ("select id from customer except select idd from orders", "DL404", "idd", "a column `id` exists"),
        (
            f"with a as (select o.id, c.nam {LEFT}) select * from a",
            "DL404",
            "c.nam",
            "a column `name` exists",
        ),
        (
            f"with a as (select o.id, c.name {LEFT}) select a.idd from a",
            "DL404",
            "a.idd",
            "a column `id` exists",
        ),
        (
            "select o.id, row_number() over (partition by o.totl order by o.id) as n from orders o",
            "DL404",
            "o.totl",
            "a column `total` exists",
        ),
        (
            "select o.id, c.name from orders o full join customer c using (idd)",
            "DL404",
            "customer",
            "a column `id` exists",
        ),
        (
            "select o.id, (select max(c.nam) from customer c where c.id = o.customer) as n from orders o",
            "DL404",
            "c.nam",
            "a column `name` exists",
        ),
    ],
)
def test_it_is_an_error_at_its_place(query: str, code: str, at: str, hint: str) -> None:
    (one,) = found(query)
    assert (one.code.value, one.hint) == (code, hint)
    assert one.span is not None
    assert one.span.line == TABLES.count("\n") + 2
    assert one.span.column == query.rindex(at) + 1


@pytest.mark.parametrize(
    "query",
    [
        f"select o.id, c.name as shown, upper(shown) as s {LEFT}",  # the select list names it
        f"select o.id as one, count(c.id) as n {LEFT} group by one having n > 1",
        "select id, total from orders o left anti join customer c on c.id = o.customer",
        "select customer, id from orders o full join (select customer, id from orders) x using (customer, id)",
        # what has columns that nobody knows
        "select o.id, x from orders o lateral view explode(array(o.total)) as x",
        "select o.id, x.y from orders o left join lateral (select o.total as y) x on true",
        "select * from orders pivot (sum(total) for customer in (1 as a)) where a > 1",
        "select a.x, y from (values (1, 2)) as a (x, y) left join customer c on c.id = a.x",
        "select value from customer left join read_files('a') f on f.id = customer.id",
        "select f.x from customer c full join parquet.`/a` f on f.id = c.id",
        # words of Spark that are no columns
        "select rank() over (order by id) as r, timestampdiff(MONTH, date '2026-01-01', current_date) as m from orders",
        "select rank() over (order by id) as r, localtimestamp as at from orders",
        "select transform(array(o.total), x -> x + 1) as x from orders o",
        # a name means what it means around where the table inside has no such column
        "select id from customer c where not exists (select 1 from orders where customer = id and total > region)",
        "select c.id from customer c where not exists (select 1 from orders c where c.customer = c.name)",
        "with recursive a (n) as (select 1 union all select n + 1 from a where n < 5) select n from a",
        "with a as (select id, name from customer) select a.name, rank() over (order by b.id) as r from a, a as b",
    ],
)
def test_what_may_mean_something_is_none(query: str) -> None:
    assert found(query) == ()


def test_columns_of_views_that_are_kept_as_text() -> None:
    ranked = "create view ranked as select id, rank() over (order by total) as place from orders;"
    read_sql(f"{TABLES}{ranked} create view v as select id, place from ranked limit 5;")
    with pytest.raises(ProgramError, match="unknown column `plac`"):
        read_sql(f"{TABLES}{ranked} create view v as select id, plac from ranked limit 5;")
