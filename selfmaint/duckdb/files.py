"""Stored contents as relations: Parquet, CSV and JSON lines on this machine, checked as Spark's reading checks them.

Parquet is read when it is used. Text is read at once, and parsed strictly: what is no value of its column's declared
type, in its usual spelling, stops the reading. Refused, for the Spark engine: other places than local files, folders
partitioned by columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from datalog.copies import replace
from datalog.model import ColumnType, Unmodelled
from datalog.model.schema import OTHER_HINT
from datalog.sql.duckdb import SqlType
from datalog.sql.duckdb import relations as sql
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.failures import refused, writing_sql
from selfmaint.duckdb.layouts import taken
from selfmaint.duckdb.relation import Relation
from selfmaint.duckdb.text_rows import csv_rows, json_rows, refused_text
from selfmaint.engine.column_types import narrows, settled
from selfmaint.errors import Code, InputError, first_line, input_error
from selfmaint.store.bad_values import TextReading, placed, remember
from selfmaint.store.delta import is_delta_table, without_rows
from selfmaint.store.expected import (
    Expected,
    StoredType,
    is_by_position,
    nothing_stored,
    require_names,
    require_types,
)
from selfmaint.store.formats import Format, data_files, format_of


def read_contents(database: Database, location: str, expected: Expected, *, declared: bool) -> Relation:
    """Contents of a view, a base relation or an update, with the expected columns in order.

    Columns whose names are not declared may match by position.

    Raises:
        InputError: SM103 nothing is stored there; SM104 other columns or types, or a text that is no value; SM502
            what only Spark reads.
    """
    files, format_ = _files(location, expected.name)
    if format_ is Format.PARQUET:
        stored = _parquet(database, location, files, expected.name)
        return conform(database, stored, expected, declared=declared)
    remember(
        location,
        TextReading(expected.name, dict(zip(expected.columns, expected.types, strict=True)), format_),
    )
    try:
        if format_ is Format.JSON_LINES:
            return json_rows(database, files, expected)
        return csv_rows(database, files, expected, declared=declared)
    except (InputError, duckdb.Error, UnicodeError) as failure:
        found = placed(location, refused_text(failure))
        if found:
            raise InputError(found) from failure
        if isinstance(failure, InputError):
            raise
        message = f"`{location}` cannot be read as what is declared: {first_line(failure)}"
        is_text = isinstance(failure, UnicodeError)
        hint = "save the file as UTF-8" if is_text else "correct the contents, or the declaration"
        raise input_error(Code.COLUMNS_DIFFER, message, hint) from failure


def read_as_stored(database: Database, location: str, name: str) -> Relation:
    """Contents of which nothing is known beforehand, with the columns that are stored.

    Raises:
        InputError: SM103 nothing is stored there; SM502 text files.
    """
    files, format_ = _files(location, name)
    if format_ is not Format.PARQUET:
        raise refused(f"`{name}` is stored as text, and the types of its columns are not declared")
    return _parquet(database, location, files, name)


def _parquet(database: Database, location: str, files: Sequence[Path], name: str) -> Relation:
    """The rows of Parquet files; a Delta table without rows has none."""
    if files or not is_delta_table(Path(location)):
        from selfmaint.duckdb.parquet_files import parquet  # noqa: PLC0415 - only where Parquet is read

        return parquet(database, files, name)
    from selfmaint.engine.arrow_types import column_type  # noqa: PLC0415 - as a rule there are rows

    rows = without_rows(Path(location))
    kinds = [column_type(field.type) for field in rows.schema]
    return Relation(database.given(rows, kinds), tuple(rows.column_names))


def conform(database: Database, data: Relation, expected: Expected, *, declared: bool) -> Relation:
    """The rows with the expected columns, matched by name, or by position, in order and in their types.

    Raises:
        InputError: SM104 other columns or types, every difference at once.
    """
    if not declared and is_by_position(data.columns, expected):
        as_stored = replace(expected, columns=data.columns)
        return Relation(conform(database, data, as_stored, declared=True).stored, expected.columns)
    require_names(data.columns, expected)
    places = [data.columns.index(name) for name in expected.columns]
    stored = [data.types[place] for place in places]
    known = [_known(kind) for kind in stored]
    expected = expected.given(known)
    require_types(known, expected)
    wanted = [
        kind if isinstance(kind, str) else settled(kind, declared_type)
        for kind, declared_type in zip(stored, expected.types, strict=True)
    ]
    if places == list(range(len(data.columns))) and wanted == list(data.types):
        return data
    columns = zip(expected.columns, places, known, expected.types, strict=True)
    saying = {
        place: f"`{name}` of `{expected.name}` is declared `{its}`, {sql.NARROW}"
        for name, place, found, its in columns
        if isinstance(found, ColumnType) and narrows(found, its)
    }
    return Relation(retyped(database, data, places, wanted, saying).stored, expected.columns)


def retyped(
    database: Database,
    data: Relation,
    places: Sequence[int],
    wanted: Sequence[SqlType],
    saying: Mapping[int, str] | None = None,
) -> Relation:
    """Some columns, in other types; a value that is not of its new type is an error where it is read.

    `saying` has for some of the places what the error says of the value.
    """
    stored = [data.types[place] for place in places]
    with writing_sql():
        query = sql.cast_rows(data.stored.name, stored, wanted, places, saying)
    made = database.view(query, wanted, [data.stored], taken(data.stored.layout, places))
    return Relation(made, tuple(data.columns[place] for place in places))


def _known(kind: SqlType) -> StoredType:
    return Unmodelled(kind.lower(), OTHER_HINT) if isinstance(kind, str) else kind


def _files(location: str, name: str) -> tuple[list[Path], Format]:
    """The data files at a place, and their format."""
    if "://" in location:
        raise refused(f"`{name}` is at `{location}`, and DuckDB reads local files")
    path = Path(location)
    if not path.exists():
        raise nothing_stored(name, location)
    format_ = format_of(location)
    files = data_files(path)
    if any("=" in part for file in files for part in file.relative_to(path).parts[:-1]):
        raise refused(f"`{name}` is a folder partitioned by columns")
    return files, format_
