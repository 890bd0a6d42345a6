"""What the footers of Parquet files tell of their rows, and which columns find few of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from selfmaint.engine.protocol import Layout
from selfmaint.store.order import range_of

FOOTERS_READ = 200
"""Of more files nothing is told."""

FEW_ROWS = 50
"""A column by whose values at most so many rows are found, on the average, is as good as any others."""


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


def finding(layout: Layout, columns: Sequence[int]) -> int | None:
    """The one of some columns that finds few rows for a value, if that is known of any."""
    best = max((c for c in columns if c in layout.spreads), key=lambda c: layout.spreads[c], default=None)
    if best is None or layout.rows is None or layout.rows > FEW_ROWS * layout.spreads[best]:
        return None
    return best
