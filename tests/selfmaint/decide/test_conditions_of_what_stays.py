"""Conditions on tables that do not change: which of their rows pass does not change either."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import selfmaint
from tests.effort import effort
from tests.plain_duckdb import plain_duckdb

TABLES = """create table c (id int not null primary key, name string not null, r int not null);
create table t (id int not null primary key, c int not null references c (id), closed int, prio int not null);
"""
TYPES = {
    "c": {"id": pa.int32(), "name": pa.string(), "r": pa.int32()},
    "t": {"id": pa.int32(), "c": pa.int32(), "closed": pa.int32(), "prio": pa.int32()},
}
CONDITIONS = [
    *("t.closed is null", "t.prio in (1, 2)", "(t.prio = 1 or t.closed is null)", "t.prio + 1 > 2"),
    *("(t.prio > c.r or t.closed is null)", "t.closed is null and t.prio = 1"),
]
VIEWS = [
    "select c.id, c.name from c where exists (select 1 from t where t.c = c.id and {})",
    "select distinct c.id, c.name, t.prio from c join t on t.c = c.id where {}",
    "select c.id, c.name, count(*) as n from c join t on t.c = c.id where {} group by c.id, c.name",
    "select distinct c.name from c join t on t.c = c.id where {}",
]


def arrow(name: str, rows: Any) -> pa.Table:
    columns = list(zip(*sorted(rows, key=repr), strict=True)) or [()] * len(TYPES[name])
    arrays = [pa.array(values, kind) for values, kind in zip(columns, TYPES[name].values(), strict=True)]
    return pa.Table.from_arrays(arrays, list(TYPES[name]))


def truth(text: str, database: dict[str, Any]) -> pa.Table:
    with plain_duckdb() as plain:
        for name, rows in database.items():
            plain.register(name, arrow(name, rows))
        return plain.sql(text).to_arrow_table()


def bag(rows: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in pa.table(rows).to_pylist())


def kinds(texts: dict[str, str], database: dict[str, Any], come: Any, go: Any) -> dict[str, str]:
    """The verdicts, once the changes of what is determined are held against all rows."""
    after = {**database, "c": database["c"] - go | come}
    program = TABLES + "".join(f"create view {name} as {text};" for name, text in texts.items())
    stored = {name: truth(text, database) for name, text in texts.items()}
    with selfmaint.build(program, stored, engine="duckdb", effective=True) as warehouse:
        sides = [{"c": arrow("c", rows)} if rows else {} for rows in (come, go)]
        update = selfmaint.Update.from_frames(warehouse, *sides)
        found = warehouse.check(update)
        if all(found.values()):
            for name, change in warehouse.maintain(update, strict=True).deltas.items():
                new = bag(stored[name]) - bag(change.lost) + bag(change.gained)
                assert new == bag(truth(texts[name], after)), (name, texts)
        return {name: verdict.kind.value for name, verdict in found.items()}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_another_name_is_determined(condition: str) -> None:
    database = {
        "c": frozenset({(5, "a", 1), (6, "b", 2), (7, "q", 2)}),
        "t": frozenset({(1, 5, None, 1), (2, 6, None, 1), (3, 7, 9, 0)}),
    }
    text = {"v": VIEWS[0].format(condition)}
    expected = "undecided" if "c.r" in condition else "yes"
    for come, go in [({(5, "z", 1)}, {(5, "a", 1)}), ({(7, "z", 2)}, {(7, "q", 2)})]:
        assert kinds(text, database, frozenset(come), frozenset(go)) == {"v": expected}


@pytest.mark.random
def test_what_is_determined_is_what_all_rows_give() -> None:
    told = 0
    for seed in range(effort(12, 400)):
        random = Random(f"stays {seed}")
        c = frozenset(
            (i, random.choice("xy"), random.choice([1, 2])) for i in range(5) if random.random() < 0.8
        )
        ids = [row[0] for row in c]
        t = frozenset(
            (i, random.choice(ids), random.choice([None, 9]), random.choice([0, 1, 2, 3]))
            for i in range(7)
            if ids and random.random() < 0.7
        )
        used = {row[1] for row in t}
        go = frozenset(row for row in c if random.random() < 0.4)
        come = frozenset(
            (row[0], random.choice("xyz"), row[2]) for row in go if row[0] in used or random.random() < 0.5
        )
        come |= {(9, "n", 1)} if random.random() < 0.3 else set()
        texts = {
            f"v{i}": random.choice(VIEWS).format(random.choice(CONDITIONS))
            for i in range(random.choice([1, 2, 3]))
        }
        found = kinds(texts, {"c": c, "t": t}, come - go, go - come)
        told += all(kind == "yes" for kind in found.values())
    assert told > 1
