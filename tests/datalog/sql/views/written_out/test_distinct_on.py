"""DISTINCT ON as the first row of each partition: as PostgreSQL computes it, and in which cases."""

from __future__ import annotations

import random

import duckdb
import pytest

from datalog.diagnostics import ProgramError
from datalog.model import NotToRun, OpaqueView
from datalog.sql.views import SqlText, read_sql
from datalog.sql.views.written_out.as_written import parsed

TABLES = (
    "create table r (id int primary key, a int, b int not null, c string, d int);\n"
    "create table s (id int primary key, e int not null, f int);\n"
)
WRITTEN_OUT = "DISTINCT ON cannot be analysed"
"""What is said of one that is written out: why the view is known by its text alone."""

WRITTEN = {
    "select distinct on (a) a, b, id from r order by a, b desc, id": "PARTITION BY a ORDER BY b desc, id",
    "select DISTINCT  ON ( a, c ) * from r order by c desc, A, d desc nulls first, id -- the end": (
        "PARTITION BY a, c ORDER BY d desc nulls first, id"
    ),
    "select distinct on (lower(c)) c, id from r order by lower(c) nulls first, id": (
        "PARTITION BY lower(c) ORDER BY id"
    ),
    "select distinct on (1) d as a, id as n from r order by 1, 2 desc": "PARTITION BY d ORDER BY id desc",
    "select distinct on (x) r.d as x, a n from r order by x, n nulls last, id": (
        "PARTITION BY r.d ORDER BY a nulls last, id"
    ),
    "select distinct on (a) r.d as a, r.a as d, id from r order by a, d nulls last, id": (
        "PARTITION BY r.d ORDER BY r.a nulls last, id"
    ),
    "select distinct on (r.a) r.a, b + id as n, id from r where d > 1 order by r.a, b + id desc, id": (
        "PARTITION BY r.a ORDER BY b + id desc, id"
    ),
    "select distinct on (r.a) r.a, e, s.id from r join s on s.id = r.d order by r.a, s.e desc, r.id": (
        "PARTITION BY r.a ORDER BY s.e desc, r.id"
    ),
    (
        "with q as (select a, b, count(*) as n from r group by a, b) "
        "select distinct on (a) a as x, n from q order by x, n desc, b"
    ): "PARTITION BY a ORDER BY n desc, b",
    "select x, count(*) as k from (select distinct on (a) b x, id from r order by a, id) q group by x": (
        "PARTITION BY a ORDER BY id"
    ),
    "select distinct on (a) a, sum(b) over (partition by c) as n, id from r order by a, id": (
        "PARTITION BY a ORDER BY id"
    ),
}
BOTH = {
    "(select distinct on (a) a, id from r order by a, id) union all "
    "(select distinct on (f) f as a, id from s order by f, id)": ("a", "f"),
    "with q as (select distinct on (a) a, b, id from r order by a, b, id desc) "
    "select distinct on (b) b, a, id from q order by b, a nulls first": ("a", "b"),
    "select distinct on (a) a, b, id from (select distinct on (b) b, a, id from r order by b, id) q "
    "order by a, b nulls last": ("a", "b"),
}
OTHERS = {
    "select distinct on (a) a, d from r order by a, d desc": "`NULLS LAST` or `NULLS FIRST` behind `d desc`",
    "select distinct on (a) a, b from r order by a, b + d": "behind `b + d`",
    "select distinct on (r.a) r.a, e from r left join s on s.id = r.d order by r.a, e": "behind `e`",
    "select distinct on (r.a) r.a, e from s right join r on s.id = r.d order by r.a, e": "behind `e`",
    "with s as (select f as e, id from s) select distinct on (id) id, e from s order by id, e": "behind `e`",
    "with q as (select a, max(d) as m from r group by a, b) select distinct on (a) a, m from q order by a, m": (
        "behind `m`"
    ),
    "with recursive b as (select d as b from r union all select b from b) "
    "select distinct on (b) b, b as c from b order by b, c": "PARTITION BY b ORDER BY c",
    "select distinct on (a) a, b from r": "PARTITION BY a ORDER BY ..",
    "select distinct on (a) a, b from r order by a desc": "PARTITION BY a ORDER BY ..",
    "select distinct on (a) a, b from r order by b, a": "PARTITION BY a ORDER BY b NULLS LAST",
    "select distinct on (a, c) a, b from r order by a, b": "PARTITION BY a, c ORDER BY b NULLS LAST",
    "select distinct on (a) a, b from r order by a, b desc limit 3": (
        "`QUALIFY row_number() OVER (PARTITION BY a ORDER BY b DESC NULLS LAST) = 1`"
    ),
    "select distinct on (a) a, b, count(*) as n from r group by a, b order by a, b": "QUALIFY",
    "select distinct on (a) a, id from r qualify row_number() over (order by id) < 9 order by a, id": "QUALIFY",
    "select distinct on (a) a, max(b) as m from r order by a, m": "QUALIFY",
    "select distinct on (a) a, -b as b from r order by a, b + 1": "QUALIFY",
    "select distinct on (lower(c)) lower(c) as c, b from r order by c, b": "QUALIFY",
    "select distinct on (a) b as a, * from r order by a, b": "QUALIFY",
    "select distinct on (a) a, b from r order by a, (select max(e) from s), b": "QUALIFY",
    "select distinct on (a) a, row_number() over (order by id) as n from r order by a, n": "QUALIFY",
    "select distinct on (a) a, 1 as n from r order by a, n": "QUALIFY",
    "select distinct on (1) *, id as n from r order by 1, id": "QUALIFY",
}


def read(query: str) -> tuple[OpaqueView, list[str | None]]:
    found = read_sql([SqlText(TABLES, "tables"), SqlText(query, "v")])
    (view,) = found.opaque
    said = (one for one in found.warnings if one.message.startswith("DISTINCT ON"))
    return view, [one.hint for one in said if one.message != WRITTEN_OUT]


def database(seed: int) -> duckdb.DuckDBPyConnection:
    """Some rows in DuckDB, with nulls where PostgreSQL has them."""
    rng = random.Random(seed)
    connection = duckdb.connect()
    connection.execute("set default_null_order = 'nulls_last_on_asc_first_on_desc'")
    connection.execute("create table r (id int, a int, b int, c varchar, d int)")
    connection.execute("create table s (id int, e int, f int)")
    few = [None, 1, 2, 3]
    for i in range(rng.randint(1, 30)):
        row = [i, rng.choice(few), rng.randint(1, 3), rng.choice([None, "x", "X", "y"]), rng.choice(few)]
        connection.execute("insert into r values (?, ?, ?, ?, ?)", row)
    for i in range(rng.randint(1, 4)):
        connection.execute("insert into s values (?, ?, ?)", [i, rng.randint(1, 3), rng.choice(few)])
    return connection


@pytest.mark.parametrize("query", [*WRITTEN, *BOTH], ids=str)
def test_the_rows_are_those_of_postgresql(query: str) -> None:
    text = read(query)[0].text
    for seed in range(12):
        with database(seed) as connection:
            expected = connection.execute(query).fetchall()
            connection.execute("reset default_null_order")
            found = connection.execute(parsed(text).sql("duckdb")).fetchall()
        assert sorted(found, key=repr) == sorted(expected, key=repr), seed


@pytest.mark.parametrize(("query", "window"), WRITTEN.items(), ids=str)
def test_it_is_written_out(query: str, window: str) -> None:
    view, hints = read(query)
    assert hints == []
    assert f"QUALIFY row_number() OVER ({window}) = 1" in view.text
    assert "distinct" not in view.text.lower()


@pytest.mark.parametrize(("query", "partitions"), BOTH.items(), ids=str)
def test_each_of_several_is_written_out(query: str, partitions: tuple[str, str]) -> None:
    text = read(query)[0].text
    assert all(f"QUALIFY row_number() OVER (PARTITION BY {one} ORDER BY " in text for one in partitions)
    assert "distinct" not in text.lower()


@pytest.mark.parametrize(("query", "said"), OTHERS.items(), ids=str)
def test_what_may_mean_something_else_is_said_and_never_run(query: str, said: str) -> None:
    view, (hint,) = read(query)
    assert hint is not None
    assert said in hint
    assert view.text == query
    assert isinstance(view.query, NotToRun)
    assert "QUALIFY row_number() OVER (PARTITION BY " in (view.query.hint or "")


def test_it_is_called_what_it_was_written_as() -> None:
    views = (
        "create view v as select distinct on (b) b, id from r order by b, id;"
        "create view w as select b, id from r qualify row_number() over (partition by b order by id) = 1;"
    )
    said = [one.message for one in read_sql(TABLES + views).warnings]
    assert said == [WRITTEN_OUT, "QUALIFY cannot be analysed"]


def test_a_view_over_one_reads_its_rows() -> None:
    texts = f"{TABLES}create temporary view q as select distinct on (a) a, id from r order by a, id;"
    found = read_sql([SqlText(texts, "tables"), SqlText("select id from q where a > 1", "v")])
    (view,) = found.opaque
    assert not isinstance(view.query, NotToRun)


def test_a_name_in_its_order_that_means_nothing_is_an_error_with_its_place() -> None:
    with pytest.raises(ProgramError) as caught:
        read("select distinct on (a) a, id from r order by a, idd desc nulls last, id")
    (found,) = caught.value.diagnostics
    assert (found.code.value, found.span and found.span.column) == ("DL404", 49)
