"""LEFT JOINs along foreign keys as rows with partners and rows without: which are read so, and that it is right."""

from __future__ import annotations

from collections import Counter
from itertools import chain, combinations, product

import duckdb
import pytest

from datalog.evaluate import evaluate_view
from datalog.model import OpaqueView, Predicate, ViewDefinition
from datalog.sql.views import read_sql
from datalog.syntax import show

TABLES = """create table region (id int primary key, name string, big decimal(5, 2), parent int references region);
create table shop (id int primary key, region int references region, kind int not null references region, size int);
create table sale (id int primary key, shop int references shop, n int);
create table near (id float primary key, n int);
create table measured (id int primary key, at float references near);
"""
ROWS = "select s.id, coalesce(r.name, '?') as name from shop s left join region r on r.id = s.region"
JOINED = "shop s left join region r on r.id = s.region"
GROUPS = f"select r.name, count(*) as n, sum(s.size) as size from {JOINED} group by 1"
TWO = """select l.id, coalesce(r.name, '?') as name, l.n * s.size as size, r.big * 2 as big, r.id = 1 as one
    from sale l left join shop s on s.id = l.shop left join region r on r.id = s.region"""


def read(query: str) -> tuple[ViewDefinition, ...] | OpaqueView:
    """The queries that a view is read as: blocks of a union, or parts of one that groups; else its text."""
    found = read_sql(f"{TABLES} create view v as {query};")
    if found.views:
        assert not found.opaque
        return found.views
    (view,) = found.opaque
    return view.parts or view


def test_two_queries() -> None:
    (view,) = read(ROWS)
    assert " ".join(show(view).split()) == (
        ".view v(id, name) bag. "
        "v(Id, coalesce(Name, '?')) :- shop(Id, Region, _, _), region(Region, Name, _, _). "
        "v(Id, coalesce(case when Region is not null then '' else null end, '?')) :- "
        "shop(Id, Region, _, _), Region is null."
    )


def test_groups_of_two_queries() -> None:
    one, other = read(GROUPS)
    assert (one.name, other.name) == ("v#1", "v#2")
    assert "region(" in show(one)
    assert "region(" not in show(other)
    assert "Region is null" in show(other)


def test_what_has_no_partner_finds_none_further_on() -> None:
    (view,) = read(TWO)
    atoms = [[atom.predicate.name for atom in one.core.atoms] for one in view.blocks]
    assert atoms == [["sale", "shop", "region"], ["sale", "shop"], ["sale"]]


def test_staging_queries_within() -> None:
    staged = """with
        r as (select cast(id as bigint) as region_id, trim(name) as name, coalesce(big, 0) as big from region),
        s as (select cast(id as bigint) as id, cast(region as bigint) as region_id, upper('x') as x from shop)
        select s.id, coalesce(r.name, '?') as name, r.big from s left join r on r.region_id = s.region_id"""
    (view,) = read(staged)
    assert [[atom.predicate.name for atom in one.core.atoms] for one in view.blocks] == [
        ["shop", "region"],
        ["shop"],
    ]


@pytest.mark.parametrize(
    "query",
    [
        ROWS.replace("s.region", "s.size"),  # no foreign key
        f"{ROWS} and r.name > 'a'",  # and more
        ROWS.replace("left join region r", "left join (select * from region where name > 'a') r"),
        ROWS.replace(
            "left join region r", "left join (select * from region union all select * from region) r"
        ),
        # what is joined by has a value where the first join finds nothing
        f"{ROWS} left join region q on q.id = case when r.id is not null then r.parent else 1 end",
        f"{ROWS} left join region q on q.id = coalesce(r.parent, 1)",
        f"{ROWS} order by name limit 1",
        f"{GROUPS} order by 2 desc limit 1",
        "select m.id, coalesce(n.n, 0) as n from measured m left join near n on n.id = m.at",  # no such constants
        f"select s.id, row_number() over (order by s.id) as n, coalesce(r.name, '?') as name from {JOINED}",
    ],
)
def test_others_stay_texts(query: str) -> None:
    assert isinstance(read(query), OpaqueView)


REGIONS = [(1, None, 1.5, None), (2, "b", None, 1)]
SHOPS = [(1, None, 1, 2), (2, 2, 1, None), (3, 1, 2, 3)]
SALES = [(1, None, 1), (2, 1, 2), (3, 2, None)]


@pytest.mark.parametrize(
    "query",
    [
        ROWS,
        f"{ROWS} where r.name is null",
        f"{ROWS} where coalesce(r.big, 0) < 1 or s.size = 3",
        f"{ROWS} join region k on k.id = s.kind where k.name is null",
        ROWS.replace("s.id,", "r.parent + s.id as p,") + " left join region q on q.id = r.parent",
        ROWS.replace("select", "select distinct") + " where s.size > 1",
        TWO,
        f"{TWO} where s.size is null or r.big > 1",
    ],
)
def test_rows_are_those_of_the_query(query: str) -> None:
    (view,) = read(query)
    duck = duckdb.connect()
    duck.execute("create table region (id int, name varchar, big decimal(5, 2), parent int)")
    duck.execute("create table shop (id int, region int, kind int, size int)")
    duck.execute("create table sale (id int, shop int, n int)")
    for regions, shops, sales in product(*map(subsets, (REGIONS, SHOPS, SALES))):
        data = {"region": regions, "shop": shops, "sale": sales}
        if not is_sound(data):
            continue
        for name, rows in data.items():
            duck.execute(f"delete from {name}")
            for row in rows:
                duck.execute(f"insert into {name} values ({', '.join('?' * len(row))})", row)
        stored = {Predicate(name): Counter(duck.table(name).fetchall()) for name in data}
        assert evaluate_view(view, stored) == Counter(duck.execute(query).fetchall())


def subsets(rows: list[tuple[object, ...]]) -> list[tuple[tuple[object, ...], ...]]:
    return list(chain.from_iterable(combinations(rows, n) for n in range(len(rows) + 1)))


def is_sound(data: dict[str, tuple[tuple[object, ...], ...]]) -> bool:
    regions, shops = ({None, *(row[0] for row in data[name])} for name in ("region", "shop"))
    found = [*((row[3], regions) for row in data["region"]), *((row[1], shops) for row in data["sale"])]
    found += [(row[i], regions) for row in data["shop"] for i in (1, 2)]
    return all(value in keys for value, keys in found)
