"""Views with helpers: what plain DuckDB gives for the view's own text over all rows after the update.

Small tables with nulls, equal rows in all but the key, NaN and -0.0; every aggregate comes with operators around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import selfmaint
from datalog.model import ANY, ColumnType, OpaqueView, TypeName, ViewDefinition
from selfmaint.api.columns import columns_of
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.following.over_views import what_is_below
from selfmaint.api.maintain import new_contents
from selfmaint.api.platforms.platform import platform_of, with_counts
from selfmaint.api.warehouse import Warehouse
from selfmaint.duckdb import DuckEngine, Relation
from tests.effort import effort
from tests.keyed_queries import Held
from tests.plain_duckdb import plain_duckdb

TABLES = """
create table r (a int not null primary key, b int, c decimal(6, 2));
create table s (f int not null primary key, d int, w double);
"""
TYPES = {
    "r": pa.schema([("a", pa.int32()), ("b", pa.int32()), ("c", pa.decimal128(6, 2))]),
    "s": pa.schema([("f", pa.int32()), ("d", pa.int32()), ("w", pa.float64())]),
}
DOUBLES = [1.5, -0.0, 0.0, float("nan"), None]
Rows = dict[int, tuple[Any, ...]]


def rows(random: Random, name: str) -> Rows:
    return {key: row(random, name, key) for key in random.sample(range(9), random.randint(1, 7))}


def row(random: Random, name: str, key: int) -> tuple[Any, ...]:
    if name == "s":
        return key, random.choice([0, 1, 2, None]), random.choice(DOUBLES)
    return key, random.choice([0, 1, 2, None]), random.choice(["1.25", "-2.00", "0.10", None])


def changed(random: Random, name: str, before: Rows) -> Rows:
    after = {key: its for key, its in before.items() if random.random() < 0.8}
    for key in random.sample(range(12), random.randint(0, 3)):
        after[key] = row(random, name, key)
    return after


def frame(name: str, rows: list[tuple[Any, ...]]) -> pa.Table:
    schema = TYPES[name]
    plain = [
        pa.array([one[i] for one in rows], pa.string() if f.name == "c" else f.type)
        for i, f in enumerate(schema)
    ]
    return pa.Table.from_arrays(plain, schema.names).cast(schema)


def query(random: Random) -> str:
    source = random.choice(["r", "r", "r", "r join s on f = b"])
    sums = ["sum(b)", "sum(c)", "count(*)", "count(c)", "sum(c * b)", "max(b)", "min(c)"]
    sums += ["count(w)", "sum(case when w > 0 then b else 0 end)"] * ("s" in source)
    one, other = random.sample(sums, 2)
    items = [
        f"{one} * 2 - {other}",
        f"case when {other} > 1 then {one} end",
        f"coalesce({one}, 7) + {other}",
        "avg(b)",
        "cast(sum(b) as double) / count(b)",
    ]
    if random.random() < 0.2:  # keeps the groups with no values away from the division
        items = ["sum(b) / count(*)"]
    groups = random.choice([["b"], ["c"], ["b + 1"], ["b", "c"], []])
    source += random.choice(["", " where a > 2", " where exists (select 1 from s as t where t.d = b)"])
    shown = [f"{group} as g{i}" for i, group in enumerate(groups)]
    having = random.choice(["", "", f" having {other} > 1", " having count(*) > 1"])
    if groups and not having and random.random() < 0.25:
        having = " order by m desc nulls last, " + ", ".join(f"g{i} nulls first" for i in range(len(groups)))
        having += " limit 2"
    measure = random.choice(items) + " as m"
    if (
        groups and "limit" not in having and random.random() < 0.4
    ):  # a constant, a group that is not shown, numbers
        written = [str(place) if random.random() < 0.5 else group for place, group in enumerate(groups, 2)]
        hidden = ["a - a"] if random.random() < 0.3 else ["b * 0"] * (random.random() < 0.3)
        by = f" group by {', '.join([*written, *hidden])}"
        return f"select 'x' as k, {', '.join(shown)}, {measure} from {source}{by}{having}"
    by = f" group by {', '.join(groups)}" if groups else ""
    return f"select {', '.join([*shown, measure])} from {source}{by}{having}"


def groups(random: Random) -> str:
    """A query that groups by `g` with two numbers."""
    source = random.choice(["r", "r", "r join s on f = b"])
    one, other = random.sample(["sum(b)", "count(*)", "count(c)", "max(b)", "sum(b + a)", "avg(b)"], 2)
    where = random.choice(["", " where a > 2", " where b is not null"])
    having = random.choice(["", "", " having count(*) > 1"])
    return f"select b as g, {one} as n, {other} as m from {source}{where} group by b{having}"


def nested(random: Random) -> str:
    """A query around queries that group; some names stand for other things inside than around."""
    one, other = groups(random), groups(random)
    numbers = ["sum(b)", "avg(b)", "count(*)", "count(b)", "max(a)", "avg(a + b)"]
    some = [
        f"(select {random.choice(numbers)} from r{random.choice(['', ' where a > 3', ' where b = 1'])})"
        for _ in range(3)
    ]
    joined = "select t.g as x, u.g as y, t.n as n, u.m as m from t full join u on t.g = u.g"
    options = [
        f"with t as ({one}) select max(n) as x, count(m) as y from t",
        f"with t as ({one}) select g, n from t where n >= (select max(n) from t)",
        f"select g, n from ({one}) as i where n > {some[0]}",
        f"select g, sum(n) as x from ({one} union all {other}) as u group by rollup(g) having count(m) > 0",
        f"with t as ({one}), u as ({other}) {joined} where t.n is null or u.m > 0",
        f"select case when {some[0]} > 1 then {some[1]} else {some[2]} end as x, {some[0]} as y",
        f"select count(*) as x from ({one}) as t where g in (select g from ({other}) as r where n > 0)",
        # a common table expression that hides a table
        f"with s as (select a as f, b as d from r) select (select count(d) from s) as x, {some[0]} as y",
        f"with r as (select a, b, c from r where a > 3) select {some[0]} as x, (select max(d) from s) as y",
        f"select {some[0]} as x union all select {some[1]} as x",
        f"{one} union all select 7, {random.choice(numbers)}, max(b) from r",
        "select max(k) as x from (select a, (select count(*) from s where d = b) as k from r) as t",
    ]
    return random.choice(options)


def distinct(random: Random) -> str:
    """A query that counts different values."""
    source = random.choice(["r", "r", "r join s on f = b"])
    values = ["b", "c", "b + 1", "a - b", *(["w", "d"] if "s" in source else [])]
    others = ["count(*) as n", "count(c) as n, max(b) as m", "min(c) as m", "count(b) as n, count(*) as l"]
    groups = random.choice([["b"], ["b + 1"], ["a - b"], ["b + 1", "a - b"], []])
    shown = [f"{group} as g{i}" for i, group in enumerate(groups)]
    items = [f"count(distinct {random.choice(values)}) as k", *random.sample(others, random.randint(0, 1))]
    where = random.choice(["", " where a > 2", " where b is not null"])
    by = f" group by {', '.join(groups)}" if groups else ""
    return f"select {', '.join([*shown, *items])} from {source}{where}{by}"


def finer(random: Random) -> str:
    """A query whose groups are made of finer ones."""
    source = random.choice(["r", "r", "r join s on f = b"]) + random.choice(
        ["", " where a > 2", " where a < 0"]
    )
    numbers = ["sum(b)", "count(*)", "count(c)", "sum(c)", "min(c)", "max(a)", "sum(b * 2 + a)", "avg(b)"]
    numbers += ["coalesce(sum(b), 0) + count(*)", "avg(a + b)", "sum(case when c > 0 then c end)"]
    one, other = random.sample(numbers, 2)
    distinct = f"count(distinct {random.choice(['c', 'a + 0', 'b'])})"
    by = random.choice(
        ["rollup(b, c)", "cube(b, c)", "grouping sets ((b), (c))", "grouping sets ((b, c), ())"]
    )
    level = random.choice(["", ", grouping(b) as w", ", grouping(c) * 2 + grouping(b) as w"])
    there = " having count(*) > 0"  # Spark has no row of all rows where there is none
    having = random.choice([there, f"{there} and {other} > 1", " having count(*) > 1"])
    rolled = f"select b, {distinct} as x, {one} as y from {source} group by rollup(b){there}"
    inside = "with t as (select b, c, a from r where a > 1) select g, n from"
    sides = f"select b as g, {one} as n from t group by b union all select null as g, {one} as n from t"
    options = [
        f"select b as g, c as h{level}, {one} as n, {other} as m from {source} group by {by}{having}",
        f"select b as g, {distinct} as n, {one} as m from {source} group by b{having}",
        f"select {distinct} as n, {one} as m, {other} as k from {source}",
        f"select max(x) as x from ({rolled}) as t",
        f"{inside} ({sides}) as u",
    ]
    return random.choice(options)


def all_rows(random: Random) -> str:
    """A query that looks at all rows, or groups: windows without PARTITION BY, and the first rows by an order."""
    source = random.choice(["r", "r as x", "r join s on f = b", "r left join s on f = b"])
    where = random.choice(["", "", " where a > 2", " where c is not null and a < 8"])
    frame = random.choice(
        ["", " rows between unbounded preceding and current row", " rows between 1 preceding and 1 following"]
    )
    calls = [
        f"sum(b) over (order by a{frame})",
        "row_number() over (order by b desc nulls last, a)",
        "lag(c) over (order by a)",
    ]
    calls += [
        "rank() over (order by c nulls first)",
        "sum(c) over ()",
        "count(*) over ()",
        "max(b + a) over (order by a)",
    ]
    calls += ["first_value(a) over (order by c nulls last, a)", "a - lead(a, 2) over (order by a desc)"]
    one, other = random.sample(calls, 2)
    items = random.choice(
        [
            f"a, b as k, {one} as n, {other} as m",
            f"a as k, {one} as n",
            f"c, coalesce(b, a) as b2, {one} as n",
        ]
    )
    rows = f"select {items} from {source}{where}"
    by = random.choice(["b", "c", "b + 1", "coalesce(b, 0)"])
    having = random.choice(["", "", " having count(*) > 1", f" having {by} is not null"])
    order = random.choice(["order by sum(a) desc, min(a)", f"order by {by} nulls first"])
    over = random.choice(
        [f"sum(sum(a)) over ({order}{frame})", f"row_number() over ({order})", "sum(count(*)) over ()"]
    )
    grouping = random.choice([by, "1"])
    groups = f"select {by} as g, sum(a) as t, avg(a) as z, {over} as n from {source}{where} group by {grouping}{having}"
    options = [
        rows,
        groups,
        f"select a, b, c from {source}{where} order by c desc nulls last, a limit 3",
        f"select a as k, b + a as m from {source}{where} order by m nulls first, k limit 2",
        f"select x.a, b from r as x{where} order by b nulls last, x.a desc limit 3",
        f"select n from ({rows}) as t where n > 0",
        f"select * from r{where} order by c nulls first, a limit 3",
        f"select *, {one} as n from r as x{where}",
        f"select a, n from (select a, row_number() over (order by a desc) as n from {source}{where}) as t where n < 3",
        f"with t as ({groups}) select g, n from t where n > 2",
        f"select {by} as g, sum(a) as a, min(a) as least, {over} as n from {source}{where} group by {by}{having}",
        f"select b as g, min(c) as d, sum(sum(a)) over (order by b nulls last) as n from {source} group by b",
    ]
    return random.choice(options)


def of_keys(random: Random) -> str:
    """Groups of a key that is joined with many rows, some left out by HAVING."""
    one, other = random.sample(["count(*)", "sum(b)", "sum(c)", "count(c)"], 2)
    having = random.choice([f"{one} > 1", f"{one} is null or {other} <= 2", "count(*) > 1"])
    items = random.choice([f"f, d, {one} as n", f"f, {one} + {other} as n", f"f, d, avg(c) as n, {one} as m"])
    return f"select {items} from r join s on f = b group by f, d having {having}"


def named(random: Random) -> str:
    """A query that looks at all rows by windows that have names."""
    source = random.choice(["r", "r as x", "r left join s on f = b"])
    frame = random.choice(["", " rows between 1 preceding and current row"])
    one = random.choice(
        ["sum(b) over w", "coalesce(sum(b) over (v), 0)", "count(*) over w - count(c) over w"]
    )
    other = random.choice(
        ["rank() over v", "rank() over (order by c nulls last)", "sum(b) over (order by b nulls last)"]
    )
    windows = f"window w as (order by a{frame}), v as (order by c nulls first)"
    last = random.choice(["", " order by n desc nulls last, a limit 3"])
    where = random.choice(["", " where a > 1"])
    options = [
        f"select a, b, {one} as n, {other} as m from {source}{where} {windows}{last}",
        f"select n from (select a, {one} as n, {other} as m from {source} {windows}) as t where m < 4",
        f"select b as g, sum(sum(a)) over w as n from {source}{where} group by b window w as (order by b nulls last)",
    ]
    return random.choice(options)


def given(database: dict[str, Rows], text: str, types: Sequence[ColumnType] = ()) -> pa.Table:
    """What the text gives, sums in the types that they have in Spark."""
    with plain_duckdb() as plain:
        for name, its in database.items():
            plain.register(name, frame(name, list(its.values())))
        found = plain.sql(text)
        bigint = ColumnType(TypeName.BIGINT)
        told_of = types or [ANY] * len(found.types)
        known = [
            bigint if kind == ANY and str(its) == "HUGEINT" else kind
            for kind, its in zip(told_of, found.types, strict=True)
        ]
        items = [
            f'"{name}"::{kind} AS "{name}"' if kind.family == "number" else f'"{name}"'
            for name, kind in zip(found.columns, known, strict=True)
        ]
        return plain.sql(f"select {', '.join(items)} from ({text})").to_arrow_table()


def bag(table: Any) -> Counter[tuple[str, ...]]:
    return Counter(tuple(map(str, row.values())) for row in pa.table(table).to_pylist())


def opened(
    text: str, before: dict[str, Rows], after: dict[str, Rows], *, helpers: bool = True
) -> Warehouse[Relation]:
    program = f"{TABLES} create view v as {text};"
    schema = catalog_of(program, helpers=helpers)
    engine = DuckEngine()
    platform, columns, contents = platform_of(engine), columns_of(schema), {}
    for view in schema.views:
        assert isinstance(view.definition, ViewDefinition | OpaqueView)
        its = text if view.name == "v" else (view.definition.text or "").replace("`", '"')
        known = columns[view.name]
        contents[view.name] = platform.fit_rows(given(before, its, known.types), known)
    contents = with_counts(platform, schema, contents)
    tables = {n: platform.fit_rows(frame(n, list(its.values())), columns[n]) for n, its in after.items()}
    held = selfmaint.Readable(Held(engine, tables))
    return Warehouse(schema, engine, contents, readable=dict.fromkeys(tables, held), effective=True)


def told(row: tuple[Any, ...]) -> str:
    """A row as others that are equal to it: -0.0 is 0.0."""
    return repr(row).replace("-0.0", "0.0")


def changes(before: dict[str, Rows], after: dict[str, Rows]) -> list[dict[str, pa.Table]]:
    """The rows that are inserted, and those that are deleted."""
    return [
        {
            n: frame(n, [row for row in one[n].values() if told(row) not in map(told, other[n].values())])
            for n in one
        }
        for one, other in ((after, before), (before, after))
    ]


def followed(seed: str, made: Callable[[Random], str] = query) -> str:
    """How a random view was followed, its rows being right."""
    random = Random(seed)
    before = {name: rows(random, name) for name in TYPES}
    after = {name: changed(random, name, its) for name, its in before.items()}
    text = made(random)
    warehouse = opened(text, before, after)
    sides = changes(before, after)
    update = selfmaint.Update.from_frames(warehouse, *sides, effective=True)
    try:
        found = warehouse.maintain(update, verify=True)
    except selfmaint.NotMaintainedError as error:
        return f"refused: {error.diagnostics[0].note}"
    assert not found.differences, (text, before, after)
    assert (set(found.deltas), set(found.helpers)) == ({"v"}, set(warehouse.catalog.helpers))
    view = warehouse.catalog.view("v")
    stored = new_contents(warehouse, view, found.deltas["v"])
    if view.is_counted:
        stored = warehouse.engine.bags.expanded(stored)
    assert bag(stored) == bag(given(after, text, columns_of(warehouse.catalog)["v"].types)), (
        text,
        before,
        after,
    )
    if "v" not in warehouse.catalog.helpers.values():
        return "alone"
    return "by rows" if "v" in found.keyed else "from the helper"


@pytest.mark.parametrize("seed", range(effort(1, 24)))
def test_a_view_with_a_helper_is_what_recomputing_gives(seed: int) -> None:
    ways = Counter(followed(f"{seed}.{trial}") for trial in range(8))
    assert ways["by rows"] + ways["from the helper"] >= 3, ways


@pytest.mark.parametrize("seed", range(effort(1, 24)))
def test_a_view_over_queries_inside_it_is_what_recomputing_gives(seed: int) -> None:
    ways = Counter(followed(f"inside.{seed}.{trial}", nested) for trial in range(8))
    assert ways["by rows"] + ways["from the helper"] >= 3, ways


@pytest.mark.parametrize("seed", range(effort(1, 24)))
def test_a_view_that_counts_different_values_is_what_recomputing_gives(seed: int) -> None:
    ways = Counter(followed(f"distinct.{seed}.{trial}", distinct) for trial in range(8))
    assert ways["by rows"] + ways["from the helper"] >= 3, ways


@pytest.mark.parametrize("seed", range(effort(1, 24)))
def test_a_view_over_finer_groups_is_what_recomputing_gives(seed: int) -> None:
    ways = Counter(followed(f"finer.{seed}.{trial}", finer) for trial in range(8))
    assert ways["by rows"] + ways["from the helper"] >= 2, ways


@pytest.mark.parametrize("seed", range(effort(2, 24)))
def test_a_view_that_looks_at_all_rows_is_what_recomputing_gives(seed: int) -> None:
    ways = Counter(followed(f"all rows.{seed}.{trial}", all_rows) for trial in range(8))
    assert ways["by rows"] + ways["from the helper"] >= 4, ways


@pytest.mark.parametrize("seed", range(effort(1, 24)))
def test_a_view_with_windows_that_have_names_is_what_recomputing_gives(seed: int) -> None:
    ways = Counter(followed(f"named.{seed}.{trial}", named) for trial in range(8))
    assert ways["by rows"] + ways["from the helper"] >= 4, ways


@pytest.mark.parametrize("seed", range(effort(1, 24)))
def test_groups_of_a_key_that_having_leaves_out_are_what_recomputing_gives(seed: int) -> None:
    ways = Counter(followed(f"of keys.{seed}.{trial}", of_keys) for trial in range(8))
    assert ways["by rows"] + ways["from the helper"] >= 6, ways


def test_groups_of_many_rows_have_a_helper_and_those_of_single_rows_none() -> None:
    program = """create table r (a int not null primary key, b int not null references s, c int not null);
create table s (f int not null primary key, d int not null);
create view many as select f, d, count(*) as n from r join s on f = b group by f, d having count(*) > 2;
create view each as select a, d, count(*) as n from r join s on f = b group by a, d having sum(c) > 2;
create view values_of as select f, count(distinct c) as n from r join s on f = b group by f;
create view optional as select f, avg(c) as m from s left join r on f = b group by f;"""
    assert catalog_of(program, helpers=True).helpers == {"many__sums": "many"}


def test_what_is_said_of_a_view_with_helpers_is_said_at_its_own_text() -> None:
    program = """create table r (a int not null primary key, b int);
create view plain as select a from r;
create view v as select a, (select count(distinct b) from r) as n, avg(b) over (partition by a) as m from r;
create view w as select a, n from v where n > 1;"""
    made = catalog_of(program, helpers=True)
    assert made.helpers
    places = [(one.span.line, one.span.column) for one in made.warnings if one.span is not None]
    assert set(places) == {(3, 13), (4, 35)}
    assert made.warnings_of(["plain", "unknown"]) == ()
    assert made.warnings_of(["w"]) == tuple(made.warnings)
    assert len(made.warnings_of(["v"])) == len([one for one in places if one == (3, 13)])


@pytest.mark.parametrize(
    ("by", "is_told"),
    [("cast(at as date)", True), ("coalesce(a, 0)", True), ("a", True), ("cast(rate as double) + 1", False)],
)
def test_an_order_by_what_groups_are_of_tells_all_of_them_apart(by: str, is_told: bool) -> None:
    """So the query over the helper has one result; of doubles 0.0 and -0.0 are one group."""
    made = catalog_of(
        f"""create table r (id int primary key, at timestamp not null, a int, rate float);
        create view v as select g, row_number() over (order by g) as n, sum(t) over (
            order by g rows between 6 preceding and current row) as s
            from (select {by} as g, sum(id) as t from r group by {by}) as of_g;""",
        helpers=True,
    )
    assert (what_is_below(made, made.view("v")) is not None) == is_told
