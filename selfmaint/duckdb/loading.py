"""Loading DuckDB's extensions. The signature of a file is checked once: it takes longer than a commit.

That it is good is noted where the user keeps the parse table of the grammar, too (`datalog.cache`), with all that the
file system changes when it writes a file. Without a note that says the same of the file, the signature is checked.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import duckdb

from datalog.cache import cache_folder
from selfmaint.errors import Code, InputError, input_error

EXTENSIONS = {
    "ducklake": "duckdb_extension_ducklake",
    "sqlite_scanner": "duckdb_extension_sqlite_scanner",
    "postgres_scanner": "duckdb_extension_postgres_scanner",
    "httpfs": "duckdb_extension_httpfs",
    "aws": "duckdb_extension_aws",
}
"""DuckDB's extensions and the packages that have them."""

SETTINGS: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
"""Every database's: an extension is loaded by `load` alone."""

UNCHECKED = {**SETTINGS, "allow_unsigned_extensions": "true"}
"""Those of a database that is given files whose signature was checked before."""

_checked: dict[Path, str] = {}
"""What the file system said of the files whose signature is known to be good."""

_checking: list[Thread] = []


def load(run: Callable[[str], object], file: Path) -> None:
    """Loads a file whose signature is good.

    Args:
        run: runs a statement of a database with the settings `UNCHECKED`.
        file: the extension's.

    Raises:
        duckdb.Error: it has no good signature, or cannot be loaded.
    """
    while _checking:
        _checking.pop().join()
    _check(file)
    run(_loading(file))


def check_ahead(names: Iterable[str]) -> None:
    """Begins to check the signatures of some extensions, beside what is done until they are loaded."""

    def check() -> None:
        for name in names:
            with suppress(InputError, duckdb.Error):  # who loads it is told
                _check(extension_file(name))

    thread = Thread(target=check)
    thread.start()
    _checking.append(thread)


def _check(file: Path) -> None:
    found, folder = file.stat(), cache_folder()
    seen = f"{file.resolve()} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
    if _checked.get(file) == seen:
        return
    # One for each environment: they take turns where there are several.
    place = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]
    note = None if folder is None else folder / f"{file.stem}.{place}.signed"
    if note is None or _said(note) != seen:
        with duckdb.connect(":memory:", config=SETTINGS) as strict:
            strict.execute(_loading(file))
        if note is not None:
            with suppress(OSError):
                note.write_text(seen, encoding="utf-8")
    _checked[file] = seen


def _said(note: Path) -> str:
    try:
        return note.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return ""


def _loading(file: Path) -> str:
    return "LOAD '{}'".format(str(file).replace("'", "''"))


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
