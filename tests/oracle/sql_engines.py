"""Views in SQL run as they are written, by SQLite, or by DuckDB where SQLite cannot.

Texts are in Spark's SQL. Where DuckDB's result has another type or another value than Spark's, what it runs is spelled
so that it is Spark's: `SPELLED`.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from typing import Any

import duckdb

from tests.oracle.sql_tables import NAN, Database, Row, Rows, State, Table


def evaluated(
    tables: Sequence[Table],
    views: Mapping[str, str],
    databases: Sequence[Database],
    *,
    by_duckdb: bool = False,
) -> dict[str, list[State]]:
    """What each view holds on each database; views may read those before them."""
    by_duckdb = by_duckdb or not runs_in_sqlite(tables, views)
    with closing(_DuckDB(tables, views) if by_duckdb else _SQLite(tables, views)) as engine:
        read = read_by(tables, views)
        known: dict[Any, State] = {}
        held: dict[str, list[State]] = {name: [] for name in views}
        for database in databases:
            for name, found in held.items():
                key = (name, *(database[i] for i in read[name]))
                if key not in known:
                    known[key] = state_of(engine.rows(name, database, read[name]))
                found.append(known[key])
        return held


def read_by(tables: Sequence[Table], views: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    """The positions of the tables that each view may read: those that it names, or a view that it names reads."""
    numbers = {table.name: (i,) for i, table in enumerate(tables)}
    found: dict[str, tuple[int, ...]] = {}
    for view, text in views.items():
        words = set(re.findall(r"\w+", text))
        its = [i for name, places in (numbers | found).items() if name in words for i in places]
        found[view] = tuple(sorted(set(its)))
    return found


NOT_SQLITE = re.compile(
    r"\b(rollup|cube|grouping|(except|intersect|group by)\s+all|qualify|median|listagg|distinct \w+, \w+(?=\)))\b"
    r"|\* except",
    re.IGNORECASE,
)
"""What SQLite has not, and what is no function that it can be told."""

SPELLED = (
    (r"\bavg\(((?:\w+\.)?(?:price|cap))\)", r"cast(round(sum(\1)::double / count(\1), 6) as decimal(10, 6))"),
    (r"\bdate_trunc\(('\w+'), ([\w.]+)\)", r"cast(date_trunc(\1, \2) as timestamp)"),
    (r"\btrunc\(([\w.]+), 'MM'\)", r"cast(date_trunc('month', \1) as date)"),
    (r"([\w.]+ [+-] interval 1 month)", r"cast(\1 as date)"),
    (r"\bdatediff\(([\w.]+), ([^()]+)\)", r"date_diff('day', \2, \1)"),
    (r"\bcount_if\(", "memory.main.count_true("),
    (r"\blistagg\((.+?), ','\) within group \(order by (.+?)\)(?= as)", r"string_agg(\1, ',' order by \2)"),
    (
        r"\bcount\(distinct (\w+), (\w+)\)",
        r"count(distinct case when \1 is not null and \2 is not null then (\1, \2) end)",
    ),
    (r"\* except \(", "* exclude ("),
)
"""What DuckDB computes otherwise than Spark, and how it computes the same: of small numbers only."""
COUNT_TRUE = "create macro memory.main.count_true(c) as count(*) filter (where c)"
"""DuckDB's own count_if of nulls alone is null, where Spark's is 0."""


def in_duckdb(text: str) -> str:
    """A query as DuckDB computes what Spark does."""
    for pattern, spelled in SPELLED:
        text = re.sub(pattern, spelled, text)
    return text


def runs_in_sqlite(tables: Sequence[Table], views: Mapping[str, str]) -> bool:
    """Whether SQLite has all types and constructs."""
    types = {kind for table in tables for kind in table.types}
    return types <= {"int", "string"} and not any(NOT_SQLITE.search(text) for text in views.values())


def state_of(rows: Iterable[Row]) -> State:
    """A view's rows, each with its number of copies."""
    return frozenset(Counter(tuple(map(_plain, row)) for row in rows).items())


def _plain(value: Any) -> Any:
    """One NaN for all, and times of UTC's clock."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    return NAN if isinstance(value, float) and math.isnan(value) else value


class _Condition:
    """An aggregate of a condition; nulls do not count."""

    def __init__(self) -> None:
        self.known: list[bool] = []

    def step(self, value: Any) -> None:
        if value is not None:
            self.known.append(bool(value))


class _CountIf(_Condition):
    def finalize(self) -> int:
        return sum(self.known)


class _BoolAnd(_Condition):
    def finalize(self) -> bool | None:
        return all(self.known) if self.known else None


class _BoolOr(_Condition):
    def finalize(self) -> bool | None:
        return any(self.known) if self.known else None


class _SQLite:
    """Loads the tables that are other than before."""

    def __init__(self, tables: Sequence[Table], views: Mapping[str, str]) -> None:
        self.tables = tables
        self.connection = sqlite3.connect(":memory:")
        self.loaded: list[Rows | None] = [None] * len(tables)
        self.connection.execute("pragma case_sensitive_like = on")
        for name, made in (("count_if", _CountIf), ("bool_and", _BoolAnd), ("bool_or", _BoolOr)):
            self.connection.create_aggregate(name, 1, made)
        for table in tables:
            self.connection.execute(_created(table))
        for name, text in views.items():
            self.connection.execute(f"create view {name} as {text}")

    def rows(self, view: str, database: Database, read: Sequence[int]) -> list[Row]:
        for i in read:
            if self.loaded[i] is not database[i]:
                name, marks = self.tables[i].name, ", ".join("?" * len(self.tables[i].columns))
                self.connection.execute(f"delete from {name}")
                self.connection.executemany(f"insert into {name} values ({marks})", database[i])
                self.loaded[i] = database[i]
        return self.connection.execute(f"select * from {view}").fetchall()

    def close(self) -> None:
        self.connection.close()


class _DuckDB:
    """Keeps each contents of a table in a schema of its own, for loading takes longer than running."""

    def __init__(self, tables: Sequence[Table], views: Mapping[str, str]) -> None:
        self.tables = tables
        self.connection = duckdb.connect()
        self.schemas: dict[tuple[int, Rows], str] = {}
        self.connection.execute(COUNT_TRUE)
        before = [f"{name} as ({in_duckdb(text)})" for name, text in views.items()]
        self.texts = {name: f"with {', '.join(before[: i + 1])} from {name}" for i, name in enumerate(views)}

    def rows(self, view: str, database: Database, read: Sequence[int]) -> list[Row]:
        schemas = ",".join(self._schema(i, database[i]) for i in read)
        return self.connection.execute(f"set search_path = '{schemas}'; {self.texts[view]}").fetchall()

    def _schema(self, number: int, rows: Rows) -> str:
        if (number, rows) not in self.schemas:
            name, table = f"s{len(self.schemas)}", self.tables[number]
            self.schemas[number, rows] = name
            self.connection.execute(f"create schema {name}; set search_path = '{name}'; {_created(table)}")
            if rows:
                values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
                self.connection.execute(f"insert into {table.name} values {values}")
        return self.schemas[number, rows]

    def close(self) -> None:
        self.connection.close()


def _literal(value: Any) -> str:
    match value:
        case None:
            return "null"
        case float() | Decimal():
            return f"'{value}'"
        case dt.date():
            return f"'{value.isoformat()}'"
        case _:
            return repr(value)


def _created(table: Table) -> str:
    """A table without constraints, for databases are sound by their making."""
    columns = ", ".join(f"{c} {t}" for c, t in zip(table.columns, table.types, strict=True))
    return f"create table {table.name} ({columns})"
