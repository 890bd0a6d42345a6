"""The change data feed of a Delta table, read by the package `deltalake`, which needs no jars in Spark.

Where Spark has Delta's jars, its `readChangeFeed` gives a DataFrame with the same columns instead.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from selfmaint.engine.protocol import D
from selfmaint.errors import Code, SelfmaintError, first_line, input_error
from selfmaint.feeds.frames import ArrowFrame, guarded
from selfmaint.feeds.positions import Bounds
from selfmaint.store.delta import delta_table
from selfmaint.store.exchange import Exchange


def delta_frame(path: Path, within: Bounds, exchange: Exchange[D], file: Path) -> ArrowFrame[D]:
    """The rows of a table's change data feed, batch by batch through bounded memory.

    Args:
        path: the table.
        within: the versions to take; without a beginning from the first one.
        exchange: of the engine that the rows are for.
        file: where a larger feed is held.

    Raises:
        InputError: SM607 `deltalake` is not installed; SM602 the feed cannot be read in that range, for example
            because it was not enabled.
    """
    first = 0 if within.after is None else within.after[0] + 1
    last = None if within.upto is None else within.upto[0]

    def unreadable(failure: Exception) -> SelfmaintError:
        return input_error(
            Code.FEED_UNREADABLE,
            f"the change data feed of `{path}` cannot be read: {first_line(failure)}",
            hint="it must be enabled (`delta.enableChangeDataFeed`), and the versions not vacuumed",
        )

    try:
        table = delta_table(path)
        if first > table.version():
            first, last = table.version() + 1, table.version()
        reader = pa.RecordBatchReader.from_stream(
            table.load_cdf(starting_version=first, ending_version=last, allow_out_of_range=True)
        )
    except SelfmaintError:
        raise
    except Exception as failure:
        raise unreadable(failure) from failure
    kinds = [
        (f.name, pa.int64() if f.type == pa.uint64() else f.type) for f in reader.schema
    ]  # of the versions
    schema = pa.schema(kinds)
    batches = guarded((batch.cast(schema) for batch in reader), unreadable)
    return ArrowFrame(schema, batches, f"`{path}`", exchange, file)
