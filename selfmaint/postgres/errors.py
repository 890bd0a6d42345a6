"""What a PostgreSQL server or its driver says, as errors of this package and without any secret."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import quote

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from datalog.diagnostics import Diagnostic
from selfmaint.errors import Code, SourceError, first_line


class NoAnswerError(psycopg.OperationalError):
    """The server does not answer."""


def settings_of(url: str) -> Mapping[str, str]:
    """The parts of a connection URI or string.

    Raises:
        SourceError: SM401 it is none; the message does not repeat it.
    """
    try:
        return {key: str(value) for key, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.Error:
        message = "the connection URL cannot be parsed"
        hint = "write it as `postgresql://user@host:port/database`, special characters percent-encoded"
    raise _error(Code.SOURCE_UNREACHABLE, message, hint)


def address(url: str) -> str:
    """Where a URL leads, without the password.

    >>> address("postgresql://ann:s3cret@db.example:5433/shop")
    'database `shop` on `db.example:5433` as `ann`'
    """
    found = settings_of(url)
    host = found.get("host") or found.get("hostaddr") or os.environ.get("PGHOST", "localhost")
    port = found.get("port") or os.environ.get("PGPORT", "5432")
    user = found.get("user") or os.environ.get("PGUSER", "the default user")
    database = found.get("dbname") or os.environ.get("PGDATABASE", user)
    return f"database `{database}` on `{host}:{port}` as `{user}`"


def source_error(failure: psycopg.Error, url: str, doing: str) -> SourceError:
    """The error for what the server or the driver refused.

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
        case errors.InsufficientPrivilege():
            hint = "the user needs the right to SELECT from the table"
        case _:
            pass
    said = _without_password(first_line(failure), url)
    return _error(code, f"{doing} failed, {address(url)}: {said}", hint)


def _without_password(text: str, url: str) -> str:
    for password in (settings_of(url).get("password"), os.environ.get("PGPASSWORD")):
        if password:
            for shown in (password, quote(password, safe="")):
                text = text.replace(shown, "***")
    return text


def _error(code: Code, message: str, hint: str | None = None) -> SourceError:
    return SourceError([Diagnostic(code=code, message=message, hint=hint)])
