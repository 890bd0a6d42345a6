"""Views of rows with windows, and of the first rows of groups: what they show tells what they will show, or may not."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import selfmaint
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.following.shown_rows import shown_rows_of
from selfmaint.decide.verdict import SelfMaintainable
from selfmaint.errors import SelfmaintError
from tests.effort import EXPLORE, effort
from tests.plain_duckdb import plain_duckdb

TABLE = "create table r (id int primary key, g int, o int, s string not null, more string);"
SCHEMA = pa.schema(
    [("id", pa.int32()), ("g", pa.int32()), ("o", pa.int32()), ("s", pa.string()), ("more", pa.string())]
)
STAGED = (
    "create temporary view stg as select id as key, g as part, o, upper(more) as m from r where s <> 'x';"
)

VIEWS = {
    "latest": "select id, g, o, s from (select *, row_number() over (partition by g order by o desc, id) as n from r) "
    "as placed where n = 1",
    "first three": "select * from (select *, row_number() over (partition by g order by o, id) as n from r) as placed "
    "where n <= 3",
    "ranks": "select id, g, o, n as place from (select id, g, o, rank() over (partition by g order by o desc) as n "
    "from r) as placed where n < 3",
    "values": "select id, g, o, dense_rank() over (partition by g order by o) as n from r "
    "qualify dense_rank() over (partition by g order by o) <= 2",
    "of all": "select id, o, s from (select *, row_number() over (order by s, o desc, id) as n from r) as placed "
    "where 2 >= n",
    "limited": "select id, o, s from r where s <> 'x' order by o desc, id limit 2",
    "filtered": "select id, g, o, s from (select *, row_number() over (partition by g order by o, id) as n from r "
    "where s <> 'x') as placed where n = 1 and g is not null",
    "what is tested is not shown": "select id, g, o, upper(more) as m from (select *, row_number() over (partition by "
    "g order by o, id) as n from r where s <> 'x') as placed where n <= 2",
    "a number is shown": "select id, g, o, n * 10 + 1 as place, s || coalesce(more, '-') as m from (select *, "
    "row_number() over (partition by g order by o desc, id) as n from r) as placed where n < 4",
    "so far": "select id, g, o, sum(o) over (partition by g order by o, id) as total, lag(id) over (partition by g "
    "order by o, id) as before, upper(more) as m from r where s <> 'x'",
    "among all": "select id, o, s, count(*) over () as n, rank() over (order by o desc) * 2 as place from r",
    "two parts": "select *, count(*) over (partition by g) as n, max(o) over (partition by g, s) as m from r",
    "of some groups": "select id, g, o, n from (select *, row_number() over (partition by g order by o, id) as n from "
    "r) as numbered where g > 1",
    "two columns": "select id, g, s, o from (select *, row_number() over (partition by g, s order by coalesce(o, 1), "
    "id desc) as n from r) as placed where n <= 2",
}
"""Queries that show enough of their rows."""

OTHERS = {
    "a column that orders is not shown": "select id, g from (select *, row_number() over (partition by g order by o, "
    "id) as n from r) as placed where n = 1",
    "no key is shown": "select g, o from (select *, rank() over (partition by g order by o) as n from r) as placed "
    "where n = 1",
    "rows are chosen among the first": "select id, g, o, s from (select *, row_number() over (partition by g order by "
    "o, id) as n from r) as placed where n = 1 and s = 'a'",
    "the second": "select id, g, o from (select *, row_number() over (partition by g order by o, id) as n from r) "
    "as placed where n = 2",
    "others are counted": "select id, g, o, m from (select *, row_number() over (partition by g order by o, id) as n, "
    "count(*) over (partition by g) as m from r) as placed where n = 1",
    "the last": "select id, g, o from (select *, row_number() over (partition by g order by o, id) as n from r) "
    "as placed where n >= 2",
    "a window of what is not shown": "select id, g, sum(o) over (partition by g) as total from r",
    "rows are left out by a window": "select id, g, n from (select id, g, count(*) over (partition by g) as n from r) "
    "as counted where n > 1",
    "rows are left out behind a window": "select id, g, s, n from (select *, count(*) over (partition by g) as n from "
    "r) as counted where s = 'a'",
    "a window over a window": "select id, g, o, sum(n) over (partition by g) as m from (select *, row_number() over "
    "(partition by g order by id) as n from r) as numbered",
    "a number with what is not shown": "select id, g, o, n + length(more) as m from (select *, row_number() over "
    "(partition by g order by o, id) as n from r) as placed where n = 1",
    "ties": "select id, g, o from (select *, row_number() over (partition by g order by o) as n from r) "
    "as placed where n = 1",
    "a computed group": "select id, g, o from (select *, row_number() over (partition by g % 2 order by o, id) as n "
    "from r) as placed where n = 1",
    "behind some": "select id, o from r order by o, id limit 2 offset 1",
    "the first of the first": "select id, g, o from (select *, row_number() over (order by g, id) as k from (select *, "
    "row_number() over (partition by g order by o, id) as n from r) as one where n = 1) as two where k = 1",
    "joined": "select r.id, r.g, r.o, q.s from (select *, row_number() over (partition by g order by o, id) as n from "
    "r) as r join r as q on q.id = r.id where n = 1",
}
"""Queries of which others rows are used, or that show too little."""


@pytest.mark.parametrize("query", VIEWS.values(), ids=VIEWS)
def test_first_rows_are_known_as_such(query: str) -> None:
    catalog = catalog_of(f"{TABLE} create view v as {query};")
    assert shown_rows_of(catalog, catalog.view("v")) is not None


def test_they_are_behind_a_staging_view() -> None:
    query = "select key, part, m, o from (select *, row_number() over (partition by part order by o, key) as n from stg"
    catalog = catalog_of(f"{TABLE} {STAGED} create view v as {query}) as placed where n = 1;")
    first = shown_rows_of(catalog, catalog.view("v"))
    assert first is not None
    assert first.groups == (1,)
    assert sorted(first.shown) == [
        0,
        1,
        2,
    ]  # what is tested, and what another column is made of, is not shown


@pytest.mark.parametrize("query", OTHERS.values(), ids=OTHERS)
def test_others_are_not(query: str) -> None:
    catalog = catalog_of(f"{TABLE} create view v as {query};")
    assert shown_rows_of(catalog, catalog.view("v")) is None


Rows = tuple[tuple[Any, ...], ...]


def table(rows: Rows) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def computed(query: str, rows: Rows) -> pa.Table:
    with plain_duckdb() as plain:
        plain.execute("SET default_null_order = 'NULLS_FIRST_ON_ASC_LAST_ON_DESC'")
        plain.register("r", table(rows))
        return plain.sql(query).to_arrow_table()


def bag(rows: pa.Table) -> list[str]:
    """The rows, columns in the order of their names."""
    columns = (rows.column(name).to_pylist() for name in sorted(rows.column_names))
    return sorted(map(repr, zip(*columns, strict=True)))


def decided(
    query: str, stored: pa.Table, gone: Rows, come: Rows, *, effective: bool = True, asked: bool = True
) -> list[str] | None:
    """The new rows, as what is stored and the update tell; None where that is not said to tell.

    `asked`: whether `check` is asked, too, and has to say the same.
    """
    with selfmaint.build(f"{TABLE} create view v as {query};", {"v": stored}, engine="duckdb") as warehouse:
        sides = [{"r": table(rows)} if rows else {} for rows in (come, gone)]
        update = selfmaint.Update.from_frames(warehouse, *sides, effective=effective)
        is_yes = not asked or bool(warehouse.check(update)["v"])
        try:
            change = warehouse.maintain(update, strict=True).deltas["v"]
        except SelfmaintError:
            assert not asked or not is_yes
            return None
        assert is_yes
        left = bag(warehouse.contents["v"].arrow())
        for row in bag(change.lost.arrow()):
            left.remove(row)
        return sorted([*left, *bag(change.gained.arrow())])


def database(random: Random) -> Rows:
    return tuple(
        (
            number,
            random.choice([1, 1, 2, None]),
            random.choice([1, 2, 3, None]),
            random.choice("abx"),
            random.choice("yz"),
        )
        for number in range(random.choice([0, 2, 5, 9]))
    )


def updated(random: Random, rows: Rows) -> tuple[Rows, Rows]:
    """What goes and what comes: some rows are deleted, some change, some are new."""
    gone = tuple(row for row in rows if random.random() < 0.3)
    changed = tuple(
        (row[0], random.choice([row[1], 2]), random.choice([row[2], 1, 4]), row[3], "new")
        for row in gone
        if random.random() < 0.6
    )
    new = tuple(
        (number, random.choice([1, 2, 3, None]), random.choice([0, 2, 4, None]), random.choice("abx"), None)
        for number in range(20, 20 + random.choice([0, 1, 3]))
    )
    return gone, (*changed, *new)


@pytest.mark.parametrize("name", VIEWS)
def test_what_is_told_is_what_recomputing_gives(name: str) -> None:
    told = 0
    for seed in range(effort(8, 200)):
        random = Random(f"{name} {seed}")
        rows = database(random)
        gone, come = updated(random, rows)
        if not gone and not come:
            continue
        after = tuple(row for row in rows if row not in gone) + come
        found = decided(VIEWS[name], computed(VIEWS[name], rows), gone, come)
        if found is not None:
            told += 1
            assert found == bag(computed(VIEWS[name], after)), (name, seed)
    assert told > 1


def every_database() -> Iterator[Rows]:
    """All databases of at most three rows of one group, over a few values of the order."""
    for choice in product([None, 1, 2, 3], repeat=3):
        yield tuple((i, 1, o, "a", "y") for i, o in enumerate(choice) if o is not None)


UPDATES: dict[str, tuple[Rows, Rows]] = {
    "one comes": ((), ((9, 1, 2, "a", "y"),)),
    "one goes": (((1, 1, 1, "a", "y"),), ()),
    "one moves ahead": (((1, 1, 2, "a", "y"),), ((1, 1, 1, "a", "y"),)),
    "one moves behind": (((1, 1, 1, "a", "y"),), ((1, 1, 3, "a", "y"),)),
    "one goes, one comes": (((0, 1, 1, "a", "y"),), ((9, 1, 1, "a", "y"),)),
    "one changes": (((1, 1, 2, "a", "y"),), ((1, 1, 2, "b", "y"),)),
    "two go": (((0, 1, 1, "a", "y"), (1, 1, 2, "a", "y")), ()),
}


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("name", ["latest", "ranks", "values", "limited", "so far"])
def test_nothing_is_told_that_another_database_contradicts(name: str, update: str) -> None:
    """Databases that show the same and become different: no verdict is a "yes"; where none do, most are."""
    gone, come = UPDATES[update]
    news: dict[str, set[str]] = defaultdict(set)
    stored: dict[str, pa.Table] = {}
    for rows in every_database():
        if set(gone) <= set(rows):
            shown = computed(VIEWS[name], rows)
            after = tuple(row for row in rows if row not in gone) + come
            news[repr(bag(shown))].add(repr(bag(computed(VIEWS[name], after))))
            stored[repr(bag(shown))] = shown
    assert news
    asked = (
        sorted(news.items())
        if EXPLORE
        else Random(name + update).sample(sorted(news.items()), min(9, len(news)))
    )
    for number, (key, states) in enumerate(asked):
        found = decided(VIEWS[name], stored[key], gone, come, asked=number % 4 == 0)
        assert found is None or states == {repr(found)}, (key, states)
        if not gone or name == "so far":
            assert found is not None


@pytest.mark.parametrize("name", ["latest", "so far", "first three"])
def test_stored_columns_may_be_in_another_order_and_of_wider_types(name: str) -> None:
    rows: Rows = ((0, 1, 1, "a", "y"), (1, 2, 2, "b", "y"), (2, 1, 3, "a", None))
    stored = computed(VIEWS[name], rows)
    stored = stored.select(list(reversed(stored.column_names)))
    wide = [pa.int64() if pa.types.is_integer(field.type) else field.type for field in stored.schema]
    stored = stored.cast(pa.schema(list(zip(stored.column_names, wide, strict=True))))
    gone, come = rows[2:], ((2, 1, 9, "b", None), (5, 2, 0, "b", "z"))
    assert decided(VIEWS[name], stored, gone, come) == bag(computed(VIEWS[name], rows[:2] + come))


TYPED = "create table r (id bigint primary key, g int, t timestamp, x decimal(20, 2));"
NEWEST = (
    "select id, g, t, x from (select *, row_number() over (partition by g order by x desc, id) as n from r) as placed "
    "where n = 1"
)


@pytest.mark.parametrize(
    ("column", "kind", "is_told"),
    [
        ("x", pa.string(), False),
        ("x", pa.float64(), False),
        ("x", pa.decimal128(38, 2), True),
        ("x", pa.decimal128(38, 4), False),
        ("g", pa.decimal128(20, 0), True),
        ("t", pa.string(), False),
        ("t", pa.timestamp("us"), False),
        ("g", pa.string(), False),
        ("g", pa.int64(), True),
        ("id", pa.string(), False),
    ],
)
def test_values_that_are_stored_as_others_tell_nothing(column: str, kind: pa.DataType, is_told: bool) -> None:
    row = {
        "id": 9,
        "g": 1,
        "t": dt.datetime(2026, 7, 1, tzinfo=dt.UTC),
        "x": Decimal("123456789012345678.01"),
    }
    types = [pa.int64(), pa.int32(), pa.timestamp("us", "UTC"), pa.decimal128(20, 2)]
    right = pa.schema(list(zip(row, types, strict=True)))
    stored = pa.Table.from_pylist([row], schema=right)
    at = right.get_field_index(column)
    stored = stored.set_column(at, column, stored.column(at).cast(kind))
    more = pa.Table.from_pylist([{**row, "id": 10, "x": row["x"] + Decimal("0.01")}], schema=right)
    with selfmaint.build(f"{TYPED} create view v as {NEWEST};", {"v": stored}, engine="duckdb") as warehouse:
        update = selfmaint.Update.from_frames(warehouse, {"r": more}, {}, effective=True)
        verdict = warehouse.check(update)["v"]
        assert bool(verdict) is is_told
        if is_told:
            change = warehouse.maintain(update, strict=True).deltas["v"]
            assert change.gained.arrow()["id"].to_pylist() == [10]
            assert change.lost.arrow()["id"].to_pylist() == [9]
        else:
            assert f"its column `{column}` is stored as" in verdict.because


def test_an_audit_says_that_all_that_comes_is_followed() -> None:
    queries = {"v": VIEWS["latest"], "w": OTHERS["ties"], "u": VIEWS["so far"]}
    text = TABLE + "".join(f" create view {name} as {query};" for name, query in queries.items())
    held = {name: computed(query, ()) for name, query in queries.items()}
    with selfmaint.build(text, held, engine="duckdb", effective=True) as warehouse:
        words = warehouse.audit().audit.words()
    assert words["v", "r", "insert"] == "always"
    assert words["w", "r", "insert"] == "undecided"
    assert {words["v", "r", kind] for kind in ("delete", "update", "any")} == {"undecided"}
    assert {word for (view, *_), word in words.items() if view == "u"} == {"always"}


def test_rows_that_may_not_have_been_there_tell_nothing() -> None:
    rows: Rows = ((0, 1, 1, "a", "y"), (1, 1, 2, "a", "y"))
    shown = computed(VIEWS["first three"], rows)
    gone: Rows = ((1, 1, 2, "a", "y"),)
    assert decided(VIEWS["first three"], shown, gone, ()) is not None
    assert decided(VIEWS["first three"], shown, gone, (), effective=False) is None
    assert decided(VIEWS["first three"], shown, (), gone, effective=False) is not None


def test_views_over_them_are_determined_with_them() -> None:
    rows: Rows = ((0, 1, 1, "a", "y"), (1, 2, 2, "b", "y"))
    latest, over = VIEWS["latest"], "select s, count(*) as n from v group by s"
    with plain_duckdb() as plain:
        plain.register("v", computed(latest, rows))
        above = plain.sql(over).to_arrow_table()
    text = f"{TABLE} create view v as {latest}; create view w as {over};"
    held = {"v": computed(latest, rows), "w": above}
    with selfmaint.build(text, held, engine="duckdb") as warehouse:
        new = {"r": table(((7, 1, 5, "b", None),))}
        update = selfmaint.Update.from_frames(warehouse, new, {}, effective=True)
        verdicts = warehouse.check(update)
        assert all(verdicts.values())
        verdict = verdicts["v"]
        assert isinstance(verdict, SelfMaintainable)
        assert "come behind" in verdict.because
        assert "come behind" in str(warehouse.explain(update, "v"))
        deltas = warehouse.maintain(update, strict=True).deltas
        assert bag(deltas["w"].gained.arrow()) == ["(2, 'b')"]
        assert bag(deltas["w"].lost.arrow()) == ["(1, 'a')", "(1, 'b')"]
