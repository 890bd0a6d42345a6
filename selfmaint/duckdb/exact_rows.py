"""A bounded number of rows in this process with exactly the values that DuckDB holds.

A timestamp is what a clock in UTC shows. Floating-point numbers are not exact: a double is equal to a decimal that is
only near.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from datalog.model import ANY, ColumnType, Row, TypeName, WallClock
from datalog.sql.duckdb import Query, SqlType
from datalog.sql.duckdb import relations as sql

if TYPE_CHECKING:
    from selfmaint.duckdb.relation import Stored
    from selfmaint.engine.arrow_rows import ArrowTable

ZONE = "UTC"
"""The time zone on whose clock instants are shown."""
_ON_A_CLOCK = ColumnType(TypeName.TIMESTAMP_NTZ)
_TIMES = (ColumnType(TypeName.TIMESTAMP), _ON_A_CLOCK)
_MOST_LISTED = 100
"""More rows enter sooner as Arrow's, once Arrow is loaded, which takes as long as thousands."""

_AS_TEXT: dict[TypeName | None, Callable[[Any], str]] = {
    TypeName.DATE: dt.date.isoformat,
    TypeName.DECIMAL: lambda value: format(Decimal(value), "f"),  # an int's would be a double's
    TypeName.BOOLEAN: str,
    TypeName.TIMESTAMP: dt.datetime.isoformat,
    TypeName.TIMESTAMP_NTZ: dt.datetime.isoformat,
    TypeName.FLOAT: repr,
    TypeName.DOUBLE: repr,
    **{name: str for name in TypeName if name.is_integer},
}
"""How values of types other than texts are written so that DuckDB reads them exactly."""

_PLAIN = frozenset(TypeName) - {TypeName.TIMESTAMP, TypeName.TIMESTAMP_NTZ, TypeName.ANY}


def are_exact(types: Sequence[SqlType]) -> bool:
    """Whether this process has the same values for some types, equal where DuckDB takes them for equal."""
    return not any(isinstance(kind, str) or kind.name.is_floating for kind in types)


def are_plain(types: Sequence[SqlType]) -> bool:
    """Whether DuckDB's own Python values are its values for some types, but for odd ones."""
    return all(not isinstance(kind, str) and kind.name in _PLAIN for kind in types)


def are_in_python(types: Sequence[SqlType]) -> bool:
    """Whether Python has the values of some types, but for odd ones."""
    return are_plain([kind for kind in types if kind not in _TIMES])


def has_odd_value(rows: Sequence[Row], types: Sequence[SqlType]) -> bool:
    """Whether Python may not have a value: days outside of its years and infinite ones, which look like others; NaN."""
    kinds = [None if isinstance(kind, str) else kind.name for kind in types]
    days = [i for i, kind in enumerate(kinds) if kind is TypeName.DATE]
    floats = [i for i, kind in enumerate(kinds) if kind is not None and kind.is_floating]
    return any(
        type(row[i]) is str or row[i] in (dt.date.min, dt.date.max) for row in rows for i in days
    ) or any(row[i] != row[i] for row in rows for i in floats)


def language_types(types: Sequence[SqlType]) -> list[ColumnType | None]:
    """The types as far as the language has them."""
    return [None if isinstance(kind, str) else kind for kind in types]


def rows_of(stored: Stored, query: Query) -> list[Row]:
    """The rows of a query for rows of a relation; those of plain types come without Arrow, which is slow to load.

    Raises:
        InputError: SM104 a date or time that plain values do not have.
    """
    width = len(stored.types)
    if are_in_python(stored.types):
        plain = with_times_as_texts(query, stored.types)
        found = stored.database.plain_rows(plain, [stored.name], joins=stored.rows is None)
        rows = with_times(found, stored.types)
        if rows is not None and not has_odd_value(rows, stored.types):
            return rows if width else [()] * len(rows)
    return found_rows(stored.database.rows(query, [stored.name]), width)


def with_times_as_texts(query: Query, types: Sequence[SqlType]) -> Query:
    """A query that gives times as texts: see `with_times`."""
    return sql.with_texts(query, [i for i, kind in enumerate(types) if kind in _TIMES])


def with_times(rows: list[Row], types: Sequence[SqlType]) -> list[Row] | None:
    """Rows with the times that texts show where they are wanted; None if Python lacks one."""
    times = {i: kind for i, kind in enumerate(types) if kind in _TIMES}
    if not times:
        return rows
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    try:
        for i, kind in times.items() if rows else ():
            read = WallClock.fromisoformat if kind == _ON_A_CLOCK else _in_utc
            columns[i] = [text and read(text) for text in columns[i]]
    except ValueError:
        return None
    return list(zip(*columns, strict=True))


def _in_utc(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=None)


def found_rows(table: ArrowTable, width: int) -> list[Row]:
    """The rows of a result; of one without columns there is one, always true, that is left out."""
    from selfmaint.engine.arrow_rows import python_rows  # noqa: PLC0415 - see `rows_of`

    return python_rows(table, ZONE) if width else [()] * table.num_rows


def listed(rows: Collection[Row], types: Sequence[SqlType]) -> list[str] | None:
    """The values of each column, as `sql.listed` reads them; None where Arrow is sooner."""
    kinds = [None if isinstance(kind, str) else kind.name for kind in types]
    if (
        not kinds
        or (len(rows) > _MOST_LISTED and "pyarrow" in sys.modules)
        or not all(kind is TypeName.STRING or kind in _AS_TEXT for kind in kinds)
    ):
        return None
    columns = zip(*rows, strict=True) if rows else ((),) * len(kinds)
    return [
        json.dumps(column) if kind is TypeName.STRING else _listing(column, _AS_TEXT[kind])
        for kind, column in zip(kinds, columns, strict=True)
    ]


def _listing(values: Iterable[Any], written: Callable[[Any], str]) -> str:
    return f"[{','.join('NULL' if value is None else written(value) for value in values)}]"


def arrow_rows(rows: Collection[Row], types: Sequence[SqlType]) -> ArrowTable:
    """Exact rows as a table of Arrow's, whose types can hold their values; without types, one column of trues."""
    import pyarrow as pa  # noqa: PLC0415 - not where no rows are given

    from selfmaint.engine.arrow_types import arrow_type  # noqa: PLC0415

    if not types:
        return pa.table({"c0": pa.array([True] * len(rows), pa.bool_())})
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(types)
    kinds = [arrow_type(ANY if isinstance(kind, str) else kind) for kind in types]
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, names=[f"c{i}" for i in range(len(types))])
