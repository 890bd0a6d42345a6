"""Is the new state of views in SQL determined? Every database over small domains is tried.

The definition, with no reasoning: all databases over the given domains that satisfy keys, foreign keys and not-null are
listed. Each view is run over each of them as it is written. Databases in
which all views hold the same, and before which an update makes sense and after which the constraints hold, are
indistinguishable; a view's new state is determined if they all give it the same one. Larger domains may tell apart what
these do not: that a state is open is exact, that it is determined is not.

Shares no code with the product.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

from tests.oracle.sql_engines import evaluated
from tests.oracle.sql_tables import Database, Rows, State, Table, bag, is_sound, minus, plus, updated


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
        inserted = tuple(minus(new, old) for old, new in zip(one, other, strict=True))
        deleted = tuple(minus(old, new) for old, new in zip(one, other, strict=True))
        changed = [
            table for table, new, old in zip(self.tables, inserted, deleted, strict=True) if new or old
        ]
        # A row of a table without a key is there or comes once more: that it may be there already means nothing.
        is_effective = is_effective or not all(table.key for table in changed)
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
        """Some rows that a database has, and one that it has not, of a table with a key."""
        number = random.randrange(len(self.tables))
        table, rows = self.tables[number], database[number]
        if not isinstance(rows, frozenset):
            return {}, {}
        present = frozenset(row for row in rows if random.random() < 0.7)
        row = tuple(random.choice(domain) for domain in table.domains)
        absent = frozenset({row} - rows if random.random() < 0.4 else ())
        return {table.name: present} if present else {}, {table.name: absent} if absent else {}

    def _explains(self, database: Database, present: Mapping[str, Rows], absent: Mapping[str, Rows]) -> bool:
        its = self.named(database)
        return not any(minus(rows, its[n]) for n, rows in present.items()) and all(
            minus(rows, its[n]) == rows for n, rows in absent.items()
        )

    def _changed(self, random: Random, database: Database) -> Database:
        """A database with some rows more, less, or other; the same where that breaks a constraint."""
        found = list(database)
        some = random.sample(range(len(found)), random.choice([1, 1, min(2, len(found))]))
        for i in some:
            table = self.tables[i]
            found[i] = _rows_changed(random, table, found[i])
        after = tuple(found)
        return after if after in self._numbers else database


def _rows_changed(random: Random, table: Table, rows: Rows) -> Rows:
    if not isinstance(rows, frozenset):
        gone = bag(row for row in rows if random.random() < 0.3)
        new = [tuple(map(random.choice, table.domains)) for _ in range(random.choice([0, 1, 1, 2]))]
        copies = random.choices(rows, k=random.choice([0, 0, 1])) if rows else []
        return plus(minus(rows, gone), bag([*new, *copies]))
    found = {row[: table.key]: row for row in rows}
    for _ in range(random.choice([1, 1, 2])):
        row = tuple(map(random.choice, table.domains))
        found.pop(row[: table.key], None)
        if random.random() < 0.6:
            found[row[: table.key]] = row
    return frozenset(found.values())
