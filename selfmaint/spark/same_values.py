"""Whether this process has just the values that Spark has: rows as they are stored, times as the session's clock shows.

A timestamp is an instant, in UTC: what depends on the session's clock is computed here where that is the clock of UTC.
Floating-point numbers are not exact: Spark takes a double for equal to a decimal that is only near. Other types of the
language have the same values in both places; of those that it does not have none is exact.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import types as st

from datalog.model import (
    Call,
    Cast,
    ColumnType,
    Constant,
    Row,
    Rule,
    TypeName,
    ViewDefinition,
    terms_of,
    walk,
)
from datalog.model.times import CLOCK_CALLS
from datalog.sql.duckdb import SqlType
from datalog.sql_settings import UTC
from selfmaint.engine.arrow_rows import ArrowTable, python_values
from selfmaint.spark.frames import session_zone

_EXACT = (
    *(st.BooleanType, st.ByteType, st.ShortType, st.IntegerType, st.LongType, st.DecimalType, st.StringType),
    *(st.DateType, st.TimestampType, st.TimestampNTZType),
)


def are_exact(types: Sequence[st.DataType]) -> bool:
    """Whether this process has the same values for some types, equal where Spark takes them for equal."""
    return all(type(kind) in _EXACT and kind.simpleString().count(" collate ") == 0 for kind in types)


def exact_rows(table: ArrowTable) -> list[Row] | None:
    """The rows, duplicates kept; None if there are dates or times that only Spark has."""
    if not table.num_columns:
        return [()] * table.num_rows
    try:
        return list(zip(*(python_values(column) for column in table.columns), strict=True))
    except OverflowError:
        return None


"""Names of time zones on whose clocks an instant is shown as it is counted."""


def is_on_utc(spark: SparkSession) -> bool:
    """Whether the session's clock is that of UTC."""
    return session_zone(spark) in UTC


def begin_days(types: Iterable[SqlType]) -> bool:
    """Whether both days and instants are among some types: at which instant a day begins, a clock tells."""
    names = {kind.name for kind in types if isinstance(kind, ColumnType)}
    return {TypeName.DATE, TypeName.TIMESTAMP} <= names


def names_time(rule: Rule) -> bool:
    """Whether a rule names a time, which may be another instant on another clock."""
    terms = (term for literal in (rule.head, *rule.body) for term in terms_of(literal))
    return any(isinstance(term, Constant) and isinstance(term.value, dt.datetime) for term in terms)


def names_instants(definition: ViewDefinition) -> bool:
    """Whether a definition names times, or makes instants of what has no zone."""
    return any(
        names_time(block.core)
        or any(
            (isinstance(one, Cast) and one.type.name is TypeName.TIMESTAMP)
            or (isinstance(one, Constant) and isinstance(one.value, dt.datetime))
            or (isinstance(one, Call) and one.function in CLOCK_CALLS)
            for value in (*block.outputs, *block.filters, *(block.groups or ()), *block.having)
            for one in walk(value)
        )
        for block in definition.blocks
    )
