"""Where in a text file is the value that is not what its column is declared to be?

Spark names the file alone. So once it has refused a file, the file is read again here, up to its first few values
that are clearly none of their types. A value that may be accepted is never blamed, unless it is what was said to be
refused; where none is found, nothing is said.

A value that is none comes to light as the rows are used, far from where a file is named. The latest reading of each
location is remembered, so that a failure which names a file can be placed in it.
"""

from __future__ import annotations

import csv
import datetime as dt
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from datalog.diagnostics import Diagnostic
from datalog.model import ColumnType, Span, TypeName
from selfmaint.errors import Code
from selfmaint.store.formats import Format, data_files

SCANNED_BYTES = 256 * 2**20
"""Larger files are not read again."""

_LONG = 1000
"""Whole numbers of so many digits are no value of any type; Python does not read much longer ones."""
_INTEGER = re.compile(r"[+-]?[0-9]+")
_EXACT = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
_NO_DECIMAL = re.compile(r"[\s_]")
_DAY = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:[T ](.*))?")
_TIME = re.compile(r"([0-9]{1,2})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?(?![0-9]).*")
_FLOAT = re.compile(
    r"[+-]?(NaN|Inf|INF|Infinity|0[xX].*|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)[dDfF]?"
)
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_NOT_FINITE = ("NaN", "INF", "+INF", "-INF", "Infinity", "+Infinity", "-Infinity")


class BadValue(Struct, frozen=True):
    """A value, or a whole record, that cannot be read.

    Attributes:
        line: the 1-based line on which its record starts.
        column: the column's name; None for a record that is none.
        text: the value, or the record's first line.
        said: what is wrong with a record; empty for a value.
        position: the 1-based position of the value in the line, where it is evident.
    """

    line: int
    column: str | None
    text: str
    said: str = ""
    position: int | None = None


def bad_values(
    file: Path, types: Mapping[str, ColumnType], *, is_json: bool, limit: int, refused: str | None = None
) -> tuple[BadValue, ...]:
    """The first values of a local file that are not of their columns' types; empty if none is found.

    The types are by the columns' names in the file. `refused` is a text that is no value of some column that is not of
    strings, whatever it looks like.
    """
    found: list[BadValue] = []
    with suppress(OSError, UnicodeDecodeError, csv.Error, RecursionError):
        if file.stat().st_size <= SCANNED_BYTES:
            found.extend(islice((_json_values if is_json else _csv_values)(file, types, refused), limit))
    return tuple(found)


def _csv_values(file: Path, types: Mapping[str, ColumnType], refused: str | None) -> Iterator[BadValue]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        latest = [""]
        reader = csv.reader(_noting(lines, latest))
        header = next(reader, [])
        end = reader.line_num
        for record in reader:
            line, end = end + 1, reader.line_num
            if record and len(record) != len(header):
                said = f"it has {len(record)} values, and the header {len(header)}"
                yield BadValue(line, None, ",".join(record), said)
            for index, (name, text) in enumerate(zip(header, record, strict=False)):
                # An empty field is null; whether it stood in quotes cannot be told here.
                if (
                    text
                    and name in types
                    and not (holds(types[name], text) and _is_taken(types[name], text, refused))
                ):
                    position = _position(latest[0], record, index)
                    yield BadValue(line, name, text, position=position)


def _position(line: str, record: Sequence[str], index: int) -> int | None:
    """Where a field of a record begins in its line, behind a quotation mark; None if it has several lines."""
    if next(csv.reader([line]), None) != list(record):
        return None
    at = 0
    for _ in range(index):
        quoted = _QUOTED.match(line, at)
        at = line.index(",", at if quoted is None else quoted.end()) + 1
    return at + 1 + (line[at : at + 1] == '"')


def _noting(lines: Iterable[str], latest: list[str]) -> Iterator[str]:
    """The lines, each noted as the latest one."""
    for line in lines:
        latest[0] = line
        yield line


def _json_values(file: Path, types: Mapping[str, ColumnType], refused: str | None) -> Iterator[BadValue]:
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line.rstrip(), parse_float=_Number, parse_int=_whole)
            except json.JSONDecodeError as error:
                yield BadValue(number, None, line.strip(), "no JSON", error.colno)
                continue
            if not isinstance(record, dict):
                yield BadValue(number, None, line.strip(), "no JSON object")
                continue
            for name, value in record.items():
                if name not in types or value is None:
                    continue
                shown = str(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                if not (_holds_json(types[name], value) and _is_taken(types[name], shown, refused)):
                    at = line.find(shown, line.find(f'"{name}"') + len(name) + 2)
                    yield BadValue(number, name, shown, position=at + 1 if at >= 0 else None)


class _Number(str):
    """A number with a point, an exponent, or very many digits, as it is written."""

    __slots__ = ()


def _whole(text: str) -> int | _Number:
    return int(text) if len(text) < _LONG else _Number(text)


def _holds_json(declared: ColumnType, value: Any) -> bool:
    """Whether a field's value may be read as a type; a string column takes the text of any scalar."""
    match value:
        case dict() | list():
            return False
        case _ if declared.family in ("string", "any"):
            return True
        case bool():
            return declared.name is TypeName.BOOLEAN
        case int() | _Number():
            return declared.family == "number" and holds(declared, str(value))
        case _ if declared.family == "number" and declared.name is not TypeName.DECIMAL:
            return value in _NOT_FINITE and declared.name.is_floating
        case _:
            return declared.family != "boolean" and holds(declared, str(value))


def holds(declared: ColumnType, text: str) -> bool:
    """Whether a text may be read as a type; False only where it surely is not.

    >>> from datalog.model import ColumnType, TypeName
    >>> [holds(ColumnType(TypeName.TINYINT), text) for text in ("12", "+7", "128", "1.0", "two")]
    [True, True, False, False, False]
    >>> holds(ColumnType(TypeName.DECIMAL, 5, 2), "1.239"), holds(ColumnType(TypeName.DATE), "2024-02-30")
    (False, False)
    """
    match declared.name:
        case name if name.bits is not None:
            half = 2 ** (name.bits - 1)
            is_whole = _INTEGER.fullmatch(text) is not None and len(text) < _LONG
            return is_whole and -half <= int(text) < half
        case TypeName.DECIMAL:
            return _is_decimal(text, declared)
        case TypeName.FLOAT | TypeName.DOUBLE:
            return _FLOAT.fullmatch(text.strip()) is not None
        case TypeName.BOOLEAN:
            return text.lower() in ("true", "false")
        case TypeName.DATE | TypeName.TIMESTAMP | TypeName.TIMESTAMP_NTZ:
            return _is_day(text, with_time=declared.name is not TypeName.DATE)
        case _:
            return True


def _is_taken(declared: ColumnType, text: str, refused: str | None) -> bool:
    return text != refused or declared.family in ("string", "any")


def _is_decimal(text: str, declared: ColumnType) -> bool:
    if _NO_DECIMAL.search(text):
        return False
    try:
        value = Decimal(text)
    except InvalidOperation:
        return False
    if not value.is_finite() or declared.precision is None:
        return value.is_finite()
    _, digits, exponent = value.normalize(_EXACT).as_tuple()
    scale = declared.scale or 0
    before = len(digits) + int(exponent)
    return not value or (-int(exponent) <= scale and before <= declared.precision - scale)


def _is_day(text: str, *, with_time: bool) -> bool:
    """Whether a text may start with a day of the calendar; of other spellings than the usual one nothing is said."""
    found = _DAY.fullmatch(text)
    if found is None:
        return text[:1].isdigit() or text[:1] in "+-"
    time = _TIME.fullmatch(found[4]) if with_time and found[4] else None
    try:
        dt.date(int(found[1]), int(found[2]), int(found[3]))
        if time is not None:
            dt.time(int(time[1]), int(time[2] or 0), int(time[3] or 0))
    except ValueError:
        return False
    return True


REMEMBERED = 1000
"""How many locations are remembered."""

SHOWN_VALUES = 5
"""How many bad values of a file are shown."""

SHOWN_CHARACTERS = 80
"""How much of a value is shown."""


class TextReading(Struct, frozen=True):
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


_SPELLED = {
    "nan": "NaN",
    **dict.fromkeys(("inf", "infinity"), "Infinity"),
    **dict.fromkeys(("-inf", "-infinity"), "-Infinity"),
}
"""Doubles that other programs write otherwise than Spark."""
_WRITTEN = {
    "boolean": "`true` or `false`",
    "date": "`2026-01-31`",
    "timestamp": "`2026-01-31 23:59:00`, with a zone `Z` or `+01:00` or none",
    "timestamp_ntz": "`2026-01-31 23:59:00`, without a zone",
}
"""How values of a family are written; of numbers see `_form`."""


def _form(declared: ColumnType, text: str) -> str:
    """How a value of a type is written."""
    if text.strip().lower() in ("null", "none", "n/a", "\\n"):
        return "leave the field empty for null"
    if declared.family in _WRITTEN:
        return f"such a value is written {_WRITTEN[declared.family]}"
    is_number = holds(ColumnType(TypeName.DOUBLE), text)
    if declared.family != "number" or (is_number and not declared.name.is_integer):
        return "correct the value"
    if declared.name.is_integer:
        return "correct the value" if _INTEGER.fullmatch(text) else "write a whole number, as `1234`"
    return "write it with a point and no other mark, as `1234.5`"


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
    spelled = _SPELLED.get(found.text.lower().lstrip("+")) if declared.name.is_floating else None
    return Diagnostic(
        Code.COLUMNS_DIFFER,
        f"column `{found.column}` of `{reading.name}` is `{declared}`, which cannot hold `{text}`",
        place,
        f"not of type `{declared}`",
        hint=f"write it as `{spelled}`"
        if spelled
        else f"{_form(declared, found.text)}; or declare `{found.column}` with another type",
    )
