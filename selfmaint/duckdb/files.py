"""Stored contents as relations: Parquet, CSV and JSON lines on this machine, checked as Spark's reading checks them.

Parquet is read when it is used. Text is read at once, and parsed strictly: what is no value of its column's declared
type, in its usual spelling, stops the reading. Refused, for the Spark engine: other places than local files, folders
partitioned by columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from datalog.model import ANY, ColumnType, TypeName, Unmodelled
from datalog.sql import duckdb as sql
from datalog.sql.duckdb import SqlType
from datalog.sql.views import OTHER_HINT
from selfmaint.duckdb.database import Database, Relation, refused, writing_sql
from selfmaint.duckdb.layouts import layout_of
from selfmaint.duckdb.text_rows import csv_rows, json_rows, refused_text
from selfmaint.engine.column_types import settled
from selfmaint.engine.protocol import Layout
from selfmaint.errors import Code, InputError, first_line, input_error
from selfmaint.store.expected import Expected, StoredType, is_by_position, require_names, require_types
from selfmaint.store.formats import Format, data_files, format_of
from selfmaint.store.text_files import TextReading, placed, remember

_READ_AS: dict[str, SqlType] = {
    "UTINYINT": ColumnType(TypeName.SMALLINT),
    "USMALLINT": ColumnType(TypeName.INT),
    "UINTEGER": ColumnType(TypeName.BIGINT),
    "UBIGINT": ColumnType(TypeName.DECIMAL, 20, 0),
    "TIMESTAMP_S": ColumnType(TypeName.TIMESTAMP_NTZ),
    "TIMESTAMP_MS": ColumnType(TypeName.TIMESTAMP_NTZ),
}
"""Types of Parquet files that are read as others, which hold their values."""


def read_contents(database: Database, location: str, expected: Expected, *, declared: bool) -> Relation:
    """Contents of a view, a base relation or an update, with the expected columns in order.

    Args:
        database: where the relation is made.
        location: a file, or a folder of files.
        expected: names and types of the columns.
        declared: whether the names are declared; if not, columns may match by position.

    Raises:
        InputError: SM103 nothing is stored there; SM104 other columns or types, or a text that is no value; SM502
            what only Spark reads.
    """
    files, format_ = _files(location, expected.name)
    if format_ is Format.PARQUET:
        return conform(database, _parquet(database, files, expected.name), expected, declared=declared)
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
        raise input_error(
            Code.COLUMNS_DIFFER, message, "correct the contents, or the declaration"
        ) from failure


def read_as_stored(database: Database, location: str, name: str) -> Relation:
    """Contents of which nothing is known beforehand, with the columns that are stored.

    Raises:
        InputError: SM103 nothing is stored there; SM502 text files.
    """
    files, format_ = _files(location, name)
    if format_ is not Format.PARQUET:
        raise refused(f"`{name}` is stored as text, and the types of its columns are not declared")
    return _parquet(database, files, name)


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
    require_types([_known(kind) for kind in stored], expected)
    wanted = [
        kind if isinstance(kind, str) else settled(kind, declared_type)
        for kind, declared_type in zip(stored, expected.types, strict=True)
    ]
    if places == list(range(len(data.columns))) and wanted == list(data.types):
        return data
    with writing_sql():
        query = sql.cast_rows(data.stored.name, stored, wanted, places)
    made = database.view(query, wanted, [data.stored], _taken(data.stored.layout, places))
    return Relation(made, expected.columns)


def _taken(layout: Layout, places: Sequence[int]) -> Layout:
    """What is known of some columns of a relation."""
    spreads = {i: layout.spreads[place] for i, place in enumerate(places) if place in layout.spreads}
    never_null = frozenset(i for i, place in enumerate(places) if place in layout.never_null)
    return Layout(layout.rows, spreads, never_null)


def _known(kind: SqlType) -> StoredType:
    return Unmodelled(kind.lower(), OTHER_HINT) if isinstance(kind, str) else kind


def _files(location: str, name: str) -> tuple[list[Path], Format]:
    """The data files at a place, and their format."""
    if "://" in location:
        raise refused(f"`{name}` is at `{location}`, and DuckDB reads local files")
    path = Path(location)
    if not path.exists():
        raise input_error(Code.MISSING_CONTENTS, f"`{name}`: there is no `{location}`")
    format_ = format_of(location)
    files = data_files(path)
    if any("=" in part for file in files for part in file.relative_to(path).parts[:-1]):
        raise refused(f"`{name}` is a folder partitioned by columns")
    return files, format_


def _parquet(database: Database, files: Sequence[Path], name: str) -> Relation:
    """The rows of Parquet files, with the columns of the first."""
    if not files:
        raise input_error(Code.MISSING_CONTENTS, f"`{name}`: there are no data files")
    try:
        schema = pq.read_schema(files[0])
        for file in files[1:]:
            _require_alike(pq.read_schema(file), file, schema, files[0], name)
        raw, types = database.parquet([str(file) for file in files])
        layout = layout_of(files)
    except (duckdb.Error, pa.ArrowException, OSError, ValueError) as failure:
        message = f"`{name}`: `{files[0]}` cannot be read as Parquet: {first_line(failure)}"
        raise input_error(Code.COLUMNS_DIFFER, message) from failure
    read_as = [
        ANY if pa.types.is_null(field.type) else _READ_AS.get(kind, sql.sql_type(kind))
        for field, kind in zip(schema, types, strict=True)
    ]
    query = sql.values_of(raw.name, _numbered(len(types)), read_as)
    found = database.view(query, read_as, [raw], layout)
    return Relation(found, tuple(schema.names))


def _require_alike(found: pa.Schema, file: Path, schema: pa.Schema, first: Path, name: str) -> None:
    """Refuses a file of other columns than the first one's, whose types DuckDB would cast it to.

    Raises:
        InputError: SM104.
    """
    types, wanted = ({field.name.casefold(): _plain(field.type) for field in one} for one in (found, schema))
    other = [
        column
        for column in dict.fromkeys((*wanted, *types))
        if not _is_alike(types.get(column), wanted.get(column))
    ]
    if other:
        said = " and ".join(
            f"{'no such column' if (kind := one.get(other[0])) is None else f'`{kind}`'} in `{path.name}`"
            for one, path in ((wanted, first), (types, file))
        )
        message = f"`{name}`: the files of `{file.parent}` differ in column `{other[0]}`: {said}"
        raise input_error(Code.COLUMNS_DIFFER, message, "store all of them with the same columns and types")


def _is_alike(one: pa.DataType | None, other: pa.DataType | None) -> bool:
    if one is None or other is None:
        return False
    kinds = (one, other)
    return one == other or any(map(pa.types.is_null, kinds)) or all(map(pa.types.is_integer, kinds))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values, however Arrow holds them."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.string() if kind in (pa.large_string(), pa.string_view()) else kind


def parquet_columns(database: Database, files: Sequence[Path], names: Sequence[str]) -> Relation:
    """Some columns of Parquet files, as they are stored, read when they are used.

    Raises:
        InputError: SM104 they cannot be read.
        ValueError: there is no such column.
    """
    data = _parquet(database, files, "contents")
    places = [data.columns.index(name) for name in names]
    types = [data.types[place] for place in places]
    with writing_sql():
        query = sql.cast_rows(data.stored.name, types, types, places)
    made = database.view(query, types, [data.stored], _taken(data.stored.layout, places))
    return Relation(made, tuple(names))


def _numbered(width: int) -> list[str]:
    return [f"c{i}" for i in range(width)]


def parquet_rows(location: str) -> int | None:
    """The number of rows that the footers of Parquet files tell; None of other files."""
    if not Path(location).exists() or format_of(location) is not Format.PARQUET:
        return None
    return sum(int(pq.read_metadata(file).num_rows) for file in data_files(Path(location)))
