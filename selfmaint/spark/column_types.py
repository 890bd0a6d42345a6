"""Column types here and in Spark."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import types as st

from datalog.model import ANY, ColumnType, TypeName, Unmodelled
from datalog.model.schema import BINARY_HINT, OTHER_HINT, PADDED_HINT
from datalog.sql.duckdb import SqlType

_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
"""Under this name Spark notes that a string column is declared `char` or `varchar`."""

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
    TypeName.TIMESTAMP_NTZ: st.TimestampNTZType(),
    TypeName.ANY: st.NullType(),
}


def spark_type(declared: ColumnType) -> st.DataType:
    """Spark's type for a declared one; `ANY` becomes `void`, the type of a column of nulls."""
    if declared.name is TypeName.DECIMAL:
        return st.DecimalType(*declared.decimal_size)
    return _SPARK[declared.name]


def stored_type(field: st.StructField) -> ColumnType | Unmodelled:
    """The type of a stored column."""
    return unmodelled(field) or column_type(field.dataType) or ANY


def unmodelled(field: st.StructField) -> Unmodelled | None:
    """The type of a stored column that the language does not have; None of any other."""
    padded = str(field.metadata.get(_DECLARED, ""))
    if padded.startswith("char"):
        return Unmodelled(padded, PADDED_HINT)
    if column_type(field.dataType) is not None:
        return None
    is_string = isinstance(field.dataType, st.StringType)
    return Unmodelled(field.dataType.simpleString(), BINARY_HINT if is_string else OTHER_HINT)


def column_type(stored: st.DataType) -> ColumnType | None:
    """The column type that a Spark type stands for; None for one that the language does not have."""
    match stored:
        case st.DecimalType():
            return ColumnType(TypeName.DECIMAL, stored.precision, stored.scale)
        case st.VarcharType():
            return ColumnType(TypeName.STRING)
        case st.StringType() if stored != st.StringType():  # of a collation
            return None
        case st.NullType():
            return ANY
        case _:
            names = [name for name, known in _SPARK.items() if type(known) is type(stored)]
            return ColumnType(names[0]) if names else None


def types_of(frame: DataFrame) -> list[SqlType]:
    """The types of a DataFrame's columns, as DuckDB has them; of others the names."""
    found = (stored_type(field) for field in frame.schema.fields)
    return [kind if isinstance(kind, ColumnType) else str(kind) for kind in found]
