"""Parquet files on this machine as relations, and what their footers tell of their rows.

Arrow is imported only where the columns of several files are compared: it is slow to load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from datalog.model import ANY, ColumnType, TypeName
from datalog.sql.duckdb import SqlType
from datalog.sql.duckdb import relations as sql
from datalog.sql.duckdb.texts import escaped
from datalog.sql.duckdb.types import sql_type
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.failures import writing_sql
from selfmaint.duckdb.layouts import taken
from selfmaint.duckdb.relation import Relation
from selfmaint.engine.protocol import Layout
from selfmaint.errors import Code, first_line, input_error
from selfmaint.store.formats import Format, data_files, format_of

if TYPE_CHECKING:
    import pyarrow as pa

FOOTERS_READ = 200
"""Of more files nothing is told."""

_READ_AS: dict[str, SqlType] = {
    "UTINYINT": ColumnType(TypeName.SMALLINT),
    "USMALLINT": ColumnType(TypeName.INT),
    "UINTEGER": ColumnType(TypeName.BIGINT),
    "UBIGINT": ColumnType(TypeName.DECIMAL, 20, 0),
    "TIMESTAMP_S": ColumnType(TypeName.TIMESTAMP_NTZ),
    "TIMESTAMP_MS": ColumnType(TypeName.TIMESTAMP_NTZ),
    "TIMESTAMP_NS": ColumnType(TypeName.TIMESTAMP_NTZ),
    "INT96": ColumnType(TypeName.TIMESTAMP),
}
"""Types of Parquet files that are read as others, which hold their values, but for nanoseconds.

As the last one Spark writes instants by default, in UTC.
"""

_WHOLE = frozenset(
    ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"]
)


def parquet(database: Database, files: Sequence[Path], name: str) -> Relation:
    """The rows of Parquet files, with the columns of the first."""
    if not files:
        raise input_error(Code.MISSING_CONTENTS, f"`{name}`: there are no data files")
    try:
        if len(files) > 1:
            _require_all_alike(files, name)
        raw, types = database.parquet([str(file) for file in files])
        columns = _columns(database, files[0])
        layout = _layout(database, files, columns, types)
    except (duckdb.Error, OSError, ValueError) as failure:
        file = next((one for one in files if not _is_parquet(one)), files[0])
        message = f"`{name}`: `{file}` cannot be read as Parquet: {first_line(failure)}"
        hint = "if it is of another format, name it by that: `.csv`, `.jsonl`"
        raise input_error(Code.COLUMNS_DIFFER, message, hint) from failure
    read_as = [
        ANY if stored == "NullType()" else _READ_AS.get(stored or "", _READ_AS.get(kind, sql_type(kind)))
        for (_, stored, _), kind in zip(columns, types, strict=True)
    ]
    names = [f"c{i}" for i in range(len(types))]
    fine = [name for name, kind in zip(names, types, strict=True) if kind == "TIMESTAMP_NS"]
    query = sql.values_of(raw.name, names, read_as, nanoseconds=fine)
    found = database.view(query, read_as, [raw], layout)
    return Relation(found, tuple(column for column, _, _ in columns))


def _is_parquet(file: Path) -> bool:
    """Whether a file can be read as Parquet."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - see above

    try:
        pq.read_schema(file)
    except (OSError, ValueError):
        return False
    return True


def _require_all_alike(files: Sequence[Path], name: str) -> None:
    """Refuses files of different columns.

    Raises:
        ValueError: one cannot be read.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - see above

    schema = pq.read_schema(files[0])
    for file in files[1:]:
        _require_alike(pq.read_schema(file), file, schema, files[0], name)


def _columns(database: Database, file: Path) -> list[tuple[str, str | None, bool]]:
    """The columns of a file: names, logical types, or the physical one, and whether they are made of others."""
    query = "SELECT name, coalesce(logical_type, type), coalesce(num_children, 0) FROM parquet_schema(?)"
    nodes = iter(database.run(query, [escaped(str(file))]))

    def passed(number: int) -> Iterator[tuple[str, str | None, bool]]:
        for _ in range(number):
            name, logical, parts = next(nodes)
            yield name, logical, parts > 0
            for _ in passed(parts):
                pass

    _, _, width = next(nodes)
    return list(passed(width))


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
    import pyarrow as pa  # noqa: PLC0415 - see above

    if one is None or other is None:
        return False
    kinds = (one, other)
    return one == other or any(map(pa.types.is_null, kinds)) or all(map(pa.types.is_integer, kinds))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values, however Arrow holds them."""
    import pyarrow as pa  # noqa: PLC0415 - see above

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
    """The number of rows that the footers of Parquet files tell; None of other files, and of damaged ones."""
    import pyarrow as pa  # noqa: PLC0415 - see above
    import pyarrow.parquet as pq  # noqa: PLC0415 - see above

    if not Path(location).exists() or format_of(location) is not Format.PARQUET:
        return None
    try:
        return sum(int(pq.read_metadata(file).num_rows) for file in data_files(Path(location)))
    except pa.ArrowInvalid:
        return None


_FOOTERS = """
    SELECT file_name, row_group_id, row_group_num_rows, path_in_schema,
        stats_min_value, stats_max_value, stats_null_count
    FROM parquet_metadata(?)
"""


def _layout(
    database: Database,
    files: Sequence[Path],
    columns: Sequence[tuple[str, str | None, bool]],
    types: Sequence[str],
) -> Layout:
    """The number of rows, the columns without null, and how many whole numbers lie in a column's range."""
    if len(files) > FOOTERS_READ:
        return Layout()
    told = database.run(_FOOTERS, [[escaped(str(file)) for file in files]])
    groups = [list(its) for _, its in groupby(told, lambda one: one[:2])]
    rows = sum(group[0][2] for group in groups)
    names = [name for name, _, _ in columns]
    is_flat = not any(is_made_of_others for _, _, is_made_of_others in columns)
    if not is_flat or any([one[3] for one in group] != names for group in groups):
        return Layout(rows)
    never_null, spreads = set(), {}
    for column, kind in enumerate(types):
        its: list[Any] = [group[column][4:] for group in groups]
        if all(nulls == 0 for _, _, nulls in its):
            never_null.add(column)
        ends = [end for least, most, _ in its for end in (least, most)]
        if kind in _WHOLE and ends and None not in ends:
            whole = [int(end) for end in ends]
            spreads[column] = max(whole) - min(whole) + 1
    return Layout(rows, spreads, frozenset(never_null))
