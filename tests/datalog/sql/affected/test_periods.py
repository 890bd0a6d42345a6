"""Columns that show days, months or years: plain DuckDB's values of them lie in the spans that are read for them."""

from __future__ import annotations

import datetime as dt
import re
from itertools import pairwise
from random import Random

import pytest

from datalog.model import TextQuery, WallClock
from datalog.sql.affected import Query, Table, keyed_by_periods, merged, plan_of_text
from datalog.sql.affected.demands import Demands
from datalog.sql.affected.periods import Period, periods_of
from datalog.sql.views import read_sql
from datalog.sql.views.catalogue import Catalogue
from datalog.sql.views.kept.text_reads import text_query
from tests.effort import effort
from tests.plain_duckdb import plain_duckdb

TABLES = """
create table visit (id int not null primary key, customer int, at timestamp_ntz, moment timestamp, day date,
  note string);
create table sale (id int not null primary key, at timestamp_ntz, day date);
create table customer (id int not null primary key, since date);
"""
NO_TIME = dt.timedelta()
UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"]


def query(text: str) -> Query:
    catalogue, tables = Catalogue(lambda _view: None), {}
    for one in read_sql(TABLES).declarations:
        catalogue.declare((one.name,), one)
        types = tuple(column.type for column in one.columns)
        nullable = frozenset(i for i, column in enumerate(one.columns) if not column.not_null)
        tables[one.name] = Table(one.name, one.column_names, types, nullable, ((0,),))
    found = text_query(text, catalogue, None)
    assert isinstance(found, TextQuery), found
    return plan_of_text(found, tables)


def period(text: str) -> Period | None:
    """What the first column of a query shows, or with the second one."""
    found = query(text)
    numbers = [number for _, number in found.outputs]
    shown = {key: period for key, period, _ in periods_of(Demands(found.plan), found.plan, numbers)}
    return shown.get((0, 1)) or shown.get((0,))


def expression(random: Random, column: str) -> tuple[str, str]:
    """Functions of a column, one over the other: as Spark and as DuckDB write them."""
    spark, duck = column, f'"{column}"'
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        unit, long = random.choice(UNITS), random.choice(UNITS[:4])
        spark, duck = random.choice(
            [
                (f"date_trunc('{unit}', {spark})", f"date_trunc('{unit}', ({duck})::timestamp)"),
                (f"cast({spark} as date)", f"({duck})::date"),
                (f"to_date({spark})", f"({duck})::date"),
                (f"trunc({spark}, '{long}')", f"date_trunc('{long}', ({duck})::date)::date"),
                (f"last_day({spark})", f"last_day(({duck})::date)"),
            ]
        )
    patterns = {"yyyy-MM": "%Y-%m", "dd.MM.yyyy HH": "%d.%m.%Y %H", "yyyyMMdd": "%Y%m%d", "yyyy": "%Y"}
    written = random.choice(list(patterns))
    return random.choice(
        [
            (spark, duck),
            (spark, duck),
            (f"year({spark})", f"year({duck})"),
            (f"extract(year from {spark})", f"year({duck})"),
            (f"date_format({spark}, '{written}')", f"strftime(({duck})::timestamp, '{patterns[written]}')"),
        ]
    )


@pytest.mark.parametrize("seed", range(4))
def test_what_a_value_is_shown_of_lies_in_its_span(seed: int) -> None:
    seen = 0
    with plain_duckdb() as plain:
        for number in range(effort(30, 400)):
            random = Random(f"{seed}.{number}")
            column = random.choice(["at", "day"])
            spark, duck = expression(random, column)
            found = period(f"select {spark} as k, count(*) as n from visit group by 1")
            if re.fullmatch(r"(cast\()+day( as date\))+", spark):  # the column itself
                continue
            assert found is not None, spark
            for _ in range(5):
                at = dt.datetime(2023, 1, 1) + dt.timedelta(seconds=random.randrange(4 * 365 * 86_400))
                at = random.choice([at, at.replace(day=1, hour=0, minute=0, second=0)])
                at = random.choice([at, at - dt.timedelta(microseconds=1)])
                value = at if column == "at" else dt.datetime(at.year, at.month, at.day)
                kind = "TIMESTAMP" if column == "at" else "DATE"
                (shown,) = plain.sql(
                    f"select {duck} from (select '{value}'::{kind} as \"{column}\")"
                ).fetchall()[0]
                start, end = found.span([shown], NO_TIME)
                assert start is not None, spark
                assert end is not None, spark
                assert start <= value < end, (spark, value, shown)
                seen += end - start <= dt.timedelta(days=367)
    assert seen


@pytest.mark.parametrize("unit", ["month", "quarter"])
def test_a_year_and_a_number_in_it_are_shown_of_their_span(unit: str) -> None:
    for inside in ("day", "last_day(day)", "date_trunc('month', at)"):
        found = period(f"select year({inside}), {unit}({inside}) from visit")
        assert found is not None
        with plain_duckdb() as plain:
            for number in range(-400, 800, 3):
                day = dt.datetime(2024, 1, 1) + dt.timedelta(days=number)
                given = f"(select '{day}'::DATE as day, '{day}'::TIMESTAMP as \"at\")"
                duck = inside.replace("at)", '"at")')
                shown = plain.sql(f"select year({duck}), {unit}({duck}) from {given}").fetchall()[0]
                start, end = found.span(shown, NO_TIME)
                assert start is not None
                assert end is not None
                assert start <= day < end
                assert end - start < dt.timedelta(days=200)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("select date_trunc('day', at) from visit", 1),
        ("select cast(at as date) from visit", 1),
        ("select date_trunc('MM', cast(at as date)) from visit", 31),
        ("select date_format(at, 'yyyy-MM') from visit", 31),
        ("select year(moment) from visit", 366),
        ("select year(moment), month(moment) from visit", 31),
        ("select year(to_date(at)), extract(quarter from at) from visit", 92),
        ("select y, m from (select month(day) m, year(day) y from visit) as q group by 1, 2", 31),
        ("select year(date_trunc('week', at)), month(at) from visit", 374),
        ("select year(at), month(moment) from visit", 366),
        ("select year(day), day from visit", 366),
        ("select date_format(at, 'yyyy'), month(at) from visit", 366),
        ("select day from (select trunc(day, 'quarter') as day from visit) as q", 92),
        ("select date_trunc('month', date_trunc('week', at)) from visit", 38),
    ],
)
def test_spans_are_as_long_as_what_is_shown(text: str, days: int) -> None:
    found = period(text)
    assert found is not None
    assert found.ahead + found.back == dt.timedelta(days=days)


@pytest.mark.parametrize(
    "shown",
    [
        "month(at)",
        "date_format(at, 'MM')",
        "date_format(at, 'yyyy-dd')",
        "date_format(at, 'EEEE')",
        "date_trunc(note, at)",
        "date_trunc('day', coalesce(at, moment))",
        "to_date(note)",
        "cast(year(at) as date)",
        "customer",
        "date_add(day, 1)",
        "at",
    ],
)
def test_columns_of_which_a_value_is_no_span_are_none(shown: str) -> None:
    assert period(f"select {shown} as k from visit") is None


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("select cast(at as date) d, count(distinct customer) n from visit group by 1", "visit"),
        (
            "select cast(at as date) d, c.since, 1 n from visit v left join customer c on v.customer = c.id",
            "visit customer",
        ),
        # Of orders without a customer nothing is told by the right side.
        ("select year(c.since) y, v.id from visit v left join customer c on v.customer = c.id", None),
        ("select year(c.since) y, v.id from visit v join customer c on v.customer = c.id", "customer visit"),
        ("select year(c.since) y, v.id from visit v full join customer c on v.customer = c.id", None),
        (
            "select cast(at as date) d, 1 as n from visit union all select cast(at as date), 2 from sale",
            "visit sale",
        ),
        # Two columns that are shown otherwise.
        ("select cast(at as date) d from visit union all select trunc(day, 'MM') from sale", None),
        (
            "select d, max(id) over (partition by d) n from (select cast(at as date) d, id from visit) as q",
            "visit",
        ),
        # Other days' rows are among those that are counted.
        (
            "select d, row_number() over (order by id) n from (select cast(at as date) d, id from visit) as q",
            None,
        ),
        ("select cast(at as date) d, customer, count(*) n from visit group by rollup(1, 2)", None),
        ("select max(cast(at as date)) d from visit", None),
    ],
)
def test_what_is_read_by_spans(text: str, read: str | None) -> None:
    found = query(text)
    changed = {one.table.name for one in Demands(found.plan).scans.values()}
    ways = keyed_by_periods(found, changed)
    assert (" ".join(step.relation for step in ways[0].steps) if ways else None) == read


def test_spans_are_put_together() -> None:
    days = [dt.datetime(2026, 1, 1) + dt.timedelta(days=n) for n in range(9)]
    given = [(days[n], days[n + 1]) for n in (5, 1, 2, 2, 7)]
    assert merged(given, 10) == ((days[1], days[3]), (days[5], days[6]), (days[7], days[8]))
    assert merged(given, 2) in (
        ((days[1], days[3]), (days[5], days[8])),
        ((days[1], days[6]), (days[7], days[8])),
    )
    assert merged(given, 1) == ((days[1], days[8]),)
    assert merged([], 1) == ()


@pytest.mark.parametrize("seed", range(effort(50, 500)))
def test_spans_put_together_leave_nothing_out(seed: int) -> None:
    random = Random(seed)
    start, day = WallClock(2026, 1, 1), dt.timedelta(days=1)
    given = [
        (start + day * n, start + day * (n + random.randint(1, 3))) for n in random.choices(range(60), k=20)
    ]
    most = random.randint(1, 12)
    found = merged(given, most)
    assert len(found) <= most
    assert all(any(a <= s and e <= b for a, b in found if a and b) for s, e in given)
    assert all(b is not None and c is not None and b < c for (_, b), (c, _) in pairwise(found))


def test_times_that_are_no_datetimes_are_no_end() -> None:
    found = period("select year(at) as y from visit")
    assert found is not None
    assert found.span([10_000], NO_TIME) == (None, None)
    assert found.span([9_999], NO_TIME)[1] is None
    assert merged([(None, start := dt.datetime(2026, 1, 1)), (start, None)], 5) == ((None, None),)
