"""Parquet files on this machine as relations, and what their footers tell of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from datalog.model import ANY, ColumnType, TypeName
from datalog.sql.duckdb import SqlType
from datalog.sql.duckdb import relations as sql
from datalog.sql.duckdb.types import sql_type
from selfmaint.duckdb.database import Database, Relation, writing_sql
from selfmaint.duckdb.layouts import taken
from selfmaint.engine.protocol import Layout
from selfmaint.errors import Code, first_line, input_error
from selfmaint.store.formats import Format, data_files, format_of
from selfmaint.store.write import range_of

FOOTERS_READ = 200
"""Of more files nothing is told."""

_READ_AS: dict[str, SqlType] = {
    "UTINYINT": ColumnType(TypeName.SMALLINT),
    "USMALLINT": ColumnType(TypeName.INT),
    "UINTEGER": ColumnType(TypeName.BIGINT),
    "UBIGINT": ColumnType(TypeName.DECIMAL, 20, 0),
    "TIMESTAMP_S": ColumnType(TypeName.TIMESTAMP_NTZ),
    "TIMESTAMP_MS": ColumnType(TypeName.TIMESTAMP_NTZ),
}
"""Types of Parquet files that are read as others, which hold their values."""


def parquet(database: Database, files: Sequence[Path], name: str) -> Relation:
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
        ANY if pa.types.is_null(field.type) else _READ_AS.get(kind, sql_type(kind))
        for field, kind in zip(schema, types, strict=True)
    ]
    query = sql.values_of(raw.name, [f"c{i}" for i in range(len(types))], read_as)
    found = database.view(query, read_as, [raw], layout)
    return Relation(found, tuple(schema.names))


def _require_alike(found: pa.Schema, file: Path, schema: pa.Schema, first: Path, name: str) -> None:
    """Refuses a file of other columns than the first one's, whose types DuckDB would cast it to."""
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
    data = parquet(database, files, "contents")
    places = [data.columns.index(name) for name in names]
    types = [data.types[place] for place in places]
    with writing_sql():
        query = sql.cast_rows(data.stored.name, types, types, places)
    made = database.view(query, types, [data.stored], taken(data.stored.layout, places))
    return Relation(made, tuple(names))


def parquet_rows(location: str) -> int | None:
    """The number of rows that the footers of Parquet files tell; None of other files."""
    if not Path(location).exists() or format_of(location) is not Format.PARQUET:
        return None
    return sum(int(pq.read_metadata(file).num_rows) for file in data_files(Path(location)))


def layout_of(files: Sequence[Path]) -> Layout:
    """The number of rows, the columns without null, and how many whole numbers lie in a column's range."""
    if not 0 < len(files) <= FOOTERS_READ:
        return Layout()
    footers = [pq.read_metadata(file) for file in files]
    groups = [footer.row_group(i) for footer in footers for i in range(footer.num_row_groups)]
    columns = [[footer.schema.column(i).path for i in range(footer.num_columns)] for footer in footers]
    if any(paths != columns[0] for paths in columns) or any("." in path for path in columns[0]):
        return Layout(sum(footer.num_rows for footer in footers))
    never_null, spreads = set(), {}
    for column in range(len(columns[0])):
        told = [group.column(column).statistics for group in groups]
        if all(one is not None and one.has_null_count and one.null_count == 0 for one in told):
            never_null.add(column)
        ends = [end for one in told for end in range_of(one) or (None,)]
        whole = [end for end in ends if type(end) is int]
        if whole and len(whole) == len(ends):
            spreads[column] = max(whole) - min(whole) + 1
    return Layout(sum(footer.num_rows for footer in footers), spreads, frozenset(never_null))
