"""Loading DuckDB's extensions. The signature of a file is checked once in a process: it takes longer than a commit."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from selfmaint.errors import Code, input_error

EXTENSIONS = {
    "ducklake": "duckdb_extension_ducklake",
    "sqlite_scanner": "duckdb_extension_sqlite_scanner",
    "postgres_scanner": "duckdb_extension_postgres_scanner",
    "httpfs": "duckdb_extension_httpfs",
    "aws": "duckdb_extension_aws",
}
"""DuckDB's extensions and the packages that have them."""

_OWN: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
_checked: dict[str, tuple[int, int]] = {}
"""The files whose signature DuckDB has found good, with their sizes and times."""


class Loading:
    """How one database loads extensions."""

    def __init__(self) -> None:
        """A database that is opened before a file was checked does so itself: it takes no such setting later."""
        self._checks = not _checked

    @property
    def settings(self) -> dict[str, Any]:
        """What the database is opened with."""
        return _OWN if self._checks else {**_OWN, "allow_unsigned_extensions": "true"}

    def load(self, run: Callable[[str], object], file: Path) -> None:
        """Loads a file.

        Args:
            run: runs a statement of the database.
            file: the extension's.

        Raises:
            duckdb.Error: it has no good signature, or cannot be loaded.
        """
        found, path = file.stat(), str(file)
        mark = found.st_size, found.st_mtime_ns
        statement = "LOAD '{}'".format(path.replace("'", "''"))
        if not self._checks and _checked.get(path) != mark:
            with duckdb.connect(":memory:", config=_OWN) as strict:
                strict.execute(statement)
        run(statement)
        _checked[path] = mark


def extension_file(name: str) -> Path:
    """The file of an extension of DuckDB.

    Raises:
        InputError: SM408 its package is not installed.
    """
    package = EXTENSIONS[name]
    try:
        folder = Path(next(iter(importlib.import_module(package).__path__)))
        return next(folder.glob(f"extensions/v{duckdb.__version__}/{name}.duckdb_extension"))
    except (ImportError, StopIteration):
        wheel = package.replace("_", "-")
        message = f"this lake needs DuckDB's extension `{name}` for version {duckdb.__version__}"
        hint = f"pip install {wheel}=={duckdb.__version__}"
        raise input_error(Code.LAKE, message, hint) from None
