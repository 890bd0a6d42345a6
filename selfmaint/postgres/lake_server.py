"""A lake's catalog in PostgreSQL, for several machines: read in one transaction, and locked by who writes."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import make_conninfo

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from selfmaint.errors import BusyError, Code, InputError, first_line, input_error
from selfmaint.postgres.connection import (
    TIMEOUT_S,
    Connection,
    begun,
    settings_with,
    source_error,
    without_password,
)
from selfmaint.store.lake_server import LakeServer, Run

T = TypeVar("T")

_NAMED = re.compile(r"(?<!:):([a-z]+)\b")
_LOCK = "hashtextextended('selfmaint lake ' || %(schema)s, 0)"
_HOLDER = f"""
    SELECT application_name, pid, coalesce(host(client_addr), 'this machine')
    FROM pg_catalog.pg_locks AS l JOIN pg_catalog.pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND granted AND objsubid = 1
    AND ((classid::bigint << 32) | objid::bigint) = {_LOCK}
"""  # noqa: S608 - nothing in it is given
_LONGEST_NAME = 60


@dataclass(frozen=True)
class PostgresCatalog:
    """A catalog in a schema of a PostgreSQL database.

    Attributes:
        url: gives a connection URI or string of libpq, which is never shown.
        schema: the schema, which `selfmaint init` makes.
    """

    url: Callable[[], str] = field(repr=False)
    schema: str
    is_shared: bool = True

    @property
    def name(self) -> str:
        return f"the lake's catalog, schema `{self.schema}`,"

    @property
    def note(self) -> str | None:
        return f"its catalog is looked for in the schema `{self.schema}` of PostgreSQL"

    @property
    def attached_as(self) -> tuple[str, Mapping[str, str]]:
        schema = self.schema.replace("'", "''")
        return f"ducklake:postgres:{make_conninfo('', **self._settings())}", {"META_SCHEMA": f"'{schema}'"}

    def _settings(self) -> dict[str, str]:
        return settings_with(self.url(), TIMEOUT_S)

    def exists(self) -> bool:
        name = sql.Identifier(self.schema, "ducklake_snapshot").as_string(None)
        with self._reaching("looking for"), self._connected() as connection:
            return connection.execute("SELECT to_regclass(%s) IS NOT NULL", [name]).fetchone() == (True,)

    def require_writable(self) -> None:
        name = sql.Identifier(self.schema, "ducklake_snapshot").as_string(None)
        with self._reaching("looking at"), self._connected() as connection:
            found = connection.execute(
                "SELECT has_table_privilege(%s, 'INSERT'), current_user", [name]
            ).fetchone()
        assert found is not None
        if not found[0]:
            message = f"{self.name} cannot be written to: the role `{found[1]}` may only read it"
            hint = "name a role that owns the schema, or only look: `check`, `history`, `--dry-run`"
            raise input_error(Code.WRITE_FAILED, message, hint, "nothing was done")

    @contextlib.contextmanager
    def reading(self) -> Iterator[Run]:
        with self._reaching("reading"):
            connection, _ = begun(self.url(), TIMEOUT_S)
            with contextlib.closing(connection):
                connection.execute(sql.SQL("SET LOCAL search_path = {}").format(sql.Identifier(self.schema)))

                def run(query: str, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
                    text = _NAMED.sub(r"%(\1)s", query.replace("%", "%%"))
                    return connection.execute(text.encode(), given).fetchall()

                yield run

    def lent(self) -> contextlib.AbstractContextManager[None]:
        """See `LakeServer`: a server has room for both."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def holding(self, what: str) -> Iterator[None]:
        """See `LakeServer`: the server lets go of it with the connection."""
        said = f"selfmaint {what}, process {os.getpid()} on {socket.gethostname()}"[:_LONGEST_NAME]
        given = {"schema": self.schema}
        with self._reaching("locking"), self._connected(application_name=said) as connection:
            if connection.execute(f"SELECT pg_try_advisory_lock({_LOCK})", given).fetchone() != (True,):
                found = connection.execute(_HOLDER, given).fetchone()
                who = (
                    "another process" if found is None else f"{found[0]} (backend {found[1]} from {found[2]})"
                )
                message = f"the lake in the schema `{self.schema}` is being written to by {who}"
                hint, note = "wait until it has ended", "nothing was written"
                raise BusyError([Diagnostic(Code.WRITE_FAILED, message, hint=hint, note=note)])
            yield

    def new(self) -> PostgresCatalog:
        return replace(self, schema=f"{self.schema}_new")

    def cleared(self) -> None:
        with self._reaching("making"), self._connected() as connection, connection.transaction():
            name = sql.Identifier(self.schema)
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(name))
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))

    def published(self, name: LakeServer) -> None:
        assert name.schema is not None
        with self._reaching("making"), self._connected() as connection:
            rename = sql.SQL("ALTER SCHEMA {} RENAME TO {}")
            connection.execute(rename.format(sql.Identifier(self.schema), sql.Identifier(name.schema)))

    def shown(self, text: str) -> str:
        return without_password(text, self.url())

    @contextlib.contextmanager
    def _connected(self, **more: str) -> Iterator[Connection]:
        connection = Connection.connect(make_conninfo("", **{**self._settings(), **more}), autocommit=True)
        connection.limit_s = TIMEOUT_S
        with contextlib.closing(connection):
            yield connection

    @contextlib.contextmanager
    def _reaching(self, doing: str) -> Iterator[None]:
        """What the server refuses, as an error of the lake."""
        doing = f"{doing} the lake's catalog, schema `{self.schema}`"
        mend = "put the schema and the lake's folder back from a backup, or make both anew: `selfmaint init`"
        try:
            yield
        except psycopg.Error as failure:
            found = source_error(failure, self.url(), doing)
            is_damaged = isinstance(failure, errors.UndefinedTable | errors.UndefinedColumn)
        except (ValueError, KeyError) as failure:
            message = f"{self.name} cannot be read: {first_line(failure)}"
            raise input_error(Code.LAKE, message, mend) from failure
        else:
            return
        hint = mend if is_damaged else found.diagnostics[0].hint
        raise InputError([Diagnostic(Code.LAKE, d.message, hint=hint) for d in found.diagnostics])


def catalog_at(url: Callable[[], str], schema: str) -> LakeServer:
    """A catalog in PostgreSQL.

    Raises:
        InputError: SM408 a name that no schema can have.
    """
    if len(schema.encode()) > _LONGEST_NAME - len("_new"):
        raise input_error(Code.LAKE, f"the schema `{schema}` has a name that is too long")
    return PostgresCatalog(url, schema)
