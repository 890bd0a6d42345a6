"""Contents whose column names no declaration gives: matched by name where the names fit, else by position."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from selfmaint.errors import Code, InputError
from selfmaint.spark.failures import translated
from selfmaint.spark.formats import CSV_OPTIONS, parquet_paths, spark_path
from selfmaint.spark.tables import conform, read_contents
from selfmaint.store.expected import Expected, is_by_position
from selfmaint.store.formats import Format, format_of


def read_undeclared(
    spark: SparkSession, location: str, expected: Expected, format_: Format | None = None
) -> DataFrame:
    """Stored contents with the expected columns, by name or by position.

    Args:
        spark: the session.
        location: as for `read_contents`.
        expected: names and types of the columns; the names are made up.
        format_: how it is stored; by default told from the names of the files.

    Returns:
        The rows under the expected names. By position unless some of the names are those expected.

    Raises:
        InputError: SM103 nothing is stored there; SM104 another number of columns, other types, or JSON
            lines, whose columns have no order, with other names.
    """
    try:
        return read_contents(spark, location, expected, format_)
    except InputError as by_name:
        if any(d.code is not Code.COLUMNS_DIFFER for d in by_name.diagnostics):
            raise
        with translated(location):
            found = _stored_columns(spark, location, format_ or format_of(location))
        if not found or not is_by_position(found, expected):
            raise
        stored = replace(expected, columns=tuple(found))
        return read_contents(spark, location, stored, format_).toDF(*expected.columns)


def conform_undeclared(frame: DataFrame, expected: Expected) -> DataFrame:
    """A frame with the expected columns, by name or by position; see `read_undeclared`.

    Raises:
        InputError: SM104 another number of columns, or other types.
    """
    if is_by_position(frame.columns, expected):
        stored = replace(expected, columns=tuple(f"c{i}" for i in range(len(expected.columns))))
        return conform(frame.toDF(*stored.columns), stored).toDF(*expected.columns)
    return conform(frame, expected)


def _stored_columns(spark: SparkSession, location: str, format_: Format) -> list[str] | None:
    """The names of the stored columns in their order; None where they have none."""
    match format_:
        case Format.PARQUET:
            return spark.read.parquet(*parquet_paths(location)).columns
        case Format.TABLE:
            return spark.table(location).columns
        case Format.CSV:
            return spark.read.options(**CSV_OPTIONS).csv(spark_path(location)).columns
        case Format.JSON_LINES:
            return None
