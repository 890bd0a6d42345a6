"""The change data feed of a Delta table, read by the package `deltalake`, which needs no jars in Spark.

Where Spark has Delta's jars, its `readChangeFeed` gives a DataFrame with the same columns instead.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from selfmaint.errors import Code, SelfmaintError, input_error
from selfmaint.feeds.column_feed import CHANGE_TYPE
from selfmaint.feeds.delta import DELTA
from selfmaint.feeds.positions import Bounds
from selfmaint.feeds.table import FeedTable
from selfmaint.spark.exchange import SparkExchange
from selfmaint.store.spill import Spill


def is_delta_table(path: Path) -> bool:
    """Whether a directory is a Delta table."""
    return (path / "_delta_log").is_dir()


def delta_feed(spark: SparkSession, path: Path, wanted: FeedTable, within: Bounds, file: Path) -> DataFrame:
    """The rows of a table's change data feed, batch by batch through bounded memory.

    Args:
        spark: the session.
        path: the table.
        wanted: the relation: of the table's columns only its own are read.
        within: the versions to take; without a beginning from the first one.
        file: where a larger feed is held.

    Raises:
        InputError: SM104 other columns; SM607 `deltalake` is not installed; SM602 the feed cannot be read in that
            range, for example because it was not enabled.
    """
    try:
        from deltalake import DeltaTable  # noqa: PLC0415 - only who reads Delta tables needs it
    except ImportError:
        raise input_error(
            Code.FEED_PACKAGE,
            f"`{path}` is a Delta table, and the package `deltalake` is not installed",
            hint="`pip install selfmaint[delta]`, or give the DataFrame that Spark reads with `readChangeFeed`",
        ) from None
    first = 0 if within.after is None else within.after[0] + 1
    last = None if within.upto is None else within.upto[0]
    try:
        table = DeltaTable(str(path))
        if first > table.version():
            first, last = table.version() + 1, table.version()
        reader = pa.RecordBatchReader.from_stream(
            table.load_cdf(starting_version=first, ending_version=last, allow_out_of_range=True)
        )
        names = [name for name in reader.schema.names if name not in DELTA.own]
        wanted.check_columns(names, f"the Delta table `{path}`")
        taken = [*wanted.columns, CHANGE_TYPE, DELTA.order]
        schema = pa.schema([pa.field(name, _plain(reader.schema.field(name).type)) for name in taken])
        with Spill(schema, file) as spill:
            for batch in reader:
                spill.add(batch.select(taken).cast(schema))
    except SelfmaintError:
        raise
    except Exception as failure:
        text = str(failure).strip().splitlines()[0] if str(failure).strip() else type(failure).__name__
        raise input_error(
            Code.FEED_UNREADABLE,
            f"the change data feed of `{path}` cannot be read: {text}",
            hint="it must be enabled (`delta.enableChangeDataFeed`), and the versions not vacuumed",
        ) from failure
    return SparkExchange(spark).entered(spill)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type that Spark is given: plain strings, timestamps of microseconds."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_unsigned_integer(kind):
        return pa.int64()
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise input_error(Code.COLUMNS_DIFFER, f"a column of type `{kind}` in a change data feed")
    return kind
