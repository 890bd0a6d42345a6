"""One DuckDB database in memory, and the temporary relations in it.

A relation's table or view is dropped once nobody refers to it. A table is as it was made; a view is computed when it
is used, and keeps what it reads alive.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import duckdb

from datalog.sql import EmissionError, read_set, text
from datalog.sql import duckdb as sql
from datalog.sql.duckdb import SqlType, UnlikeSparkError
from selfmaint.engine.arrow_rows import ArrowTable
from selfmaint.engine.guard import require_allowed
from selfmaint.errors import Code, input_error

_VALUES = (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException)
_LONGEST_LINE = 300


@dataclass(frozen=True, eq=False)
class Stored:
    """A table or view in the database.

    Attributes:
        name: its name, unique in the life of the database.
        types: the types of its columns, which are named `c0`, `c1`, ...
        rows: the number of its rows, if it is a table.
        parents: what a view reads.
    """

    name: str
    types: tuple[SqlType, ...]
    rows: int | None = None
    parents: tuple[Stored, ...] = ()


@dataclass(frozen=True, eq=False)
class Relation:
    """A relation of the DuckDB engine.

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


class Database:
    """A connection, and what was made through it. For one thread."""

    def __init__(self, settings: Mapping[str, str | int] | None = None) -> None:
        """Settings are DuckDB's, such as `memory_limit` and `threads`."""
        folder = Path(tempfile.gettempdir()) / f"selfmaint-{uuid.uuid4().hex}"  # made when DuckDB spills
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        config: dict[str, Any] = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "preserve_insertion_order": "false",
            "temp_directory": str(folder),
            **(settings or {}),
        }
        self._connection = duckdb.connect(":memory:", config=config)
        self._numbers = count()
        self._unused: list[tuple[str, bool]] = []
        self._execute(text(sql.setting("TimeZone", "UTC"), dialect="duckdb"))

    def table(self, query: Any, types: Sequence[SqlType], reads: Collection[str]) -> Stored:
        """A table of the rows of a query, computed now; it may read nothing else than some relations.

        Raises:
            ReadRefusedError: SM403 it does.
            InputError: SM104 a value that an expression or a type does not have.
        """
        _require_reads(query, reads)
        name = self._name()
        with computing():
            made = self._execute(text(sql.create(name, query, held=True), dialect="duckdb")).fetchone()
        assert made is not None
        return self._watched(Stored(name, tuple(types), int(made[0])), held=True)

    def view(self, query: Any, types: Sequence[SqlType], parents: Sequence[Stored]) -> Stored:
        """The rows of a query, computed when they are used."""
        _require_reads(query, [parent.name for parent in parents])
        name = self._name()
        self._execute(text(sql.create(name, query, held=False), dialect="duckdb"))
        return self._watched(Stored(name, tuple(types), None, tuple(parents)), held=False)

    def rows(self, query: Any, reads: Collection[str]) -> ArrowTable:
        """The rows of a query, here.

        Raises:
            InputError: SM104 a value that an expression or a type does not have.
        """
        _require_reads(query, reads)
        with computing():
            found: ArrowTable = self._execute(text(query, dialect="duckdb")).to_arrow_table()
        return found

    def given(self, rows: ArrowTable, types: Sequence[SqlType]) -> Stored:
        """A table of rows that are at hand, columns in order; without types, of so many rows."""
        name = self._name()
        numbered = rows.rename_columns([f"c{i}" for i in range(rows.num_columns)])
        self._connection.register(name, numbered)
        try:
            query = sql.values_of(name, numbered.column_names if types else (), types)
            return self.table(query, types, [name])
        finally:
            self._connection.unregister(name)

    def _execute(self, statement: str) -> duckdb.DuckDBPyConnection:
        while self._unused:
            name, held = self._unused.pop()
            self._connection.execute(text(sql.drop(name, held=held), dialect="duckdb"))
        return self._connection.execute(statement)

    def _name(self) -> str:
        return f"selfmaint_{next(self._numbers)}"

    def _watched(self, stored: Stored, *, held: bool) -> Stored:
        # Not dropped at once: what is collected may be collected in the middle of a statement.
        weakref.finalize(stored, self._unused.append, (stored.name, held))
        return stored


def _require_reads(query: Any, reads: Collection[str]) -> None:
    require_allowed(read_set(query), {(name,) for name in reads})


@contextlib.contextmanager
def computing() -> Iterator[None]:
    """Turns what DuckDB says about values, which comes as it computes them, into an `InputError`.

    Raises:
        InputError: SM104.
    """
    try:
        yield
    except _VALUES as failure:
        line = next(iter(str(failure).splitlines()), "")[:_LONGEST_LINE]
        raise input_error(Code.COLUMNS_DIFFER, f"a value cannot be computed: {line}") from failure


@contextlib.contextmanager
def writing_sql() -> Iterator[None]:
    """Turns what DuckDB does otherwise than Spark into an `InputError`.

    Raises:
        InputError: SM502.
    """
    try:
        yield
    except UnlikeSparkError as unlike:
        message = f"DuckDB does not compute what Spark does here: {unlike}"
        raise input_error(Code.ENGINE_DIFFERS, message, "use the Spark engine") from unlike
    except EmissionError:
        raise
