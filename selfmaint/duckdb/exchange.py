"""Rows that enter DuckDB and leave it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from datalog.model import Row
from datalog.sql import duckdb as sql
from selfmaint.duckdb.database import Database, Relation
from selfmaint.duckdb.exact_rows import found_rows, language_types, stored_type
from selfmaint.duckdb.files import read_as_stored
from selfmaint.store.exchange import Rows
from selfmaint.store.spill import Spill


@dataclass(frozen=True, slots=True)
class DuckExchange:
    """An `Exchange` of a database."""

    database: Database

    def entered(self, spill: Spill) -> Relation:
        """See `Exchange`; a file is read when the rows are used."""
        found = spill.table_or_file()
        if isinstance(found, Path):
            return read_as_stored(self.database, str(found), "what was read")
        types = [stored_type(field.type) for field in found.schema]
        return Relation(self.database.given(found, types), tuple(found.column_names))

    def distinct(self, data: Relation) -> Rows:
        """See `Exchange`."""
        return Rows(language_types(data.types), self._distinct(data))

    def _distinct(self, data: Relation) -> Iterator[Row]:
        width = len(data.columns)
        query = sql.rows(data.stored.name, width, distinct=True)
        for batch in self.database.batches(query, [data.stored.name]):
            yield from found_rows(pa.Table.from_batches([batch]), width)
