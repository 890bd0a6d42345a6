"""Base relations in files on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
from msgspec import Struct

from datalog.model import TypeName
from datalog.sql.duckdb import SqlType
from datalog.sql.duckdb import relations as sql
from datalog.sql.duckdb.spans import between
from selfmaint.duckdb.engine import DuckEngine
from selfmaint.duckdb.extensions import Extension
from selfmaint.duckdb.files import read_contents
from selfmaint.duckdb.keys_apart import rows_of_keys
from selfmaint.duckdb.relation import Relation
from selfmaint.sources.between import Between
from selfmaint.sources.protocol import Read, Stored
from selfmaint.store.expected import Expected

_FAILURES = (duckdb.Error,)
_BITS = {
    TypeName.BOOLEAN: 1,
    TypeName.TINYINT: 8,
    TypeName.SMALLINT: 16,
    TypeName.INT: 32,
    TypeName.FLOAT: 32,
    TypeName.DATE: 32,
    TypeName.STRING: 32,
    TypeName.DECIMAL: 128,
}
"""What a value takes in Arrow's layout, the letters of a text apart; 64 bits where nothing is said."""


class StoredFiles(Struct, frozen=True):
    """Where a base relation is stored, and what it holds.

    Attributes:
        location: a file, or a folder of files.
        expected: names and types of its columns.
        declared: whether the names of the columns are declared; if not, columns may match by position.
    """

    location: str
    expected: Expected
    declared: bool = True


class DuckSource(Stored[StoredFiles]):
    """Base relations that DuckDB reads: Parquet, CSV and JSON lines."""

    def __init__(self, name: str, engine: DuckEngine, relations: Mapping[str, StoredFiles]) -> None:
        super().__init__(name, relations)
        self._engine = engine

    def row_count(self, relation: str) -> int:
        """The relation's size: of Parquet files from their footers, else counted.

        Raises:
            SourceError: SM102 unknown, SM103 not there, SM104 other columns.
        """
        stored = self._stored(relation)
        with self._as_source_error(relation, _FAILURES):
            from selfmaint.duckdb.parquet_files import parquet_rows  # noqa: PLC0415 - Arrow only for Parquet

            rows = parquet_rows(stored.location)
            return self._engine.count(self._opened(stored)) if rows is None else rows

    def read(self, relation: str, key_columns: Sequence[str], keys: Relation | None) -> tuple[Relation, Read]:
        """The rows whose `key_columns` equal one of `keys` (nulls equal), or all of them; each as often as it is there.

        Raises:
            SourceError: SM102 unknown, SM103 not there, SM104 other columns.
        """
        stored = self._stored(relation)
        with self._as_source_error(relation, _FAILURES):
            rows = self._opened(stored)
            its = rows if keys is None else self._of_keys(rows, key_columns, keys)
            found = self._engine.keep(its)
            count = self._engine.count(found)
            size = self._size(found, count)
            asked = 0 if keys is None else self._engine.count(keys)
        columns = () if keys is None else tuple(key_columns)
        return found, Read(relation, columns, asked, count, size, self._name)

    def read_between(self, relation: str, asked: Between) -> tuple[Relation, Read]:
        """The relation's rows with a value in some spans, each as often as it is there.

        Raises:
            SourceError: SM102 unknown, SM103 not there, SM104 other columns.
        """
        stored = self._stored(relation)
        with self._as_source_error(relation, _FAILURES):
            rows = self._opened(stored)
            at, name = rows.columns.index(asked.column), rows.stored.name
            query = between(name, rows.types, at, asked.texts, with_null=asked.with_null)
            its = self._engine.database.view(query, rows.types, [rows.stored])
            found = self._engine.keep(Relation(its, rows.columns))
            count = self._engine.count(found)
            size = self._size(found, count)
        return found, Read(relation, (asked.column,), asked.number, count, size, self._name, is_of_spans=True)

    def version(self) -> str | None:
        """None: files do not say."""
        return None

    def _of_keys(self, rows: Relation, key_columns: Sequence[str], keys: Relation) -> Relation:
        columns = [rows.columns.index(column) for column in key_columns]
        found = rows_of_keys(self._engine.database, Extension(rows.stored), columns, Extension(keys.stored))
        return self._engine.like(Relation(found, rows.columns), rows)

    def _size(self, rows: Relation, count: int) -> int:
        """The bytes that rows take in Arrow's layout, validity bitmaps left out."""
        texts = [
            i
            for i, kind in enumerate(rows.types)
            if not isinstance(kind, str) and kind.name is TypeName.STRING
        ]
        letters = sql.letters(rows.stored.name, texts)
        ((number,),) = self._engine.database.plain_rows(letters, [rows.stored.name])
        return int(number) + count * sum(map(_width_bits, rows.types)) // 8

    def _opened(self, stored: StoredFiles) -> Relation:
        return read_contents(
            self._engine.database, stored.location, stored.expected, declared=stored.declared
        )


def _width_bits(kind: SqlType) -> int:
    return 64 if isinstance(kind, str) else _BITS.get(kind.name, 64)
