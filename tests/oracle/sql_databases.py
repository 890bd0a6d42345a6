"""Is the new state of views in SQL determined? Every database over small domains is tried.

The definition, with no reasoning: all databases over the given domains that satisfy keys, foreign keys and not-null are
listed. Each view is run over each of them as it is written, by SQLite, or by DuckDB where SQLite cannot. Databases in
which all views hold the same, and before which an update makes sense and after which the constraints hold, are
indistinguishable; a view's new state is determined if they all give it the same one. Larger domains may tell apart what
these do not: that a state is open is exact, that it is determined is not.

Shares no code with the product. Base relations are sets of rows, views are bags; null is None.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any, TypeAlias

import duckdb

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = frozenset[Row]
Database: TypeAlias = tuple[Rows, ...]
"""Of each table its rows."""
State: TypeAlias = frozenset[tuple[Row, int]]
"""A view's rows, each with its number of copies."""


@dataclass(frozen=True)
class Table:
    """A base relation: its columns with their domains (None among them if nullable), its key, its foreign keys.

    Attributes:
        columns: names, those of the key first.
        types: `int` or `string`.
        key: how many columns the key has.
        references: positions of columns, and the table whose key of one column each holds.
        unique: positions of columns that are unique.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    domains: tuple[tuple[Any, ...], ...]
    key: int = 1
    references: tuple[tuple[int, str], ...] = ()
    unique: tuple[int, ...] = ()

    @property
    def declared(self) -> str:
        """Its CREATE TABLE statement, in Spark's SQL and DuckDB's and SQLite's."""
        its = zip(self.columns, self.types, self.domains, strict=True)
        items = [f"{c} {t}" + ("" if None in d else " not null") for c, t, d in its]
        items.append(f"primary key ({', '.join(self.columns[: self.key])})")
        items += [f"unique ({self.columns[i]})" for i in self.unique]
        items += [f"foreign key ({self.columns[i]}) references {name}" for i, name in self.references]
        return f"create table {self.name} ({', '.join(items)});"

    @property
    def size(self) -> int:
        """How many contents it may have, if nothing but the key is to hold."""
        others = math.prod(len(domain) for domain in self.domains[self.key :])
        return int((1 + others) ** math.prod(len(domain) for domain in self.domains[: self.key]))

    def contents(self) -> Iterator[Rows]:
        """All sets of rows that satisfy the key and what is unique."""
        others = list(product(*self.domains[self.key :]))
        choices = [[None, *(k + o for o in others)] for k in product(*self.domains[: self.key])]
        for chosen in product(*choices):
            rows = [row for row in chosen if row is not None]
            if all(is_unique([row[i] for row in rows]) for i in self.unique):
                yield frozenset(rows)


def is_unique(values: Sequence[Any]) -> bool:
    """Whether no value stands twice; nulls may."""
    known = [value for value in values if value is not None]
    return len(set(known)) == len(known)


def is_sound(tables: Sequence[Table], database: Mapping[str, Rows]) -> bool:
    """Whether all constraints hold."""
    for table in tables:
        rows = database[table.name]
        if len({row[: table.key] for row in rows}) < len(rows):
            return False
        if not all(is_unique([row[i] for row in rows]) for i in table.unique):
            return False
        nulls = (row[i] is None for row in rows for i, its in enumerate(table.domains) if None not in its)
        if any(nulls) or not all(refers(rows, i, database[name]) for i, name in table.references):
            return False
    return True


def refers(rows: Rows, column: int, target: Rows) -> bool:
    """Whether what is known of a column is a key of other rows."""
    return {row[column] for row in rows} - {None} <= {row[0] for row in target}


# ------------------------------------------------------------------------------------------------ evaluation


def evaluated(
    tables: Sequence[Table],
    views: Mapping[str, str],
    databases: Sequence[Database],
    *,
    by_duckdb: bool = False,
) -> dict[str, list[State]]:
    """What each view holds on each database; views may read those before them."""
    by_duckdb = by_duckdb or any(NOT_SQLITE.search(text) for text in views.values())
    with closing(_DuckDB(tables, views) if by_duckdb else _SQLite(tables, views)) as engine:
        read = read_by(tables, views)
        known: dict[Any, State] = {}
        held: dict[str, list[State]] = {name: [] for name in views}
        for database in databases:
            for name, found in held.items():
                key = (name, *(database[i] for i in read[name]))
                if key not in known:
                    known[key] = frozenset(Counter(engine.rows(name, database, read[name])).items())
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


NOT_SQLITE = re.compile(r"\b(rollup|cube|grouping|(except|intersect)\s+all)\b", re.IGNORECASE)
"""What SQLite has not, and what is no function that it can be told."""


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
        # Its own of nulls alone is null, where Spark's is 0.
        self.connection.execute("create macro count_true(c) as count(*) filter (where c)")
        written = {name: text.replace("count_if(", "memory.main.count_true(") for name, text in views.items()}
        before = [f"{name} as ({text})" for name, text in written.items()]
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
    return "null" if value is None else repr(value)


def _created(table: Table) -> str:
    """A table without constraints, for databases are sound by their making."""
    columns = ", ".join(f"{c} {t}" for c, t in zip(table.columns, table.types, strict=True))
    return f"create table {table.name} ({columns})"


# ------------------------------------------------------------------------------------------------- questions


@dataclass(frozen=True)
class Question:
    """What is known, and the answers.

    Attributes:
        inserted: the update's rows by table, where there are any.
        deleted: the same.
        is_effective: whether inserted rows were absent before, and deleted ones present.
        contents: each view's rows before.
        present: rows known to be there before, by table, where there are any.
        absent: rows known not to be there before.
        states: for each view the states that it may have after the update, with a database before that gives it.
        databases: the databases that explain what is known.
    """

    inserted: Mapping[str, Rows]
    deleted: Mapping[str, Rows]
    is_effective: bool
    contents: Mapping[str, State]
    present: Mapping[str, Rows]
    absent: Mapping[str, Rows]
    states: Mapping[str, Mapping[State, Database]]
    databases: tuple[Database, ...]


class Everything:
    """All databases of some tables, and what each view holds on each."""

    def __init__(self, tables: Sequence[Table], views: Mapping[str, str], *, by_duckdb: bool = False) -> None:
        self.tables = tuple(tables)
        self.views = dict(views)
        every = product(*(list(table.contents()) for table in tables))
        self.databases = [one for one in every if is_sound(tables, self.named(one))]
        self._numbers = {one: number for number, one in enumerate(self.databases)}
        self.held = evaluated(tables, views, self.databases, by_duckdb=by_duckdb)

    def named(self, database: Database) -> dict[str, Rows]:
        """The rows of a database by table."""
        return {table.name: rows for table, rows in zip(self.tables, database, strict=True)}

    def states(self, database: Database) -> dict[str, State]:
        """What each view holds on one of the databases."""
        return {name: held[self._numbers[database]] for name, held in self.held.items()}

    def question(
        self, random: Random, *, is_effective: bool = True, with_copies: bool = False
    ) -> Question | None:
        """A random update and one of the contents that the views may have before; None where it changes nothing."""
        one = random.choice(self.databases)
        other = self._changed(random, one)
        if other == one:
            return None
        inserted = tuple(new - old for old, new in zip(one, other, strict=True))
        deleted = tuple(old - new for old, new in zip(one, other, strict=True))
        groups: dict[tuple[State, ...], list[tuple[int, int]]] = defaultdict(list)
        for number, database in enumerate(self.databases):
            after = updated(database, inserted, deleted, is_effective=is_effective)
            if after is not None and after in self._numbers:
                known = tuple(held[number] for held in self.held.values())
                groups[known].append((number, self._numbers[after]))
        # The contents of a database, or any: the empty database has many like it, and most contents have few.
        known = tuple(held[self._numbers[one]] for held in self.held.values())
        if random.random() < 0.5:
            known = random.choice([*groups])
        pairs = [(self.databases[old], new) for old, new in groups[known]]
        present, absent = self._copies(random, random.choice(pairs)[0]) if with_copies else ({}, {})
        pairs = [(database, new) for database, new in pairs if self._explains(database, present, absent)]
        return Question(
            self._some(inserted),
            self._some(deleted),
            is_effective,
            dict(zip(self.views, known, strict=True)),
            present,
            absent,
            {name: {its[new]: database for database, new in pairs} for name, its in self.held.items()},
            tuple(database for database, _ in pairs),
        )

    def _some(self, rows: Sequence[Rows]) -> dict[str, Rows]:
        return {table.name: its for table, its in zip(self.tables, rows, strict=True) if its}

    def _copies(self, random: Random, database: Database) -> tuple[dict[str, Rows], dict[str, Rows]]:
        """Some rows that a database has, and one that it has not."""
        number = random.randrange(len(self.tables))
        table, rows = self.tables[number], database[number]
        present = frozenset(row for row in rows if random.random() < 0.7)
        row = tuple(random.choice(domain) for domain in table.domains)
        absent = frozenset({row} - rows if random.random() < 0.4 else ())
        return {table.name: present} if present else {}, {table.name: absent} if absent else {}

    def _explains(self, database: Database, present: Mapping[str, Rows], absent: Mapping[str, Rows]) -> bool:
        its = self.named(database)
        return all(rows <= its[n] for n, rows in present.items()) and not any(
            rows & its[n] for n, rows in absent.items()
        )

    def _changed(self, random: Random, database: Database) -> Database:
        """A database with some rows more, less, or other; the same where that breaks a constraint."""
        found = list(database)
        some = random.sample(range(len(found)), random.choice([1, 1, min(2, len(found))]))
        for i in some:
            table = self.tables[i]
            rows = {row[: table.key]: row for row in found[i]}
            for _ in range(random.choice([1, 1, 2])):
                key = tuple(random.choice(domain) for domain in table.domains[: table.key])
                row = key + tuple(random.choice(domain) for domain in table.domains[table.key :])
                rows = {k: its for k, its in rows.items() if k != key} | (
                    {key: row} if random.random() < 0.6 else {}
                )
            found[i] = frozenset(rows.values())
        after = tuple(found)
        return after if after in self._numbers else database


def updated(
    database: Database, inserted: Sequence[Rows], deleted: Sequence[Rows], *, is_effective: bool
) -> Database | None:
    """A database after an update; None where an effective one makes no sense before."""
    parts = list(zip(database, inserted, deleted, strict=True))
    if is_effective and any(new & rows or not old <= rows for rows, new, old in parts):
        return None
    return tuple(rows - old | new for rows, new, old in parts)
