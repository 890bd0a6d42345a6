"""Joins of whole numbers with doubles, to which several of them are equal: a key there tells no single row."""

from __future__ import annotations

import pyarrow as pa
import pytest

import selfmaint
from tests.keyed_queries import Held, bag
from tests.plain_duckdb import plain_duckdb

LARGE = 2**53  # and the next whole number are one double
TABLES = """
create table l (id BIGINT NOT NULL PRIMARY KEY, d DOUBLE);
create table rr (k BIGINT NOT NULL PRIMARY KEY, z INT);
"""
VIEWS = {
    "both": "select l.id, rr.k, rr.z from l join rr on l.d = rr.k",
    "left": "select l.id, l.d from l left join rr on l.d = rr.k",
    "ranks": "select l.id, l.d, rank() over (partition by l.id order by l.id) as n from l join rr on l.d = rr.k",
    "above": """select id, n, rank() over (partition by id order by n) as k2, count(*) over (partition by id) as c
        from ranks""",
}


def rows_of_l(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64()), "d": pa.array([float(LARGE)] * len(numbers))})


RR = pa.table({"k": pa.array([LARGE, LARGE + 1], pa.int64()), "z": pa.array([1, 1], pa.int32())})


def truth(left: pa.Table) -> dict[str, pa.Table]:
    with plain_duckdb() as plain:
        plain.register("l", left)
        plain.register("rr", RR)
        for name, text in VIEWS.items():
            plain.execute(f'create view "{name}" as {text}')
        return {name: plain.sql(f'select * from "{name}"').to_arrow_table() for name in VIEWS}


@pytest.mark.parametrize("name", ["both", "left", "above"])
def test_rows_are_those_of_recomputing(name: str) -> None:
    views = {one: VIEWS[one] for one in VIEWS if one == name or (name == "above" and one == "ranks")}
    before, after = truth(rows_of_l(1)), truth(rows_of_l(1, 2))
    program = TABLES + "".join(f"create view `{one}` as {text};" for one, text in views.items())
    contents = {one: before[one] for one in views}
    warehouse = selfmaint.build(program, contents, engine="duckdb", effective=True)
    update = selfmaint.Update.from_frames(warehouse, {"l": rows_of_l(2)}, {}, effective=True)
    assert not warehouse.check(update)[name]
    engine = warehouse.engine
    bases = {
        "l": engine.load(
            [(1, float(LARGE)), (2, float(LARGE))], ["id", "d"], warehouse.catalog.relations["l"].types
        ),
        "rr": engine.load([(LARGE, 1), (LARGE + 1, 1)], ["k", "z"], warehouse.catalog.relations["rr"].types),
    }
    warehouse.readable = dict.fromkeys(bases, selfmaint.Readable(Held(engine, bases)))
    found = warehouse.maintain(update, recompute=True).deltas[name]
    assert bag(before[name]) + bag(pa.table(found.gained)) - bag(pa.table(found.lost)) == bag(after[name])
