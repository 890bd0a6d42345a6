"""Rows that arrive in batches: small ones are held, larger ones go to a file."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias, final

import pyarrow as pa
import pyarrow.parquet as pq

MEMORY_LIMIT_BYTES = 16 * 2**20
"""How much is held in this process before it goes to a file."""

ArrowSchema: TypeAlias = pa.Schema
ArrowBatch: TypeAlias = pa.RecordBatch
ArrowTable: TypeAlias = pa.Table


@final
class Spill:
    """Collects Arrow batches of one schema, holding a bounded number of bytes.

        with Spill(schema, file) as spill:
            for batch in batches:
                spill.add(batch)
        relation = exchange.entered(spill)

    Attributes:
        rows: how many rows were added.
    """

    def __init__(self, schema: ArrowSchema, file: Path) -> None:
        """Nothing is written to `file` unless the rows need it."""
        self.rows = 0
        self._schema = schema
        self._file = file
        self._waiting: list[ArrowBatch] = []
        self._bytes = 0
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            if kind is None:
                self._flush()
            self._writer.close()

    def add(self, batch: ArrowBatch) -> None:
        """Takes a batch; writes what is held if that has become too much."""
        self.rows += batch.num_rows
        self._bytes += batch.nbytes
        self._waiting.append(batch)
        if self._bytes > MEMORY_LIMIT_BYTES:
            self._flush()

    def table_or_file(self) -> ArrowTable | Path:
        """The rows, once the block has ended: a table, or the Parquet file that they are in."""
        return self._file if self._writer is not None else pa.Table.from_batches(self._waiting, self._schema)

    def _flush(self) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, self._schema)
        self._writer.write_table(pa.Table.from_batches(self._waiting, self._schema))
        self._waiting.clear()
        self._bytes = 0
