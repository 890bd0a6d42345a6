"""Rows as Arrow tables, for warehouses of which the columns are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

import selfmaint

Rows: TypeAlias = Iterable[tuple[Any, ...]]
Columns: TypeAlias = Mapping[str, Mapping[str, pa.DataType]]
"""For each relation or view its columns with their types."""


def frame(columns: Columns, name: str, rows: Rows) -> pa.Table:
    """Some rows of a relation or view."""
    schema = pa.schema(list(columns[name].items()))
    return pa.Table.from_pylist([dict(zip(columns[name], row, strict=True)) for row in rows], schema)


def update_of(
    made: Any,
    columns: Columns,
    inserted: Mapping[str, Rows],
    deleted: Mapping[str, Rows],
    *,
    effective: bool = True,
) -> Any:
    """An update of a warehouse."""
    sides = ({n: frame(columns, n, rows) for n, rows in side.items()} for side in (inserted, deleted))
    return selfmaint.Update.from_frames(made, *sides, effective=effective)


def rows_of(data: Any) -> set[tuple[Any, ...]]:
    """The rows of a relation of any engine that gives Arrow."""
    found = pa.table(data) if hasattr(data, "__arrow_c_stream__") else data.toArrow()
    return {tuple(row.values()) for row in found.to_pylist()}
