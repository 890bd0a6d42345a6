"""Between Spark's DataFrames and what is at hand in this process: a few rows, in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as st

from datalog.model import Row
from selfmaint.engine.arrow_rows import ArrowTable, python_rows
from selfmaint.engine.arrow_types import column_type
from selfmaint.spark.column_types import spark_type


def positional(frame: DataFrame) -> DataFrame:
    """The frame with its columns named `c0`, `c1`, ...: no name of the data can clash or need quoting."""
    return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))


def has_floats(frame: DataFrame) -> bool:
    """Whether some column holds doubles or floats: Spark's DISTINCT and GROUP BY make their -0.0 a 0.0."""
    return any(map(_is_float, frame.schema.fields))


def _is_float(field: st.StructField) -> bool:
    return isinstance(field.dataType, st.FloatType | st.DoubleType)


def once(frame: DataFrame) -> DataFrame:
    """Each row once. Zeros of both signs are equal; one of them stays, as it is stored."""
    if not has_floats(frame):
        return frame.distinct()
    plain = positional(frame)
    return by_row(plain, plain.columns).toDF(*frame.columns)


def difference(left: DataFrame, right: DataFrame) -> DataFrame:
    """The distinct rows of `left` that equal none of `right`, nulls equal; zeros keep their signs."""
    if not has_floats(left):
        return positional(left).subtract(positional(right)).toDF(*left.columns)
    rows, others = positional(left), right.toDF(*(f"o{i}" for i in range(len(right.columns))))
    pairs = zip(rows.columns, others.columns, strict=True)
    same = reduce(and_, (rows[mine].eqNullSafe(others[other]) for mine, other in pairs))
    return once(rows.join(others, same, "left_anti")).toDF(*left.columns)


def digest_of(frame: DataFrame) -> tuple[int, str]:
    """The number of rows, and what their hashes come to together, in whatever order they are."""
    plain = positional(frame)
    values = [plain[name] for name in plain.columns]
    texts = [
        f.col(c).cast("string")
        for c, field in zip(plain.columns, plain.schema.fields, strict=True)
        if _is_float(field)
    ]
    # A null alone leaves a hash as it is, and so does the sign of a zero.
    row = [*(value.isNull() for value in values), *values, *texts]
    one, other = (f.xxhash64(f.lit(seed), *row) for seed in (1, 2))
    # Not mixed alone: of two equal rows nothing would be left.
    hashes = f.bit_xor(one), f.bit_xor(other), f.sum(one.cast("decimal(20, 0)"))
    number, *found = plain.select(f.count(f.lit(1)), *hashes).first() or (0,)
    return number, ":".join(map(str, found))


def by_row(plain: DataFrame, columns: Sequence[str], **aggregates: Column) -> DataFrame:
    """Aggregates for each distinct row of some columns, which keep the signs of zeros."""
    floats = {field.name for field in plain.schema.fields if _is_float(field)}
    kept = [f.first(name).alias(f"first_{name}") for name in columns if name in floats]
    made = [column.alias(name) for name, column in aggregates.items()]
    if not kept and not made:
        return plain.select(*columns).distinct()
    found = plain.groupBy(*columns).agg(*kept, *made)
    named = [f.col(f"first_{c}").alias(c) if c in floats else f.col(c) for c in columns]
    return found.select(*named, *aggregates)


def from_arrow(spark: SparkSession, table: ArrowTable) -> DataFrame:
    """A DataFrame of an Arrow table with one or more columns."""
    names = table.column_names
    numbered = table.rename_columns([f"c{i}" for i in range(len(names))])
    fields = [st.StructField(c.name, spark_type(column_type(c.type)), nullable=True) for c in numbered.schema]
    return spark.createDataFrame(numbered, st.StructType(fields)).toDF(*names)


def session_zone(spark: SparkSession) -> str:
    """The name of the session's time zone."""
    return spark.conf.get("spark.sql.session.timeZone") or "UTC"


def rows(frame: DataFrame, limit: int) -> list[Row]:
    """At most `limit` rows as plain Python values; instants as what the session's clock shows."""
    bounded = positional(frame.limit(limit))
    if not bounded.columns:
        return [()] * bounded.count()
    return python_rows(bounded.toArrow(), session_zone(frame.sparkSession))


def empty(spark: SparkSession, names: Sequence[str]) -> DataFrame:
    """A relation without rows, its columns of the type of nulls."""
    if not names:
        return spark.range(0).select()
    return from_arrow(spark, pa.Table.from_arrays([pa.nulls(0) for _ in names], names=list(names)))
