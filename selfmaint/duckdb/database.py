"""One DuckDB database in memory, and the temporary relations in it.

A relation's table or view is dropped once nobody refers to it. A table is as it was made; a view is computed when it
is used, and keeps what it reads alive.
"""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from datalog.model import ColumnType, Row, TypeName
from datalog.sql import read_set, text
from datalog.sql.duckdb import Query, SqlType
from datalog.sql.duckdb import relations as sql
from datalog.sql.duckdb.texts import csv, escaped
from datalog.sql.duckdb.types import sql_type
from selfmaint.duckdb.exact_rows import arrow_rows, has_odd_value, listed, rows_of
from selfmaint.duckdb.failures import as_input_error, changed
from selfmaint.duckdb.file_marks import FileMarks
from selfmaint.duckdb.loading import UNCHECKED
from selfmaint.duckdb.relation import Stored
from selfmaint.duckdb.tuning import Tuning
from selfmaint.duckdb.watch import spent_if_interrupted, within_budget
from selfmaint.engine.guard import require_allowed
from selfmaint.engine.protocol import Layout
from selfmaint.errors import InputError

if TYPE_CHECKING:  # Arrow is imported where rows are given, or values leave that are not plain
    import pyarrow as pa

    from selfmaint.engine.arrow_rows import ArrowTable

_BATCH = 10_000
MOST_FEW = 5_000
"""Relations of so many rows are few: this process computes with them sooner than a statement is planned."""


@lru_cache(maxsize=1_000)
def _listed(types: tuple[SqlType, ...]) -> str:
    """The query of rows that are given as parameters."""
    return text(sql.listed(types), pretty=False, dialect="duckdb", once=True)


class Database:
    """A connection, and what was made through it. For one thread."""

    def __init__(self, settings: Mapping[str, str | int] | None = None, most_few: int = MOST_FEW) -> None:
        """Settings are DuckDB's, such as `memory_limit` and `threads`; relations of at most so many rows are few."""
        self.most_few, self.settings = most_few, settings
        folder = Path(tempfile.gettempdir()) / f"selfmaint-{uuid.uuid4().hex}"  # made when DuckDB spills
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        config: dict[str, Any] = {
            **UNCHECKED,
            "preserve_insertion_order": "false",
            "python_enable_replacements": "false",
            "temp_directory": str(folder),
            **(settings or {}),
        }
        self._connection = duckdb.connect(":memory:", config=config)
        self.tuning = Tuning(self._connection)
        self._relations = weakref.WeakValueDictionary[str, Stored]()
        self._numbers = count()
        self._unused: list[tuple[str, bool]] = []
        self._in_transaction = False
        self._files = FileMarks(self._connection)
        self._connection.execute("SET TimeZone = 'UTC'")

    def write_parquet(self, query: Query, file: Path, reads: Collection[str], *, dictionaries: bool) -> None:
        """Writes the rows of a query as a file."""
        _require_reads(query, reads)
        with self._computing():
            statement = text(sql.copy_to(query, str(file), dictionaries=dictionaries), dialect="duckdb")
            self._execute(statement, rows=self._most(reads))

    def write_csv(self, query: Query, file: Path, reads: Collection[str]) -> None:
        """Writes the texts of a query as a CSV file with a header line: null is nothing, the empty text two quotes."""
        _require_reads(query, reads)
        with self._computing():
            self._sql(text(query, dialect="duckdb"), self._most(reads)).write_csv(
                str(file), header=True, na_rep=""
            )

    def batches(self, query: Query, reads: Collection[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a query, some at a time."""
        _require_reads(query, reads)
        with self._computing():
            yield from self._sql(text(query, dialect="duckdb"), self._most(reads)).to_arrow_reader()

    def table(self, query: Any, types: Sequence[SqlType], reads: Collection[str]) -> Stored:
        """A table of the rows of a query, computed now; it may read nothing else than some relations.

        Raises:
            ReadRefusedError: SM403 it does.
            InputError: SM104 a value that an expression or a type does not have.
        """
        number = next(self._numbers)
        rows = self._table(f"selfmaint_{number}", query, reads, self._most(reads))
        return self._watched(Stored(self, number, tuple(types), rows), held=True)

    def _table(
        self, name: str, query: Any, reads: Collection[str], rows: float, *, joins: bool = True
    ) -> int:
        _require_reads(query, reads)
        with self._computing():
            statement = text(sql.create(name, query, held=True), pretty=False, dialect="duckdb", once=True)
            made = self._execute(statement, joins=joins, rows=rows).fetchone()
        assert made is not None
        return int(made[0])

    def computed(self, rows: frozenset[Row], types: Sequence[SqlType]) -> Stored:
        """Rows that were computed in this process."""
        return Stored(self, next(self._numbers), tuple(types), len(rows), here=rows)

    def settle(self, name: str, stored: Stored) -> None:
        """Makes a table of rows that are in this process."""
        assert stored.here is not None
        values = listed(stored.here, stored.types)
        if values is not None:
            self._execute(f'CREATE TEMPORARY TABLE "{name}" AS {_listed(stored.types)}', values, joins=False)
        else:
            self._given(name, arrow_rows(stored.here, stored.types), stored.types)
        weakref.finalize(stored, self._unused.append, (name, True))
        self._relations[name] = stored

    def few(self, stored: Stored) -> frozenset[Row] | None:
        """The distinct rows of a relation that has few; None if Python has other values of them."""
        query = sql.rows(stored.name, len(stored.types), limit=self.most_few + 1)
        try:
            rows = rows_of(stored, query)
        except InputError:
            return None
        is_odd = len(rows) > self.most_few or has_odd_value(rows, stored.types)
        return None if is_odd else frozenset(rows)

    def view(
        self, query: Any, types: Sequence[SqlType], parents: Sequence[Stored], layout: Layout | None = None
    ) -> Stored:
        """The rows of a query, computed when they are used; `layout` says what is known of them."""
        _require_reads(query, [parent.name for parent in parents])
        made = Stored(self, next(self._numbers), tuple(types), None, tuple(parents), layout or Layout())
        with self._computing():
            created = sql.create(made.name, query, held=False)
            self._execute(text(created, pretty=False, dialect="duckdb", once=True))
        return self._watched(made, held=False)

    def rows(self, query: Any, reads: Collection[str]) -> ArrowTable:
        """The rows of a query, here.

        Raises:
            InputError: SM104 a value that an expression or a type does not have.
        """
        _require_reads(query, reads)
        with self._computing():
            given = self._execute(text(query, dialect="duckdb"), rows=self._most(reads))
            found: ArrowTable = given.to_arrow_table()
        return found

    def digest(self, stored: Stored) -> tuple[int, str]:
        """The number of rows, and what their hashes come to together, in whatever order they are."""
        # Each value for itself, and nulls apart from all texts: no two rows have one text.
        row = " || ".join(f"coalesce(md5(c{i}::VARCHAR), '-')" for i in range(len(stored.types))) or "''"
        with self._computing():
            # Not mixed alone: of two equal rows nothing would be left.
            mixed = f"bit_xor(m), sum((m & {2**64 - 1})::UBIGINT)"
            ((number, *found),) = self.run(
                f"SELECT count(*), {mixed} FROM (SELECT md5_number({row}) AS m FROM {stored.name})",  # noqa: S608
                rows=stored.most_rows(),
            )
        return int(number), ":".join(map(str, found))

    def plain_rows(self, query: Any, reads: Collection[str], *, joins: bool = True) -> list[tuple[Any, ...]]:
        """The rows of a query, here: truths, whole numbers and texts, which Python has as they are.

        Args:
            query: the query.
            reads: what it may read.
            joins: whether there may be a join in it.

        Raises:
            InputError: SM104 a value that an expression or a type does not have.
        """
        _require_reads(query, reads)
        with self._computing():
            given = self._execute(text(query, dialect="duckdb"), joins=joins, rows=self._most(reads))
            found: list[tuple[Any, ...]] = given.fetchall()
        return found

    def expected_rows(self, query: Query, reads: Collection[str]) -> int:
        """How many rows the largest join of a query has, as DuckDB expects where it orders joins itself."""
        _require_reads(query, reads)
        asked = f"EXPLAIN (FORMAT json) {text(query, dialect='duckdb')}"
        with self._computing():
            ((_, plan),) = self._execute(asked).fetchall()
        waiting, most = [*json.loads(plan)], 0
        while waiting:
            node = waiting.pop()
            waiting += node.get("children", ())
            if node.get("name", "").endswith("_JOIN"):
                most = max(most, int(node.get("extra_info", {}).get("Estimated Cardinality", 0)))
        return most

    def answers(self, prepared: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """What a prepared query gives for a few values, here: see `plain_rows`."""
        with self._computing():
            return self._execute(prepared, values, rows=0).fetchall()

    def given(self, rows: ArrowTable, types: Sequence[SqlType]) -> Stored:
        """A table of rows that are at hand, columns in order; without types, of so many rows."""
        number = next(self._numbers)
        stored = Stored(self, number, tuple(types), self._given(f"selfmaint_{number}", rows, types))
        return self._watched(stored, held=True)

    def _given(self, name: str, rows: ArrowTable, types: Sequence[SqlType]) -> int:
        numbered = rows.rename_columns([f"c{i}" for i in range(rows.num_columns)])
        self._connection.register(f"{name}_rows", numbered.__arrow_c_stream__())
        try:
            query = sql.values_of(f"{name}_rows", numbered.column_names if types else (), types)
            return self._table(name, query, [f"{name}_rows"], rows.num_rows, joins=False)
        finally:
            self._connection.unregister(f"{name}_rows")

    def parquet(self, files: Sequence[str]) -> tuple[Stored, list[str]]:
        """The rows of Parquet files, read when they are used, and the names of their columns' types in DuckDB."""
        self._files.note(files)
        read = self._connection.read_parquet([escaped(file) for file in files], hive_partitioning=False)
        return self._named(read), [str(kind) for kind in read.types]

    def run(
        self, statement: str, values: Sequence[object] = (), rows: float | None = None
    ) -> list[tuple[Any, ...]]:
        """What a statement of the lake gives, here; it may not be made of what users write but for quoted names.

        Args:
            statement: the statement.
            values: what its question marks stand for.
            rows: at most how many rows it reads, if it may be many.

        Raises:
            InputError: SM103 a file of the lake is gone; SM104 one is damaged.
            duckdb.Error: anything else.
        """
        try:
            return self._execute(statement, values, rows=rows).fetchall()
        except duckdb.Error as failure:
            if any(file in str(failure).partition("\n")[0] for file in self._files):
                with self._computing():
                    raise
            raise

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """What runs in it is committed together, or not at all; it writes to one attached database."""
        self.run("BEGIN")
        self._in_transaction = (
            True  # what is collected meanwhile may be of another database: dropped after it
        )
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            with contextlib.suppress(duckdb.Error):
                self.run("ROLLBACK")
            raise
        finally:
            self._in_transaction = False

    def lock(self) -> None:
        """No setting is changed any more."""
        self.tuning.lock()
        self.run("SET lock_configuration = true")

    def answer(self, statement: str) -> pa.RecordBatchReader:
        """What a query of people gives, in its order; no other statement may be run until it ends."""
        return self._execute(statement, rows=math.inf).to_arrow_reader(_BATCH)

    def stream(self, statement: str) -> pa.RecordBatchReader:
        """What a statement of a store gives, some rows at a time; no other may be run until it ends."""
        return self._sql(statement).to_arrow_reader()

    def stored(self, statement: str, files: Collection[str], layout: Layout) -> Stored:
        """The rows of a statement over a table of the lake, and of its files, read when they are used."""
        self._files.note(files)
        for file in files:
            if self._files[file] is None:
                raise changed(file)
        with self._computing():
            return self._named(self._connection.sql(statement), layout)

    def csv(self, files: Sequence[str], width: int) -> Stored:
        """The texts of CSV files with a header line each; null is a field that is empty and not in quotes."""
        self._files.note(files)
        read = csv([escaped(file) for file in files], width)
        return self.view(read, [ColumnType(TypeName.STRING)] * width, [])

    def _named(self, read: duckdb.DuckDBPyRelation, layout: Layout | None = None) -> Stored:
        """A view of what is read from files."""
        types = tuple(sql_type(str(kind)) for kind in read.types)
        stored = Stored(self, next(self._numbers), types, layout=layout or Layout())
        # By position: a name may have full stops and quotes.
        names = ", ".join(f"#{i + 1} AS c{i}" for i in range(len(read.columns)))
        read.project(names).create_view(stored.name)
        return self._watched(stored, held=False)

    def _most(self, reads: Collection[str]) -> float:
        """At most how many rows some relations have together."""
        known = map(self._relations.get, reads)
        return sum(math.inf if one is None else one.most_rows() for one in known)

    def _sql(self, statement: str, rows: float = math.inf) -> duckdb.DuckDBPyRelation:
        self.tuning.settle_joins()
        self.tuning.settle_threads(rows)
        return self._connection.sql(statement)

    def _execute(
        self,
        statement: str,
        values: Sequence[object] = (),
        *,
        joins: bool = True,
        rows: float | None = None,
    ) -> duckdb.DuckDBPyConnection:
        while self._unused and not self._in_transaction:
            name, held = self._unused.pop()
            kind = "TABLE" if held else "VIEW"
            self._connection.execute(f"DROP {kind} IF EXISTS {name}")  # a name of its own
        if joins:
            self.tuning.settle_joins()
        if rows is not None:
            self.tuning.settle_threads(rows)
        with within_budget(self._connection):
            return self._connection.execute(statement, values)

    @contextlib.contextmanager
    def _computing(self) -> Iterator[None]:
        """Turns what DuckDB says about values and files, which comes as it computes them, into an `InputError`."""
        try:
            with spent_if_interrupted():
                yield
        except duckdb.Error as failure:
            found = as_input_error(failure, self._files)
            if found is None:
                raise
            raise found from failure

    def _watched(self, stored: Stored, *, held: bool) -> Stored:
        # Not dropped at once: what is collected may be collected in the middle of a statement.
        weakref.finalize(stored, self._unused.append, (stored.name, held))
        self._relations[stored.name] = stored
        return stored


def prepared(query: Any) -> str:
    """The text of a query that reads nothing but what it is given as parameters: see `Database.answers`.

    Raises:
        ReadRefusedError: SM403 it reads more.
    """
    _require_reads(query, ())
    return text(query, dialect="duckdb")


def _require_reads(query: Any, reads: Collection[str]) -> None:
    require_allowed(read_set(query), {(name,) for name in reads})
