"""UNION ALL of grouped queries that constants tell apart: each is decided as a view of its own rows."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import selfmaint
from datalog.model import ViewDefinition
from datalog.rewrite.branches import branches_of_queries
from selfmaint.api.file.programs import catalog_of
from selfmaint.decide import differing
from tests.effort import effort
from tests.plain_duckdb import plain_duckdb

TABLES = """
create table a (id int not null primary key, k string not null, n int not null);
create table b (id int not null primary key, a int not null references a, n int);
"""
COLUMNS = {"a": ("id", "k", "n"), "b": ("id", "a", "n")}
QUERIES = {
    "figures": "select 'rows' as what, count(*) as n from a union all select 'sum', sum(n) from b "
    "union all select 'others', count(n) from b",
    "by kind": "select 'a' as what, k, sum(n) as n, count(*) as m from a group by k union all "
    "select 'b', cast(a as string), sum(n), count(*) from b group by cast(a as string)",
    "beside rows": "select 'row' as what, id, n from a union all select 'group', a, count(*) from b group by a",
    "by numbers": "select 2025 as y, k, count(*) as n from a where n < 3 group by k union all "
    "select 2026, k, count(*) from a where n >= 3 group by k",
}
TOLD = {"all_a": "select * from a"}

Rows = frozenset[tuple[Any, ...]]


def arrow(name: str, rows: Rows) -> pa.Table:
    kinds = [pa.string() if column == "k" else pa.int32() for column in COLUMNS[name]]
    columns = list(zip(*sorted(rows, key=repr), strict=True)) or [()] * len(kinds)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, list(COLUMNS[name]))


def truth(text: str, database: dict[str, Rows]) -> pa.Table:
    with plain_duckdb() as plain:
        for name, rows in database.items():
            plain.register(name, arrow(name, rows))
        found = plain.sql(text.replace("as string", "as varchar"))
        items = [
            f'"{column}"::BIGINT as "{column}"' if str(kind) == "HUGEINT" else f'"{column}"'
            for column, kind in zip(found.columns, found.types, strict=True)
        ]
        return plain.sql(f"select {', '.join(items)} from ({found.sql_query()})").to_arrow_table()


def bag(rows: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in pa.table(rows).to_pylist())


def database(random: Random) -> dict[str, Rows]:
    a = {(i, random.choice("xy"), random.choice([1, 2, 5])) for i in range(5) if random.random() < 0.8}
    ids = [row[0] for row in a]
    b = {
        (i, random.choice(ids), random.choice([1, None, 4]))
        for i in range(7)
        if ids and random.random() < 0.7
    }
    return {"a": frozenset(a), "b": frozenset(b)}


@pytest.mark.parametrize("name", QUERIES)
def test_what_is_followed_is_what_recomputing_gives(name: str) -> None:
    told = 0
    for seed in range(effort(8, 300)):
        random = Random(f"{name} {seed}")
        before = database(random)
        more = database(random)["a"] - before["a"]
        taken = {row[0] for row in before["a"]}
        new = {"a": frozenset(row for row in more if row[0] not in taken), "b": frozenset[Any]()}
        new["b"] = frozenset({(9, row[0], 3) for row in list(new["a"])[:1]})
        gone = {"b": frozenset(row for row in before["b"] if random.random() < 0.3), "a": frozenset[Any]()}
        after = {one: before[one] - gone[one] | new[one] for one in before}
        texts = {"v": QUERIES[name], **TOLD}
        program = TABLES + "".join(f"create view {one} as {text};" for one, text in texts.items())
        stored = {one: truth(text, before) for one, text in texts.items()}
        with selfmaint.build(program, stored, engine="duckdb", effective=True) as warehouse:
            sides = [{one: arrow(one, rows) for one, rows in its.items() if rows} for its in (new, gone)]
            update = selfmaint.Update.from_frames(warehouse, *sides)
            if warehouse.check(update)["v"]:
                told += 1
                change = warehouse.maintain(update, strict=True).deltas["v"]
                found = bag(stored["v"]) - bag(change.lost) + bag(change.gained)
                assert found == bag(truth(QUERIES[name], after)), (name, seed)
    assert told > 1


@pytest.mark.parametrize(
    ("query", "number"),
    [
        (QUERIES["figures"], 3),
        (QUERIES["beside rows"], 2),
        ("select 'x' as what, count(*) as n from a union all select 'x', count(*) from b", 0),
        ("select 'x' as what, sum(n) as n from a union all select 'y', avg(n) from b", 0),
        (
            "select 'x' as what, max(cast(n as decimal(9, 2))) as n from a union all select 'y', count(*) from b",
            2,
        ),
        ("select count(*) as n from a union all select count(*) from b", 0),
        ("select k as what, count(*) as n from a group by k union all select 'x', count(*) from b", 0),
    ],
)
def test_constants_tell_queries_apart(query: str, number: int) -> None:
    catalog = catalog_of(f"{TABLES} create view v as {query};")
    assert len(catalog.unions.get("v", {})) == number
    definition = catalog.view("v").definition
    assert isinstance(definition, ViewDefinition)
    assert number in (0, len(branches_of_queries(definition)))


def test_it_is_no_where_one_query_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differing, "MOST_SECONDS", 10.0)  # whatever else the machine does
    text = "select 'a' as what, max(n) as n from b union all select 'b' as what, count(*) as n from b"
    stored = {"v": truth(text, {"a": frozenset({(1, "x", 1)}), "b": frozenset({(1, 1, 4), (2, 1, 3)})})}
    with selfmaint.build(
        f"{TABLES} create view v as {text};", stored, engine="duckdb", effective=True
    ) as warehouse:
        gone = {"b": arrow("b", frozenset({(1, 1, 4)}))}
        verdict = warehouse.check(selfmaint.Update.from_frames(warehouse, {}, gone))["v"]
    assert verdict.kind.value == "no"
