"""The temporary relations of a DuckDB database."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from types import NoneType
from typing import TYPE_CHECKING, Any

from datalog.evaluate.sets import Indexed
from datalog.model import Row
from datalog.sql.duckdb import SqlType
from datalog.sql.duckdb import relations as sql
from selfmaint.duckdb.exact_rows import are_in_python
from selfmaint.engine.column_types import is_integer
from selfmaint.engine.protocol import Layout

if TYPE_CHECKING:
    from selfmaint.duckdb.database import Database
    from selfmaint.engine.arrow_rows import ArrowTable


@dataclass(frozen=True, eq=False)
class Stored:
    """A table or view in the database, or rows in this process: a table once a statement reads them.

    Attributes:
        number: unique in the life of the database.
        types: the types of its columns, which are named `c0`, `c1`, ...
        rows: the number of its rows, if it is no view.
        parents: what a view reads.
        layout: what is known of a view's rows without computing them.
        here: its distinct rows, if they were computed in this process.
    """

    database: Database = field(repr=False)
    number: int
    types: tuple[SqlType, ...]
    rows: int | None = None
    parents: tuple[Stored, ...] = ()
    layout: Layout = field(default_factory=Layout)
    here: frozenset[Row] | None = field(default=None, repr=False)

    @cached_property
    def name(self) -> str:
        """Its name in statements."""
        name = f"selfmaint_{self.number}"
        if self.here is not None:
            self.database.settle(name, self)
        return name

    @cached_property
    def few(self) -> Indexed | None:
        """Its distinct rows in this process, if they are few, of types whose values Python has."""
        if self.here is not None or self.rows == 0:
            return Indexed(self.here or frozenset())
        known = self.layout.at_most if self.rows is None else self.rows
        if known is None or known > self.database.most_few or not are_in_python(self.types):
            return None
        rows = self.database.few(self)
        return None if rows is None else Indexed(rows)

    @cached_property
    def with_null(self) -> frozenset[int]:
        """The columns of the few rows that hold a null."""
        columns = zip(*(() if self.few is None else self.few.rows), strict=True)
        return frozenset(i for i, column in enumerate(columns) if NoneType in set(map(type, column)))

    @cached_property
    def span(self) -> tuple[float, float]:
        """From where to where the values of a first column of whole numbers go; without bounds where these are not."""
        if not self.types or not is_integer(self.types[0]):
            return -math.inf, math.inf
        if self.here is not None:
            ends: list[Any] = [row[0] for row in self.here if row[0] is not None]
            return (min(ends), max(ends)) if ends else (-math.inf, math.inf)
        ((first, last),) = self.database.plain_rows(sql.span(self.name), [self.name])
        return (-math.inf, math.inf) if first is None else (first, last)

    @property
    def known_rows(self) -> int | None:
        """The number of rows, if it is known without computing them."""
        return self.layout.rows if self.rows is None else self.rows

    def most_rows(self, *, derived_too: bool = True) -> float:
        """At most how many rows it has, as far as that is known: only costs depend on it.

        `derived_too`: what is computed when it is used has few where what it reads has; else that may have many.
        """
        known = self.layout.at_most if self.rows is None else self.rows
        if known is not None:
            return known
        if not self.parents or not derived_too:
            return math.inf
        return sum(parent.most_rows() for parent in self.parents)


@dataclass(frozen=True, eq=False)
class Relation:
    """A relation of the DuckDB engine; it offers an Arrow stream, which polars, pandas, Arrow and DuckDB take.

        pyarrow.table(delta.gained), polars.DataFrame(delta.gained), delta.gained.arrow().to_pandas()

    Attributes:
        stored: where its rows are.
        columns: the names of its columns.
    """

    stored: Stored
    columns: tuple[str, ...]

    @property
    def types(self) -> tuple[SqlType, ...]:
        """The types of its columns."""
        return self.stored.types

    def arrow(self) -> ArrowTable:
        """Its rows as an Arrow table, computed now; instants in UTC.

        Raises:
            InputError: SM104 a value that an expression or a type does not have.
        """
        stored = self.stored
        found = stored.database.rows(sql.rows(stored.name, len(stored.types)), [stored.name])
        return found.rename_columns(list(self.columns)) if self.columns else found.select([])

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Its rows as a capsule of Arrow's C stream interface, computed now."""
        return self.arrow().__arrow_c_stream__(requested_schema)
