"""Tables with columns of types that are not modelled: views that do without them are read as if there were none."""

from __future__ import annotations

import pytest

from datalog.model import Declaration, TextQuery
from datalog.sql.views import SqlViews, read_sql

S = "create table s (id int primary key, t int references t(id), payload string);"
WITH = f"""create table t (id int primary key, payload json, code char(2), v int not null, a struct<city:string>,
    unique (code, v)); {S}"""
WITHOUT = f"create table t (id int primary key, v int not null); {S}"


def read(tables: str, query: str) -> SqlViews:
    return read_sql(f"{tables} create temporary view u as select * from s; create view w as {query};")


@pytest.mark.parametrize(
    "query",
    [
        "select id, v from t where v > 1",
        "select count(*) as n, v from t group by v",
        "select s.id, s.payload from s join t on s.t = t.id",
        "select s.id, x.v from t x join s on s.t = x.id where s.payload like 'a%'",
        "select s.id from s where exists (select * from t where t.id = s.t)",
        "select s.id, t.v from s join t using (id)",
        "with t as (select * from s) select * from t",
        "with x as (select id, v from t) select * from x",
        "select * from (select id, v from t) x",
        "select u.*, t.v from u join t on t.id = u.t",
        "select v as payload, count(*) as n from t group by v",
        "select id, v from t union all select id, t from s",
        "select e.id from (t) e",
        "select x.id from (select * from t) x",
        "select id, v from (select * from (select x.* from t x) y) z where v > 2",
        "with x as (select * from t where v > 1), y as (select * from x) select y.v, count(*) as n from y group by v",
        "select s.id, x.v from s join (select * from t) x on x.id = s.t",
        "select a.id from s a join t on t.id = a.t",
        "select b.id from s b where exists (select * from t where t.id = b.t and v > 1)",
    ],
)
def test_a_view_that_does_without_them_is_read_as_if_there_were_none(query: str) -> None:
    found, plain = read(WITH, query), read(WITHOUT, query)
    assert not found.warnings
    (view,), (same,) = found.views, plain.views
    assert (view.columns, view.blocks, view.semantics) == (same.columns, same.blocks, same.semantics)


@pytest.mark.parametrize(
    ("query", "listed"),
    [
        ("select * except (payload, code, a) from t", "select id, v from t"),
        ("select x.* except (CODE, a, payload) from t x", "select x.id, x.v from t x"),
        (
            "select t.* except (payload, code, a), s.payload from t join s on s.t = t.id",
            "select t.id, t.v, s.payload from t join s on s.t = t.id",
        ),
    ],
)
def test_a_star_may_leave_them_out(query: str, listed: str) -> None:
    (view,), (same,) = read(WITH, query).views, read(WITHOUT, listed).views
    assert (view.columns, view.blocks) == (same.columns, same.blocks)


@pytest.mark.parametrize(
    ("query", "column"),
    [
        ("select id, payload from t", "`payload` of `t`"),
        ("select T.Payload from t join s on true", "`payload` of `t`"),
        ("select id, x.`payload` from t as x", "`payload` of `t`"),
        ("select * from t", "`payload` of `t`"),
        ("select x.* from t x join s on s.t = x.id", "`payload` of `t`"),
        ("select * except (payload, code) from t", "`payload` of `t`"),
        ("select x.* from (select * from t) x", "`payload` of `t`"),
        ("select x.id, x.payload from (select * from t) x", "`payload` of `t`"),
        ("select id from (select * from t order by 2 limit 1)", "`payload` of `t`"),
        ("with c as (select * from t order by all limit 2) select id from c", "`payload` of `t`"),
        ("select id from (select * from t sort by 1, 3 limit 2)", "`payload` of `t`"),
        ("select id from (select * except (code) from t order by id limit 1)", "`code` of `t`"),
        ("select * from t where id not in (select id from s)", "`payload` of `t`"),
        ("select x.* from t x where not exists (select 1 from s where s.t = x.id)", "`payload` of `t`"),
        ("select s.id, x.* from s left join t x on s.t = x.id", "`payload` of `t`"),
        ("select distinct x.* from s left join t x on s.t = x.id", "`payload` of `t`"),
        ("select x.* from t x left anti join s on s.t = x.id", "`payload` of `t`"),
        ("select a.id from s a where not exists (select 1 from t where t.id = a.city)", "`a` of `t`"),
        (
            "select * from (select *, row_number() over (order by id) as n from t) where n = 1",
            "`payload` of `t`",
        ),
        ("select id from (select distinct * from t) x", "`payload` of `t`"),
        ("select id from (select * from t union select id, '', '', v, null from t) x", "`payload` of `t`"),
        ("with x as (select * from t), y as (select * from x) select id, payload from y", "`payload` of `t`"),
        ("with x as (select * from t), y as (select * from x) select y.* from y", "`payload` of `t`"),
        ("with x (i, p, c, v, a) as (select * from t) select i from x", "`payload` of `t`"),
        ("select id, city from (select a.* from t)", "`a` of `t`"),
        ("select id from s where id in (select * from t)", "`payload` of `t`"),
        ("select x.id from (select * from t where code = 'a') x", "`code` of `t`"),
        ("select s.id from s join (select * from t) x using (payload)", "`payload` of `t`"),
        ("select id from (select * from (select * from t) y) x order by code limit 2", "`code` of `t`"),
        ("select id, a.city from t", "`a` of `t`"),
        ("select t.a.city from t", "`a` of `t`"),
        ("select id from t where code = 'x'", "`code` of `t`"),
        ("select id from t order by code limit 3", "`code` of `t`"),
        (
            "select s.id from s where exists (select 1 from t where t.id = s.t and payload = 'x')",
            "`payload` of `t`",
        ),
        ("select s.id from s where s.payload in (select payload from t)", "`payload` of `t`"),
        ("select s.id, t.v from s natural join t", "`payload` of `t`"),
        ("select s.id, t.v from s join t using (id, payload)", "`payload` of `t`"),
        ("select x.p from t x (i, p, c, v, a)", "`payload` of `t`"),
        ("select count(distinct *) as n from t", "`payload` of `t`"),
        ("select struct(*) as n from t", "`payload` of `t`"),
        ("select e.* from (t) e", "`payload` of `t`"),
        ("select e.payload from (t as x) e", "`payload` of `t`"),
        ("select count(*) as n from (select distinct e.* from (t) e)", "`payload` of `t`"),
        ("with c as (select e.* from ((t)) e) select * from c", "`payload` of `t`"),
        ("select y.* from s, lateral (t) y", "`payload` of `t`"),
        ("select a.id, a.t from s a where exists (select 1 from t where a.city = 'x')", "`a` of `t`"),
        ("select a.id from s a where a.id in (select id from t where a.city = 'x')", "`a` of `t`"),
        ("select a.id, (select max(v) from t where a.city = 'x') as m from s a", "`a` of `t`"),
        ("select count(id, *) as n from t", "`payload` of `t`"),
        ("select count(*, id) as n from t", "`payload` of `t`"),
        (
            "select id from s where exists (select * from t where t.id = s.t group by all having count(*) > 1)",
            "`payload` of `t`",
        ),
        ("select id from s where exists (select distinct * from t where v = 1 offset 1)", "`payload` of `t`"),
        ("select * except (payload, code, a) from t order by id limit 3", "`payload` of `t`"),
        ("select id, row_number() over (partition by code order by id) as n from t", "`code` of `t`"),
    ],
)
def test_one_that_uses_them_is_not_run(query: str, column: str) -> None:
    found = read(WITH, query)
    (kept,) = found.opaque
    refused = kept.query.refused if isinstance(kept.query, TextQuery) else kept.query
    assert refused is not None
    assert f"it uses the column {column}, of type" in refused.why
    assert (kept.outer, kept.anti) == (None, None)
    is_text = any(word in query for word in ("over (", "limit", "union", "in (select *"))
    assert is_text or any(column in reason for reason in kept.reasons)


def test_what_reads_such_a_view_is_not_read_either() -> None:
    found = read_sql(
        f"{WITH} create temporary view u as select id, payload from t; create view w as select id from u;"
    )
    (kept,) = found.opaque
    assert isinstance(kept.query, TextQuery)
    assert kept.query.refused is not None


def test_keys_with_them_are_none() -> None:
    text = """create table b (k binary, n int, v int, primary key (k, n), unique (n));
        create table c (id int primary key, k binary, n int, foreign key (k, n) references b (k, n),
            foreign key (n) references b (n)); create view w as select v from b;"""
    b, c, _ = read_sql(text).declarations
    assert (b.column_names, b.key, b.unique) == (("n", "v"), None, (("n",),))
    assert [one.columns for one in c.foreign_keys] == [("n",)]
    assert [(one.name, one.unmodelled and one.unmodelled.text) for one in b.unread] == [("k", "binary")]


def test_a_table_of_nothing_else_is_left_as_it_is() -> None:
    found = read_sql("create table e (payload json); create view w as select count(*) as n from e;")
    assert isinstance(found.declarations[0], Declaration)
    assert found.declarations[0].column_names == ("payload",)
    assert len(found.opaque) == 1
