"""What DuckDB reads and writes: files on this machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from datalog.copies import replace
from datalog.model import ANY, ColumnType
from selfmaint.api.columns import Columns
from selfmaint.api.file.places import Location
from selfmaint.api.file.warehouse_file import RelationEntry, SourceEntry, SourceKind
from selfmaint.api.platforms.platform import TableWrites, expected_columns, not_a_frame
from selfmaint.duckdb import DuckEngine, Relation
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.failures import refused
from selfmaint.duckdb.file_source import DuckSource, StoredFiles
from selfmaint.duckdb.files import conform, read_as_stored, read_contents, retyped
from selfmaint.duckdb.writing import writing
from selfmaint.errors import SourceError
from selfmaint.sources.protocol import Source
from selfmaint.store.formats import format_of
from selfmaint.store.write import Write

if TYPE_CHECKING:
    import pyarrow as pa

    from selfmaint.duckdb.exchange import DuckExchange
    from selfmaint.duckdb.store import Store
    from selfmaint.store.frames import ArrowStream
    from selfmaint.store.stored_tables import TableChange, TableFiles


class DuckPlatform(Struct, frozen=True):
    """A `Platform` over one DuckDB database."""

    engine: DuckEngine

    def read_rows(self, location: Location, columns: Columns) -> Relation:
        if location.is_table:
            raise refused(f"`{columns.name}` is the table `{location.text}` of Spark's catalog")
        if columns.open:
            return read_as_stored(self.engine.database, location.text, columns.name)
        types = columns.types_in(format_of(location.text))
        expected = replace(expected_columns(columns), types=types)
        return read_contents(self.engine.database, location.text, expected, declared=columns.declared)

    @property
    def store_database(self) -> Database:
        return self.engine.database

    def read_stored(self, table: TableFiles, columns: Columns) -> Relation:
        from selfmaint.duckdb.store import stored_rows  # noqa: PLC0415 - only where there is a store

        found = stored_rows(self.engine.database, table)
        if columns.open:
            return found
        return conform(self.engine.database, found, expected_columns(columns), declared=True)

    def in_store(self, store: Store, rows: Relation, folder: Path) -> Relation:
        assert store.database is rows.stored.database
        return self.engine.keep(rows)

    def answered(
        self, query: str, views: Mapping[str, TableFiles | Relation], bases: Collection[str]
    ) -> AbstractContextManager[pa.RecordBatchReader]:
        from selfmaint.duckdb.query import answered  # noqa: PLC0415 - only where there is a query

        return answered(query, views, bases, self.engine.database.settings)

    def fit_rows(self, rows: Relation | ArrowStream, columns: Columns) -> Relation:
        database = self.engine.database
        if not isinstance(rows, Relation) or rows.stored.database is not database:
            from selfmaint.duckdb.exchange import given_frame  # noqa: PLC0415 - Arrow only where rows are given
            from selfmaint.store.frames import ArrowStream  # noqa: PLC0415

            if not isinstance(rows, ArrowStream):  # callers may not be type-checked
                raise not_a_frame(rows, columns)
            rows = given_frame(database, rows, columns.name, columns.unread)
        if columns.open:
            return rows
        return conform(database, rows, expected_columns(columns), declared=columns.declared)

    def digest(self, rows: Relation) -> tuple[int, str]:
        return self.engine.database.digest(rows.stored)

    def types(self, rows: Relation) -> tuple[ColumnType, ...]:
        return tuple(ANY if isinstance(kind, str) else kind for kind in rows.types)

    def retyped(self, rows: Relation, types: Sequence[ColumnType]) -> Relation:
        return retyped(self.engine.database, rows, range(len(types)), types)

    def counted(self, rows: Relation, names: Sequence[str]) -> Relation:
        return self.engine.bags.counted(rows, names)

    def source(
        self, entry: SourceEntry, relations: Mapping[str, RelationEntry], columns: Mapping[str, Columns]
    ) -> Source[Relation]:
        if entry.kind is not SourceKind.FILES:
            raise SourceError(refused(f"the source `{entry.name}` is in Spark's catalog").diagnostics)
        stored = {
            name: StoredFiles(
                relation.location.text,
                expected_columns(columns[name]),
                columns[name].declared,
            )
            for name, relation in relations.items()
        }
        return DuckSource(entry.name, self.engine, stored)

    @property
    def exchange(self) -> DuckExchange:
        from selfmaint.duckdb.exchange import DuckExchange  # noqa: PLC0415 - see `fit_rows`

        return DuckExchange(self.engine.database)

    def writing(self, rows: Relation) -> Write:
        return writing(self.engine.database, rows)

    def table_writes(self, changes: Sequence[TableChange[Relation]]) -> AbstractContextManager[TableWrites]:
        """See `Platform`: there are no such tables here."""
        raise refused(f"`{changes[0].view}` is in a table of Spark's catalog")
