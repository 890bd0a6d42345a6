"""Where the rows of a predicate are."""

from __future__ import annotations

from dataclasses import dataclass

from datalog.sql import Table
from selfmaint.duckdb.database import Stored


@dataclass(frozen=True)
class Extension:
    """Where the rows of a predicate are.

    Attributes:
        not_null: the columns that are promised never to be null.
        joined: sets of columns, on whose projections it is promised that the rows are the natural join.
    """

    stored: Stored
    not_null: frozenset[int] = frozenset()
    joined: tuple[frozenset[int], ...] = ()

    @property
    def named(self) -> tuple[int, frozenset[int]]:
        """What tells it from others, and which of its columns are promised never to be null."""
        return self.stored.number, self.not_null

    def table(self) -> Table:
        """The same for a statement."""
        return Table(
            (self.stored.name,), tuple(f"c{i}" for i in range(len(self.stored.types))), self.not_null
        )
