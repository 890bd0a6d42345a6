"""The net effect of a relation's changes by window functions, and what is wrong with them, in one job.

Per key, in the order of the changes, the first and the last are all that matters: see `selfmaint.feeds.net_effect`,
whose rules the reference implementation evaluates, and which shares no code with this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as f

from datalog.diagnostics import Diagnostic
from selfmaint.errors import Code, InputError, input_error
from selfmaint.feeds.positions import Position, Scale
from selfmaint.feeds.problems import SHOWN, Finding, Problem, diagnostic
from selfmaint.feeds.table import FeedTable
from selfmaint.spark.failures import translated
from selfmaint.spark.frames import rows

_EXACT = [scale.name for scale in Scale if scale.is_exact]
_FOLLOWS_LINES = [scale.name for scale in Scale if scale.follows_lines]
_ORDER = ("position", "file", "line", "kind")


@dataclass(frozen=True, slots=True)
class Condensed:
    """The net effect of a relation's changes.

    Attributes:
        deleted: rows of before the batch that are gone after it.
        inserted: rows of after the batch that were not there before.
        events: how many events there were.
        repeated: how many of them repeat another.
        upto: the last position; None where there are none.
        scale: what positions count; None without events.
    """

    deleted: DataFrame
    inserted: DataFrame
    events: int
    repeated: int
    upto: Position | None
    scale: Scale | None


def condensed(changes: DataFrame, table: FeedTable) -> Condensed:
    """The net effect of a relation's changes, computed now and held by the executors.

    Args:
        changes: as `change_frames` makes them.
        table: the relation.

    Raises:
        InputError: SM602 null where it must not be; SM603 changes of a key that nothing orders, or positions of
            several kinds; SM604 changes that cannot follow each other; SM605 a row that goes, of which only the
            key is known; every kind with some of the changes.
    """
    judged = _judged(_distinct(changes, table), table)
    watch = Observation()
    # Only the last change of each key is held: it carries the first one's row.
    with translated():
        last = judged.observe(watch, *_measures()).where("is_last").localCheckpoint(eager=True)
        seen = watch.get
    scale = _scale(seen, table)
    counts = {problem: seen[problem.name] for problem in Problem if seen[problem.name]}
    if counts:
        assert scale is not None
        raise InputError(_diagnostics(judged, table, scale, counts))
    removed, added = f.col("first_kind") == 0, f.col("kind") == 1
    carried_over = removed & added & f.col("first_row").eqNullSafe(_row(table))
    deleted = last.where(removed & ~carried_over).select(
        *(f.col(f"first_row.c{i}") for i in range(len(table.columns)))
    )
    inserted = last.where(added & ~carried_over).select(*_columns(table))
    upto = None if seen["upto"] is None or scale is None or not scale.has_range else tuple(seen["upto"])
    return Condensed(
        deleted.toDF(*table.columns),
        inserted.toDF(*table.columns),
        seen["events"],
        seen["repeated"],
        upto,
        scale,
    )


def _columns(table: FeedTable) -> list[Column]:
    return [f.col(f"c{i}") for i in range(len(table.columns))]


def _row(table: FeedTable) -> Column:
    return f.struct(*_columns(table))


def _distinct(changes: DataFrame, table: FeedTable) -> DataFrame:
    """The changes without repetitions: a log holds one event at a position, which may be delivered again.

    Without a key, equal events may be of two rows that look the same.
    """
    same = [*_columns(table), *(f.col(name) for name in ("kind", "partial", "position", "scale", "leads"))]
    # Where positions are not exact, the place itself is part of what must be equal, and a row counts for itself.
    exact = f.col("scale").isin(_EXACT) & f.lit(table.key is not None)
    own = f.when(~exact, f.monotonically_increasing_id()).alias("own")
    return (
        changes.withColumn("own", own)
        .groupBy(*same, f.col("own"))
        .agg(f.min(f.struct("file", "line")).alias("place"), f.count(f.lit(1)).alias("times"))
        .select(*same, f.col("place.file").alias("file"), f.col("place.line").alias("line"), f.col("times"))
    )


def _judged(changes: DataFrame, table: FeedTable) -> DataFrame:
    """The changes with what is wrong with each, the row of the one before, and the first one of the key."""
    window = Window.partitionBy(*(f.col(f"c{i}") for i in table.identity)).orderBy(*_ORDER)
    seen = f.struct(_row(table).alias("row"), *(f.col(name) for name in _ORDER))
    opening = f.struct(f.col("kind").alias("kind"), _row(table).alias("row"))
    placed = changes.select(
        "*",
        f.lag(seen).over(window).alias("before"),
        f.first(opening).over(window).alias("opening"),
        f.lead(f.lit(1)).over(window).isNull().alias("is_last"),
    )
    return placed.select(
        *changes.columns,
        "is_last",
        f.col("opening.kind").alias("first_kind"),
        f.col("opening.row").alias("first_row"),
        f.col("before.row").alias("before_row"),
        _problem(table).alias("problem"),
    )


def _problem(table: FeedTable) -> Column:
    """The name of what is wrong with a change, or null."""
    kind, before_kind = f.col("kind"), f.col("before.kind")
    is_first = f.col("before").isNull()
    deletes = kind == 0
    other_row = ~f.col("before.row").eqNullSafe(_row(table))
    cases: list[tuple[Problem, Column]] = [
        (Problem.NULL, _has_null(table)),
        (Problem.UNORDERED, ~is_first & _unordered()),
        (Problem.INSERTED_TWICE, (kind == 1) & (before_kind == 1)),
        (Problem.DELETED_TWICE, deletes & (before_kind == 0)),
        (Problem.OTHER_ROW, deletes & (before_kind == 1) & ~f.col("partial") & other_row),
        (Problem.UNKNOWN_BEFORE, is_first & deletes & f.col("partial")),
    ]
    return f.coalesce(*(f.when(is_wrong, f.lit(problem.name)) for problem, is_wrong in cases))


def _has_null(table: FeedTable) -> Column:
    tests = [
        f.col(f"c{i}").isNull() & (f.lit(i in table.identity) | ~f.col("partial"))
        for i in sorted(table.not_null)
    ]
    return reduce(lambda a, b: a | b, tests, f.lit(False))


def _unordered() -> Column:
    """Whether nothing says that a change comes behind the one before it, of the same key."""
    same_event = f.col("before.file").eqNullSafe(f.col("file")) & (f.col("before.line") == f.col("line"))
    same_file = f.coalesce(f.col("before.file") == f.col("file"), f.lit(False))
    tied = f.when(same_event, f.col("before.kind") == f.col("kind")).otherwise(~same_file)
    backwards = f.col("scale").isin(_FOLLOWS_LINES) & same_file & (f.col("before.line") > f.col("line"))
    return f.when(f.col("before.position") == f.col("position"), tied).otherwise(backwards)


def _measures() -> list[Column]:
    return [
        f.coalesce(f.sum(f.when(f.col("leads"), f.col("times"))), f.lit(0)).alias("events"),
        f.coalesce(f.sum(f.when(f.col("leads"), f.col("times") - 1)), f.lit(0)).alias("repeated"),
        f.max("position").alias("upto"),
        f.min("scale").alias("lowest_scale"),
        f.max("scale").alias("highest_scale"),
        *(f.count_if(f.col("problem") == problem.name).alias(problem.name) for problem in Problem),
    ]


def _scale(seen: Mapping[str, Any], table: FeedTable) -> Scale | None:
    if seen["lowest_scale"] is None:
        return None
    found = {Scale[seen[name]] for name in ("lowest_scale", "highest_scale")}
    if len(found) > 1:
        raise input_error(
            Code.FEED_UNORDERED,
            f"the feed of `{table.name}` has positions of several kinds: "
            f"{' and '.join(sorted(scale.value for scale in found))}",
            hint="give the events of one source as one feed",
        )
    return found.pop()


def _diagnostics(
    judged: DataFrame, table: FeedTable, scale: Scale, counts: Mapping[Problem, int]
) -> list[Diagnostic]:
    return [
        diagnostic(problem, table, scale, _findings(judged, table, problem), total)
        for problem, total in counts.items()
    ]


def _findings(judged: DataFrame, table: FeedTable, problem: Problem) -> list[Finding]:
    """Some of the changes with a problem, the first ones."""
    width = len(table.columns)
    wrong = judged.where(f.col("problem") == problem.name).orderBy(*_ORDER)
    before = [f.col(f"before_row.c{i}") for i in range(width)]
    place = [f.concat_ws(":", f.col("position").cast("array<string>")), f.col("file"), f.col("line")]
    found = []
    for values in rows(wrong.select(*_columns(table), *before, *place), SHOWN):
        position, file, line = values[2 * width :]
        numbers = tuple(int(part) for part in str(position).split(":")) if position else ()
        previous = values[width : 2 * width]
        found.append(
            Finding(values[:width], numbers, None if file is None else str(file), int(str(line)), previous)
        )
    return found
