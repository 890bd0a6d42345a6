"""LEFT JOINs as what their rows tell: which are read so. That it is right the random SQL holds."""

from __future__ import annotations

import datetime as dt

import pytest

from datalog.model import Comparison, Constant, Negation, NullTest, OuterJoin
from datalog.rewrite.branches import column
from datalog.sql.views import read_sql
from datalog.syntax import show
from selfmaint.api.file.programs import catalog_of_sql

TABLES = """create table region (id int primary key, name string not null, boss string);
create table customer (id bigint primary key, name string not null, region int references region);
create table orders (id bigint primary key, customer bigint, day date not null, coupon string);
"""


def outer(query: str) -> OuterJoin | None:
    found = read_sql(f"{TABLES} create view v as {query};")
    (view,) = found.opaque
    assert bool(found.undone) == (view.outer is not None)
    return view.outer


def rule(query: str, number: int) -> str:
    made = outer(query)
    assert made is not None
    definition = (made.kept, *(side.definition for side in made.sides))[number]
    return " ".join(show(definition).split(".\n", 1)[1].split())


def test_the_kept_side_and_the_join() -> None:
    query = "select o.id, c.name from orders o left join customer c on c.id = o.customer where o.day > '2026-01-01'"
    assert rule(query, 0) == "`v#0`(Id) :- orders(Id, _, Day, _), Day > date '2026-01-01'."
    join = "`v#1`(Id, Name) :- orders(Id, Customer, Day, _), customer(Customer, Name, _), Day > date '2026-01-01'."
    assert rule(query, 1) == join


def test_a_join_with_what_is_joined_before() -> None:
    query = """select o.id, c.name, r.id as r, coalesce(r.boss, '?') as boss from orders o
        left join customer c on c.id = o.customer left join region r on r.id = c.region"""
    made = outer(query)
    assert made is not None
    assert [side.columns for side in made.sides] == [(0, 1), (0, 1, 2, 3)]
    assert [side.own for side in made.sides] == [(1,), (2, 3)]
    assert made.sides[1].defaults == (Constant(None), Constant("?"))


def test_at_most_one_partner_is_told_by_any_value() -> None:
    query = "select c.id, r.boss, upper(r.boss) as b from customer c left join region r on r.id = c.region"
    made = outer(query)
    assert made is not None
    nulls = tuple(NullTest(column(i), negated=False) for i in (1, 2))
    assert made.sides[0].told == Negation(nulls)
    told = "case when any(Boss is not null, upper(Boss) is not null) then true else false end"
    assert f"where holds({told})" in rule(query, 1)


def test_a_foreign_key_says_what_is_shown_of_a_partner() -> None:
    query = "select c.id, r.id as r, r.boss, r.id + 1 as next from customer c left join region r on r.id = c.region"
    made = outer(query)
    assert made is not None
    (side,) = made.sides
    assert rule(query, 0) == "`v#0`(Id, Region, Region + 1) :- customer(Id, _, Region)."
    assert (made.columns, side.own, side.told) == ((0, 1, 3), (2,), NullTest(column(1)))
    assert rule(query, 1).startswith(
        "`v#1`(Id, Region, Boss, Region + 1) :- customer(Id, _, Region), region(Region, _, Boss)"
    )
    alone = outer("select c.id, r.id as r from customer c left join region r on r.id = c.region")
    assert alone is not None
    assert not alone.sides


@pytest.mark.parametrize(
    "query",
    [
        "select o.id, c.id as c, c.name from orders o left join customer c on c.id = o.customer",  # no foreign key
        "select c.id, r.id as r, r.name from customer c left join region r on r.id = c.region and r.boss is not null",
        """select c.id, r.id as r, r.name from customer c
        left join (select * from region where boss is not null) r on r.id = c.region""",
        """select o.id, c.region as x, r.id as r, r.name from orders o left join customer c on c.id = o.customer
        left join region r on r.id = c.region""",  # orders of no customer have no region
        "select m.id, x.at as x, x.n from measured m left join moment x on x.at = m.at",  # -0.0 equals 0.0
        "select m.id, n.id as x, n.name from measured m left join region n on n.id = m.long",  # of two types
        "select m.id, p.b as x, p.n from measured m left join pair p on p.a = m.a and p.b = m.b",  # half a key is null
    ],
)
def test_a_partner_that_is_shown_may_be_missing(query: str) -> None:
    more = """create table moment (at double primary key, n int not null);
    create table pair (a int, b int, n int not null, primary key (a, b));
    create table measured (id int primary key, at double references moment, a int, b int,
        long bigint references region, foreign key (a, b) references pair (a, b));"""
    (view,) = read_sql(f"{TABLES} {more} create view v as {query};").opaque
    assert view.outer is not None
    (side,) = view.outer.sides[-1:]
    assert list(view.outer.names)[side.own[0]] in ("r", "c", "x")


def test_at_most_one_partner_of_which_nothing_is_shown() -> None:
    query = """select o.id, r.name as region from orders o left join customer c on c.id = o.customer
        left join region r on r.id = c.region"""
    made = outer(query)
    assert made is not None
    assert [side.columns for side in made.sides] == [(0, 1)]
    assert "customer(Customer, _, Region), region(Region, Name_2, _)" in rule(query, 1)


def test_a_default_has_the_text_of_its_type() -> None:
    price = "coalesce(cast(c.region as decimal(6, 2)), 0)"
    query = f"""select o.id, c.id as c, cast({price} as string) as x, {price} || '!' as y, {price} as z
        from orders o left join customer c on c.id = o.customer"""
    made = outer(query)
    assert made is not None
    assert [one.value for one in made.sides[0].defaults] == [None, "0.00", "0.00!", 0]


def test_groups_of_the_kept_side() -> None:
    query = """select c.id, c.name, count(o.id) as n, max(o.day) as last, count(*) as k
        from customer c left join orders o on o.customer = c.id group by c.id, c.name"""
    made = outer(query)
    assert made is not None
    assert made.sides[0].defaults == (Constant(0), Constant(None), Constant(1))
    assert "count(*), max(Day), count(*)" in rule(query, 1)


def test_what_an_aggregate_is_of_the_one_row_without_a_partner() -> None:
    query = """select c.id, count(o.id) as n, count(1) as one, count(coalesce(o.coupon, '')) as text, sum(7) as seven,
        sum(case when o.id is null then 1 else 0 end) as none, count(*) filter (where o.coupon = 'x') as x
        from customer c left join orders o on o.customer = c.id group by c.id"""
    made = outer(query)
    assert made is not None
    assert [one.value for one in made.sides[0].defaults] == [0, 1, 1, 7, 1, 0]


def test_an_aggregate_that_is_null_without_partners_alone() -> None:
    query = """select c.id, count(o.id) as n, coalesce(max(o.day), date '1999-01-01') as last,
            coalesce(sum(o.id), 0) as s
        from customer c left join orders o on o.customer = c.id group by c.id"""
    made = outer(query)
    assert made is not None
    assert [one.value for one in made.sides[0].defaults] == [0, dt.date(1999, 1, 1), 0]
    assert "count(*), max(Day), sum(Id_2)" in rule(query, 1)
    assert (
        outer(query.replace("max(o.day), date '1999-01-01'", "max(o.coupon), '?'")) is None
    )  # may be null, too


def test_a_sum_of_what_may_be_null_holds_zero_where_zero_stands_for_null() -> None:
    query = """select r.id, coalesce(g.n, 0) as n, coalesce(g.t, 0) as x, round(coalesce(g.t, 0), 2) as y, g.t as z
        from region r left join (select region, count(*) as n, sum(region) as t from customer group by region) g
        on g.region = r.id"""
    made = outer(query)
    assert made is not None
    assert [one.value for one in made.sides[0].defaults] == [0, 0, 0, None]
    assert "count(*), sum(coalesce(Region, 0)), sum(coalesce(Region, 0)), sum(Region)" in rule(query, 1)
    alone = query.replace(", round(coalesce(g.t, 0), 2) as y, g.t as z", "")
    assert outer(alone) is not None
    assert outer(alone.replace("(g.t, 0)", "(g.t, 1)")) is None
    assert outer(alone.replace("sum(region)", "max(region)")) is None


def test_sums_alone_with_zero_for_none_are_those_of_groups_that_add_up_to_something() -> None:
    query = """select r.id, coalesce(g.t, 0) as x, coalesce(g.u, 0) as y from region r
        left join (select region, sum(region) as t, sum(id) as u from customer group by region) g on g.region = r.id"""
    made = outer(query)
    assert made is not None
    assert made.sides[0].told == Negation(tuple(Comparison("=", column(i), Constant(0)) for i in (1, 2)))
    assert "having any(sum(coalesce(Region, 0)) != 0, sum(Id_2) != 0)" in rule(query, 1)
    assert outer(query.replace("as y from", "as y, coalesce(g.u, 0) + 1 as z from")) is not None
    assert (
        outer(query.replace("as y from", "as y, g.u + 1 as z from")) is None
    )  # null where there is no partner
    assert outer(query.replace("(g.u, 0)", "(g.u, 1)")) is None
    assert outer(query.replace("sum(id)", "max(id)")) is None
    assert outer(query.replace("sum(id)", "sum(cast(id as double))")) is None
    assert outer(query.replace("group by region)", "group by region having count(*) > 1)")) is None
    direct = "select r.id, coalesce(sum(c.id), 0) as t from region r left join customer c on c.region = r.id group by 1"
    made = outer(direct)
    assert made is not None
    assert made.sides[0].told == Comparison("!=", column(1), Constant(0))
    assert outer(direct.replace("coalesce(sum(c.id), 0)", "sum(c.id)")) is not None


def test_where_makes_an_inner_join_of_one_that_it_asks_of() -> None:
    of = "orders o left join customer c on c.id = o.customer left join region r on r.id = c.region"
    query = f"select o.id, c.name, r.name as region from {of} where c.name = 'x'"
    made = outer(query)
    assert made is not None
    assert [side.shown for side in made.sides] == ["r"]
    assert rule(query, 0) == (
        "`v#0`(Id, Name) :- orders(Id, Customer, _, _), customer(Customer, Name, _), Name = 'x'."
    )


@pytest.mark.parametrize(
    "query",
    [
        "select o.id, c.name from orders o left join customer c on c.id = o.customer where c.name = 'x'",
        """select o.id, c.id as c from orders o
        left join (select id, 1 as x from customer) c on c.id = o.customer where c.x = 1""",
        """select o.id, r.name from orders o left join customer c on c.id = o.customer
        join region r on r.id = c.region""",
        """select c.region, sum(o.id) as n from customer c left join orders o on o.customer = c.id
        where o.coupon = 'x' group by c.region""",
    ],
)
def test_joins_of_which_all_are_inner_ones_are_no_outer_joins(query: str) -> None:
    found = read_sql(f"{TABLES} create view v as {query};")
    assert [view.name for view in found.views] == ["v"]
    assert not catalog_of_sql(found).outer


@pytest.mark.parametrize(
    "query",
    [
        "select o.id, c.name from customer c right join orders o on c.id = o.customer",
        "with last as (select o.id, c.name from orders o left join customer c on c.id = o.customer) select * from last",
        "select * from (select o.id, c.name from orders o left join customer c on c.id = o.customer) as x",
        "select o.id, c.name from orders o left join (select id, name from customer) as c on c.id = o.customer",
    ],
)
def test_other_spellings(query: str) -> None:
    assert rule(query, 1) == "`v#1`(Id, Name) :- orders(Id, Customer, _, _), customer(Customer, Name, _)."


@pytest.mark.parametrize(
    "query",
    [
        # condition 2: a column of both sides
        "select o.id, c.name, coalesce(c.name, o.coupon) as x from orders o left join customer c on c.id = o.customer",
        # what a query in FROM computes is null without a partner: in a column, a condition, a later join
        """select o.id, c.id as c, c.x from orders o
        left join (select id, coalesce(name, '?') as x from customer) c on c.id = o.customer""",
        """select o.id, c.id as c, c.x from orders o
        left join (select id, 1 as x from customer) c on c.id = o.customer""",
        """select o.id, c.id as c, r.id as r from orders o
        left join (select id, 1 as x from customer) c on c.id = o.customer left join region r on r.id = c.x""",
        # a number as a text of its own accord
        """select o.id, c.id as c, coalesce(c.name, coalesce(cast(c.region as decimal(6, 2)), 0)) as x
        from orders o left join customer c on c.id = o.customer""",
        # a default that no literal compares with, and an average of what is no null there
        """select o.id, c.id as c, coalesce(cast(c.region as double), cast('NaN' as double)) as x
        from orders o left join customer c on c.id = o.customer""",
        """select c.id, count(o.id) as n, avg(coalesce(o.id, 1)) as x
        from customer c left join orders o on o.customer = c.id group by c.id""",
        # condition 3: `boss` may be null where there are partners
        "select c.id, r.boss from customer c left join region r on r.name = c.name and r.id > 1",
        "select c.id, coalesce(r.boss, '?') as boss from customer c left join region r on r.id = c.region + 0",
        (
            "select c.id, count(o.coupon) as n, count(*) as k "
            "from customer c left join orders o on o.id > 5 group by c.id"
        ),
        # condition 4: the second join may find rows where the first finds none
        (
            "select o.id, c.name, r.name as region from orders o left join customer c on c.id = o.customer "
            "left join region r on r.id = coalesce(c.region, 1)"
        ),
        # condition 5: it is true of rows without a partner
        "select o.id, c.name from orders o left join customer c on c.id = o.customer where c.id is null",
        "select o.id, c.name from orders o left join customer c on c.id = o.customer where c.name = 'x' or o.id > 5",
        # groups of other columns, and HAVING
        (
            "select c.region, count(o.id) as n from customer c left join orders o on o.customer = c.id "
            "group by c.region, o.coupon"
        ),
        (
            "select c.id, count(o.id) as n from customer c left join orders o on o.customer = c.id group by c.id "
            "having count(*) > 1"
        ),
        "select o.id, c.name from orders o full join customer c on c.id = o.customer",
        "select o.id, c.name from orders o left join customer c on c.id = o.customer limit 5",
        # around it, or beside it
        "(select o.id, c.name from orders o left join customer c on c.id = o.customer) limit 5",
        "select * except (id) from (select o.id, c.name from orders o left join customer c on c.id = o.customer) as x",
        """select * from (select o.id, c.name from orders o left join customer c on c.id = o.customer)
        tablesample (5 percent)""",
        """with x as (select o.id, c.name from orders o left join customer c on c.id = o.customer)
        select * from x as y(a, b)""",
        """with x as (select id from customer limit 5)
        select * from (select o.id, x.id as c from orders o left join x on x.id = o.customer) as y""",
    ],
)
def test_what_is_left_as_text(query: str) -> None:
    assert outer(query) is None


def test_a_grouped_query_that_is_joined() -> None:
    query = """select c.id, c.name, coalesce(s.n, 0) as n, s.last, s.n + 1 as more from customer c
        left join (select customer, count(*) as n, max(day) as last from orders group by customer) s
        on s.customer = c.id"""
    made = outer(query)
    assert made is not None
    groups = "`v#1`(Customer, count(*), max(Day)) :- customer(Customer, _, _), orders(_, Customer, Day, _)."
    assert rule(query, 1) == groups
    assert (made.columns, made.key, made.sides[0].columns, made.sides[0].own) == (
        (0, 1),
        (0,),
        (0, 2, 3),
        (2, 3),
    )
    assert made.sides[0].defaults == (Constant(0), Constant(None))
    assert [one.name for one in made.computed] == ["more"]


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("select o.day, c.name FROM", "show a key of `o` (`o.id`)"),
        ("select o.id, c.region + 1 as x FROM", None),
        ("select o.id, coalesce(c.region, 0) as x FROM", "show a column of `c` that is never null: `c.id`"),
        ("select o.id, c.id as c, c.region + o.id as x FROM", "show what `x` is computed from in columns"),
        ("select o.id, c.id as c, c.id + o.id as x FROM", None),
        (
            "select o.id, c.name FROM where c.region is null",
            "ask in WHERE of the kept side alone, and of `c` when",
        ),
        ("select o.id, max(c.region) as x FROM group by o.id", "there are: `count(c.id)`"),
        ("select o.id, count(c.id) + 1 as x FROM group by o.id", "show what `x` is computed from"),
        (
            "select o.id, count(c.id) as n FROM group by o.id, c.name",
            "group by columns of the kept side alone",
        ),
        ("select count(c.id) as n FROM group by o.id", "show all columns that are grouped by"),
        ("select o.id, count(c.id) as n FROM group by o.id having count(c.id) > 1", "leave HAVING out"),
        ("select o.day, count(c.id) as n FROM group by o.day", "show a key of `o` (`o.id`)"),
        ("select o.*, c.id FROM", "give each column a name of its own"),
        (
            "select o.id, r.id as r FROM full join region r on r.id = o.id",
            "keep two views: a LEFT JOIN, and the rows",
        ),
        (
            "select o.id, r.id as r FROM right join region r on r.id = o.id",
            "write it as LEFT JOIN, the side that",
        ),
        (
            "select o.id, r.name FROM join region r on r.id = c.region",
            None,
        ),
        (
            "select o.id, r.name FROM left join region r on r.id = coalesce(c.region, 1)",
            "join `r` with what may",
        ),
        (
            "select o.id, s.x FROM left join (select id, 1 as x from region) s on s.id = o.id",
            "let the query that is joined as `s` compute nothing",
        ),
        (
            "select o.id, c.name FROM where o.id in (select id from region)",
            "make the query without the subquery in its condition a view",
        ),
        (
            (
                "select o.id, s.n FROM left join (select region, name, count(*) as n from customer group by 1, 2) s "
                "on s.region = o.id"
            ),
            "join `s` by `=` of all that it groups by",
        ),
    ],
)
def test_it_is_said_what_to_write_instead(query: str, hint: str | None) -> None:
    query = query.replace("FROM", "from orders o left join customer c on c.id = o.customer")
    made = catalog_of_sql(read_sql(f"{TABLES} create view v as {query};"))
    assert [one.hint is not None and hint is not None and hint in one.hint for one in made.warnings] == (
        [] if hint is None else [True]
    )


def test_a_table_without_a_key_is_named() -> None:
    made = catalog_of_sql(
        read_sql(
            f"""{TABLES} create table log (customer bigint not null, note string);
            create view v as select c.id, l.customer as l from customer c left join log l on l.customer = c.id;"""
        )
    )
    assert [one.hint for one in made.warnings] == ["show a key of `l` (declare one)"]
