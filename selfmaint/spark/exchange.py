"""Rows that enter Spark and leave it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as st

from datalog.model import Row
from selfmaint.spark.column_types import column_type
from selfmaint.spark.failures import translated
from selfmaint.spark.formats import spark_path
from selfmaint.spark.frames import from_arrow, positional
from selfmaint.store.exchange import Rows
from selfmaint.store.spill import Spill

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - what a clock in UTC shows


@dataclass(frozen=True, slots=True)
class SparkExchange:
    """An `Exchange` of a session."""

    spark: SparkSession

    def entered(self, spill: Spill) -> DataFrame:
        """See `Exchange`; a file is read when the rows are used."""
        found = spill.table_or_file()
        if not isinstance(found, Path):
            return from_arrow(self.spark, found)
        return self.spark.read.parquet(spark_path(str(found)))

    def distinct(self, data: DataFrame) -> Rows:
        """See `Exchange`."""
        plain = positional(data).distinct()
        instants = [isinstance(field.dataType, st.TimestampType) for field in plain.schema.fields]
        pairs = zip(plain.columns, instants, strict=True)
        # Python's own conversion goes by the way of the machine's time zone.
        sent = plain.select(*(f.unix_micros(name).alias(name) if one else f.col(name) for name, one in pairs))
        return Rows([column_type(field.dataType) for field in plain.schema.fields], _arriving(sent, instants))


def _arriving(sent: DataFrame, instants: list[bool]) -> Iterator[Row]:
    with translated():
        for row in sent.toLocalIterator():
            yield tuple(
                _EPOCH + dt.timedelta(microseconds=value) if one and value is not None else value
                for value, one in zip(row, instants, strict=True)
            )
