"""Where the rows of a predicate are."""

from __future__ import annotations

from dataclasses import dataclass

from datalog.sql import Table
from selfmaint.duckdb.database import Stored


@dataclass(frozen=True)
class Extension:
    """Where the rows of a predicate are."""

    stored: Stored
    not_null: frozenset[int] = frozenset()

    def table(self) -> Table:
        """The same for a statement."""
        return Table(
            (self.stored.name,), tuple(f"c{i}" for i in range(len(self.stored.types))), self.not_null
        )
