"""Who orders joins: DuckDB, or who writes them, since its own guesses were 200 times slower for rules.

The setting is changed only before a statement that joins: most that alternate with those of rules read one table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import duckdb


class JoinOrder:
    """The setting of one connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """DuckDB orders joins at first."""
        self._connection = connection
        self._is_wanted = self._is_set = False

    @contextlib.contextmanager
    def as_written(self) -> Iterator[None]:
        """Joins go in the order of their statements meanwhile."""
        self._is_wanted = True
        try:
            yield
        finally:
            self._is_wanted = False

    def settle(self) -> None:
        """To be called before a statement that may join."""
        if self._is_wanted != self._is_set:
            value = (
                "SET disabled_optimizers = 'join_order'" if self._is_wanted else "RESET disabled_optimizers"
            )
            self._connection.execute(value)
            self._is_set = self._is_wanted
