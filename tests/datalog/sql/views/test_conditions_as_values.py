"""Conditions as values in SQL: true, false or null. Oracle: plain DuckDB over rows with and without nulls."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pyarrow as pa
import pytest

from datalog.model import Predicate
from datalog.sql.views import read_sql
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from tests.plain_duckdb import plain_duckdb

TABLE = "create table t (id int not null primary key, a int, b int, s string);"
ROWS = frozenset((i, *row) for i, row in enumerate(product((None, 1, 2), (None, 1), (None, "x", "yx"))))
CONDITIONS = [
    "a = b",
    "a > 1",
    "not a > 1",
    "a = 1 and s = 'x'",
    "a = 1 or b = 1",
    "not (a = 1 or s = 'x')",
    "a in (1, 3)",
    "a not in (1, 3)",
    "a between b and 2",
    "a is null",
    "a is not null and b = 1",
    "a is not distinct from b",
    "(a = 1) = (b = 1)",
    "coalesce(a, 0) <> 2 and not s = 'x'",
    "case when a = 1 then s = 'x' else b = 1 end",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_is_true_false_or_null(condition: str) -> None:
    query = f"select id, {condition} as x from t"
    found = read_sql(f"{TABLE} create view v as {query};")
    assert not found.warnings
    (definition,) = found.views
    facts = Facts({Predicate("t"): ROWS})
    rows = MemoryEngine().evaluate_view(definition, facts, {})
    columns = list(zip(*sorted(ROWS, key=lambda row: row[0]), strict=True))
    kinds = (pa.int32(), pa.int32(), pa.int32(), pa.string())
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    with plain_duckdb() as plain:
        plain.register("t", pa.Table.from_arrays(arrays, names=["id", "a", "b", "s"]))
        assert Counter(rows) == Counter(plain.sql(query).fetchall())
