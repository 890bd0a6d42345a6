"""Settings of DuckDB that go with a statement, changed only where they have to be.

Who orders joins: DuckDB, or who writes them, since its own guesses were 200 times slower for rules. It is changed only
before a statement that joins: most that alternate with those of rules read one table.

How many threads: one for few rows. To wake the others takes longer than such a statement, and their processor time,
too; but to change their number takes as long as some statements, so that it is done only after some in a row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import duckdb

MANY_ROWS = 100_000
"""A statement that reads more rows is run by all threads."""

_PATIENCE = 6
"""After so many statements over fewer rows one thread runs them."""


class Tuning:
    """The settings of one connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """DuckDB orders joins at first; one thread runs statements."""
        self._connection = connection
        self._is_wanted = self._is_set = False
        ((self._threads,),) = connection.execute("SELECT current_setting('threads')").fetchall()
        self._few, self._is_alone = 0, self._threads == 1
        self._be(alone=True)

    @contextlib.contextmanager
    def as_written(self) -> Iterator[None]:
        """Joins go in the order of their statements meanwhile."""
        self._is_wanted = True
        try:
            yield
        finally:
            self._is_wanted = False

    def settle_joins(self) -> None:
        """To be called before a statement that may join."""
        if self._is_wanted != self._is_set:
            value = (
                "SET disabled_optimizers = 'join_order'" if self._is_wanted else "RESET disabled_optimizers"
            )
            self._connection.execute(value)
            self._is_set = self._is_wanted

    def settle_threads(self, rows: float) -> None:
        """To be called before a statement that reads so many rows at most."""
        self._few = 0 if rows > MANY_ROWS else self._few + 1
        if self._few == 0:
            self._be(alone=False)
        elif self._few >= _PATIENCE:
            self._be(alone=True)

    def lock(self) -> None:
        """All threads run statements from here on."""
        self._be(alone=False)
        self._threads = 1

    def _be(self, *, alone: bool) -> None:
        if alone != self._is_alone and self._threads > 1:
            self._connection.execute(f"SET threads = {1 if alone else self._threads}")
            self._is_alone = alone
