"""How stored contents lie in their files: the number of rows, and the column that they are in order of.

Read from the footers of local Parquet files; what cannot be told is left open. Nothing but costs depends on it, but for
the columns without null.
"""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from selfmaint.engine.protocol import Layout
from selfmaint.spark.local_parquet import LocalParquet, local_files, local_parquet
from selfmaint.store.order import is_in_order, ranges_of


class Storage:
    """What is known of DataFrames from where they are stored, found out once."""

    def __init__(self) -> None:
        self._files: WeakKeyDictionary[DataFrame, LocalParquet | None] = WeakKeyDictionary()
        self._layouts: WeakKeyDictionary[DataFrame, Layout] = WeakKeyDictionary()
        self._sizes: WeakKeyDictionary[DataFrame, int] = WeakKeyDictionary()

    def local_parquet(self, frame: DataFrame) -> LocalParquet | None:
        """The local Parquet files that a DataFrame consists of, if it does."""
        if frame not in self._files:
            self._files[frame] = local_parquet(frame)
        return self._files[frame]

    def layout(self, frame: DataFrame) -> Layout:
        """How a DataFrame lies in its files."""
        if frame not in self._layouts:
            files = self.local_parquet(frame)
            never_null = frozenset[int]() if files is None else files.never_null()
            self._layouts[frame] = replace(layout_of(frame), never_null=never_null)
        return self._layouts[frame]

    def size(self, frame: DataFrame) -> int:
        """Spark's estimate, in bytes."""
        if frame not in self._sizes:
            plan = frame._jdf.queryExecution().optimizedPlan()
            self._sizes[frame] = int(str(plan.stats().sizeInBytes()))
        return self._sizes[frame]


def layout_of(frame: DataFrame) -> Layout:
    """The layout of contents that are read from local Parquet files, columns matched by name."""
    try:
        files = local_files(frame)
        if not files:
            return Layout()
        footers = [pq.ParquetFile(file).metadata for file in files]
    except (OSError, pa.ArrowException, Py4JError, PySparkException):
        return Layout()
    groups = [footer.row_group(i) for footer in footers for i in range(footer.num_row_groups)]
    ranges = {c: found for c, name in enumerate(frame.columns) if (found := ranges_of(groups, name))}
    order = next((c for c, found in ranges.items() if is_in_order(found)), None)
    spreads = {
        c: max(high for _, high in found) - min(low for low, _ in found) + 1
        for c, found in ranges.items()
        if all(type(value) is int for pair in found for value in pair)
    }
    return Layout(sum(footer.num_rows for footer in footers), order, spreads)
