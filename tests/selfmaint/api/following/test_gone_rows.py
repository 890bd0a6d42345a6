"""Views that lose the rows of what is deleted: what is said to be determined is what recomputing gives.

Oracle: plain DuckDB computes the views from the rows before and after.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import selfmaint
from datalog.sql.affected import shown_key
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.following.gone_rows import GONE
from selfmaint.api.following.how_followed import as_written as written
from selfmaint.api.following.how_followed import query_of, tables_of
from tests.effort import effort
from tests.plain_duckdb import plain_duckdb

COLUMNS = {
    "lesson": "id int not null primary key, teacher int not null, room int, hours int",
    "teacher": "id int not null primary key, name string not null, town int",
    "town": "id int not null primary key, name string",
    "seat": "a int not null, b int not null, guest int, primary key (a, b)",
}
VIEWS = {
    "left": "select s.id, i.name as teacher, coalesce(r.name, '-') as town, s.hours from lesson s "
    "join teacher i on i.id = s.teacher left join town r on r.id = i.town",
    "computed": "select s.id, upper(i.name) as u from lesson s left join teacher i on i.id = s.teacher "
    "and i.name like '%a' where s.hours > (select avg(id) from town)",
    "anti": "select s.id, s.hours, i.name from lesson s join teacher i on i.id = s.teacher where not exists "
    "(select 1 from town r where r.id = i.town and r.name > i.name)",
    "grouped": "select s.id, s.hours, count(*) filter (where r.name = 'a') as n, max(e.guest) as m from lesson s "
    "left join town r on r.id = s.room left join seat e on e.a = s.id group by s.id, s.hours",
    "distinct": "select distinct e.a, e.b, lower(r.name) as l from seat e left join town r on r.id >= e.guest",
    "twice": "select e.a, e.b, s.id from seat e join lesson s on s.hours >= e.a left join town r on r.id = s.room",
    "scalar": "select r.id, (select count(*) from teacher i where i.town = r.id) as n from town r",
    "series": "select s.id, n, n * s.hours as m from lesson s lateral view explode(sequence(1, s.hours)) t as n",
}
IN_DUCKDB = {
    VIEWS[
        "series"
    ]: "select id, n, n * hours as m from (select *, unnest(range(1, hours + 1))::int as n from lesson)"
}
"""Views and which of their relations' rows go with theirs."""
OF_ONE = {
    "left": {"lesson", "teacher"},
    "computed": {"lesson"},
    "anti": {"lesson"},
    "grouped": {"lesson"},
    "distinct": {"seat"},
    "twice": {"seat", "lesson"},
    "scalar": {"town"},
    "series": {"lesson"},
}
OTHERS = {
    "not shown": "select s.hours, coalesce(r.name, '-') as town from lesson s left join town r on r.id = s.room",
    "half a key": "select e.a, coalesce(r.name, '-') as town from seat e left join town r on r.id = e.guest",
    "computed key": "select s.id + 1 as id, coalesce(r.name, '-') as t from lesson s left join town r on r.id = s.room",
    "on the right": "select s.id, r.name from town r left join lesson s on s.room = r.id and s.hours > 2",
    "full": "select s.id, r.name from lesson s full join town r on s.room = r.id",
    "itself": "select s.id, max(t.hours) as m from lesson s left join lesson t on t.room = s.room group by s.id",
    "windows": "select s.id, sum(s.hours * 2) over (partition by s.room) as m, r.name from lesson s "
    "left join town r on r.id = s.room",
    "sets": "select s.id, count(*) as n from lesson s left join town r on r.id = s.room group by rollup (s.id)",
    "union": "select s.id, upper(r.name) as n from lesson s left join town r on r.id = s.room "
    "union all select 1, name from teacher",
    "in a subquery": "select r.id, (select max(s.hours) from lesson s where s.room = r.id) as m from town r",
}
"""Views of which a row may stay, or change, when a lesson, or a seat, goes."""


def statements(views: dict[str, str]) -> str:
    tables = (f"create table {name} ({columns});" for name, columns in COLUMNS.items())
    return " ".join((*tables, *(f'create view "{name}" as {query};' for name, query in views.items())))


@pytest.mark.parametrize(("name", "query"), [*VIEWS.items(), *OTHERS.items()])
def test_which_views_show_a_key(name: str, query: str) -> None:
    catalog = catalog_of(statements({"v": query}))
    view = catalog.view("v")
    found = written(catalog, view, tables_of(catalog.relations)) or query_of(catalog, view)
    assert found is not None
    shown = {table for table in ("lesson", "seat", "town") if shown_key(found, table) is not None}
    assert shown - ({"town"} if name in OTHERS else set()) == OF_ONE.get(name, set()) - {"teacher"}


Database = dict[str, list[tuple[Any, ...]]]


class Night:
    """Rows of the tables before and after deletions."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        names = ["a", "b", "xa", "A"]
        few = lambda: random.choice([None, 1, 2, 3])  # noqa: E731
        self.before: Database = {
            "lesson": [(i, random.randrange(3), few(), few()) for i in range(random.randrange(6))],
            "teacher": [(i, random.choice(names), few()) for i in range(3)],
            "town": [(i, random.choice([*names, None])) for i in range(1, 4)],
            "seat": [(a, b, few()) for a in range(3) for b in range(3) if random.random() < 0.5],
        }
        self.after = {name: [*rows] for name, rows in self.before.items()}
        for name in random.sample(["lesson", "seat", "teacher", "town"], random.choice([1, 1, 2])):
            self.after[name] = [row for row in self.after[name] if random.random() < 0.6]

    def contents(self, database: Database, views: dict[str, str]) -> dict[str, pa.Table]:
        with plain_duckdb() as plain:
            for name, columns in COLUMNS.items():
                plain.execute(f"create table {name} ({columns})")
                plain.executemany(
                    f"insert into {name} values ({', '.join('?' * len(database[name][0]))})", database[name]
                ) if database[name] else None
            for name, query in views.items():
                plain.execute(f'create table "{name}" as {IN_DUCKDB.get(query, query)}')
            return {name: plain.table(name).to_arrow_table() for name in (*COLUMNS, *views)}


def bag(rows: pa.Table) -> Counter[str]:
    names = sorted(rows.column_names)
    return Counter(repr([row[name] for name in names]) for row in rows.to_pylist())


def followed(night: Night, query: str, engine: str) -> bool:
    """Whether a view is determined by the keys of what is deleted; its new rows are held against what is right."""
    before, after = (night.contents(one, {"v": query}) for one in (night.before, night.after))
    gone = {n: [row for row in rows if row not in night.after[n]] for n, rows in night.before.items()}
    given = {n: rows for n, rows in night.contents(gone, {}).items() if rows.num_rows}
    with selfmaint.build(
        statements({"v": query}), {"v": before["v"]}, engine=engine, effective=True
    ) as warehouse:
        update = selfmaint.Update.from_frames(warehouse, {}, given, effective=True)
        verdict = warehouse.check(update)["v"]
        if not verdict:
            return False
        if not warehouse.catalog.view("v").is_counted:
            change, new = warehouse.maintain(update).deltas["v"], bag(before["v"])
            new.update(bag(pa.table(change.gained)))
            new.subtract(bag(pa.table(change.lost)))
            assert new == bag(after["v"])
        return GONE in verdict.because


@pytest.mark.parametrize("name", VIEWS | OTHERS)
def test_views_lose_the_rows_of_what_is_deleted(name: str) -> None:
    every = VIEWS | OTHERS
    found = [followed(Night(seed), every[name], "duckdb") for seed in range(effort(9, 300))]
    assert any(found) or name not in ("left", "computed", "anti", "grouped", "distinct", "series")


def test_views_lose_the_rows_of_what_is_deleted_on_spark(spark: object) -> None:
    assert spark
    assert any(followed(Night(seed), VIEWS["left"], "spark") for seed in range(effort(9, 20)))
