"""In which order rows are stored, as the statistics of Parquet files tell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfmaint.store.formats import data_files

if TYPE_CHECKING:
    import pyarrow.parquet as pq

MOST_FILES = 1000
"""Of more files the statistics are not read."""

MOST_OVERLAPS = 0.25
"""The part of the row groups that may overlap the next one in a column that is taken to be in order."""


def order_of(path: Path) -> str | None:
    """The column in whose order the Parquet files under a local directory are, if there is one."""
    import pyarrow as pa  # noqa: PLC0415 - not where nothing is written
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        footers = [pq.ParquetFile(file).metadata for file in data_files(path)[:MOST_FILES]]
    except (OSError, pa.ArrowException):
        return None
    groups = [footer.row_group(i) for footer in footers for i in range(footer.num_row_groups)]
    names = footers[0].schema.names if footers else []
    return next((name for name in names if is_in_order(ranges_of(groups, name))), None)


def ranges_of(groups: Sequence[pq.RowGroupMetaData], name: str) -> list[tuple[Any, Any]]:
    """The smallest and the largest value of a column in each row group; nothing where one does not say."""
    ranges = []
    for group in groups:
        columns = (group.column(i) for i in range(group.num_columns))
        found = next((c.statistics for c in columns if c.path_in_schema == name), None)
        ends = range_of(found)
        if ends is None:
            return []
        ranges.append(ends)
    return ranges


def range_of(statistics: pq.Statistics | None) -> tuple[Any, Any] | None:
    """The smallest and the largest value, if they are told and Python has such values: no day before the year 1."""
    if statistics is None or not statistics.has_min_max:
        return None
    try:
        return statistics.min, statistics.max
    except (OverflowError, ValueError):
        return None


def is_in_order(ranges: Sequence[tuple[Any, Any]]) -> bool:
    """Whether the row groups, one after the other, hold ever larger values."""
    overlaps = sum(high > low for (_, high), (low, _) in pairwise(sorted(ranges)))
    return len(ranges) > 1 and overlaps <= MOST_OVERLAPS * (len(ranges) - 1)
