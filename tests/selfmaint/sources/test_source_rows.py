"""What is read of tables without keys: equal rows have numbers, which no source knows of."""

from __future__ import annotations

import pytest

from datalog.diagnostics import ProgramError
from datalog.model import ANY, NUMBER, Row
from selfmaint.api.file.programs import catalog_of
from selfmaint.engine.memory import MemoryEngine
from selfmaint.fallback.states import rows_of
from selfmaint.sources.memory import RowsSource
from selfmaint.warehouse.base_relations import BaseRelation

LOG = BaseRelation("log", ("a", "b", NUMBER), (ANY, ANY, ANY), frozenset({1}))
SOURCE = RowsSource("here", {"log": (("a", "b"), frozenset[Row]({(1, 2), (1, 3), (2, 2)}))})


@pytest.mark.parametrize(
    ("columns", "keys", "expected"),
    [
        ((), None, {(1, 2, 1), (1, 3, 1), (2, 2, 1)}),
        (("a",), {(1,)}, {(1, 2, 1), (1, 3, 1)}),
        (("a", NUMBER), {(1, 1)}, {(1, 2, 1), (1, 3, 1)}),
        (("a", NUMBER), {(1, 2)}, set()),
        ((NUMBER,), {(1,)}, {(1, 2, 1), (1, 3, 1), (2, 2, 1)}),
        ((NUMBER,), {(-1,)}, set()),
    ],
)
def test_rows_with_numbers(columns: tuple[str, ...], keys: set[Row] | None, expected: set[Row]) -> None:
    asked = None if keys is None else frozenset(keys)
    rows, _ = rows_of(MemoryEngine(), LOG, SOURCE, columns, asked)
    assert rows == expected


@pytest.mark.parametrize(
    "program",
    [
        "create table t (id int primary key, `copy#` bigint); create view v as select id from t;",
        ".decl t(id: int, `Copy#`: int).\nv(A) :- t(A, B).",
    ],
)
def test_no_column_is_called_as_the_numbers_are(program: str) -> None:
    with pytest.raises(ProgramError, match=r"DL011.*as the numbers of equal rows are"):
        catalog_of(program)
