"""FULL JOINs as what their rows tell: which are read so. That it is right the random SQL holds."""

from __future__ import annotations

import pytest

from datalog.model import Comparison, Constant, NullTest, OuterJoin
from datalog.rewrite.branches import column
from datalog.sql.views import read_sql
from datalog.syntax import show
from selfmaint.api.file.programs import catalog_of_sql

TABLES = """create table sale (id int primary key, day date not null, amount decimal(9, 2) not null, note string);
create table buy (id int primary key, day date not null, amount decimal(9, 2), at int);
create table log (day date not null, note string);
"""
DAYS = """with a as (select day, count(*) as n, sum(amount) as sold from sale group by day),
    b as (select day, count(*) as m, sum(amount) as bought from buy group by day)
"""


def outer(query: str) -> OuterJoin:
    found = read_sql(f"{TABLES} create view v as {query};")
    (view,) = found.opaque
    assert view.outer is not None, found.warnings
    return view.outer


def rules(query: str) -> list[str]:
    made = outer(query)
    return [" ".join(show(part).split(".\n", 1)[1].split()) for part in (made.kept, made.sides[0].definition)]


@pytest.mark.parametrize(
    "join",
    [
        "select coalesce(a.day, b.day) as day, n, sold, bought, m from a full join b on a.day = b.day",
        "select coalesce(b.day, a.day) as day, n, sold, bought, m from a full outer join b on b.day = a.day",
        "select day, n, sold, bought, m from a full join b using (day)",
    ],
)
def test_groups_of_both_sides(join: str) -> None:
    assert rules(DAYS + join) == [
        "`v#0`(Day, count(*), sum(Amount)) :- sale(_, Day, Amount, _).",
        "`v#1`(Day_3, sum(Amount_2), count(*)) :- buy(_, Day_3, Amount_2, _).",
    ]
    made = outer(DAYS + join)
    assert (made.columns, made.sides[0].columns, made.sides[0].own) == ((0, 1, 2), (0, 3, 4), (3, 4))
    assert made.full is not None
    assert (made.full.own, made.full.pairs, made.full.told) == ((1, 2), ((0, 0),), NullTest(column(1)))
    assert made.sides[0].told == NullTest(column(4))


def test_what_stands_for_nulls_and_what_is_computed() -> None:
    made = outer(
        f"""{DAYS} select a.day, b.day as other, coalesce(n, 0) as n, coalesce(m, 0) as m, sold - bought as gain,
        n + m as all, coalesce(n, 0) - coalesce(m, 0) as more, sold, bought from a full join b on a.day = b.day"""
    )
    assert made.full is not None
    assert made.full.defaults == (Constant(None), Constant(0), Constant(None))
    assert (made.full.told, made.full.pairs) == (NullTest(column(0)), ((0, 1),))
    assert [one.name for one in made.computed] == ["gain", "all", "more"]
    told = outer(f"{DAYS} select day, coalesce(n, 0) as n, m from a full join b using (day)").full
    assert told is not None
    assert told.told == Comparison(">", column(1), Constant(0))


def test_rows_of_both_sides() -> None:
    made = "select s.id, s.day, b.id as buy, b.at, upper(s.note) as note from sale s full join buy b on s.id = b.at"
    assert rules(made) == [
        "`v#0`(Id, Day, upper(Note)) :- sale(Id, Day, _, Note).",
        "`v#1`(Id_2, At) :- buy(Id_2, _, _, At).",
    ]


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("select s.id, b.id as b FROM on s.id = b.at", "show the columns that are joined by, or `coalesce`"),
        ("select s.id, b.id as b, b.at FROM on s.id = b.at and b.amount > 1", "and by nothing else"),
        ("select s.id, b.id as b, b.at FROM on s.id < b.at", "and by nothing else"),
        ("select s.amount, s.id, b.amount as a, b.id as b FROM on s.amount = b.amount", None),
        ("select s.id, b.at FROM on s.id = b.at", "show a column of `b` that is never null"),
        ("select s.id, b.id as b, b.at, s.day = b.day as same FROM on s.id = b.at", "show what `same` is"),
        ("select s.*, b.id FROM on s.id = b.id", "give each column a name of its own"),
        ("select s.day, b.day as b, b.id FROM on s.day = b.day", "show a key of `s`, and one of `b`"),
        (
            "select s.id, g.day, s.day as d from sale s full join (select distinct day from buy) g on s.day = g.day",
            "make the query `g` a materialized view of its own",
        ),
        (
            (
                "select s.id, g.id as g, g.k from sale s full join (select id, coalesce(note, '?') as k from sale) g "
                "on s.id = g.id"
            ),
            "let the query that is joined as `g` compute nothing",
        ),
        (
            "select g.id, g.k, b.id as b from (select id, 1 as k from sale) g full join buy b on b.id = g.id",
            "let the query that is joined as `g` compute nothing",
        ),
        (
            f"{DAYS} select a.day, n + 1 as n, b.day as b from a full join b on a.day = b.day",
            "compute from what `a` counts",
        ),
    ],
)
def test_it_is_said_what_to_write_instead(query: str, hint: str | None) -> None:
    query = query.replace("FROM", "from sale s full join buy b")
    made = catalog_of_sql(read_sql(f"{TABLES} create view v as {query};"))
    assert [one.hint is not None and hint is not None and hint in one.hint for one in made.warnings] == (
        [] if hint is None else [True]
    )


@pytest.mark.parametrize(
    "query",
    [
        "select s.id, b.id as b from sale s full join buy b on s.id = b.id where s.id > 1",
        "select * from sale full join buy using (id)",
        "select count(*) as n from sale s full join buy b on s.id = b.id",
        "select s.id, b.id as b, l.day from sale s full join buy b on s.id = b.id full join log l on l.day = s.day",
        "select s.id, b.id as b from sale s full join buy b on s.id = b.id limit 3",
    ],
)
def test_what_is_left_as_text(query: str) -> None:
    (view,) = read_sql(f"{TABLES} create view v as {query};").opaque
    assert view.outer is None
