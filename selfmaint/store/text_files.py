"""What text files are being read as: a value that is none comes to light as the rows are used, far from here.

The latest reading of each location is remembered, so that a failure which names a file can be placed in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from datalog.diagnostics import Diagnostic
from datalog.model import ColumnType, Span
from selfmaint.errors import Code
from selfmaint.store.bad_values import BadValue, bad_values
from selfmaint.store.formats import Format, data_files

REMEMBERED = 1000
"""How many locations are remembered."""

SHOWN_VALUES = 5
"""How many bad values of a file are shown."""

SHOWN_CHARACTERS = 80
"""How much of a value is shown."""


@dataclass(frozen=True, slots=True)
class TextReading:
    """What a text file, or the files of a directory, are read as.

    Attributes:
        name: what the contents are of.
        types: the declared types by column name.
        format: CSV or JSON lines.
    """

    name: str
    types: Mapping[str, ColumnType]
    format: Format


_readings: dict[Path, TextReading] = {}


def remember(location: str, reading: TextReading) -> None:
    """Notes what a local location is read as."""
    path = local_path(location)
    if path is not None:
        _readings.pop(path, None)
        while len(_readings) >= REMEMBERED:
            del _readings[next(iter(_readings))]
        _readings[path] = reading


def local_path(location: str) -> Path | None:
    """The local file of a path or `file:` URI, as Spark escapes it; None for what is elsewhere."""
    if location.startswith("file:"):
        return Path(unquote(urlsplit(location).path)).resolve()
    return None if "://" in location else Path(location).resolve()


def placed(location: str, refused: str | None = None) -> tuple[Diagnostic, ...]:
    """What is wrong with the first bad values of a file, or of the files of a directory, and where they stand.

    `refused` is the text that the engine said it refused; looked for where no value is clearly bad.

    Returns:
        SM104 with its place for each; empty if the file is not local, or nothing clearly wrong is found in it.
    """
    path = local_path(location)
    if path is None or not path.exists():
        return ()
    reading = next((_readings[p] for p in (path, *path.parents) if p in _readings), None)
    if reading is None:
        return ()
    is_json = reading.format is Format.JSON_LINES
    for text in (None, refused):
        for file in data_files(path):
            found = bad_values(file, reading.types, is_json=is_json, limit=SHOWN_VALUES, refused=text)
            if found:
                return tuple(_diagnostic(file, reading, value) for value in found)
    return ()


def _diagnostic(file: Path, reading: TextReading, found: BadValue) -> Diagnostic:
    length = len(found.text) if found.position and found.column is not None else 1
    place = Span(found.line, found.position or 1, length, str(file))
    text = found.text if len(found.text) <= SHOWN_CHARACTERS else f"{found.text[:SHOWN_CHARACTERS]}..."
    if found.column is None:
        return Diagnostic(
            Code.COLUMNS_DIFFER,
            f"a record of `{reading.name}` cannot be read: {found.said}",
            place,
            found.said,
            hint="correct the record",
        )
    declared = reading.types[found.column]
    return Diagnostic(
        Code.COLUMNS_DIFFER,
        f"column `{found.column}` of `{reading.name}` is `{declared}`, which cannot hold `{text}`",
        place,
        f"not of type `{declared}`",
        hint=f"correct the value, or declare `{found.column}` with another type",
    )
