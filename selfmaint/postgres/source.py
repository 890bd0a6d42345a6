"""Base relations in PostgreSQL, looked up by key: the keys go to the server, a table never comes here whole.

Everything that is read between `begin` and `end` shows one state of the database: one transaction, repeatable
read, read only. So nothing is ever written to the server, not even a temporary table, and a standby will do.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Generic, Self, TypeVar, final

import psycopg
from psycopg import sql

from selfmaint.engine.protocol import D
from selfmaint.errors import Code, InputError, SourceError, input_error
from selfmaint.postgres.connection import PAUSES_S, TIMEOUT_S, Connection, begun, may_pass, source_error
from selfmaint.postgres.keys import KeyQuery, compared, key_batches, key_queries, span_query, whole_table
from selfmaint.postgres.types import PostgresColumn, PostgresTable, arrow_batch, arrow_schema, columns_of
from selfmaint.sources.between import Between
from selfmaint.sources.protocol import Read, Stored
from selfmaint.store.exchange import Exchange, Spill
from selfmaint.store.expected import Expected

FETCH_ROWS = 10_000
"""How many rows come from the server at a time."""
T = TypeVar("T")


@final
class PostgresSource(Stored[PostgresTable], Generic[D]):
    """Base relations in tables or views of one PostgreSQL database.

    It connects when it is first used. As a context manager it closes itself. A fault that may pass (a server that
    starts, a lost connection) is met again some times, as long as no rows were read of the state that is then gone.
    """

    def __init__(
        self,
        name: str,
        url: str,
        exchange: Exchange[D],
        tables: Mapping[str, str],
        declarations: Mapping[str, Expected],
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """A source that is not connected yet.

        Args:
            name: a name to show.
            url: a connection URI or string of libpq; it is never shown.
            exchange: of the engine that the rows are for.
            tables: for each base relation its table, `schema.table` or `table`.
            declarations: for each base relation the columns to read.
            timeout_s: how long the server may take for a statement, and for some rows of a large answer.
        """
        super().__init__(name, {relation: PostgresTable.parse(text) for relation, text in tables.items()})
        self._url = url
        self._exchange = exchange
        self._declarations = declarations
        self._timeout_s = timeout_s
        self._connection: Connection | None = None
        self._has_read = False
        self._version: str | None = None
        self._columns: dict[str, list[PostgresColumn]] = {}
        self._directory: Path | None = None
        self._spills = 0

    def __enter__(self) -> Self:
        """Begins; see `begin`."""
        self.begin()
        return self

    def __exit__(self, *error: object) -> None:
        """Closes; see `close`."""
        self.close()

    def begin(self) -> None:
        """Connects and fixes the state that is read from now on, unless that is done.

        Raises:
            SourceError: SM401 the server does not answer or refuses the login.
        """
        self._begun()

    def end(self) -> None:
        """Ends the transaction and the connection; what was read stays readable."""
        connection, self._connection, self._version = self._connection, None, None
        self._has_read = False
        self._columns.clear()
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()

    def close(self) -> None:
        """Ends, and removes the files of what was read: its relations cannot be used any more."""
        self.end()
        directory, self._directory = self._directory, None
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)

    def row_count(self, relation: str) -> int:
        """The server's own estimate of the relation's size.

        Raises:
            SourceError: SM102 unknown relation, SM103 no such table, SM104 other columns, SM401 unreachable.
        """
        return self._reading(relation, lambda connection: self._row_count(connection, relation))

    def _row_count(self, connection: Connection, relation: str) -> int:
        statement = whole_table(self._relations[relation], self._columns_of(connection, relation))
        explained = connection.execute(sql.SQL("EXPLAIN (FORMAT JSON) ") + statement, ()).fetchone()
        plans = explained[0] if explained else None
        return int(plans[0]["Plan"]["Plan Rows"]) if isinstance(plans, list) else 0

    def read(self, relation: str, key_columns: Sequence[str], keys: D | None) -> tuple[D, Read]:
        """The rows whose `key_columns` equal one of `keys`, nulls equal, or all of them.

        See `Source.read`.

        Raises:
            SourceError: SM401 unreachable or refused, SM102 unknown relation, SM103 no such table, SM104
                other columns, or a value that the declared type cannot hold.
        """
        found = self._reading(
            relation, lambda connection: self._read(connection, relation, key_columns, keys)
        )
        self._has_read = True
        return found

    def read_between(self, relation: str, asked: Between) -> tuple[D, Read]:
        """The rows with a value in some spans.

        Raises:
            SourceError: as `read`.
        """
        found = self._reading(relation, lambda connection: self._read_between(connection, relation, asked))
        self._has_read = True
        return found

    def _read_between(self, connection: Connection, relation: str, asked: Between) -> tuple[D, Read]:
        columns = self._columns_of(connection, relation)
        _named(columns, relation, asked.column)
        query = span_query(self._relations[relation], columns, asked)
        with Spill(arrow_schema(columns), self._spill_file()) as spill:
            size = _fetch(connection, query, columns, spill)
        read = Read(relation, (asked.column,), asked.number, spill.rows, size, self._name, is_of_spans=True)
        return self._exchange.entered(spill), read

    def _read(
        self, connection: Connection, relation: str, key_columns: Sequence[str], keys: D | None
    ) -> tuple[D, Read]:
        columns = self._columns_of(connection, relation)
        table = self._relations[relation]
        asked, size = 0, 0
        with Spill(arrow_schema(columns), self._spill_file()) as spill:
            if keys is None:
                size = _fetch(connection, KeyQuery(whole_table(table, columns), ()), columns, spill)
            else:
                given = self._exchange.distinct(keys)
                looked_up = compared([_named(columns, relation, name) for name in key_columns], given)
                for batch in key_batches(given, looked_up):
                    asked += len(batch)
                    for query in key_queries(table, columns, looked_up, batch):
                        size += _fetch(connection, query, columns, spill)
        used = () if keys is None else tuple(key_columns)
        return self._exchange.entered(spill), Read(relation, used, asked, spill.rows, size, self._name)

    def version(self) -> str | None:
        """The snapshot that this transaction reads, as `pg_current_snapshot()` writes it.

        Raises:
            SourceError: SM401 unreachable or refused.
        """
        self._begun()
        return self._version

    def _begun(self) -> Connection:
        """The connection, in its one transaction."""
        if self._connection is None:
            doing = f"connecting to the source `{self._name}`"
            self._connection, self._version = self._again(doing, lambda: begun(self._url, self._timeout_s))
        return self._connection

    def _reading(self, relation: str, use: Callable[[Connection], T]) -> T:
        """What a use of the connection for a relation gives; after a failure the transaction is over."""
        self._stored(relation)
        return self._again(f"reading `{relation}` from the source `{self._name}`", lambda: use(self._begun()))

    def _again(self, doing: str, attempt: Callable[[], T]) -> T:
        """What an attempt gives, which is made again where a fault may pass and nothing was read."""
        pauses = [*PAUSES_S]
        while True:
            try:
                return attempt()
            except InputError as error:
                self.end()
                raise SourceError(error.diagnostics) from error
            except psycopg.Error as failure:
                refused = source_error(failure, self._url, doing)
                passing = may_pass(failure) and not self._has_read
            self.end()
            if not pauses or not passing:
                raise refused
            time.sleep(pauses.pop(0))

    def _columns_of(self, connection: Connection, relation: str) -> list[PostgresColumn]:
        if relation not in self._columns:
            expected = self._declarations[relation]
            self._columns[relation] = columns_of(connection, self._relations[relation], expected, self.name)
        return self._columns[relation]

    def _spill_file(self) -> Path:
        """A name for a file that is written only if the rows need it."""
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="selfmaint-postgres-"))
        self._spills += 1
        return self._directory / f"{self._spills}.parquet"


def _named(columns: Sequence[PostgresColumn], relation: str, name: str) -> PostgresColumn:
    found = next((column for column in columns if column.name == name), None)
    if found is None:
        message = f"`{relation}` has no column `{name}`"
        raise input_error(Code.COLUMNS_DIFFER, message)
    return found


def _fetch(connection: Connection, query: KeyQuery, columns: Sequence[PostgresColumn], spill: Spill) -> int:
    """Moves one statement's rows into the spill, a bounded number at a time; the length of their text."""
    size = 0
    with connection.cursor(name="selfmaint") as cursor:
        cursor.execute(query.statement, query.parameters)
        while rows := cursor.fetchmany(FETCH_ROWS):
            size += _text_length(cursor.pgresult)
            spill.add(arrow_batch(rows, columns))
    return size


def _text_length(result: psycopg.pq.abc.PGresult | None) -> int:
    """How many bytes the values of a result took on their way here."""
    if result is None:
        return 0
    values = (result.get_value(row, i) for row in range(result.ntuples) for i in range(result.nfields))
    return sum(len(value) for value in values if value is not None)
