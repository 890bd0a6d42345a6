"""JSON lines of events as changes: read one line at a time in this process, held in bounded memory, then in a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from selfmaint.feeds.events import EventReader
from selfmaint.feeds.lines import Tally, placed_events
from selfmaint.feeds.positions import Bounds
from selfmaint.feeds.table import FeedTable
from selfmaint.spark.feeds.change_frames import ChangesSpill
from selfmaint.spark.frames import session_zone


def line_changes(
    spark: SparkSession,
    files: Iterable[Path],
    reader: EventReader,
    tables: Mapping[str, FeedTable],
    within: Bounds,
    folder: Path,
) -> tuple[dict[str, DataFrame], Tally]:
    """The changes of each relation in JSON lines files, and what else was read.

    Args:
        spark: the session.
        files: local files, in order.
        reader: of the feed's format.
        tables: the relations by name.
        within: the positions to take.
        folder: where larger feeds are held, until the frames are no longer used.

    Raises:
        InputError: SM601, SM602, ... for every line that cannot be read, with file and line.
    """
    zone = session_zone(spark)
    spills: dict[str, ChangesSpill] = {}
    tally = Tally()
    with ExitStack() as opened:
        for placed in placed_events(files, reader, within, tally):
            name = placed.event.relation
            if name not in spills:
                file = folder / f"{len(list(folder.iterdir()))}_{len(spills)}.parquet"
                spills[name] = ChangesSpill(tables[name], file, zone)
                opened.callback(spills[name].close)
            spills[name].add(placed.event, placed.file, placed.line)
        return {name: spill.frame(spark) for name, spill in spills.items()}, tally
