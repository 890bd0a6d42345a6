"""DataFrames as feeds: rows with a version stay in Spark, events come here one by one, as texts of JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from selfmaint.spark.failures import translated
from selfmaint.spark.formats import TIMESTAMP_OPTIONS
from selfmaint.spark.frames import positional
from selfmaint.spark.tables import conform
from selfmaint.store.expected import Expected

_JSON_OPTIONS = {"ignoreNullFields": "false", **TIMESTAMP_OPTIONS}


@dataclass(frozen=True, slots=True)
class SparkFrame:
    """A `Frame` of Spark."""

    frame: DataFrame

    @property
    def columns(self) -> Sequence[str]:
        """See `Frame`."""
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
        """See `Frame`."""
        plain, names = positional(self.frame), self.frame.columns
        taken = plain.select(*(plain[f"c{names.index(name)}"] for name in expected.columns))
        return conform(taken.toDF(*expected.columns), expected)
