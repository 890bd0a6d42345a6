"""Rows of CSV files and of JSON lines: first as texts, then as values of the declared types.

Null is a field of CSV that is empty and not in quotes, and a field of JSON that is null or missing. Numbers of JSON
keep all their digits.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from datalog.copies import replace
from datalog.model import ANY, ColumnType, TypeName
from datalog.sql.duckdb import texts as sql
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.failures import refused
from selfmaint.duckdb.relation import Relation, Stored
from selfmaint.errors import Code, input_error
from selfmaint.store.expected import Expected, is_by_position, require_names

_STRING = ColumnType(TypeName.STRING)
_REFUSED = re.compile(rf".*{re.escape(sql.CANNOT_HOLD)}(.*)", re.DOTALL)
_LONGEST_WHOLE = len(str(-(2**63)))
_NOT_FINITE = ("NaN", "INF", "+INF", "-INF", "Infinity", "+Infinity", "-Infinity")


def csv_rows(database: Database, files: Sequence[Path], expected: Expected, *, declared: bool) -> Relation:
    """The rows of CSV files with a header line each.

    Raises:
        InputError: SM104 other columns, or a text that is no value of its column's type; SM502 a column whose type
            is not declared, and not told by its texts.
    """
    headers = [_header(file, expected) for file in files]
    if not headers:
        raise input_error(Code.MISSING_CONTENTS, f"`{expected.name}`: there are no data files")
    if any(header != headers[0] for header in headers):
        raise input_error(Code.COLUMNS_DIFFER, f"the files of `{expected.name}` have different header lines")
    wanted = expected
    if not declared and is_by_position(headers[0], expected):
        wanted = replace(expected, columns=tuple(headers[0]))
    require_names(headers[0], wanted)
    raw = database.csv([str(file) for file in files], len(headers[0]))
    types = tuple(
        _looked_at(database, raw, headers[0].index(name), wanted) if kind == ANY else kind
        for name, kind in zip(wanted.columns, wanted.types, strict=True)
    )
    wanted = replace(wanted, types=types)
    return _typed(database, raw, headers[0], wanted, expected.columns, empty_lines=True)


def refused_text(failure: Exception) -> str | None:
    """The text that is no value of its column, as the failure of reading typed texts tells it."""
    found = _REFUSED.search(str(failure.__cause__ or failure))
    return None if found is None else found[1]


def _header(file: Path, expected: Expected) -> list[str]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        header = next(csv.reader(lines), [])
    if not header:
        raise input_error(
            Code.COLUMNS_DIFFER,
            f"`{expected.name}`: `{file}` is empty",
            note="a CSV file starts with a header line, even if it has no rows",
            hint=f"write the line `{','.join(expected.columns)}`",
        )
    return header


def _looked_at(database: Database, raw: Stored, place: int, expected: Expected) -> ColumnType:
    """The type of a column's texts of which none is declared, as Spark infers it."""
    ((*fitting, is_text),) = database.plain_rows(sql.looks(raw.name, place), [raw.name])
    if is_text is None or (is_text and not any(fitting)):
        return _STRING
    found: ColumnType | None = next(
        (kind for kind, fits in zip(sql.INFERRED, fitting, strict=True) if fits), None
    )
    if found is None:
        raise refused(
            f"the type of a CSV column of `{expected.name}` is not declared, and its values do not tell it"
        )
    return found


def json_rows(database: Database, files: Sequence[Path], expected: Expected) -> Relation:
    """The rows of files of JSON lines; their columns have no order, so they are matched by name.

    Raises:
        InputError: SM104 other columns, or a value that is none of its column's type; SM502 a column without a
            declared type that holds values of several families.
    """
    import pyarrow as pa  # noqa: PLC0415 - not where the files are of CSV

    records = [record for file in files for record in _records(file, expected)]
    names = tuple(dict.fromkeys(name for record in records for name in record)) or expected.columns
    require_names(names, expected)
    types, texts = [], []
    for name, declared_type in zip(expected.columns, expected.types, strict=True):
        values = [record.get(name) for record in records]
        kind = _inferred(values, name, expected) if declared_type == ANY else declared_type
        types.append(kind)
        texts.append(pa.array([_text(value, name, kind, expected) for value in values], pa.string()))
    raw = database.given(pa.Table.from_arrays(texts, names=list(expected.columns)), [_STRING] * len(types))
    found = replace(expected, types=tuple(types))
    return _typed(database, raw, expected.columns, found, expected.columns, empty_lines=False)


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def _records(file: Path, expected: Expected) -> Iterator[Mapping[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line, parse_float=_Number, parse_int=_Number)
            except (json.JSONDecodeError, RecursionError):
                record = None
            if not isinstance(record, dict):
                message = f"a record of `{expected.name}` cannot be read: line {number} of `{file}` is no JSON object"
                raise input_error(Code.COLUMNS_DIFFER, message, "correct the record")
            yield record


def _inferred(values: Sequence[Any], name: str, expected: Expected) -> ColumnType:
    """The type of values of which none is declared, as Spark infers it."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {str}:
        return _STRING
    if kinds == {bool}:
        return ColumnType(TypeName.BOOLEAN)
    if kinds == {_Number}:
        numbers = [value for value in values if value is not None]
        if not all(number.lstrip("-").isdigit() for number in numbers):
            return ColumnType(TypeName.DOUBLE)
        if all(len(number) <= _LONGEST_WHOLE and -(2**63) <= int(number) < 2**63 for number in numbers):
            return ColumnType(TypeName.BIGINT)
    raise refused(
        f"the type of the column `{name}` of `{expected.name}` is not declared, and its values differ"
    )


def _text(value: Any, name: str, kind: ColumnType, expected: Expected) -> str | None:
    """A field's value as text."""
    if value is None:
        return None
    if kind.name is TypeName.BOOLEAN:
        fits = isinstance(value, bool)
    elif kind.family == "number":
        is_float = kind.name in {TypeName.FLOAT, TypeName.DOUBLE}
        as_text = kind.name is TypeName.DECIMAL or (is_float and value in _NOT_FINITE)
        fits = isinstance(value, _Number) or (as_text and isinstance(value, str))
    else:
        fits = isinstance(value, str) and not isinstance(value, _Number)
    if not fits:
        message = f"column `{name}` of `{expected.name}` is `{kind}`, which cannot hold `{json.dumps(value)}`"
        raise input_error(
            Code.COLUMNS_DIFFER, message, f"correct the value, or declare `{name}` with another type"
        )
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _typed(
    database: Database,
    raw: Stored,
    names: Sequence[str],
    expected: Expected,
    columns: tuple[str, ...],
    *,
    empty_lines: bool,
) -> Relation:
    """The texts as values of the declared types, in the order expected, computed now; see `typed_texts`."""
    places = [list(names).index(name) for name in expected.columns]
    types = tuple(sql.settled_type(kind) for kind in expected.types)
    query = sql.typed_texts(
        raw.name, list(zip(places, expected.columns, types, strict=True)), empty_lines=empty_lines
    )
    return Relation(database.table(query, types, [raw.name]), columns)
