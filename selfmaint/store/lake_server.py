"""Where a lake's catalog is: a database of SQLite in its folder, or one on a server that several machines reach."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from selfmaint.errors import Code, InputError, first_line, input_error

Run: TypeAlias = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]
"""Runs a query with named values (`:name`), within a transaction that sees one state."""

_BUSY_S = 30.0
_SHARED_LOCK = 0x4000_0002, 510
"""The bytes of a database of SQLite that each of its users holds: where they begin, and how many they are."""
_ATTEMPTS, _BETWEEN_S = 10, 0.1
_LIBRARIES = threading.Lock()
"""DuckDB brings a SQLite of its own, and locks on files are a process's: who closes a file drops those of the other."""


class LakeServer(Protocol):
    """A catalog's database."""

    @property
    def note(self) -> str | None:
        """What to say of where it is, without a secret; None where the lake's folder says it."""
        ...

    @property
    def name(self) -> str:
        """What it is and where, for messages."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether other machines may write to it: then it says who does."""
        ...

    @property
    def schema(self) -> str | None:
        """The schema of its tables, if it has one."""
        ...

    @property
    def attached_as(self) -> tuple[str, Mapping[str, str]]:
        """What DuckLake attaches, and its options as text of SQL."""
        ...

    def exists(self) -> bool:
        """Whether the catalog is there.

        Raises:
            InputError: SM408 its server does not answer, or its folder may not be looked into.
        """
        ...

    def require_writable(self) -> None:
        """Refuses who has no right to write to it.

        Raises:
            InputError: SM405.
        """
        ...

    def reading(self) -> contextlib.AbstractContextManager[Run]:
        """Runs queries within a transaction that sees one state of the catalog.

        Raises:
            InputError: SM408 it cannot be read.
        """
        ...

    def lent(self) -> contextlib.AbstractContextManager[None]:
        """Has DuckDB open the catalog: nobody else of this process reads it then, nor may who asks for it."""
        ...

    def holding(self, what: str) -> contextlib.AbstractContextManager[None]:
        """Holds the right to write, of a shared catalog.

        Raises:
            BusyError: SM405 somebody else holds it.
        """
        ...

    def new(self) -> LakeServer:
        """Where a new catalog is made, before it takes this one's place."""
        ...

    def cleared(self) -> None:
        """Removes what is left of one that was being made."""
        ...

    def published(self, name: LakeServer) -> None:
        """Puts the catalog in another's place."""
        ...

    def shown(self, text: str) -> str:
        """A text without the password."""
        ...


class SqliteCatalog(Struct, frozen=True):
    """A catalog in a file, which several processes of one machine may read while one writes.

    Attributes:
        folder: the lake's folder, for messages.
    """

    file: Path
    folder: Path
    note: str | None = None
    is_shared: bool = False
    schema: str | None = None

    @property
    def attached_as(self) -> tuple[str, Mapping[str, str]]:
        """See `LakeServer`. Readers do not wait for who writes."""
        return f"ducklake:sqlite:{self.file}", {"META_JOURNAL_MODE": "'WAL'", "META_BUSY_TIMEOUT": "30000"}

    @property
    def name(self) -> str:
        """See `LakeServer`."""
        return f"the catalog `{self.file}` of the lake"

    def exists(self) -> bool:
        """See `LakeServer`."""
        try:
            return stat.S_ISREG(self.file.stat().st_mode)
        except PermissionError as failure:
            raise self._unreadable(failure) from failure
        except OSError:
            return False

    def require_writable(self) -> None:
        """See `LakeServer`."""
        require_right(self.file)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Run]:
        """See `LakeServer`."""
        try:
            with _LIBRARIES, contextlib.closing(self._opened()) as connection:
                yield lambda query, given: connection.execute(query, given).fetchall()
        except (sqlite3.Error, OSError, ValueError, KeyError) as failure:
            raise self._unreadable(failure) from failure

    def _unreadable(self, failure: Exception) -> InputError:
        message = f"{self.name} cannot be read: {first_line(failure)}"
        is_of_system = isinstance(failure, sqlite3.OperationalError | OSError)
        if "locked" in str(failure):
            hint = "another program holds it: wait until that has ended"
        elif isinstance(failure, PermissionError) or (
            is_of_system and "no such" not in str(failure) and self.exists()
        ):
            hint = f"see to the disk, and to the right to read `{self.folder}` and the files in it"
        else:
            hint = (
                f"put `{self.folder}` back from a backup, or move it away and make it anew: `selfmaint init`"
            )
        return input_error(Code.LAKE, message, hint)

    def _opened(self) -> sqlite3.Connection:
        """A connection within a transaction that sees one state."""
        for left in reversed(range(_ATTEMPTS)):
            # Who may not write does not tidy up when closing, under a user's DuckDB that has it open.
            connection = sqlite3.connect(
                f"{self.file.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_S, isolation_level=None
            )
            try:
                connection.execute("BEGIN")
                self._require_whole(connection)
            except sqlite3.OperationalError:
                connection.close()
                found = self._copied()
                if found is not None:
                    return found
                if not left or os.access(self.folder, os.W_OK):
                    raise
                time.sleep(_BETWEEN_S)  # its last user closes it
            except BaseException:
                connection.close()
                raise
            else:
                return connection
        raise AssertionError  # the last attempt returns or raises

    def _require_whole(self, connection: sqlite3.Connection) -> None:
        """Refuses a file that ends within a page, of which SQLite takes what is missing for zeros."""
        ((page,),) = connection.execute("PRAGMA page_size")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        if self.file.stat().st_size % page:
            raise sqlite3.DatabaseError("it is cut short")

    def _copied(self) -> sqlite3.Connection | None:
        """A copy of a catalog that nobody has open, for who may not make the files that SQLite keeps beside it.

        None where that is not why it cannot be read, or somebody has opened it meanwhile.
        """
        beside = [self.file.with_name(f"{self.file.name}{end}") for end in ("-shm", "-wal")]
        if os.access(self.folder, os.W_OK) or any(one.exists() for one in beside):
            return None
        with self.file.open("rb") as file, contextlib.suppress(BlockingIOError):
            # Who has it open cannot remove the files beside it while this is held: so nobody has, if there are none.
            start, length = _SHARED_LOCK
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, length, start)
            data = bytearray(file.read())
            return None if any(one.exists() for one in beside) else _in_memory(data)
        return None

    def lent(self) -> contextlib.AbstractContextManager[Any]:
        """See `LakeServer`."""
        return _LIBRARIES

    @contextlib.contextmanager
    def holding(self, what: str) -> Iterator[None]:
        """The lock of the lake's folder is enough."""
        yield

    def new(self) -> SqliteCatalog:
        """It is made in another folder."""
        return self

    def cleared(self) -> None:
        """It is in the folder."""

    def published(self, name: LakeServer) -> None:
        """The folder is put in its place."""

    def shown(self, text: str) -> str:
        """There is no password."""
        return text


def _in_memory(data: bytearray) -> sqlite3.Connection:
    """A database of its own with the contents of a file."""
    data[18:20] = b"\1\1"  # one in memory has no write-ahead log
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.deserialize(bytes(data))
        connection.execute("BEGIN")
    except BaseException:
        connection.close()
        raise
    return connection


def require_right(path: Path) -> None:
    """Refuses who has no right to write to a file or folder; that it is there is for others to say.

    Raises:
        InputError: SM405.
    """
    if path.exists() and not os.access(path, os.W_OK):
        message = f"`{path}` cannot be written to: this user has no right to, or the disk is read-only"
        hint = "ask for the right to write to the folder and all in it, or only look: `check`, `history`, `--dry-run`"
        raise input_error(Code.WRITE_FAILED, message, hint, "nothing was done")
