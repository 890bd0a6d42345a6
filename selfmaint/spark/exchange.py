"""Rows that enter Spark and leave it, and statements over them.

Of DataFrames as feeds rows with a version stay in Spark; events come here one by one, as texts of JSON.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as st

from datalog.model import ColumnType, Row
from datalog.sql.changes import Query
from selfmaint.duckdb.exchange import DuckExchange
from selfmaint.duckdb.relation import Relation
from selfmaint.errors import Code, input_error
from selfmaint.spark.column_types import column_type
from selfmaint.spark.engine import SparkEngine
from selfmaint.spark.failures import SHARED_TMPDIR, SPARK_ERRORS, first_line, translated
from selfmaint.spark.formats import TIMESTAMP_OPTIONS, spark_path
from selfmaint.spark.frames import positional, session_zone
from selfmaint.spark.near import NearFrame
from selfmaint.spark.same_values import are_exact
from selfmaint.spark.tables import conform, read_contents
from selfmaint.store.exchange import Frame, Rows, Spill
from selfmaint.store.expected import Expected

_JSON_OPTIONS = {"ignoreNullFields": "false", **TIMESTAMP_OPTIONS}


class SparkFrame(Struct, frozen=True):
    """A `Frame` of Spark."""

    frame: DataFrame

    @property
    def columns(self) -> Sequence[str]:
        return tuple(self.frame.columns)

    def records(self) -> Iterator[object]:
        """See `Frame`; a partition is here at a time."""
        with translated():
            for row in self.frame.select(self._text()).toLocalIterator():
                yield row[0]

    def _text(self) -> Column:
        """A row as JSON, with the nulls that it has."""
        if self.frame.columns == ["value"]:
            return f.col("value").cast("string")
        return f.to_json(f.struct(*(f.col(f"`{name}`") for name in self.frame.columns)), _JSON_OPTIONS)

    def rows(self, expected: Expected) -> DataFrame:
        plain, names = positional(self.frame), self.frame.columns
        taken = plain.select(*(plain[f"c{names.index(name)}"] for name in expected.columns))
        return conform(taken.toDF(*expected.columns), expected)


_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - what a clock in UTC shows


class SparkExchange(Struct, frozen=True):
    """An `Exchange` of a session."""

    engine: SparkEngine

    @property
    def zone(self) -> str:
        return session_zone(self.engine.spark)

    def entered(self, spill: Spill) -> DataFrame:
        found = spill.table_or_file()
        if not isinstance(found, Path):
            return self.engine.given(found)
        try:
            return self.engine.spark.read.parquet(spark_path(str(found)))
        except SPARK_ERRORS as failure:  # an executor reads the columns
            raise input_error(
                Code.MISSING_CONTENTS,
                f"Spark's executors do not read `{found}`: {first_line(failure)}",
                hint=SHARED_TMPDIR,
            ) from failure

    def stored(self, location: str, expected: Expected) -> DataFrame:
        return read_contents(self.engine.spark, location, expected)

    def frame(self, given: object) -> Frame[DataFrame] | None:
        return SparkFrame(given) if isinstance(given, DataFrame) else None

    def computed(
        self,
        query: Callable[[Sequence[str]], Query],
        parts: Sequence[DataFrame],
        columns: Sequence[tuple[str, ColumnType]],
    ) -> DataFrame:

        def here(relations: Sequence[Relation]) -> Relation:
            database = relations[0].stored.database
            assert database is not None
            return DuckExchange(database).computed(query, relations, columns)

        names = [name for name, _ in columns]
        return self.engine.either(parts, here, lambda: self.engine.statements.over(query, parts).toDF(*names))

    def distinct(self, data: DataFrame) -> Rows:
        if isinstance(data, NearFrame) and are_exact([field.dataType for field in data.schema.fields]):
            return DuckExchange(data.owner.engine.database).distinct(data.relation)
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
