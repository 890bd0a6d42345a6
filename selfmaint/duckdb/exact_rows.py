"""A bounded number of rows in this process with exactly the values that DuckDB holds.

A timestamp is what a clock in UTC shows. Floating-point numbers are not exact: a double is equal to a decimal that is
only near.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from datalog.model import ANY, ColumnType, Row, TypeName
from datalog.sql.duckdb import Query, SqlType
from selfmaint.duckdb.database import Relation

if TYPE_CHECKING:
    from selfmaint.engine.arrow_rows import ArrowTable

ZONE = "UTC"
"""The time zone on whose clock instants are shown."""
_INEXACT = (TypeName.FLOAT, TypeName.DOUBLE)
_PLAIN = (
    *(TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT),
    *(TypeName.BOOLEAN, TypeName.STRING),
)


def are_exact(types: Sequence[SqlType]) -> bool:
    """Whether this process has the same values for some types, equal where DuckDB takes them for equal."""
    return not any(isinstance(kind, str) or kind.name in _INEXACT for kind in types)


def language_types(types: Sequence[SqlType]) -> list[ColumnType | None]:
    """The types as far as the language has them."""
    return [None if isinstance(kind, str) else kind for kind in types]


def rows_of(data: Relation, query: Query) -> list[Row]:
    """The rows of a query for rows of a relation; those of plain types come without Arrow, which is slow to load."""
    stored, width = data.stored, len(data.columns)
    assert stored.database is not None
    if all(not isinstance(kind, str) and kind.name in _PLAIN for kind in data.types):
        found = stored.database.plain_rows(query, [stored.name])
        return found if width else [()] * len(found)
    return found_rows(stored.database.rows(query, [stored.name]), width)


def found_rows(table: ArrowTable, width: int) -> list[Row]:
    """The rows of a result; of one without columns there is one, always true, that is left out."""
    from selfmaint.engine.arrow_rows import python_rows  # noqa: PLC0415 - see `rows_of`

    return python_rows(table, ZONE) if width else [()] * table.num_rows


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
