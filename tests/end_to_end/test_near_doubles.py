"""Numbers compared with doubles, as which two of them are one: 2^53 and 2^53 + 1. Oracle: plain DuckDB."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import selfmaint

TABLE = "create table o (id int primary key, g bigint not null, k double not null, l bigint not null);"
CONDITIONS = [
    "g > l and g <= k and k <= l",
    "g > 9007199254740992 and g <= 9007199254740992e0",
    "g > 9007199254740992 and k <= 9007199254740992 and g <= k",
    "g = 9007199254740992e0",
    "g = 9007199254740992e0 and g > 9007199254740992",
    "g in (9007199254740992e0) and g <> 9007199254740992",
]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("shown", ["id, g, k, l", "distinct g, k, l", "l, count(*) as n"])
def test_a_row_that_is_one_as_doubles_alone(condition: str, shown: str) -> None:
    query = f"select {shown} from o where {condition}" + (" group by l" if "count" in shown else "")
    with duckdb.connect() as plain:
        plain.execute(TABLE)
        view, table = plain.sql(query).to_arrow_table(), plain.sql("from o").to_arrow_table()
        new = pa.Table.from_pylist([{"id": 1, "g": 2**53 + 1, "k": 2.0**53, "l": 2**53}], schema=table.schema)
        plain.execute("insert into o from new")
        right = plain.sql(query).to_arrow_table().to_pylist()
    assert right
    program = f"{TABLE} create view v as {query};"
    with selfmaint.build(program, {"v": view}, engine="duckdb", effective=True) as warehouse:
        update = selfmaint.Update.from_frames(warehouse, {"o": new})
        if warehouse.check(update):
            assert pa.table(warehouse.maintain(update).deltas["v"].gained).to_pylist() == right
