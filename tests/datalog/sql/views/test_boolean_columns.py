"""Boolean columns as conditions: they are the comparisons that they mean."""

from __future__ import annotations

import pyarrow as pa
import pytest

import selfmaint
from datalog.model import Row
from selfmaint.api.file.programs import catalog_of
from tests.plain_duckdb import plain_duckdb

TABLE = "create table r (id int not null primary key, n int, gone boolean, sure boolean not null);"
SCHEMA = pa.schema([("id", pa.int32()), ("n", pa.int32()), ("gone", pa.bool_()), ("sure", pa.bool_())])
CONDITIONS = (
    "gone",
    "not gone",
    "gone is true",
    "gone is not true",
    "gone is false and not sure",
    "not (gone and sure)",
    "gone or not sure",
    "coalesce(gone, false)",
    "case when gone then sure else not sure end",
)
EXACT = CONDITIONS[:3]
ROWS: tuple[Row, ...] = tuple(
    (i * 2 + k, i, gone, bool(k)) for i, gone in enumerate((True, False, None)) for k in range(2)
)


def table(rows: tuple[Row, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def shown(condition: str, rows: tuple[Row, ...]) -> pa.Table:
    with plain_duckdb() as plain:
        plain.register("r", table(rows))
        return plain.sql(f"select id, n from r where {condition} order by id").to_arrow_table()


@pytest.mark.parametrize("condition", CONDITIONS)
def test_rows_are_those_that_duckdb_has(condition: str) -> None:
    for at in range(len(ROWS)):
        before, new = ROWS[:at], ROWS[at : at + 1]
        stored = {"v": shown(condition, before)}
        text = f"{TABLE} create view v as select id, n from r where {condition};"
        with selfmaint.build(text, stored, engine="duckdb", effective=True) as warehouse:
            update = selfmaint.Update.from_frames(warehouse, {"r": table(new)}, {})
            change = warehouse.maintain(update, strict=True).deltas["v"]
            found = [*stored["v"].to_pylist(), *pa.table(change.gained).to_pylist()]
        assert sorted(found, key=str) == sorted(shown(condition, (*before, *new)).to_pylist(), key=str)


@pytest.mark.parametrize("condition", EXACT)
def test_such_a_condition_is_decided_exactly(condition: str) -> None:
    view = catalog_of(f"{TABLE} create view v as select id, n, gone, sure from r where {condition};").view(
        "v"
    )
    assert view.limitation is None


def test_two_views_of_the_rows_that_are_left_explain_each_other() -> None:
    text = TABLE + " create view stg as select id, n from r where not gone and sure;"
    text += " create view one as select id from r where not gone and sure and n = 1;"
    stored = {
        "stg": pa.table({"id": pa.array([1, 2], pa.int32()), "n": pa.array([1, 1], pa.int32())}),
        "one": pa.table({"id": pa.array([1], pa.int32())}),
    }
    with selfmaint.build(text, stored, engine="duckdb", effective=True) as warehouse:
        update = selfmaint.Update.from_frames(warehouse, {"r": table(((9, 1, False, True),))}, {})
        with pytest.raises(selfmaint.InputError, match="SM203"):
            warehouse.check(update, full=True)
