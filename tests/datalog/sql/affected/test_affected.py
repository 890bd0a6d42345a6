"""By which columns a query is followed, or why it is not: one case for each construct."""

from __future__ import annotations

import pytest

from datalog.model import OpaqueView, TextQuery
from datalog.sql.affected import (
    Additive,
    Keyed,
    NotKeyed,
    Query,
    Table,
    UnknownShapeError,
    additive,
    columns_by_order,
    keyed,
    keys_of_changes,
    plan_of_definition,
    plan_of_text,
)
from datalog.sql.views import read_sql
from datalog.sql.views.catalogue import Catalogue
from datalog.sql.views.kept.text_reads import text_query

TABLES = """
create table r (a int not null primary key, b int, c int);
create table s (f int not null primary key, d int, e int);
create table t (x int not null, y int not null, primary key (x, y));
create table o (id int not null primary key, price double, code string, day date);
"""
NUMBERED = "(select *, row_number() over (partition by b order by c) n from r) as q"
GROUPED = "(select x, sum(y) as n from t group by x)"


def known() -> dict[str, Table]:
    found = {}
    for one in read_sql(TABLES).declarations:
        nullable = frozenset(i for i, column in enumerate(one.columns) if not column.not_null)
        keys = tuple(tuple(one.column_names.index(name) for name in key) for key in [one.key or ()])
        types = tuple(column.type for column in one.columns)
        found[one.name] = Table(one.name, one.column_names, types, nullable, keys)
    return found


def query(text: str) -> Query:
    """A text as it is read where nothing but its text is known."""
    tables = read_sql(TABLES).declarations
    catalogue = Catalogue(lambda _view: None)
    for one in tables:
        catalogue.declare((one.name,), one)
    found = text_query(text, catalogue, None)
    assert isinstance(found, TextQuery), found
    return plan_of_text(found, known())


def steps(how: Keyed) -> list[str]:
    """Steps such as `r.a <- key` and `s.f <- r.b`."""
    names = {step.scan: step.relation for step in how.steps}
    columns = {name: table.columns for name, table in known().items()}
    shown = []
    for step in how.steps:
        mine = ",".join(f"{step.relation}.{columns[step.relation][i]}" for i in step.columns)
        its = [
            "key"
            if source is None
            else ",".join(f"{names[source]}.{columns[names[source]][i]}" for i in places)
            for source, places in step.sources
        ]
        shown.append(f"{mine} <- {' | '.join(its)}")
    return shown


KEYED = {
    "select r.a, s.d from r left join s on r.b = s.f": ["r.a <- key", "s.f <- r.b"],
    "select s.f, r.c from r right join s on r.b = s.f": ["r.b <- key", "s.f <- key"],
    "select r.a, s.d from r full join s using (a)".replace("using (a)", "on r.a = s.f"): None,
    "select coalesce(r.a, s.f) as k, s.d from r full join s on r.a = s.f": ["r.a <- key", "s.f <- key"],
    "select coalesce(r.a, s.f) as k, s.d from r full join s on r.b = s.f": None,
    "select r.a, s.d from r, s where r.b = s.f and r.c > s.e": ["r.a <- key", "s.f <- r.b"],
    "select r.a, s.d from r, s where (r.b = s.f and r.c > 1) or (r.b = s.f and s.e > 1)": [
        "r.a <- key",
        "s.f <- r.b",
    ],
    "select r.a, s.d from r join s on r.b < s.f": None,
    "select r.a, s.d from r join s on cast(r.b as string) = cast(s.f as string)": None,
    "select a, b from r where exists (select 1 from s where s.d = r.b and s.e > r.c)": [
        "r.a <- key",
        "s.d <- r.b",
    ],
    "select a, b from r where not exists (select 1 from s where s.d = r.a)": ["r.a <- key", "s.d <- key"],
    "select a, b from r where not exists (select 1 from s where s.d > r.a)": None,
    "select a, b from r where a in (select x from t)": ["r.a <- key", "t.x <- key"],
    "select a, b from r where a not in (select x from t)": ["r.a <- key", "t.x <- key"],
    "select a, b from r where b not in (select x from t)": None,
    "select a, b from r where a not in (select d from s)": None,
    "select a, b from r where a not in (select d from s where d = e)": ["r.a <- key", "s.d <- key"],
    "select a, b from r where b in (select d from s) or c > 1": None,
    "select a, (select max(y) from t where t.x = r.b) as m from r": ["r.a <- key", "t.x <- r.b"],
    "select a, (select max(y) from t) as m from r": None,
    f"select r.a, g.n from r join {GROUPED} g on g.x = r.b": ["r.a <- key", "t.x <- r.b"],
    f"select r.a, g.n from r join {GROUPED} g on g.n = r.b": None,
    "select b, count(distinct c) as n from r group by b having count(*) > 1": ["r.b <- key"],
    "select b + 1 as b1, count(distinct c) as n from r group by b + 1": None,
    "select b, c, sum(a) as n from r group by rollup (b, c)": None,
    "select b, c, sum(a) as n from r group by grouping sets ((b, c), (b))": ["r.b <- key"],
    "select a, row_number() over (partition by b order by c) as n, b from r": ["r.b <- key"],
    "with q as (select cast(a as int) as k, cast(b as bigint) as b, c from r) "
    "select k, b, row_number() over (partition by b order by c) as n from q": ["r.b <- key"],
    "with q as (select cast(b as string) as b, c from r) select b, max(c) as n from q group by b": None,
    "with q as (select cast(b as tinyint) as b, c from r) select b, count(distinct c) as n from q group by b": None,
    "select cast(x.a as bigint) as k, y.d from r x left join (select cast(f as bigint) as f, d from s) y "
    "on cast(x.b as bigint) = y.f": ["r.a <- key", "s.f <- r.b"],
    "select a, b, sum(c) over (partition by b) as n, sum(a) over (partition by c) as m from r": None,
    "select a, count(*) over () as n from r": None,
    "select a from r union all select d from s": ["r.a <- key", "s.d <- key"],
    "select a from r except select d from s": ["r.a <- key", "s.d <- key"],
    "select a from r union select cast(code as int) from o": None,
    "select distinct b, c from r where a > 3": ["r.b,r.c <- key"],
    "select b from r order by a limit 3": None,
    "select sum(price) as p from o": None,
    "select price, count(distinct id) as n from o group by price": None,
    "select code, count(distinct id) as n from o group by code": ["o.code <- key"],
    "with q as (select b, max(c) as m from r group by b) select r.a, q.m from r join q on r.b = q.b and r.c = q.m": [
        "r.a <- key",
        "r.b <- r.b",
    ],
    "select x.a, y.c from r x join r y on x.b = y.a": ["r.a <- key", "r.a <- r.b"],
    "select a, b from r where b = (select max(d) from s where s.e = r.c)": ["r.a <- key", "s.e <- r.c"],
    "select r.a, u.k from r join (select f as k from s union all select x from t) u on r.b = u.k": [
        "r.a <- key",
        "s.f <- r.b",
        "t.x <- r.b",
    ],
}


@pytest.mark.parametrize("text", KEYED)
def test_every_construct_has_its_key_or_none(text: str) -> None:
    how = keyed(query(text), {"r", "s", "t", "o"})
    expected = KEYED[text]
    if expected is None:
        assert isinstance(how, NotKeyed), how
        assert how.why
    else:
        assert isinstance(how, Keyed), how
        assert steps(how) == expected


UNKNOWN = [
    "select a from r limit 3 offset 2 union select 1 from q",
    "select explode(array(a, b)) as e from r",
    "select a, b from r lateral view explode(array(a, b)) z as e",
    "with recursive q as (select a from r union all select a + 1 from q) select a from q",
    "select a, b from r where a > all (select x from t)",
    "select a as k, b as k from r",
    "select * from r tablesample (10 percent)",
    "select a, rank() over (w order by a) as n from r window w as (partition by b)",
    "select a, c as a1 from r group by all",
    "select a + b as c from r group by a, b having c > 1",
    "select r.a, coalesce(s.f, t.x) as k from r, s full join t on s.f = t.x",
    "select a, count(*) as n from r group by a having exists (select 1 from t where x = n)",
    # Of a name that is a column, too, Spark takes the one or the other, or refuses it.
    "select a, count(*) over (partition by a) as b from r qualify b = 1",
    "select a + 1 as a, count(*) over (partition by b) as n from r qualify n > 1 and a > 1",
    "select a, b as c, count(*) over (partition by b) as n from r qualify n > 0 or c > 1",
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_is_not_known_is_no_shape(text: str) -> None:
    tables = read_sql(TABLES).declarations
    catalogue = Catalogue(lambda _view: None)
    for one in tables:
        catalogue.declare((one.name,), one)
    found = text_query(text, catalogue, None)
    if isinstance(found, TextQuery):
        with pytest.raises(UnknownShapeError):
            plan_of_text(found, known())


ADDED = {
    "select b, count(*) as n, sum(a) as m from r where not exists (select 1 from s where s.d = r.a) group by b": True,
    "select b + 1 as k, count(*) as n from r group by b + 1": True,
    "select count(*) as n from r left join s on r.a = s.f": True,
    "select k, count(*) as n from (select a, count(*) as k from r left join s on d = a group by a) q group by k": True,
    "select b, sum(c) as m from r group by b": True,
    "select sum(price) as p, count(*) as n from o": False,
    "select b, avg(c) as m from r group by b": False,
    "select b, count(*) as n from r group by b having count(*) > 1": False,
    "select b, max(c) as m, count(*) as n from r group by b": False,
    "select count(*) as n from r group by b": False,
    "select b, count(*) as n from r where c > (select max(c) from r) group by b": False,
    "select b, count(*) as n from r where a in (select c from r) group by b": True,
    "select b, count(*) as n from r where b > (select max(y) from t) group by b": True,
    "select b, count(*) as n from (select b, row_number() over (order by b) as i from r) q group by b": False,
    "select b, count(*) as n from (select b, rank() over (partition by c order by b) as i from r) q group by b": False,
    "select b, sum(c / 2) as n from r group by b": False,
}


@pytest.mark.parametrize("text", ADDED)
def test_counts_and_sums_follow_from_changed_rows(text: str) -> None:
    assert isinstance(additive(query(text), {"r", "o"}), Additive) == ADDED[text]


def test_a_relation_that_no_key_leads_to_may_not_change() -> None:
    text = "select a, b from r where b > (select max(y) from t)"
    how = keyed(query(text), {"r"})
    assert isinstance(how, Keyed)
    assert how.whole == ("t",)
    assert isinstance(keyed(query(text), {"r", "t"}), NotKeyed)


KEYS = {
    "select s.d, r.c, count(distinct a) as n from r join s on r.b = s.f group by s.d, r.c": [(1,), (0,)],
    "select b, c, count(distinct a) as n from r group by b, c": [(0, 1)],
    "select s.d, r.b, r.c, count(distinct a) as n from r join s on r.b = s.f group by s.d, r.b, r.c": [
        (1,),
        (1, 2),
        (0, 1),
    ],
}


@pytest.mark.parametrize("text", KEYS)
def test_keys_that_begin_elsewhere_are_other_keys(text: str) -> None:
    found = keys_of_changes(query(text), {"r", "s"})
    assert not isinstance(found, NotKeyed)
    assert [one.key for one in found] == KEYS[text]


def test_definitions_have_the_shape_of_their_text() -> None:
    texts = [
        "select b, count(distinct c) as n from r where c > 1 group by b having count(*) > 1",
        "select r.a, s.d from r join s on r.b = s.f and r.c < s.e",
        "select a, b from r union all select f, d from s",
        "select distinct b, c from r where a = 3",
        "select b + 1 as k, sum(c) as n from r group by b + 1",
        "select b, sum(a * c) as n, count(*) as m from r group by b",
        "select b, sum(c / 2) as n, count(*) as m from r group by b",
    ]
    for text in texts:
        views = read_sql(f"{TABLES} create view v as {text};")
        assert not [one for one in views.opaque if isinstance(one, OpaqueView)]
        (definition,) = views.views
        changed = {"r", "s"}
        one, other = query(text), plan_of_definition(definition, known())
        by_text, by_definition = keyed(one, changed), keyed(other, changed)
        assert type(by_text) is type(by_definition)
        if isinstance(by_text, Keyed) and isinstance(by_definition, Keyed):
            assert steps(by_text) == steps(by_definition)
        assert isinstance(additive(one, changed), Additive) == isinstance(additive(other, changed), Additive)


@pytest.mark.parametrize(
    ("text", "loose"),
    [
        ("select a, b from r where c > 1", set()),
        ("select a, b, row_number() over (partition by b order by c) n from r", {2}),
        ("select b, n + 1 m from (select b, row_number() over (order by c) n from r) as q", {1}),
        ("select b, max(n) m from (select b, ntile(3) over (order by c) n from r) as q group by b", {1}),
        ("select b, max(n) m from (select b, rank() over (order by c) n from r) as q group by b", set()),
        (
            "select sum(b) over (order by c) s, sum(b) over (order by c rows unbounded preceding) t from r",
            {1},
        ),
        ("select b, collect_list(c) l, sum(c) s, max_by(a, c) m from r group by b", {1, 3}),
        ("select b, stddev(c) s, percentile(c, 0.5) p, max_by(a, c) m from r group by b", {3}),
        ("select a, lag(a) over (order by c) n from r union all select f, d from s", {1}),
        ("select b, c, a from r qualify row_number() over (partition by b order by c desc) = 1", {2}),
        ("select a from r qualify row_number() over (partition by b order by c) = 1", {0}),
        (f"select b, n from {NUMBERED} where n < 3", set()),
        (f"select b, c from {NUMBERED} where c > n", set()),
        (f"select a, b from {NUMBERED} where n < 3 and b > 1", {0}),
        (f"select b from {NUMBERED} where n = a", None),
        (f"select a from {NUMBERED} where n = 1 and a > 0", None),
        (f"select q.b from {NUMBERED} join s on q.n = s.f", None),
        (f"select n, count(*) k from {NUMBERED} group by n", None),
        ("select a from r qualify lag(a) over (partition by b order by c) = 1", None),
        ("select distinct n from (select ntile(2) over (order by c) n from r) as q", None),
        ("select a, lag(a) over (order by c) n from r union select f, d from s", None),
        ("select a from r order by c limit 3", None),
        ("select a from r where b in (select d from s order by e limit 1)", None),
        ("select a from r where b > (select max(d) from s)", set()),
    ],
)
def test_what_an_order_decides(text: str, loose: set[int] | None) -> None:
    assert columns_by_order(query(text)) == loose
