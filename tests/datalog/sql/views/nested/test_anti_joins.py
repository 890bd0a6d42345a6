"""Rows without a match: which queries are read so. That it is right the random SQL holds."""

from __future__ import annotations

import pytest

from datalog.model import AntiJoin
from datalog.sql.views import read_sql
from datalog.syntax import show

TABLES = """create table customer (id bigint primary key, name string not null);
create table orders (id bigint primary key, customer bigint, day date not null, rate double not null);
create table payment (id bigint primary key, order_id bigint not null references orders, amount int, rate double);
create table log (order_id bigint not null, what string);
"""


def anti(query: str) -> AntiJoin | None:
    (view,) = read_sql(f"{TABLES} create view v as {query};").opaque
    return view.anti


@pytest.mark.parametrize(
    "query",
    [
        (
            "select id, customer from orders o where day > '2026-01-01' and "
            "not exists (select 1 from payment p where p.order_id = o.id and p.amount > 5)"
        ),
        (
            "select id, customer from orders where id not in (select order_id from payment where amount > 5) "
            "and day > '2026-01-01'"
        ),
        (
            "select o.id, o.customer from orders o left join payment p on o.id = p.order_id and p.amount > 5 "
            "where p.id is null and o.day > '2026-01-01'"
        ),
        (
            "with open as (select id, customer from orders o where not exists "
            "(select p.id from payment p where o.id = p.order_id and p.amount > 5) and day > '2026-01-01') "
            "select * from open"
        ),
    ],
)
def test_spellings_of_the_same(query: str) -> None:
    found = anti(query)
    assert found is not None
    kept, barred = (show(one).split(".\n", 1)[1].strip() for one in (found.kept, found.barred))
    assert kept == "`v#0`(Id, Customer) :- orders(Id, Customer, Day, _), Day > date '2026-01-01'."
    assert barred == "`v#1`(Order_id) :- payment(_, Order_id, Amount, _), Order_id is not null, Amount > 5."
    assert (found.join, found.key) == ((0,), ((0, 0),))
    assert (found.by_key, found.references, found.once) == (True, True, False)


def test_except() -> None:
    found = anti("select id from orders except select order_id from payment")
    assert found is not None
    assert (found.by_key, found.references, found.once) == (True, True, False)


def test_a_match_by_the_other_key() -> None:
    query = "select id, customer from orders o where not exists (select 1 from customer c where c.id = o.customer)"
    found = anti(query)
    assert found is not None
    assert (found.join, found.by_key, found.references, found.once) == ((1,), False, False, True)


def test_a_table_without_a_key_may_bar() -> None:
    assert anti("select id from orders o where not exists (select 1 from log l where l.order_id = o.id)")


@pytest.mark.parametrize(
    "query",
    [
        # condition 1: no key, or what is compared is not shown
        "select customer from orders o where not exists (select 1 from payment p where p.order_id = o.id)",
        "select id from orders o where not exists (select 1 from customer c where c.id = o.customer)",
        # condition 2: more than equality, doubles, numbers of two types
        "select id from orders o where not exists (select 1 from payment p where p.order_id > o.id)",
        "select id, rate from orders o where not exists (select 1 from payment p where p.rate = o.rate)",
        "select id from orders o where not exists (select 1 from payment p where p.amount = o.id)",
        "select id from orders o where not exists (select 1 from payment p where p.order_id = o.id or p.amount = 1)",
        "select id from orders o where not exists (select 1 from payment p where p.order_id <=> o.id)",
        "select id from orders o where not exists (select 1 from log l where l.order_id = o.id and l.what rlike what)",
        "select o.id from orders o left join log l on l.order_id = o.id and l.what rlike what where l.order_id is null",
        # condition 3: nulls
        "select id, customer from orders where customer not in (select id from payment)",
        "select id from orders where id not in (select amount from payment)",
        "select o.id, o.day from orders o left join payment p on p.order_id = o.id where p.amount is null",
        # of the same table, of two, with a group
        "select id from orders o where not exists (select 1 from orders p where p.customer = o.id)",
        (
            "select id from orders o where not exists (select 1 from payment p join log l on l.order_id = p.order_id "
            "where p.order_id = o.id)"
        ),
        (
            "select id from orders o where not exists "
            "(select order_id from payment p where p.order_id = o.id group by order_id having count(*) > 1)"
        ),
        "select id from orders except all select order_id from payment",
        # some of the rows, columns by name, and those of the other table
        "select id from orders except select order_id from payment limit 1",
        "select id from orders except select order_id from payment order by 1 offset 1",
        "select id, day from orders except by name select day, order_id as id from payment, orders",
        "select * from orders o left join payment p on p.order_id = o.id where p.id is null",
    ],
)
def test_what_is_left_as_text(query: str) -> None:
    assert anti(query) is None


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("select customer from orders o where not exists (select 1 from payment p WHERE)", "compared: `id`"),
        (
            "select o.day, o.customer from orders o left join customer c on c.id = o.customer where c.id is null",
            "show a key of `orders`: `id`",
        ),
        (
            "select id from orders o where not exists (select 1 from payment p where p.order_id > o.id)",
            "compare the two tables by `=` of their columns alone",
        ),
        (
            "select id, rate from orders o where not exists (select 1 from payment p where p.rate = o.rate)",
            "compare columns of one declared type, neither float nor double",
        ),
        (
            "select id, customer from orders where customer not in (select id from payment)",
            "declare the columns that are compared not null, or write NOT EXISTS",
        ),
        (
            "select id from orders except select order_id + 1 from payment",
            "compare columns, and nothing that is",
        ),
        (
            "select o.id from orders o left join payment p on p.order_id = o.id where p.amount is null",
            "ask whether a column that is compared is null: `order_id`",
        ),
        (
            "select id, customer from orders o where not exists (select 1 from orders p where p.id = o.customer)",
            "compare the rows of one table with those of another one",
        ),
        (
            "select order_id from log l where not exists (select 1 from orders o where o.id = l.order_id)",
            "declare a key of `log`, and show it",
        ),
        (
            (
                "select o.id from (select id from orders union select id from payment) o "
                "where not exists (select 1 from payment p where p.order_id = o.id)"
            ),
            "compare the rows of one table with those of one other",
        ),
    ],
)
def test_it_is_said_what_to_write_instead(query: str, hint: str) -> None:
    query = query.replace("WHERE", "where p.order_id = o.id")
    (one,) = read_sql(f"{TABLES} create view v as {query};").warnings
    assert one.hint is not None
    assert hint in one.hint


def test_nothing_is_warned_of_where_the_update_tells() -> None:
    query = "select id from orders o where not exists (select 1 from payment p where p.order_id = o.id)"
    found = read_sql(f"{TABLES} create view v as {query};")
    assert found.warnings == ()
    assert found.opaque[0].reasons == (
        "`v`: whether a row has a match is told by what comes and goes, not by the definition alone",
    )
