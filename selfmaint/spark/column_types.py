"""Column types here and in Spark."""

from __future__ import annotations

from pyspark.sql import types as st

from datalog.model import ANY, ColumnType, TypeName
from selfmaint.engine.column_types import decimal_size

_SPARK: dict[TypeName, st.DataType] = {
    TypeName.BOOLEAN: st.BooleanType(),
    TypeName.TINYINT: st.ByteType(),
    TypeName.SMALLINT: st.ShortType(),
    TypeName.INT: st.IntegerType(),
    TypeName.BIGINT: st.LongType(),
    TypeName.FLOAT: st.FloatType(),
    TypeName.DOUBLE: st.DoubleType(),
    TypeName.STRING: st.StringType(),
    TypeName.DATE: st.DateType(),
    TypeName.TIMESTAMP: st.TimestampType(),
    TypeName.ANY: st.NullType(),
}


def spark_type(declared: ColumnType) -> st.DataType:
    """Spark's type for a declared one; `ANY` becomes `void`, the type of a column of nulls."""
    if declared.name is TypeName.DECIMAL:
        return st.DecimalType(*decimal_size(declared))
    return _SPARK[declared.name]


def column_type(stored: st.DataType) -> ColumnType | None:
    """The column type that a Spark type stands for; None for one that the language does not have."""
    match stored:
        case st.DecimalType():
            return ColumnType(TypeName.DECIMAL, stored.precision, stored.scale)
        case st.CharType() | st.VarcharType():
            return ColumnType(TypeName.STRING)
        case st.TimestampNTZType():
            return ColumnType(TypeName.TIMESTAMP)
        case st.NullType():
            return ANY
        case _:
            names = [name for name, known in _SPARK.items() if type(known) is type(stored)]
            return ColumnType(names[0]) if names else None
