"""Base relations with small domains: all contents that they may have, and when their constraints hold.

A table with a key is a set of rows; one without is a bag, in order, so that equal bags are equal. Null is None. Of
values that are equal, such as 0.0 and -0.0, a domain has one; NaN is `NAN`, no other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = frozenset[Row] | tuple[Row, ...]
"""A set of rows, or a bag."""
Database: TypeAlias = tuple[Rows, ...]
"""Of each table its rows."""
State: TypeAlias = frozenset[tuple[Row, int]]
"""A view's rows, each with its number of copies."""
NAN = math.nan


@dataclass(frozen=True)
class Table:
    """A base relation: its columns with their domains (None among them if nullable), its key, its foreign keys.

    Attributes:
        columns: names, those of the key first.
        types: in Spark's SQL.
        key: how many columns the key has; none where a row may stand several times.
        references: positions of columns, and the table whose key of one column each holds.
        unique: positions of columns that are unique.
        most: how many rows it has at most, if it has no key.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    domains: tuple[tuple[Any, ...], ...]
    key: int = 1
    references: tuple[tuple[int, str], ...] = ()
    unique: tuple[int, ...] = ()
    most: int = 2

    @property
    def declared(self) -> str:
        """Its CREATE TABLE statement, in Spark's SQL and DuckDB's and SQLite's."""
        its = zip(self.columns, self.types, self.domains, strict=True)
        items = [f"{c} {t}" + ("" if None in d else " not null") for c, t, d in its]
        items += [f"primary key ({', '.join(self.columns[: self.key])})"] if self.key else []
        items += [f"unique ({self.columns[i]})" for i in self.unique]
        items += [f"foreign key ({self.columns[i]}) references {name}" for i, name in self.references]
        return f"create table {self.name} ({', '.join(items)});"

    @property
    def size(self) -> int:
        """How many contents it may have, if nothing but the key is to hold."""
        others = math.prod(len(domain) for domain in self.domains[self.key :])
        if not self.key:
            return sum(math.comb(others + rows - 1, rows) for rows in range(self.most + 1))
        return int((1 + others) ** math.prod(len(domain) for domain in self.domains[: self.key]))

    def contents(self) -> Iterator[Rows]:
        """All sets of rows that satisfy the key and what is unique; or all bags."""
        if not self.key:
            for rows in range(self.most + 1):
                yield from map(bag, combinations_with_replacement(product(*self.domains), rows))
            return
        others = list(product(*self.domains[self.key :]))
        choices = [[None, *(k + o for o in others)] for k in product(*self.domains[: self.key])]
        for chosen in product(*choices):
            found = [row for row in chosen if row is not None]
            if all(is_unique([row[i] for row in found]) for i in self.unique):
                yield frozenset(found)


def bag(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows in order."""
    return tuple(sorted(rows, key=repr))


def minus(rows: Rows, others: Rows) -> Rows:
    """The rows without others; of a bag as many copies less."""
    if not others:
        return rows
    if isinstance(rows, frozenset):
        return rows - frozenset(others)
    return bag((Counter(rows) - Counter(others)).elements())


def plus(rows: Rows, others: Rows) -> Rows:
    """The rows and others."""
    if not others:
        return rows
    return rows | frozenset(others) if isinstance(rows, frozenset) else bag([*rows, *others])


def is_unique(values: Sequence[Any]) -> bool:
    """Whether no value stands twice; nulls may."""
    known = [value for value in values if value is not None]
    return len(set(known)) == len(known)


def is_sound(tables: Sequence[Table], database: Mapping[str, Rows]) -> bool:
    """Whether all constraints hold."""
    for table in tables:
        rows = database[table.name]
        if table.key and len({row[: table.key] for row in rows}) < len(rows):
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


def updated(
    database: Database, inserted: Sequence[Rows], deleted: Sequence[Rows], *, is_effective: bool
) -> Database | None:
    """A database after an update; None where an effective one makes no sense before."""
    parts = list(zip(database, inserted, deleted, strict=True))
    if is_effective and not all(_is_possible(*part) for part in parts):
        return None
    return tuple(plus(minus(rows, old), new) for rows, new, old in parts)


def _is_possible(rows: Rows, inserted: Rows, deleted: Rows) -> bool:
    """Whether all rows are there that are deleted, and of a set none that is inserted."""
    is_new = not isinstance(rows, frozenset) or not (inserted and rows & frozenset(inserted))
    return is_new and not (deleted and minus(deleted, rows))
