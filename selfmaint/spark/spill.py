"""Rows that arrive in batches, as one DataFrame: small ones through memory, larger ones through a file."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias, final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from selfmaint.spark.formats import spark_path
from selfmaint.spark.frames import from_arrow, positional

MEMORY_LIMIT_BYTES = 16 * 2**20
"""How much is held in this process before it goes to a file."""

ArrowSchema: TypeAlias = pa.Schema
ArrowBatch: TypeAlias = pa.RecordBatch


@final
class Spill:
    """Collects Arrow batches of one schema, holding a bounded number of bytes.

        with Spill(schema, file) as spill:
            for batch in batches:
                spill.add(batch)
        frame = spill.frame(spark)

    Attributes:
        rows: how many rows were added.
    """

    def __init__(self, schema: ArrowSchema, file: Path) -> None:
        """Nothing is written to `file` unless the rows need it; the DataFrame then reads from it."""
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

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows, once the block has ended."""
        names = self._schema.names
        if self._writer is None:
            return from_arrow(spark, pa.Table.from_batches(self._waiting, self._schema))
        return positional(spark.read.parquet(spark_path(str(self._file)))).toDF(*names)

    def _flush(self) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, self._schema)
        self._writer.write_table(pa.Table.from_batches(self._waiting, self._schema))
        self._waiting.clear()
        self._bytes = 0
