"""Views over tables without keys, which may hold a row several times.

Oracles: plain DuckDB, over all rows after the update; and all small databases that the views' contents and the update
leave possible, whose new states a "yes" says are one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import pyarrow as pa
import pytest

import selfmaint
from datalog.model import ColumnType, TypeName
from selfmaint.api.warehouse import Warehouse
from selfmaint.duckdb import DuckEngine, Relation
from selfmaint.errors import InputError, SourceError
from tests.effort import effort
from tests.keyed_queries import Held, bag
from tests.plain_duckdb import plain_duckdb

Bag = Sequence[tuple[Any, ...]]
Database = Mapping[str, Bag]

COLUMNS = {"log": ("a", "b", "c"), "note": ("a", "d"), "dim": ("x", "y")}
TABLES = """
create table log (a int not null, b int, c int);
create table note (a int not null, d int);
create table dim (x int not null primary key, y int);
"""
QUERIES = (
    "select a, count(*) as n, count(b) as nb, sum(b) as total from log group by a",
    "select a, count(*) as n, count(b) as nb, sum(b) as total, min(c) as least, max(c) as most from log group by a",
    "select * from log",
    "select a, b from log where c > 0 or c is null",
    "select distinct a, b from log",
    "select count(*) as n from log",
    "select l.a, l.c, d.y from log l join dim d on d.x = l.a",
    "select d.y, count(*) as n, count(l.b) as nb, sum(l.b) as total from log l join dim d on d.x = l.a group by d.y",
    "select l.a, l.b, n.d from log l join note n on n.a = l.a",
    "select l.a, count(*) as n from log l join note n on n.a = l.a group by l.a",
    "select l.b, m.b as other from log l join log m on l.a = m.a",
    "select l.a, l.b, d.y from log l left join dim d on d.x = l.a",
    "select d.x, count(l.a) as n from dim d left join log l on l.a = d.x group by d.x",
    "select d.x, d.y from dim d where not exists (select 1 from log l where l.a = d.x)",
    "select d.x from dim d where exists (select 1 from log l where l.a = d.x and l.b = 1)",
    "select a, b, c from log where a in (select x from dim where y > 0)",
    "select a, count(distinct b) as k from log group by a",
    "select a, avg(b) as mean, max(c) as most from log group by a",
    "select a, count(*) as n from log group by a having count(*) > 1",
    "select a, b from log union all select a, d from note",
    "select a from log union select a from note",
    "select a, b from log except all select a, d from note",
    "select a, b from log intersect select a, d from note",
    "select a, b, count(*) over (partition by a) as n from log",
    "select a, b, rank() over (partition by a order by b nulls first) as place from log",
    "select a, n from (select a, count(*) as n from log group by a) x join dim d on d.x = x.a",
)


def arrow(rows: Bag, names: Sequence[str]) -> pa.Table:
    """Rows of small whole numbers."""
    columns = [pa.array([row[i] for row in rows], pa.int32()) for i in range(len(names))]
    return pa.Table.from_arrays(columns, list(names))


def truth(text: str, database: Database) -> pa.Table:
    """What the query gives; sums as whole numbers of 64 bits."""
    with plain_duckdb() as plain:
        for name, rows in database.items():
            plain.register(name, arrow(rows, COLUMNS[name]))
        found = plain.sql(text)
        items = [
            f'"{name}"::BIGINT AS "{name}"' if str(kind) == "HUGEINT" else f'"{name}"'
            for name, kind in zip(found.columns, found.types, strict=True)
        ]
        return plain.sql(f"select {', '.join(items)} from ({text})").to_arrow_table()


def warehouse_of(queries: Mapping[str, str], before: Database) -> Warehouse[Relation]:
    views = {name: truth(text, before) for name, text in queries.items()}
    program = TABLES + "".join(f"create view {name} as {text};\n" for name, text in queries.items())
    return selfmaint.build(program, views, engine="duckdb", effective=True)


def update_of(
    warehouse: Warehouse[Relation], before: Database, after: Database
) -> selfmaint.Update[Relation]:
    sides = [
        {n: arrow(list((Counter(one[n]) - Counter(other[n])).elements()), COLUMNS[n]) for n in COLUMNS}
        for one, other in ((after, before), (before, after))
    ]
    inserted, deleted = ({n: rows for n, rows in side.items() if rows.num_rows} for side in sides)
    return selfmaint.Update.from_frames(warehouse, inserted, deleted, effective=True)


def new_contents(
    warehouse: Warehouse[Relation], found: selfmaint.Maintained[Relation], name: str, old: pa.Table
) -> Counter[tuple[Any, ...]]:
    change = found.deltas[name]
    gained, lost = (bag(pa.table(rows)) for rows in (change.gained, change.lost))
    if warehouse.catalog.view(name).is_counted:
        gained, lost = (Counter({r[:-1]: r[-1] for r in some}) for some in (gained, lost))
    assert not lost - bag(old), "a row is lost that was not there"
    return bag(old) + gained - lost


def rows(choice: random.Random, width: int, most: int) -> list[tuple[Any, ...]]:
    values = (0, 1, 2)
    made = []
    for _ in range(choice.randrange(most + 1)):
        row = (choice.choice(values), *(choice.choice((*values, None)) for _ in range(width - 1)))
        made += [row] * choice.choice((1, 1, 2, 3))
    return made


def database(choice: random.Random) -> Database:
    dim = {x: (x, choice.choice((0, 1, None))) for x in range(3) if choice.random() < 0.7}
    return {"log": rows(choice, 3, 5), "note": rows(choice, 2, 3), "dim": list(dim.values())}


def changed(choice: random.Random, before: Database) -> Database:
    after = {name: list(its) for name, its in before.items()}
    for name in choice.sample(["log", "note"], choice.randrange(1, 3)):
        kept = [row for row in after[name] if choice.random() < 0.6]
        after[name] = kept + rows(choice, len(COLUMNS[name]), 2)
        choice.shuffle(after[name])
    if choice.random() < 0.3:
        after["dim"] = database(choice)["dim"]
    return after


def given_sources(warehouse: Warehouse[Relation], state: Database) -> None:
    engine = warehouse.engine
    assert isinstance(engine, DuckEngine)
    tables = {}
    for name, its in state.items():
        names = COLUMNS[name]
        kinds = [ColumnType(TypeName.INT)] * len(names)
        tables[name] = Relation(engine.database.given(arrow(its, names), kinds), names)
    held = Held(engine, tables)
    warehouse.readable = {name: selfmaint.Readable(held, is_after=True) for name in state}


@pytest.mark.parametrize("number", range(effort(7, 3000)))
def test_what_maintain_gives_is_what_recomputing_gives(number: int) -> None:
    choice = random.Random(number)
    before = database(choice)
    after = changed(choice, before)
    queries = {f"v{i}": text for i, text in enumerate(choice.sample(QUERIES, 3))}
    for some in (queries, *({name: text} for name, text in queries.items())):
        warehouse = warehouse_of(some, before)
        given_sources(warehouse, after)
        found = warehouse.maintain(update_of(warehouse, before, after), recompute=True)
        for name, text in some.items():
            old = truth(text, before)
            assert new_contents(warehouse, found, name, old) == bag(truth(text, after)), text


def test_rows_with_a_subquery_in_their_condition_stand_as_often_as_before() -> None:
    before = {"log": [(0, 1, 1)] * 2, "note": [], "dim": [(0, 1), (1, 0)]}
    after = {"log": [(0, 1, 1)] * 3, "note": [], "dim": [(0, 1)]}
    for test in ("a in (select x from dim where y > 0)", "exists (select 1 from dim where x = a and y > 0)"):
        text = f"select a, b, c from log where {test}"
        warehouse = warehouse_of({"v": text}, before)
        given_sources(warehouse, after)
        found = warehouse.maintain(update_of(warehouse, before, after))
        assert new_contents(warehouse, found, "v", truth(text, before)) == bag(truth(text, after))


COPIES = {
    "all_log": "select c, a, b from log",
    "all_note": "select d, a as x from note",
    "all_dim": "select * from dim",
}
MORE = (
    "select a, median(c) as m from log group by a",
    "select a, b, c, rank() over (partition by a order by c nulls first, b nulls first) as place from log",
    "select l.a, n.d, count(*) over (partition by l.a) as n from log l left join note n on n.a = l.a",
    "select a, count(distinct b) as k, max(c) as most from log where c > 0 group by a having count(*) > 1",
    "with o as (select a, max(b) as b from log group by a) select a, rank() over (order by b nulls first) as k from o",
    "select x, count(distinct log.b) as k from dim join log on log.a = dim.x group by x",
)
STORED_OTHERWISE = (
    "select l.b, m.b as other from log l join log m on l.a = m.a",
    "select l.a, l.b, n.d from log l join note n on n.a = l.a",
    "select a from log union select a from note",
)
"""Queries whose rows are stored with their numbers, or by the queries that they come from."""


@pytest.mark.parametrize("number", range(effort(8, 1000)))
def test_copies_tell_all_that_is_asked_of_tables_without_keys(number: int) -> None:
    choice = random.Random(f"copies {number}")
    asked = [*(text for text in QUERIES if text not in STORED_OTHERWISE), *MORE, *MORE]
    before = database(choice)
    after = changed(choice, before)
    queries = {f"v{i}": text for i, text in enumerate(choice.sample(asked, 4))}
    warehouse = warehouse_of({**queries, **COPIES}, before)
    update = update_of(warehouse, before, after)
    assert all(warehouse.check(update).values())
    found = warehouse.maintain(update, strict=True)
    for name, text in queries.items():
        assert new_contents(warehouse, found, name, truth(text, before)) == bag(truth(text, after)), text


def test_no_copy_is_advised_that_is_stored() -> None:
    before = {"log": [(0, 1, 1)] * 2, "note": [], "dim": []}
    after = {**before, "log": [(0, 1, 1)] * 3}
    warehouse = warehouse_of({"v": STORED_OTHERWISE[0], **COPIES}, before)
    found = warehouse.check(update_of(warehouse, before, after))
    assert not found["v"]
    assert "SELECT * FROM log" not in found["v"].because
    assert not found.untold


@pytest.mark.parametrize(
    "copy",
    [
        "select a, b from log",
        "select distinct * from log",
        "select * from log where a > 0",
        "select l.* from log l, dim",
    ],
)
def test_what_is_no_copy_tells_not_all(copy: str) -> None:
    before = {"log": [(0, 1, 1)] * 2, "note": [], "dim": [(0, 1)]}
    after = {**before, "log": [(0, 1, 1)]}
    warehouse = warehouse_of({"v": MORE[1], "copy": copy}, before)
    assert not warehouse.check(update_of(warehouse, before, after))["v"]


def test_an_update_that_may_not_be_effective_is_not_told_by_copies() -> None:
    before = {"log": [(0, 1, 1)] * 2, "note": [], "dim": []}
    warehouse = warehouse_of({"v": MORE[1], **COPIES}, before)
    update = selfmaint.Update.from_frames(
        warehouse, {"log": arrow([(0, 1, 1)], COLUMNS["log"])}, {}, effective=False
    )
    verdicts = warehouse.check(update)
    assert not verdicts["all_log"]
    assert not verdicts["v"]


LOGS = ((0, 0, 0), (0, 1, 0), (1, 0, 0), (1, None, 0))
NOTES = ((0, 1), (1, 0))
DIMS = (((0, 0),), ((0, 0), (1, 1)))


@cache
def databases() -> tuple[Database, ...]:
    """All databases of a few rows."""
    logs = [its for size in range(4) for its in combinations_with_replacement(LOGS, size)]
    notes = [its for size in range(2) for its in combinations_with_replacement(NOTES, size)]
    return tuple({"log": log, "note": note, "dim": dim} for log, note, dim in product(logs, notes, DIMS))


@cache
def contents(text: str, log: Bag, note: Bag, dim: Bag) -> frozenset[tuple[Any, int]]:
    return frozenset(bag(truth(text, {"log": log, "note": note, "dim": dim})).items())


def of(text: str, one: Database) -> frozenset[tuple[Any, int]]:
    return contents(text, *(tuple(sorted(one[name], key=str)) for name in COLUMNS))


def updated(one: Database, update: Database, back: Database) -> Database | None:
    """A database after an update; None if it lacks a row that the update deletes."""
    found = {}
    for name in COLUMNS:
        here, gone = Counter(one[name]), Counter(back[name])
        if gone - here:
            return None
        found[name] = tuple((here - gone + Counter(update[name])).elements())
    return found


def explaining(queries: Mapping[str, str], before: Database) -> Iterator[Database]:
    """The databases that give all views what they have."""
    for one in databases():
        if all(of(text, one) == of(text, before) for text in queries.values()):
            yield one


@pytest.mark.parametrize("number", range(effort(3, 2000)))
def test_a_yes_is_one_new_state_of_all_databases_that_explain_what_is_known(number: int) -> None:
    choice = random.Random(number)
    before = choice.choice(databases())
    queries = {f"v{i}": text for i, text in enumerate(choice.sample(QUERIES, choice.randrange(1, 4)))}
    more = {"log": tuple(choice.choices(LOGS, k=choice.randrange(3))), "note": (), "dim": ()}
    some = list(before["log"])
    choice.shuffle(some)
    less = {"log": tuple(some[: choice.randrange(2)]), "note": (), "dim": ()}
    both = set(more["log"]) & set(less["log"])
    less = {name: tuple(row for row in its if row not in both) for name, its in less.items()}
    after = updated(before, more, less)
    assert after is not None
    warehouse = warehouse_of(queries, before)
    verdicts = warehouse.check(update_of(warehouse, before, after))
    news = [new for one in explaining(queries, before) if (new := updated(one, more, less)) is not None]
    for name, verdict in verdicts.items():
        if verdict:
            assert {of(queries[name], new) for new in news} == {of(queries[name], after)}, queries


@pytest.mark.parametrize(("effective", "kind"), [(True, "yes"), (False, "undecided")])
def test_databases_that_differ_in_the_numbers_of_equal_rows_are_no_two(effective: bool, kind: str) -> None:
    program = "create table log (x bigint not null); create view v as select x from log;"
    with selfmaint.build(program, {"v": pa.table({"x": [5, 5]})}, effective=effective) as wh:
        update = selfmaint.Update.from_frames(wh, deleted={"log": pa.table({"x": [5]})})
        assert wh.check(update)["v"].kind == kind


def test_rows_are_given_by_relation() -> None:
    program = "create table log (x bigint not null); create view v as select x from log;"
    rows = pa.table({"x": [5]})
    with (
        selfmaint.build(program, {"v": rows}) as wh,
        pytest.raises(selfmaint.InputError, match="`inserted` is a `Table`, and not a mapping"),
    ):
        selfmaint.Update.from_frames(wh, inserted=rows)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", range(effort(7, 1000)))
def test_sources_that_have_not_moved_give_no_wrong_rows(number: int) -> None:
    """Of views that keyed reads follow and that count rows: what is read, without the update, gives the stored ones."""
    choice = random.Random(number)
    before = database(choice)
    after = {**changed(choice, before), "dim": before["dim"]}
    for text in choice.sample([text for text in QUERIES if "count(*)" in text], 4):
        warehouse = warehouse_of({"v": text}, before)
        given_sources(warehouse, before)
        try:
            found = warehouse.maintain(update_of(warehouse, before, after))
        except (InputError, SourceError, selfmaint.NotMaintainedError):
            continue
        if found.keyed:
            old = truth(text, before)
            assert new_contents(warehouse, found, "v", old) == bag(truth(text, after)), text
