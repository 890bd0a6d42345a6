"""A bounded number of rows in this process with exactly the values that Spark stores, and back.

A timestamp is an instant, in UTC. Floating-point numbers are not exact: Spark takes a double for equal to a decimal
that is only near. Other types of the language have the same values in both places; of those that it does not have
none is exact.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from datalog.model import Row
from selfmaint.engine import exact_values
from selfmaint.engine.arrow_rows import ArrowTable, python_values
from selfmaint.spark.column_types import column_type
from selfmaint.spark.frames import positional

_EXACT = (
    st.BooleanType,
    st.ByteType,
    st.ShortType,
    st.IntegerType,
    st.LongType,
    st.DecimalType,
    st.StringType,
    st.DateType,
    st.TimestampType,
    st.TimestampNTZType,
)
_INSTANT = pa.timestamp("us", "UTC")


def are_exact(types: Sequence[st.DataType]) -> bool:
    """Whether this process has the same values for some types, equal where Spark takes them for equal."""
    return all(type(kind) in _EXACT and kind.simpleString().count(" collate ") == 0 for kind in types)


def fetched(frame: DataFrame, limit: int) -> list[Row] | None:
    """The rows, duplicates kept; None if there are more than `limit`, or dates or times that only Spark has."""
    if not frame.columns:  # Arrow does not count rows without columns
        count = frame.limit(limit + 1).count()
        return [()] * count if count <= limit else None
    table: ArrowTable = positional(frame.limit(limit + 1)).toArrow()
    if table.num_rows > limit:
        return None
    try:
        return list(zip(*(python_values(column) for column in table.columns), strict=True))
    except OverflowError:
        return None


def fitting(rows: Collection[Row], types: Sequence[st.DataType]) -> list[Row]:
    """Those rows whose values Spark's types can hold; see `engine.exact_values`."""
    return exact_values.fitting(rows, [column_type(kind) for kind in types])


def frame_of(
    spark: SparkSession, rows: Collection[Row], names: Sequence[str], types: Sequence[st.DataType]
) -> DataFrame:
    """A DataFrame of exact rows with one or more columns, whose types can hold their values."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(types)
    fields = [st.StructField(f"c{i}", kind, nullable=True) for i, kind in enumerate(types)]
    arrays = [pa.array(values, arrow_type(kind)) for values, kind in zip(columns, types, strict=True)]
    table = pa.Table.from_arrays(arrays, names=[field.name for field in fields])
    return spark.createDataFrame(table, st.StructType(fields)).toDF(*names)


def arrow_type(kind: st.DataType) -> pa.DataType:
    """The Arrow type of the values of an exact type."""
    if isinstance(kind, st.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    return _ARROW[type(kind)]


_ARROW: dict[type[st.DataType], pa.DataType] = {
    st.BooleanType: pa.bool_(),
    st.ByteType: pa.int8(),
    st.ShortType: pa.int16(),
    st.IntegerType: pa.int32(),
    st.LongType: pa.int64(),
    st.StringType: pa.string(),
    st.DateType: pa.date32(),
    st.TimestampType: _INSTANT,
    st.TimestampNTZType: pa.timestamp("us"),
}
