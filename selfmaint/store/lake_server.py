"""Where a lake's catalog is: a database of SQLite in its folder, or one on a server that several machines reach."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from selfmaint.errors import Code, first_line, input_error

Run: TypeAlias = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]
"""Runs a query with named values (`:name`), within a transaction that sees one state."""

_BUSY_S = 30.0
_LIBRARIES = threading.Lock()
"""DuckDB brings a SQLite of its own, and locks on files are a process's: who closes a file drops those of the other."""


class LakeServer(Protocol):
    """A catalog's database."""

    @property
    def note(self) -> str | None:
        """What to say of where it is, without a secret; None where the lake's folder says it."""
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
            InputError: SM408 its server does not answer.
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


@dataclass(frozen=True, slots=True)
class SqliteCatalog:
    """A catalog in a file, which several processes of one machine may read while one writes.

    Attributes:
        file: the file.
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

    def exists(self) -> bool:
        """See `LakeServer`."""
        return os.path.isfile(self.file)  # noqa: PTH113 - which is no error where nothing may be seen

    @contextlib.contextmanager
    def reading(self) -> Iterator[Run]:
        """See `LakeServer`."""
        try:
            with (
                _LIBRARIES,
                contextlib.closing(
                    # Who may not write does not tidy up when closing, under a user's DuckDB that has it open.
                    sqlite3.connect(
                        f"{self.file.absolute().as_uri()}?mode=ro",
                        uri=True,
                        timeout=_BUSY_S,
                        isolation_level=None,
                    )
                ) as connection,
            ):
                connection.execute("BEGIN")
                yield lambda query, given: connection.execute(query, given).fetchall()
        except (sqlite3.Error, ValueError, KeyError) as failure:
            message = f"the catalog of the lake `{self.folder}` cannot be read: {first_line(failure)}"
            is_of_system = isinstance(failure, sqlite3.OperationalError) and "no such" not in str(failure)
            mend = "see to the disk, and to the rights of the folder, which is written to by who reads, too"
            hint = mend if is_of_system else "put it back from a backup, or make the lake anew"
            raise input_error(Code.LAKE, message, hint) from failure

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
