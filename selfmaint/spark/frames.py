"""Between Spark's DataFrames and what is at hand in this process: a few rows, in both directions."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from datalog.model import Row
from selfmaint.engine.arrow_rows import ArrowTable, python_rows


def positional(frame: DataFrame) -> DataFrame:
    """The frame with its columns named `c0`, `c1`, ...: no name of the data can clash or need quoting."""
    return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))


def from_arrow(spark: SparkSession, table: ArrowTable) -> DataFrame:
    """A DataFrame of an Arrow table with one or more columns; its wall-clock times are the session's."""
    names = table.column_names
    numbered = table.rename_columns([f"c{i}" for i in range(len(names))])
    fields = [st.StructField(f.name, _stored_type(f.type), nullable=True) for f in numbered.schema]
    schema = st.StructType(fields)
    return wall_clock_to_instant(spark.createDataFrame(numbered, schema)).toDF(*names)


def _stored_type(arrow: pa.DataType) -> st.DataType:
    if pa.types.is_timestamp(arrow):
        return st.TimestampNTZType() if arrow.tz is None else st.TimestampType()
    if pa.types.is_decimal(arrow):
        return st.DecimalType(arrow.precision, arrow.scale)
    return next(known for test, known in _ARROW_TO_SPARK if test(arrow))


_ARROW_TO_SPARK = (
    (pa.types.is_boolean, st.BooleanType()),
    (pa.types.is_int8, st.ByteType()),
    (pa.types.is_int16, st.ShortType()),
    (pa.types.is_int32, st.IntegerType()),
    (pa.types.is_int64, st.LongType()),
    (pa.types.is_float32, st.FloatType()),
    (pa.types.is_float64, st.DoubleType()),
    (pa.types.is_string, st.StringType()),
    (pa.types.is_date32, st.DateType()),
    (pa.types.is_null, st.NullType()),
)


def wall_clock_to_instant(frame: DataFrame) -> DataFrame:
    """Timestamps without a zone as instants, in the session's time zone. The columns' names must be plain."""
    return _cast(frame, st.TimestampNTZType, st.TimestampType())


def rows(frame: DataFrame, limit: int) -> list[Row]:
    """At most `limit` rows as plain Python values; timestamps as wall-clock times of the session's zone."""
    bounded = _cast(positional(frame.limit(limit)), st.TimestampType, st.TimestampNTZType())
    if not bounded.columns:
        return [()] * bounded.count()
    return python_rows(bounded.toArrow())


def empty(spark: SparkSession, names: Sequence[str]) -> DataFrame:
    """A relation without rows, its columns of the type of nulls."""
    if not names:
        return spark.range(0).select()
    return from_arrow(spark, pa.Table.from_arrays([pa.nulls(0) for _ in names], names=list(names)))


def _cast(frame: DataFrame, source: type[st.DataType], target: st.DataType) -> DataFrame:
    fields = frame.schema.fields
    if not any(isinstance(f.dataType, source) for f in fields):
        return frame
    return frame.select(
        *(frame[f.name].cast(target) if isinstance(f.dataType, source) else frame[f.name] for f in fields)
    ).toDF(*(f.name for f in fields))
