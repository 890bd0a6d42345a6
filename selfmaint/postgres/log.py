"""A server's log, read through a logical replication slot.

The slot keeps the log for who reads it, and only moves when it is told that everything before is safe elsewhere.
It is read with functions of SQL: a transaction is there once it is flushed, whole, in the order of commits.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Iterator
from typing import cast, final

import psycopg
from msgspec import Struct
from psycopg import errors, sql
from psycopg.conninfo import make_conninfo

from datalog.diagnostics import Diagnostic
from selfmaint.errors import Code, PassingError, SourceError
from selfmaint.postgres.connection import EXACT_TEXT, TIMEOUT_S, Connection, settings_with, source_error
from selfmaint.postgres.pgoutput import Message, message
from selfmaint.store.log_position import Snapshot, lsn_of, lsn_text

PLUGIN = "pgoutput"
_FETCH = 2_000
_STATE = """
    SELECT
        (SELECT system_identifier::text FROM pg_catalog.pg_control_system()),
        pg_catalog.pg_current_wal_insert_lsn()::text,
        pg_catalog.pg_current_wal_flush_lsn()::text,
        (SELECT setting::int FROM pg_catalog.pg_settings WHERE name = 'wal_block_size'),
        (SELECT to_jsonb(s) FROM pg_catalog.pg_replication_slots AS s WHERE s.slot_name = %(slot)s),
        pg_catalog.current_database()
"""
_PEEK = """
    SELECT lsn::text AS lsn, data FROM pg_catalog.pg_logical_slot_peek_binary_changes(
        %(slot)s, NULL, %(most)s, 'proto_version', '1', 'publication_names', %(publication)s)
"""
_WRITABLE = "SELECT set_config('default_transaction_read_only', 'off', false)"
_SERVER_SETTINGS = "the server needs `wal_level = logical`, the user the attribute REPLICATION"


class LogState(Struct, frozen=True):
    """Where a server's log and the slot are.

    Attributes:
        end: the end of the log, between two of its records.
        is_flushed: whether all of it can be read.
        confirmed: before this place the slot keeps nothing.
    """

    system: str
    end: int
    is_flushed: bool
    confirmed: int


@final
class ServerLog:
    """The log of one database, through one slot and publication. It connects when it is first used."""

    def __init__(
        self, source: str, url: str, slot: str, publication: str, timeout_s: float = TIMEOUT_S
    ) -> None:
        """A log that is not connected to yet; its URL is never shown."""
        self.source, self.slot, self.publication = source, slot, publication
        self._url, self._timeout_s = url, timeout_s
        self._connection: Connection | None = None

    def close(self) -> None:
        """Ends the connection; another use opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()

    @contextlib.contextmanager
    def connected(self, doing: str) -> Iterator[Connection]:
        """The connection; what the server refuses is an error of this package.

        Raises:
            SourceError: SM401, SM103, ...; `PassingError` if it may be gone in a moment. The connection has ended.
        """
        try:
            yield self._opened()
        except psycopg.Error as failure:
            error = source_error(failure, self._url, f"{doing} of the source `{self.source}`")
            if isinstance(failure, errors.ObjectInUse):
                error = PassingError(error.diagnostics)
        else:
            return
        self.close()
        raise error

    def _opened(self) -> Connection:
        if self._connection is None:
            connection = Connection.connect(make_conninfo("", **settings_with(self._url, self._timeout_s)))
            connection.autocommit = True
            self._connection = connection
            if not math.isinf(self._timeout_s):
                connection.limit_s = self._timeout_s + 2
                milliseconds = math.ceil(self._timeout_s * 1000)
                connection.execute(
                    "SELECT set_config('statement_timeout', %s, false)", [str(min(milliseconds, 2**31 - 1))]
                )
            connection.execute(EXACT_TEXT)
            connection.execute(_WRITABLE)
        return self._connection

    # ------------------------------------------------------------------------------------------- the state

    def state(self) -> LogState:
        """Where the log and the slot are.

        Raises:
            SourceError: SM401; SM608 there is no such slot, or it cannot be read from.
        """
        with self.connected("reading the log") as connection:
            if connection.execute("SELECT pg_catalog.pg_is_in_recovery()").fetchone() == (True,):
                raise log_error(
                    f"the source `{self.source}` is a standby, whose log is not followed", "name the primary"
                )
            found = connection.execute(_STATE, {"slot": self.slot}).fetchone()
        assert found is not None
        system, end, flushed, block, slot, database = found
        if not isinstance(slot, dict):
            message = f"there is no replication slot `{self.slot}` in the source `{self.source}`"
            made = f"it is made by: {self._slot().as_string(None)};"
            raise log_error(message, "`selfmaint follow WAREHOUSE.toml --create` makes it", made)
        self._require_usable(slot, str(database))
        at = lsn_of(str(end))
        return LogState(
            str(system),
            at,
            lsn_of(str(flushed)) >= _without_header(at, int(str(block))),
            lsn_of(slot["confirmed_flush_lsn"]),
        )

    def _require_usable(self, slot: dict[str, object], database: str) -> None:
        """Refuses a slot of another kind, or one whose log is gone."""
        shown = f"the replication slot `{self.slot}` in the source `{self.source}`"
        if slot.get("plugin") != PLUGIN or slot.get("database") != database:
            is_ours = slot.get("plugin") == PLUGIN
            what = f"is of the database `{slot.get('database')}`" if is_ours else f"is no slot of `{PLUGIN}`"
            raise log_error(f"{shown} {what}", "name another one: `slot` in `[follow]`")
        reason = slot.get("invalidation_reason") or ("lost" if slot.get("wal_status") == "lost" else None)
        if reason:
            raise log_error(
                f"{shown} is not usable any more: {reason}",
                "drop it, make it anew (`selfmaint follow --create`), then bring all views in: `selfmaint import`",
                "the server has let go of log that was not read yet; see its `max_slot_wal_keep_size`",
            )

    def exists(self) -> tuple[bool, bool]:
        """Whether the publication and the slot are there."""
        query = """SELECT EXISTS (SELECT FROM pg_catalog.pg_publication WHERE pubname = %s),
            EXISTS (SELECT FROM pg_catalog.pg_replication_slots WHERE slot_name = %s)"""
        with self.connected("looking for the slot") as connection:
            found = connection.execute(query, [self.publication, self.slot]).fetchone()
        assert found is not None
        return bool(found[0]), bool(found[1])

    def snapshot(self) -> Snapshot:
        """Which transactions a reader sees now."""
        with self.connected("reading the log") as connection:
            found = connection.execute("SELECT pg_catalog.pg_current_snapshot()::text").fetchone()
        assert found is not None
        return Snapshot.parse(str(found[0]))

    def flushed(self) -> int:
        """The end of the log, once all before it can be read.

        A transaction that does not wait for the disk is seen before it can be read here. So where the log's end
        is not on the disk, one is committed that does wait, and has no effect.

        Raises:
            SourceError: SM401.
        """
        state = self.state()
        if not state.is_flushed:
            with self.connected("flushing the log") as connection, connection.transaction():
                connection.execute("SET LOCAL synchronous_commit = local")
                connection.execute("SELECT pg_catalog.pg_logical_emit_message(true, 'selfmaint', '')")
        return state.end

    # ----------------------------------------------------------------------------------- reading and moving

    def messages(self, most: int | None = None) -> Generator[Message, None, None]:
        """What the slot holds, in order; it stays there.

        After `most` messages no further transaction is begun; the last one is whole.

        Raises:
            SourceError: SM401; SM602 a message that cannot be read.
        """
        given = {"slot": self.slot, "most": most, "publication": _quoted(self.publication)}
        with (
            self.connected(f"reading the slot `{self.slot}`") as connection,
            connection.transaction(),
            connection.cursor(name="selfmaint_log", binary=True) as cursor,
        ):
            cursor.execute(_PEEK, given)
            while rows := cursor.fetchmany(_FETCH):
                for lsn, data in rows:
                    try:
                        found = message(cast(bytes, data))
                    except ValueError as failure:
                        text = f"the log of the source `{self.source}` cannot be read at {lsn}: {failure}"
                        raise SourceError([Diagnostic(Code.FEED_UNREADABLE, text)]) from None
                    yield found

    def advance(self, lsn: int) -> None:
        """Lets the server let go of the log before a place: everything before it is safe elsewhere.

        Raises:
            SourceError: SM401.
        """
        query = """SELECT pg_catalog.pg_replication_slot_advance(slot_name, %(lsn)s::pg_lsn)
            FROM pg_catalog.pg_replication_slots
            WHERE slot_name = %(slot)s AND confirmed_flush_lsn < %(lsn)s::pg_lsn"""
        with self.connected(f"moving the slot `{self.slot}`") as connection:
            connection.execute(query, {"slot": self.slot, "lsn": lsn_text(lsn)})

    # -------------------------------------------------------------------------------------------- making

    def create(self, tables: list[sql.Identifier], *, generated: bool = False) -> list[str]:
        """Makes the publication and the slot, as far as they are missing.

        `generated`: columns that are generated and stored are published, too.

        Raises:
            SourceError: SM401 the user may not; SM608 the server does not log enough.
        """
        has_publication, has_slot = self.exists()
        done = []
        if not has_publication:
            statement = self._publication(tables, generated=generated)
            done.append(self._run(statement, "making the publication"))
        if not has_slot:
            done.append(self._run(self._slot(), "making the slot"))
        return done

    def _run(self, statement: sql.Composed, doing: str) -> str:
        with self.connected(doing) as connection:
            try:
                connection.execute(statement)
            except (errors.InsufficientPrivilege, errors.ObjectNotInPrerequisiteState) as failure:
                shown = statement.as_string(connection)
                raise log_error(
                    f"{doing} of the source `{self.source}` failed: {failure.diag.message_primary}",
                    f"have an owner run: {shown};",
                    _SERVER_SETTINGS,
                ) from None
            return statement.as_string(connection)

    def _publication(self, tables: list[sql.Identifier], *, generated: bool) -> sql.Composed:
        made = sql.SQL("CREATE PUBLICATION {} FOR TABLE {}").format(
            sql.Identifier(self.publication), sql.SQL(", ").join(tables)
        )
        return made + sql.SQL(" WITH (publish_generated_columns = stored)") if generated else made

    def _slot(self) -> sql.Composed:
        return sql.SQL("SELECT pg_catalog.pg_create_logical_replication_slot({}, {})").format(
            sql.Literal(self.slot), sql.Literal(PLUGIN)
        )


def log_error(message: str, hint: str | None = None, note: str | None = None) -> SourceError:
    """That a log cannot be followed."""
    return SourceError([Diagnostic(Code.LOG, message, hint=hint, note=note)])


def _without_header(lsn: int, block: int) -> int:
    """The end of the last record: what follows it may be the header of a page that is not begun."""
    inside = lsn % block
    return lsn - inside if inside <= _LONGEST_HEADER else lsn


_LONGEST_HEADER = 40


def _quoted(name: str) -> str:
    """A name in the plugin's list of publications."""
    return '"' + name.replace('"', '""') + '"'
