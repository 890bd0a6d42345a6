"""A bounded number of rows as Python values that are exactly those that Spark stores.

A timestamp is an instant, in UTC. Floating-point numbers are not exact: Spark takes a double for equal to a decimal
that is only near. Other types of the language have the same values in both places; of those that it does not have
none is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import types as st

from datalog.model import Row
from selfmaint.engine.arrow_rows import ArrowTable, python_values

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
