"""Where the rows of a predicate are, and rules over such as SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from datalog.model import Predicate, Rule
from datalog.rewrite.reachable import predicates_of
from datalog.sql import Table
from datalog.sql.duckdb.rules import Derived, derived
from selfmaint.duckdb.failures import writing_sql
from selfmaint.duckdb.relation import Stored
from selfmaint.engine.protocol import NOTHING_PROMISED, Dependencies


class Extension(Struct, frozen=True):
    """Where the rows of a predicate are.

    Attributes:
        not_null: the columns that are promised never to be null.
        dependencies: what is promised of its rows.
    """

    stored: Stored
    not_null: frozenset[int] = frozenset()
    dependencies: Dependencies = NOTHING_PROMISED

    @property
    def named(self) -> tuple[int, frozenset[int]]:
        """What tells it from others, and which of its columns are promised never to be null."""
        return self.stored.number, self.not_null

    def table(self) -> Table:
        """The same for a statement."""
        return Table(
            (self.stored.name,), tuple(f"c{i}" for i in range(len(self.stored.types))), self.not_null
        )


Extensions: TypeAlias = Mapping[Predicate, Extension]


def read_by(rules: Sequence[Rule], known: Extensions) -> dict[Predicate, Extension]:
    """What some rules read."""
    return {p: known[p] for rule in rules for p in predicates_of(rule.body)}


def written(rules: Sequence[Rule], read: Extensions) -> Derived:
    """The rules of one predicate as SQL, over what they read."""
    tables = {p: extension.table() for p, extension in read.items()}
    with writing_sql():
        return derived(rules, tables, {p: one.stored.types for p, one in read.items()})
