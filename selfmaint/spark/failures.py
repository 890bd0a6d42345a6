"""What Spark raises while it runs, as errors of this package where the input is to blame."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator
from itertools import islice
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from datalog.diagnostics import Diagnostic
from selfmaint.errors import Code, InputError, input_error
from selfmaint.store.bad_values import local_path, placed

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""Whatever comes out of Spark: PySpark passes some of the JVM's exceptions on as they are."""

SHARED_TMPDIR = "with a cluster, set TMPDIR to a folder that all its machines see, under the same path"
"""What to do where executors do not see what comes to them by a file."""

_MISSING = ("FAILED_READ_FILE.FILE_NOT_EXIST", "PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND")
_UNREADABLE = (
    "CANNOT_PARSE",
    "CAST_INVALID_INPUT",
    "FAILED_READ_FILE",
    "INVALID_JSON_RECORD_TYPE",
    "MALFORMED_CSV_RECORD",
    "MALFORMED_RECORD_IN_PARSING",
    "UNABLE_TO_INFER_SCHEMA",
    "USER_RAISED_EXCEPTION",
)
_FILE = re.compile(r"(?:reading file|in the file) ([a-z0-9]+:/\S*?)\.?(?=\s|$)")
_UNCOMPUTABLE = (
    "ARITHMETIC_OVERFLOW",
    "BINARY_ARITHMETIC_OVERFLOW",
    "CAST_OVERFLOW",
    "DATETIME_FIELD_OUT_OF_BOUNDS",
    "DATETIME_OVERFLOW",
    "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
    "DIVIDE_BY_ZERO",
    "INCONSISTENT_BEHAVIOR_CROSS_VERSION",
    "INVALID_DATETIME_PATTERN",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "REMAINDER_BY_ZERO",
)
_TEXT = re.compile(r"(?s)[Ii]nput string: \"(.*?)\"|\b(?:Text|value) '(.*?)' (?:could|of|for)")
_CONDITION = re.compile(r"\[([A-Z0-9_.]+)\]")
_STATE = re.compile(r"\s*SQLSTATE: \w{5}\s*$")
_LONGEST_CHAIN = 20
_LONGEST_LINE = 300


@contextlib.contextmanager
def translated(location: str | None = None) -> Iterator[None]:
    """Turns what Spark says about contents and values, which comes as it computes, into an `InputError`.

    Raises:
        InputError: SM103 a file that is gone, SM104 contents that are not what they were read as: with the
            place of the value, if it can be found; or a value that an expression or a type does not have.
    """
    try:
        yield
    except SPARK_ERRORS as failure:
        said = _chain(failure)
        found = [match.group(1) for text in said if (match := _CONDITION.match(text))]
        if any(condition.startswith(_MISSING) for condition in found):
            message = f"stored contents are gone: {first_line(failure)}"
            hint = SHARED_TMPDIR if tempfile.gettempdir() in message else None
            raise input_error(Code.MISSING_CONTENTS, message, hint) from failure
        if any(condition.startswith(_UNREADABLE) for condition in found):
            raise InputError(_unreadable(said, _file(said) or location)) from failure
        if any(condition.startswith(_UNCOMPUTABLE) for condition in found):
            message = f"a value cannot be computed: {first_line(failure)}"
            raise input_error(Code.COLUMNS_DIFFER, message) from failure
        raise


def _unreadable(said: list[str], location: str | None) -> tuple[Diagnostic, ...]:
    """What is wrong with contents, as precisely as it can be told."""
    texts = (match[1] or match[2] for text in said if (match := _TEXT.search(text)))
    values = () if location is None else placed(location, next(texts, None))
    if values:
        return values
    path = None if location is None else local_path(location)
    shown = "stored contents" if location is None else f"`{path or location}`"
    reason = next((text for text in reversed(said) if text), "")
    message = f"{shown} cannot be read as what is declared: {_short(reason)}"
    return (Diagnostic(Code.COLUMNS_DIFFER, message, hint="correct the contents, or the declaration"),)


def _file(said: list[str]) -> str | None:
    """The file that a message of Spark, or of a decimal's check, names."""
    return next((match.group(1) for text in said if (match := _FILE.search(text))), None)


def first_line(failure: Exception) -> str:
    """What an exception says, on one line: of a chain from the JVM the first link that has a condition."""
    said = _chain(failure) or [str(failure)]
    text = next((text for text in said if _CONDITION.match(text)), said[0])
    return _short(text or type(failure).__name__)


def _short(text: str) -> str:
    line = next(iter(text.strip().splitlines()), "")
    plain = _STATE.sub("", _CONDITION.sub("", line, count=1))
    return plain.strip()[:_LONGEST_LINE].rstrip(".")


def _chain(failure: Exception) -> list[str]:
    """The messages of an exception of the JVM and of its causes, outermost first."""
    java = getattr(failure, "java_exception", None) or getattr(failure, "_origin", None)
    if java is None:
        return [failure.getMessage() or ""] if isinstance(failure, PySparkException) else []
    with contextlib.suppress(Py4JError):
        return [str(cause.getMessage() or "") for cause in islice(_causes(java), _LONGEST_CHAIN)]
    return []


def _causes(java: Any) -> Iterator[Any]:
    link = java
    while link is not None:
        yield link
        link = link.getCause()
