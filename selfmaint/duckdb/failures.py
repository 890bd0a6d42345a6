"""What DuckDB says that went wrong, as errors of this package."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus

import duckdb

from datalog.sql.duckdb import UnlikeSparkError
from datalog.sql.duckdb.relations import LOST, NARROW
from datalog.sql.duckdb.types import OTHERWISE
from selfmaint.duckdb.file_marks import Mark, mark
from selfmaint.errors import Code, InputError, input_error

_VALUES = (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException)
_WIDE = re.compile(r"Overflow in (?:multiplication|addition|subtraction) of (?:DECIMAL\(38|INT128)")
_NOT_HELD = re.compile(f"{NARROW}|{LOST}")
_LONGEST_LINE = 300
_MEND = "put the file back from a backup, or store the contents again: in a store by `selfmaint import`"
STORAGE = "see to the storage: its `endpoint`, the credentials, and the rights in the folder"
"""What to do where object storage does not answer, or refuses."""
_ROOM = (
    "give it memory or disk (`memory_limit` and `temp_directory` of `[engine]`), or use the Spark engine: "
    "`--engine spark`"
)
_KIND = re.compile(r"^(?:[A-Z][A-Za-z]* )+Error: ")


def as_input_error(failure: duckdb.Error, files: Mapping[str, Mark | None]) -> InputError | None:
    """What went wrong with values or files; None if it is nothing of the kind.

    `files` are those that are read, with their marks when they were first looked at.

    Returns:
        SM405 there is no memory or disk; SM103 a file is gone; SM104 one has changed or is damaged, or a value that
        there is not; SM502 a decimal of more digits than DuckDB has, of which Spark gives some up, or a value of
        which it is known that Spark has another one.
    """
    line = _said(failure)
    if isinstance(failure, duckdb.OutOfMemoryException) or "No space left" in line:
        return input_error(Code.WRITE_FAILED, f"DuckDB has no room for what it computes: {line}", _ROOM)
    named = [file for file in files if _without_scheme(file) in str(failure).partition("\n")[0]]
    if named and "://" in named[0] and "HTTP" in line:
        return _of_storage(named[0], failure, line)
    if _WIDE.search(line) and not named:
        return refused(f"a decimal has more digits than DuckDB holds: {line}")
    if OTHERWISE in line and not named:
        return refused(line)
    if _NOT_HELD.search(line) and not named:
        hint = "declare a wider type for its column, or correct the value"
        return input_error(Code.COLUMNS_DIFFER, f"a value is not read: {line}", hint)
    if "CSV Error on Line" in line and not named:
        hint = "correct the record: what begins with a quote ends with one, and a quote inside is doubled"
        return input_error(Code.COLUMNS_DIFFER, f"a record cannot be read: {line}", hint)
    if isinstance(failure, _VALUES) and not named:
        hint = (
            "guard it in the view that computes it (`x / nullif(y, 0)`, `WHERE first <= last`), "
            "or take a type that holds the value"
        )
        return input_error(Code.COLUMNS_DIFFER, f"a value cannot be computed: {line}", hint)
    other = next((file for file in named or files if mark(file) != files[file]), None)
    if other is not None:
        return changed(other)
    if named or type(failure) is duckdb.Error:  # of no kind are those of its Parquet reader alone
        what = f"`{named[0]}`" if named else "a stored file"
        if "Permission denied" in line:
            hint = "see to the right to read the folder and all in it"
            return input_error(Code.COLUMNS_DIFFER, f"{what} cannot be read: {line}", hint)
        message = f"{what} is damaged, or cannot be read: {line}"
        return input_error(Code.COLUMNS_DIFFER, message, _MEND)
    return None


def refused(what: str) -> InputError:
    """The error for what only Spark does."""
    hint = 'use the Spark engine: `--engine spark`, or `engine="spark"`'
    return input_error(Code.ENGINE_DIFFERS, what, hint)


def _said(failure: duckdb.Error) -> str:
    """What an error of DuckDB says, on one line, without its kind; of a CSV file what is wrong stands on the third."""
    lines = str(failure).splitlines() or [""]
    first = " ".join(lines[:3]) if "CSV Error on Line" in lines[0] else lines[0]
    return _KIND.sub("", first)[:_LONGEST_LINE]


def _without_scheme(file: str) -> str:
    """What an error of DuckDB names of an object: it may show it by the server's address."""
    return file.removeprefix("s3://")


def _of_storage(file: str, failure: duckdb.Error, line: str) -> InputError:
    """The error for an object that cannot be read."""
    if getattr(failure, "status_code", None) == HTTPStatus.NOT_FOUND:
        return input_error(
            Code.MISSING_CONTENTS, f"stored contents are gone: there is no object `{file}`", _MEND
        )
    return input_error(Code.MISSING_CONTENTS, f"`{file}` cannot be read: {line}", STORAGE)


def changed(file: str) -> InputError:
    """The error for a file that is not what it was, or gone."""
    if not os.path.isfile(file):  # noqa: PTH113 - which is no error where nothing may be seen
        message = f"stored contents are gone: there is no file `{file}` any more"
        return input_error(Code.MISSING_CONTENTS, message, _MEND)
    message = f"`{file}` has changed since it was first looked at, and cannot be read as what it was"
    return input_error(Code.COLUMNS_DIFFER, message, "run the command again, when nothing writes to it")


@contextlib.contextmanager
def writing_sql() -> Iterator[None]:
    """Turns what DuckDB does otherwise than Spark into an `InputError`.

    Raises:
        InputError: SM502.
    """
    try:
        yield
    except UnlikeSparkError as unlike:
        raise refused(f"DuckDB does not compute what Spark does here: {unlike}") from unlike
