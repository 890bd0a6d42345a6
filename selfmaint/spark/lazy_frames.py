"""DataFrames that Spark hears of when it is first asked for their rows."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame


class LazyFrame(ClassicFrame):
    """A DataFrame whose columns and types are known without Spark."""

    def __init__(self, spark: SparkSession, schema: st.StructType) -> None:
        """Not by the class above, which wants to have asked Spark."""
        self._session = spark
        self._sc = spark._sc
        self._known = schema
        self.is_cached = False
        self._support_repr_html = False

    @abstractmethod
    def made(self) -> DataFrame:
        """The same DataFrame, made by Spark."""

    @cached_property
    def _jdf(self) -> Any:
        return self.made()._jdf

    @property
    def schema(self) -> st.StructType:
        """The columns' names and types."""
        return self._known

    @property
    def columns(self) -> list[str]:
        """The columns' names."""
        return list(self._known.names)
