"""Rows with a change type and a version (Delta, Iceberg), and plain files, as changes."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from selfmaint.errors import Code, input_error
from selfmaint.feeds.changes import Kind
from selfmaint.feeds.column_feed import CHANGE_TYPE, ColumnFormat, known_changes, unknown_change
from selfmaint.feeds.positions import Bounds, Scale
from selfmaint.feeds.table import FeedTable
from selfmaint.spark.failures import translated
from selfmaint.spark.feeds.change_frames import with_place
from selfmaint.spark.frames import once, positional, rows
from selfmaint.spark.tables import conform, read_contents
from selfmaint.store.expected import Expected

_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def column_changes(
    frame: DataFrame, own: ColumnFormat, table: FeedTable, within: Bounds
) -> tuple[DataFrame, int]:
    """The changes that a frame of a format with columns of its own says, and how many are outside the range.

    Args:
        frame: the relation's columns and the format's.
        own: the format.
        table: the relation.
        within: the versions to take.

    Raises:
        InputError: SM104 other columns or types; SM601 change types that are not the format's; SM602 no version.
    """
    names = list(frame.columns)
    table.check_columns([name for name in names if name not in own.own], f"the feed of `{table.name}`")
    _require_integer(frame, own, names.index(own.order))
    plain = positional(frame)
    change, version = plain[f"c{names.index(CHANGE_TYPE)}"], plain[f"c{names.index(own.order)}"]
    _require_known(plain, own, table, names)
    inside = _within(version, within)
    outside = 0
    if not within.is_open:
        with translated():
            outside = plain.where(~inside).count()
    placed = plain.where(inside).select(
        *(plain[f"c{names.index(name)}"] for name in table.columns),
        change.isin([*own.added]).cast("tinyint"),
        version,
    )
    fitted = _fitted(placed, table, ("kind", "version"))
    return with_place(fitted, f.col("kind"), f.array("version"), own.scale), outside


def plain_changes(spark: SparkSession, location: str, kind: Kind, table: FeedTable) -> DataFrame:
    """The changes of a file of inserted, or of deleted rows; equal rows are one.

    Raises:
        InputError: SM103 no such file; SM104 other columns or types.
    """
    found = once(read_contents(spark, location, _expected(table)))
    return with_place(positional(found), f.lit(int(kind)), f.array(), Scale.PARTS)


def _expected(table: FeedTable) -> Expected:
    return Expected(table.name, table.columns, table.types)


def _fitted(frame: DataFrame, table: FeedTable, others: tuple[str, ...]) -> DataFrame:
    """The frame with the relation's columns in their types as `c0`, `c1`, ..., and some others as they are.

    The names of the others come last, so that a column of the relation may have one of them.
    """
    width = len(table.columns)
    plain = positional(frame)
    row = plain.select(*(plain[f"c{i}"] for i in range(width))).toDF(*table.columns)
    types = conform(row, _expected(table)).schema.fields
    return plain.select(
        *(plain[f"c{i}"].cast(types[i].dataType).alias(f"c{i}") for i in range(width)),
        *(plain[f"c{width + i}"].alias(name) for i, name in enumerate(others)),
    )


def _within(version: Column, within: Bounds) -> Column:
    """Whether a version lies in a range."""
    inside = f.lit(True)
    if within.after is not None:
        inside = inside & (version > within.after[0])
    if within.upto is not None:
        inside = inside & (version <= within.upto[0])
    return inside


def _require_integer(frame: DataFrame, own: ColumnFormat, index: int) -> None:
    shown = frame.schema.fields[index].dataType.simpleString()
    if shown not in _INTEGERS:
        raise input_error(Code.FEED_UNREADABLE, f"`{own.order}` is `{shown}`, not a whole number")


def _require_known(plain: DataFrame, own: ColumnFormat, table: FeedTable, names: list[str]) -> None:
    """Refuses rows whose change type is not the format's, or that have no version."""
    change, version = plain[f"c{names.index(CHANGE_TYPE)}"], plain[f"c{names.index(own.order)}"]
    known = f.coalesce(change.isin([*own.change_types]), f.lit(False))
    wrong = plain.where(~known | version.isNull()).select(f.when(~known, change), known)
    with translated():
        found = rows(wrong.distinct(), 1)
    for value, is_known in found:
        if is_known:
            raise input_error(
                Code.FEED_UNREADABLE, f"the feed of `{table.name}` has rows without `{own.order}`"
            )
        message = f"in the feed of `{table.name}`, {unknown_change(own, value)}"
        raise input_error(Code.FEED_FORMAT, message, hint=known_changes(own))
