"""What passes between an engine and this process, a bounded number of rows at a time, and statements over it.

Those that arrive in batches are held if they are few; more go to a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeAlias, TypeVar, final

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from datalog.model import ColumnType, Row
from datalog.sql.changes import Query
from selfmaint.engine.protocol import D
from selfmaint.store.expected import Expected

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


R_co = TypeVar("R_co", covariant=True)


class Rows(Struct, frozen=True):
    """Rows that leave an engine.

    Attributes:
        types: the types of their columns; None for one that the language does not have.
        rows: them, to be gone through once; instants as a clock in UTC shows them.
    """

    types: Sequence[ColumnType | None]
    rows: Iterable[Row]


class Frame(Protocol[R_co]):
    """Rows whose columns may be of any type, structs among them."""

    @property
    def columns(self) -> Sequence[str]:
        """Their names."""
        ...

    def records(self) -> Iterator[object]:
        """The rows, in no order: mappings from columns to values, or texts of JSON."""
        ...

    def rows(self, expected: Expected) -> R_co:
        """Some columns, matched by name, in their types.

        Raises:
            InputError: SM104 other types.
        """
        ...


class Exchange(Protocol[D]):
    """How rows enter an engine and leave it."""

    @property
    def zone(self) -> str:
        """The time zone on whose clock timestamps without a zone of their own are."""
        ...

    def entered(self, spill: Spill) -> D:
        """The rows of a spill that has ended; a file is read when they are used."""
        ...

    def stored(self, location: str, expected: Expected) -> D:
        """The rows of a file.

        Raises:
            InputError: SM103 it is not there; SM104 other columns or types.
        """
        ...

    def frame(self, given: object) -> Frame[D] | None:
        """A frame that is the engine's own; None for anything else."""
        ...

    def distinct(self, data: D) -> Rows:
        """The distinct rows of a relation.

        Raises:
            InputError: SM104 a value that this process does not have, such as a year after 9999; as they come.
        """
        ...

    def computed(
        self,
        query: Callable[[Sequence[str]], Query],
        parts: Sequence[D],
        columns: Sequence[tuple[str, ColumnType]],
    ) -> D:
        """The rows of a query over some relations, when they are used.

        The query is made of the relations' names; their columns are `c0`, `c1`, ..., and so are its own.
        """
        ...
