"""Rows that enter DuckDB and leave it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from msgspec import Struct

from datalog.model import ColumnType, Row
from datalog.sql.duckdb import Query
from datalog.sql.duckdb import relations as sql
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.exact_rows import ZONE, arrow_rows, found_rows, language_types
from selfmaint.duckdb.files import read_as_stored, read_contents
from selfmaint.duckdb.relation import Relation
from selfmaint.engine.arrow_types import column_type
from selfmaint.store.exchange import Frame, Rows, Spill
from selfmaint.store.expected import Expected
from selfmaint.store.frames import ArrowStream, arrow_frame


def given_frame(database: Database, rows: ArrowStream, name: str, unread: Collection[str] = ()) -> Relation:
    """The rows of a frame of another library, without the columns that are not read.

    Raises:
        InputError: SM104 types or values that the language does not have; `name` says whose.
    """
    table = arrow_frame(rows, name, unread)
    held = table if table.num_columns else arrow_rows([()] * table.num_rows, ())
    stored = database.given(held, [column_type(field.type) for field in table.schema])
    return Relation(stored, tuple(table.column_names))


class DuckExchange(Struct, frozen=True):
    """An `Exchange` of a database."""

    database: Database
    zone = ZONE

    def entered(self, spill: Spill) -> Relation:
        """See `Exchange`."""
        found = spill.table_or_file()
        if isinstance(found, Path):
            return read_as_stored(self.database, str(found), "what was read")
        types = [column_type(field.type) for field in found.schema]
        return Relation(self.database.given(found, types), tuple(found.column_names))

    def stored(self, location: str, expected: Expected) -> Relation:
        """See `Exchange`."""
        return read_contents(self.database, location, expected, declared=True)

    def frame(self, given: object) -> Frame[Relation] | None:
        """See `Exchange`."""
        return None

    def computed(
        self,
        query: Callable[[Sequence[str]], Query],
        parts: Sequence[Relation],
        columns: Sequence[tuple[str, ColumnType]],
    ) -> Relation:
        """See `Exchange`."""
        read = [part.stored for part in parts]
        made = query([stored.name for stored in read])
        stored = self.database.view(made, [kind for _, kind in columns], read)
        return Relation(stored, tuple(name for name, _ in columns))

    def distinct(self, data: Relation) -> Rows:
        """See `Exchange`."""
        return Rows(language_types(data.types), self._distinct(data))

    def _distinct(self, data: Relation) -> Iterator[Row]:
        width = len(data.columns)
        query = sql.rows(data.stored.name, width, distinct=True)
        for batch in self.database.batches(query, [data.stored.name]):
            yield from found_rows(pa.Table.from_batches([batch]), width)
