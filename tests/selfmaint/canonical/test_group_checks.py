"""Stored rows of views that project or group, and that no database gives."""

from __future__ import annotations

from typing import Any

import pytest

from datalog.model import Row
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import InputError
from tests.large_engine import LargeEngine

NAN = float("nan")
PROGRAM = """
create table r (a int not null primary key, b string, d double);
create table s (a int not null references r (a), c int not null primary key);
create view g as select b, count(*) as n, count(d) as m, max(d) as top from r group by b;
create view p as select a, b from r;
create view q as select distinct s.a, r.d from s join r on r.a = s.a;
create view everything as select count(*) as n, max(d) as top from r;
"""
RIGHT: dict[str, set[Row]] = {
    "g": {("x", 2, 1, NAN), (None, 1, 0, None)},
    "p": {(1, "x"), (2, "x"), (3, None)},
    "q": {(1, NAN), (3, None)},
    "everything": {(3, NAN)},
}


def warehouse(engine: Any, **other: set[Row]) -> Warehouse[Any]:
    return build(PROGRAM, {n: frozenset(rows) for n, rows in {**RIGHT, **other}.items()}, engine)


@pytest.fixture(params=[MemoryEngine, LargeEngine])
def engine(request: pytest.FixtureRequest) -> Any:
    return request.param()


INSERTED = Update({"r": frozenset[Row]({(9, "z", 0.5)})}, effective=True)


def test_what_some_database_gives_is_taken(engine: Any) -> None:
    here = warehouse(engine)
    assert here.check(INSERTED, full=True)
    assert warehouse(engine, g=set(), p=set(), q=set(), everything={(0, None)}).check(INSERTED, full=True)


@pytest.mark.parametrize(
    ("name", "rows", "culprit"),
    [
        ("g", {("x", 0, 0, None)}, "b='x', n=0"),
        ("g", {("x", None, 0, None)}, "b='x', n=null"),
        ("g", {("x", 2, -1, None)}, "b='x', n=2, m=-1"),
        ("everything", {(-1, None)}, "n=-1"),
    ],
)
def test_a_number_of_rows_that_no_group_has_is_named(
    engine: Any, name: str, rows: set[Row], culprit: str
) -> None:
    with pytest.raises(InputError, match=r"SM203.*stores groups that count less") as refused:
        warehouse(engine, **{name: rows}).check(INSERTED)
    assert culprit in str(refused.value)


@pytest.mark.parametrize(
    ("name", "rows", "culprit"),
    [
        ("g", {("x", 2, 1, 1.0), ("x", 1, 1, 1.0)}, "b='x', n=1"),
        ("p", {(1, "x"), (1, "y")}, "a=1, b='x'"),
        ("p", {(1, "x"), (1, None)}, "a=1, b=null"),
        ("q", {(1, 1.0), (1, 2.0)}, "a=1, d=2"),
    ],
)
def test_two_rows_that_are_one_are_named(engine: Any, name: str, rows: set[Row], culprit: str) -> None:
    here = warehouse(engine, **{name: rows})
    with pytest.raises(InputError, match=r"SM203.*stores rows that differ") as refused:
        here.check(INSERTED, full=True)
    assert culprit in str(refused.value)
