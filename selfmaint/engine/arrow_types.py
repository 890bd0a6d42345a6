"""Column types in Arrow."""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

from datalog.model import ColumnType, TypeName

ArrowType: TypeAlias = pa.DataType

_ARROW: dict[TypeName, ArrowType] = {
    TypeName.BOOLEAN: pa.bool_(),
    TypeName.TINYINT: pa.int8(),
    TypeName.SMALLINT: pa.int16(),
    TypeName.INT: pa.int32(),
    TypeName.BIGINT: pa.int64(),
    TypeName.FLOAT: pa.float32(),
    TypeName.DOUBLE: pa.float64(),
    TypeName.STRING: pa.string(),
    TypeName.DATE: pa.date32(),
    TypeName.TIMESTAMP: pa.timestamp("us", "UTC"),
    TypeName.TIMESTAMP_NTZ: pa.timestamp("us"),
    TypeName.ANY: pa.null(),
}


def arrow_type(declared: ColumnType) -> ArrowType:
    """Arrow's type for a declared one; `ANY` becomes the type of nulls."""
    if declared.name is TypeName.DECIMAL:
        return pa.decimal128(*declared.decimal_size)
    return _ARROW[declared.name]


def column_type(arrow: ArrowType) -> ColumnType:
    """The column type of a type that `arrow_type` gives."""
    if pa.types.is_decimal(arrow):
        return ColumnType(TypeName.DECIMAL, arrow.precision, arrow.scale)
    return next(ColumnType(name) for name, kind in _ARROW.items() if kind == arrow)
