"""The texts of views over a few rows at hand, by one statement that is made once: plain DuckDB gives the same rows."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from datalog.model import WallClock
from selfmaint.api.file.programs import catalog_of
from selfmaint.duckdb import small_databases
from tests.plain_duckdb import plain_duckdb

TABLES = """
create table r (id int primary key, g string, x decimal(20, 2), moment timestamp_ntz, day date, sure boolean, s bigint);
create table s (id bigint primary key, name string);
"""
KINDS = {
    "r": [
        ("id", pa.int32()),
        ("g", pa.string()),
        ("x", pa.decimal128(20, 2)),
        ("moment", pa.timestamp("us")),
        ("day", pa.date32()),
        ("sure", pa.bool_()),
        ("s", pa.int64()),
    ],
    "s": [("id", pa.int64()), ("name", pa.string())],
}
TEXTS = (
    "select g, median(s) as m, max(x) as most from r group by g",
    "select id, rank() over (partition by g order by x desc) as place, moment, day, sure from r",
    "select r.id, s.name, count(*) over (partition by s.id) as n from r left join s on r.s = s.id",
    "select a.id, b.id as o, rank() over (order by a.id) as n from r a join r b on a.g = b.g and a.moment < b.moment",
    "select max(moment) over (partition by g) as last, min(day) over () as first, x from r",
)
STAMP = dt.datetime(2026, 1, 31, 23, 59, 59, 999_999)


def some(choice: Random, most: int) -> dict[str, frozenset[tuple[Any, ...]]]:
    rows = [
        (
            number,
            choice.choice(["a", "", "it's, [1]", 'ä"', None]),
            choice.choice([Decimal("1.10"), Decimal("-123456789012345678.25"), None]),
            choice.choice([WallClock(2026, 1, 31, 23, 59, 59, 999_999), WallClock(1969, 7, 20), None]),
            choice.choice([dt.date(1, 1, 2), dt.date(2026, 2, 28), None]),
            choice.choice([True, False, None]),
            choice.choice([1, 2**62, None]),
        )
        for number in range(choice.randint(0, most))
    ]
    return {"r": frozenset(rows), "s": frozenset((n, f"n{n}") for n in (1, 2**62) if choice.random() < 0.7)}


@pytest.mark.parametrize("text", TEXTS)
def test_rows_are_those_of_plain_duckdb(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = catalog_of(f"{TABLES} create view v as {text};")
    asked = small_databases.SmallDatabases()
    for number in range(12):
        database = some(Random(f"{text} {number}"), most=150 if number > 9 else 5)
        found = asked(catalog.view("v"), catalog.relations, database)
        with plain_duckdb() as plain:
            plain.execute("SET TimeZone = 'UTC'")
            for name, columns in KINDS.items():
                its = list(zip(*database[name], strict=True)) or [()] * len(columns)
                arrays = [pa.array(values, kind) for values, (_, kind) in zip(its, columns, strict=True)]
                plain.register(f"{name}_rows", pa.table(arrays, names=[column for column, _ in columns]))
                plain.execute(f"create table {name} as from {name}_rows")
            right = Counter(plain.execute(text).fetchall())
        assert found == right
        with monkeypatch.context() as patched:
            patched.setattr(small_databases, "_at_once", lambda *_: None)
            assert asked(catalog.view("v"), catalog.relations, database) == found


def test_a_statement_is_made_once_for_views_that_read_the_same() -> None:
    below = "create temporary view b as select id, s {} as s from r;"
    held = {"r": frozenset({(1, "a", Decimal("2.00"), None, None, None, 7)}), "s": frozenset[Any]()}
    text = "create view v as select id, median(s) as m from b group by id;"
    asked = small_databases.SmallDatabases()
    found = []
    for change in ("", "+ 1"):
        catalog = catalog_of(f"{TABLES} {below.format(change)} {text}")
        rows = asked(catalog.view("v"), catalog.relations, held)
        assert rows is not None
        found.append(next(iter(rows)))
    assert found[0] != found[1]


def test_values_that_python_does_not_have_are_not_told_apart_from_others() -> None:
    catalog = catalog_of(
        "create table f (id int primary key, x double); "
        "create view v as select id, max(x) over () as m, rank() over (order by x) as place from f;"
    )
    held = {"f": frozenset({(1, float("nan")), (2, -0.0), (3, 0.0)})}
    rows = small_databases.SmallDatabases()(catalog.view("v"), catalog.relations, held)
    assert rows is not None
    assert sorted((row[0], row[2]) for row in rows) == [(1, 3), (2, 1), (3, 1)]
