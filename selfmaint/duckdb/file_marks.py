"""Files that are read, as they were when they were looked at last; what DuckDB keeps of others that had their names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb

Mark = tuple[int, int, int]
"""A file's size, time, and identity."""

_FORGET = "SET enable_external_file_cache = false; SET enable_external_file_cache = true"


class FileMarks(dict[str, Mark | None]):
    """The files that a connection reads; None for one that is gone."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        super().__init__()
        self._connection = connection

    def note(self, files: Iterable[str]) -> None:
        """Looks at files that are about to be read.

        DuckDB keeps parts of the files that it read, and tells by the second whether they changed: what is written anew
        sooner would be read as what it was, or half of it.
        """
        found = {file: mark(file) for file in files}
        if any(self.get(file, its) != its for file, its in found.items()):
            self._connection.execute(_FORGET)
        self.update(found)


def mark(file: str) -> Mark | None:
    """What tells that a file has changed; None if there is none. An object is never changed here."""
    if "://" in file:
        return 0, 0, 0
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino
