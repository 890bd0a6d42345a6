"""Unions whose rows do not tell which rule they come from. Oracle: what plain DuckDB gives of the same queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import selfmaint
from selfmaint.api.audit import AuditOptions, audit_catalog
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.decide.verdict import SelfMaintainable, Undecided
from selfmaint.errors import InputError
from selfmaint.warehouse.situation import Situation

TABLES = {
    "web": "id int primary key, day int not null, customer int, amount decimal(9,2) not null",
    "shop": "id int primary key, day int not null, store int not null, amount decimal(9,2) not null",
    "customer": "id int primary key, region string not null",
    "visit": "day int not null, page string",
}
FEW = {"web": 300, "shop": 200, "customer": 12, "visit": 300}
ROWS = {
    "web": f"select i::int, (i % 40)::int, nullif(i % 12, 5)::int, (i % 7)::decimal(9,2) from range({FEW['web']}) t(i)",
    "shop": f"select i::int, (i % 50)::int, (i % 3)::int, (i % 5)::decimal(9,2) from range({FEW['shop']}) t(i)",
    "customer": f"select i::int, 'r' || i % 4 from range({FEW['customer']}) t(i)",
    "visit": f"select (i % 9)::int, case when i % 4 > 0 then 'p' || i % 3 end from range({FEW['visit']}) t(i)",
}
CUSTOMERS = "select id, region from customer"
Row = tuple[Any, ...]
Sides = Mapping[str, list[Row]]


def base(inserted: Sides, deleted: Sides) -> duckdb.DuckDBPyConnection:
    """The base relations, after a change."""
    database = duckdb.connect()
    for name, columns in TABLES.items():
        database.execute(
            f"create table {name} ({columns.replace(' primary key', '').replace('string', 'text')})"
        )
        database.execute(f"insert into {name} {ROWS[name]}")
        for row in deleted.get(name, ()):
            same = " and ".join(
                f"{c.split()[0]} is not distinct from ?" for c in columns.replace("(9,2)", "").split(",")
            )
            ((place,), *_) = database.execute(f"select rowid from {name} where {same}", row).fetchall()
            database.execute(f"delete from {name} where rowid = ?", [place])
        for row in inserted.get(name, ()):
            database.execute(f"insert into {name} values ({', '.join('?' * len(row))})", row)
    return database


def columns_of(name: str) -> list[str]:
    return [part.split()[0] for part in TABLES[name].replace("(9,2)", "").split(", ")]


def typed(name: str, rows: list[Row]) -> pa.Table:
    """Rows with the types of a table."""
    empty = base({}, {}).sql(f"select * from {name} limit 0").to_arrow_table().schema
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), empty, strict=True)],
        names=columns_of(name),
    )


def warehouse(query: str) -> Warehouse[Any]:
    """A warehouse of the customers and one union, stored as it is before the change."""
    tables = "".join(f"create table {name} ({columns});\n" for name, columns in TABLES.items())
    before = base({}, {})
    views = {"customers": CUSTOMERS, "v": query}
    text = tables + "".join(f"create view {name} as {one};\n" for name, one in views.items())
    contents = {name: before.sql(one).to_arrow_table() for name, one in views.items()}
    return selfmaint.build(text, contents, engine="duckdb")


def update(here: Warehouse[Any], inserted: Sides, deleted: Sides) -> Update[Any]:
    sides = [{n: typed(n, rows) for n, rows in side.items() if rows} for side in (inserted, deleted)]
    return Update.from_frames(here, inserted=sides[0], deleted=sides[1], effective=True)


def decided(query: str, inserted: Sides, deleted: Sides) -> bool:
    """Whether a union is decided, and then: that its rows after the change are those of recomputing."""
    here = warehouse(query)
    change = update(here, inserted, deleted)
    verdict = here.check(change)["v"]
    if not isinstance(verdict, SelfMaintainable):
        return False
    delta = here.maintain(change, strict=True).deltas["v"]
    before, after = (Counter(base(*its).sql(query).fetchall()) for its in (({}, {}), (inserted, deleted)))
    lost, gained = (
        Counter(tuple(row.values()) for row in pa.table(side).to_pylist())
        for side in (delta.lost, delta.gained)
    )
    assert not lost - before
    assert before - lost + gained == after
    assert not lost & gained
    return True


ALL = "select day, amount from web union all select day, amount from shop"
GROUPED = f"select day, count(*) as n, sum(amount) as s from ({ALL}) u group by day"
WEB: Row = (7, 7, 7, 0)
"""A row of `web` as it is, and of `shop`: (7, 7, 1, 2)."""


@pytest.mark.parametrize(
    ("query", "inserted", "deleted"),
    [
        (ALL, {"web": [(900, 3, None, 5), (901, 3, None, 5)]}, {}),
        (ALL, {}, {"web": [WEB], "shop": [(7, 7, 1, 2)]}),
        (ALL, {"shop": [(900, 7, 1, 0), (901, 8, 1, 0)]}, {"web": [WEB]}),
        (
            f"{ALL} union all select day, cast(1 as decimal(9,2)) from visit",
            {"visit": [(3, "p0"), (3, "p0")]},
            {"visit": [(0, None)]},
        ),
        (
            "select day, amount from web union all select day, cast(amount as decimal(12,2)) from shop",
            {"web": [(900, 3, None, 5)], "shop": [(900, 3, 1, 5)]},
            {"shop": [(7, 7, 1, 2)]},
        ),
        ("select day from web union select day from shop", {"web": [(900, 7, 1, 0), (901, 99, 1, 0)]}, {}),
        ("select day from web union select day from shop", {"web": [(900, 7, 1, 0)]}, {"web": [WEB]}),
        (
            "select day * 2 as d from web union all select day + 1 from shop where store = 1",
            {"shop": [(900, 7, 1, 3)]},
            {},
        ),
        (
            (
                "select c.region, w.day from web w join customer c on c.id = w.customer union all "
                "select 'shops', day from shop"
            ),
            {"web": [(900, 3, 4, 5), (901, 3, None, 1)], "shop": [(900, 3, 1, 1)]},
            {"web": [WEB]},
        ),
        (
            "select c.region from customer c union select c.region from web w join customer c on c.id = w.customer",
            {},
            {"web": [WEB]},
        ),
        (
            (
                "select w.day, c.region from web w join customer c on c.id = w.customer where w.amount > 100 "
                "union all select day, 'none' from shop where store > 5"
            ),
            {"shop": [(900, 3, 1, 1)], "web": [(900, 3, 1, 1)]},
            {},
        ),
        (GROUPED, {"web": [(900, 3, None, 5), (901, 99, None, 5)], "shop": [(900, 99, 1, 1)]}, {}),
        (GROUPED, {}, {"web": [WEB], "shop": [(7, 7, 1, 2)]}),
        (GROUPED, {}, {"web": [(39, 39, 3, 4)], "shop": [(199, 49, 1, 4), (49, 49, 1, 4)]}),
        (
            f"with u as ({ALL}) select day, max(amount) as m, count(amount) as n from u where amount > 1 group by day",
            {"web": [(900, 7, None, 99)]},
            {"web": [(8, 8, 8, 1)]},
        ),
        (
            f"select count(*) as n, sum(amount) as s, max(amount) as m from ({ALL}) u",
            {"shop": [(900, 7, 1, 9)]},
            {"web": [WEB], "shop": [(7, 7, 1, 2)]},
        ),
        (
            (
                "select u.of, u.day, c.region, count(*) as n from (select 'web' as of, day, customer from web "
                "union all select 'shop', day, store from shop) u join customer c on c.id = u.customer "
                "group by u.of, u.day, c.region"
            ),
            {"web": [(900, 3, 4, 5)], "shop": [(900, 3, 1, 1)]},
            {"web": [WEB]},
        ),
        # The query that reads what changes can have no rows.
        (
            "select day from web where day > 5 and day < 3 union all select day from shop",
            {"web": [(900, 4, 1, 1)]},
            {},
        ),
    ],
)
def test_what_the_rules_gain_and_lose_is_the_change(query: str, inserted: Sides, deleted: Sides) -> None:
    assert decided(query, inserted, deleted)


@pytest.mark.parametrize(
    ("query", "inserted", "deleted"),
    [
        # Another row of the web, or of the shop, may give the day.
        ("select day from web union select day from shop", {}, {"web": [WEB]}),
        # The smallest amount of the day, the number of whose rows is not known; and what another row may be, too.
        (GROUPED.replace("count(*)", "min(amount)"), {}, {"web": [WEB]}),
        (GROUPED.replace("union all", "union"), {}, {"web": [WEB]}),
        (GROUPED.replace("count(*)", "count(distinct amount)"), {"web": [(900, 3, None, 5)]}, {}),
        # Which day an unknown web row is of.
        (
            "select s.day, w.amount from web w join shop s on s.id = w.id union all select 0, 0.00 from visit",
            {"web": [(150_000, 3, None, 5)]},
            {},
        ),
    ],
)
def test_what_is_not_known_is_no_yes(query: str, inserted: Sides, deleted: Sides) -> None:
    assert not decided(query, inserted, deleted)


def test_more_rows_lost_than_are_stored_are_refused() -> None:
    here = warehouse(ALL)
    change = update(here, {}, {"web": [(7, 7, 7, 6_000)]})
    with pytest.raises(InputError, match="were not there before: rule 1 of `v` lacks what they would give"):
        here.maintain(change)
    held = Counter(base({}, {}).sql(ALL).fetchall())
    day, amount = next(row for row, copies in held.items() if copies == 1)
    twice = update(here, {}, {"web": [(900, day, 7, amount), (901, day, 7, amount)]})
    with pytest.raises(InputError, match="more rows are deleted than there were: `v`"):
        here.maintain(twice)


def test_where_the_update_may_not_be_effective_nothing_is_concluded() -> None:
    here = warehouse(ALL)
    change = Update.from_frames(here, inserted={"web": typed("web", [(900, 3, None, 5)])})
    assert isinstance(here.check(change)["v"], Undecided)


def test_columns_of_two_types_are_not_added_up() -> None:
    """1 and 1.00 are equal, and written otherwise."""
    tables = "".join(f"create table {name} ({columns});\n" for name, columns in TABLES.items())
    both = "create view v as select day from web union all select {} from shop;"
    columns = ("amount", "store", "null", "cast(amount as double)")
    of = [catalog_of(tables + both.format(column)).summands for column in columns]
    assert [len(found.get("v", ())) for found in of] == [2, 2, 2, 2]  # each is cast to the type of both
    rules = ".decl a(x: int). .decl b(x: {}). v(X) :- a(X). v(X) :- b(X)."
    of = [catalog_of(rules.format(kind)).summands for kind in ("decimal(9,2)", "bigint")]
    assert [len(found.get("v", ())) for found in of] == [0, 2]
    above = "create view v as select cast(day as string) as d, count(*) as n from ({}) u group by cast(day as string);"
    texts = [above.format(both[len("create view v as ") : -1].format(c)) for c in ("amount", "store", "null")]
    of = [catalog_of(tables + text).grouped_summands for text in texts]
    assert [len(found.get("v", ())) for found in of] == [0, 2, 0]


BESIDE = """
create table c (id bigint not null, n string not null, g int, primary key (id));
create table t (id bigint not null, k bigint not null, d date not null, primary key (id));
create table s (k bigint not null, p decimal(9,2), d date not null, foreign key (k) references c (id));
create table r (id bigint not null, k bigint, y smallint, primary key (id), foreign key (k) references c (id));
create view u0 as select * from (select c.id as c0, coalesce(m.k, 0) as c1 from s m join c on m.k = c.id where
    m.p > cast(0 as decimal(9,2)) union all select m.k as c0, m.id as c1 from r m where m.k = 1
    union all select m.k as c0, m.k as c1 from s m) z where c0 is not null;
create view u2 as select m.d as c0, c.g as c1 from t m join c on m.k = c.id
    union all select m.d as c0, c.g as c1 from s m join c on m.k = c.id;
"""


def test_the_audit_says_always_only_where_no_test_asks() -> None:
    words = audit_catalog(
        catalog_of(BESIDE), Situation(effective=True), AuditOptions(advise=False)
    ).audit.words()
    assert words["u2", "c", "insert"] == "undecided"  # which rows of `t` wait for the new one nobody knows
    assert words["u2", "*", "any"] == "undecided"
    alone = catalog_of(
        "create table t (id int primary key, d date); create view v as select d from t union all select d from t;"
    )
    words = audit_catalog(alone, Situation(effective=True), AuditOptions(advise=False)).audit.words()
    assert words["v", "t", "any"] == "always"


def test_the_audit_of_unions_beside_what_is_only_text_ends() -> None:
    text = """create table c (id int primary key, n string);
    create view words as select n from c union select 'x' from c where id > 4;
    create view ranked as select id, rank() over (order by n) as place from c;
    create view plain as select id, n from c;"""
    words = audit_catalog(
        catalog_of(text), Situation(effective=True), AuditOptions(advise=False)
    ).audit.words()
    assert words["plain", "c", "insert"] == "always"
