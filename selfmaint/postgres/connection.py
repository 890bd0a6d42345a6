"""A connection to PostgreSQL on which nothing is waited for without end.

The server ends a statement that takes longer than a limit. One that does not answer at all, because its processes are
halted or a network drops everything, is noticed here: keepalives of TCP do not see the first, and a socket of the file
system has none.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Generator, Mapping
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import quote

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from datalog.diagnostics import Diagnostic
from selfmaint.errors import Code, PassingError, SourceError, first_line

T = TypeVar("T")
TIMEOUT_S = 60.0
"""How long a statement may take, by default."""
PAUSES_S = (0.25, 1.0)
"""How long to wait before a fault that may pass is met again."""

_CONNECT_S = 10
_GRACE_S = 2.0
"""How much longer the server's own answer, that a statement took too long, is waited for."""
_BEGIN = """
    SELECT
        pg_catalog.pg_current_snapshot()::text,
        pg_catalog.set_config(
            'statement_timeout', LEAST(COALESCE(NULLIF(setting::bigint, 0), %(ms)s), %(ms)s)::text, true
        )
    FROM pg_catalog.pg_settings
    WHERE name = 'statement_timeout'
"""
EXACT_TEXT = """
    SELECT set_config('DateStyle', 'ISO, YMD', false), set_config('TimeZone', 'UTC', false),
        set_config('extra_float_digits', '3', false), set_config('bytea_output', 'hex', false),
        set_config('row_security', 'off', false)
"""
"""Values come as texts that are exact, and understood, whatever the database's own settings are; and all rows come, or
an error: a policy that hides some from the user would make them look deleted."""
_PASSING_STATES = re.compile(r"08|40|53300|57P0[123]")
"""A lost connection, a conflict on a standby, too many connections, a server that stops or starts."""
_PASSING_WORDS = re.compile(
    "starting up|shutting down|recovery mode|too many (clients|connections)|remaining connection slots|refused"
    "|reset by peer|closed the connection|connection is lost|temporary failure",
    re.IGNORECASE,
)
"""The same, where the driver gives no state: before a connection stands, and when one is lost."""


class Connection(psycopg.Connection[tuple[object, ...]]):
    """A connection that is given up when the server says nothing for longer than a limit."""

    limit_s: float = math.inf

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        """Waits for an operation, as psycopg does, but not for ever.

        Raises:
            NoAnswerError: nothing was heard of the server for the limit; the connection is closed.
        """
        try:
            return super().wait(_limited(gen, self.limit_s), *args, **kwargs)
        except NoAnswerError:
            self.pgconn.finish()
            raise


def begun(url: str, timeout_s: float) -> tuple[Connection, str | None]:
    """A connection in a transaction that shows one state and writes nothing, and the name of that state.

    Args:
        url: a connection URI or string of libpq.
        timeout_s: how long a statement may take; the server's own limit counts where it is shorter.

    Raises:
        SourceError: SM401 the URL is none.
        psycopg.Error: the server does not answer, or refuses the login.
    """
    connection = Connection.connect(make_conninfo("", **settings_with(url, timeout_s)))
    try:
        connection.limit_s = timeout_s + _GRACE_S
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        connection.execute(EXACT_TEXT)
        milliseconds = 0 if math.isinf(timeout_s) else math.ceil(timeout_s * 1000)
        if milliseconds:
            snapshot = connection.execute(_BEGIN, {"ms": min(milliseconds, 2**31 - 1)}).fetchone()
        else:
            snapshot = connection.execute("SELECT pg_catalog.pg_current_snapshot()::text").fetchone()
    except psycopg.Error:
        connection.close()
        raise
    return connection, str(snapshot[0]) if snapshot else None


def settings_with(url: str, timeout_s: float) -> dict[str, str]:
    """The parts of a connection URI or string, and what is taken where it says nothing.

    Raises:
        SourceError: SM401 it is none; the message does not repeat it.
    """
    patience = _CONNECT_S if timeout_s > _CONNECT_S else math.ceil(timeout_s)
    defaults = {"application_name": "selfmaint", "connect_timeout": str(patience)}
    return {**defaults, **_settings_of(url)}


def may_pass(failure: psycopg.Error) -> bool:
    """Whether a fault may be gone in a moment. One that took a whole limit to show is not asked for again."""
    if isinstance(failure, NoAnswerError | errors.ConnectionTimeout | errors.QueryCanceled):
        return False
    if failure.sqlstate is not None:
        return _PASSING_STATES.match(failure.sqlstate) is not None
    return isinstance(failure, psycopg.OperationalError) and bool(_PASSING_WORDS.search(str(failure)))


def _limited(gen: Generator[Any, Any, T], limit_s: float) -> Generator[Any, Any, T]:
    """An operation of psycopg, which is woken every now and then, and ends when that is in vain for too long."""
    ready, heard = None, monotonic()
    while True:
        try:
            awaited = gen.send(ready)
        except StopIteration as done:
            result: T = done.value
            return result
        ready = yield awaited
        if ready:
            heard = monotonic()
        elif monotonic() - heard > limit_s:
            raise NoAnswerError(f"no answer for {limit_s:g} s")


class NoAnswerError(psycopg.OperationalError):
    """The server does not answer."""


def _settings_of(url: str) -> Mapping[str, str]:
    """The parts of a connection URI or string."""
    try:
        return {key: str(value) for key, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.Error:
        message = "the connection URL cannot be parsed"
        hint = "write it as `postgresql://user@host:port/database`, special characters percent-encoded"
    raise _error(Code.SOURCE_UNREACHABLE, message, hint)


def _address(url: str) -> str:
    """Where a URL leads, without the password.

    >>> _address("postgresql://ann:s3cret@db.example:5433/shop")
    'database `shop` on `db.example:5433` as `ann`'
    """
    found = _settings_of(url)
    host = found.get("host") or found.get("hostaddr") or os.environ.get("PGHOST", "localhost")
    port = found.get("port") or os.environ.get("PGPORT", "5432")
    user = found.get("user") or os.environ.get("PGUSER", "the default user")
    database = found.get("dbname") or os.environ.get("PGDATABASE", user)
    return f"database `{database}` on `{host}:{port}` as `{user}`"


def source_error(failure: psycopg.Error, url: str, doing: str) -> SourceError:
    """The error for what the server or the driver refused; a `PassingError` if it may be gone in a moment.

    Args:
        failure: what psycopg raised. Chain nothing to the result: its text may hold the password.
        url: the connection URL.
        doing: what was attempted, for the message.
    """
    code = Code.SOURCE_UNREACHABLE
    hint = "check that the server runs, the address, the user's password and its rights"
    match failure:
        case errors.UndefinedTable() | errors.InvalidSchemaName():
            code, hint = Code.MISSING_CONTENTS, "check the name of the table, with its schema"
        case errors.UndefinedColumn() | psycopg.DataError():
            code, hint = Code.COLUMNS_DIFFER, "compare the declaration with the table"
        case NoAnswerError() | errors.QueryCanceled() | errors.ConnectionTimeout():
            hint = "see whether the server is halted or busy; `timeout_s` in the source's section gives it more time"
        case errors.InsufficientPrivilege() if "row-level security" in str(failure):
            hint = (
                "a policy hides rows of the table from the user: grant BYPASSRLS, or read a view of all rows"
            )
        case errors.InsufficientPrivilege():
            hint = "the user needs the right to SELECT from the table"
        case errors.UndefinedObject() | errors.ObjectNotInPrerequisiteState():
            code, hint = Code.LOG, "see to the replication slot and the publication of the server"
        case _:
            pass
    said = without_password(first_line(failure), url)
    found = _error(code, f"{doing} failed, {_address(url)}: {said}", hint)
    return PassingError(found.diagnostics) if may_pass(failure) else found


def without_password(text: str, url: str) -> str:
    """A text with the URL's password starred out."""
    for password in (_settings_of(url).get("password"), os.environ.get("PGPASSWORD")):
        if password:
            for shown in (password, quote(password, safe="")):
                text = text.replace(shown, "***")
    return text


def _error(code: Code, message: str, hint: str | None = None) -> SourceError:
    return SourceError([Diagnostic(code=code, message=message, hint=hint)])
