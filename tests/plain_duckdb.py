"""DuckDB as an oracle: connections to one database, which takes longer to start than most queries to run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache

import duckdb


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


@contextlib.contextmanager
def plain_duckdb() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection; what is made through it is gone at the end."""
    with _database().cursor() as connection:
        connection.begin()
        try:
            yield connection
        finally:
            connection.rollback()
