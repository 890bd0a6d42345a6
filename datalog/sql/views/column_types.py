"""Column types of SQL as the model's."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import ParseError

from datalog.model import ColumnType, TypeName
from datalog.sql.views.limits import MOST_DIGITS

_NAMES: Mapping[exp.DType, TypeName] = {
    exp.DType.BOOLEAN: TypeName.BOOLEAN,
    exp.DType.TINYINT: TypeName.TINYINT,
    exp.DType.SMALLINT: TypeName.SMALLINT,
    exp.DType.INT: TypeName.INT,
    exp.DType.BIGINT: TypeName.BIGINT,
    exp.DType.FLOAT: TypeName.FLOAT,
    exp.DType.DOUBLE: TypeName.DOUBLE,
    exp.DType.DECIMAL: TypeName.DECIMAL,
    exp.DType.TEXT: TypeName.STRING,
    exp.DType.VARCHAR: TypeName.STRING,
    exp.DType.CHAR: TypeName.STRING,
    exp.DType.DATE: TypeName.DATE,
    exp.DType.TIMESTAMP: TypeName.TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TypeName.TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TypeName.TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TypeName.TIMESTAMP,
}
_SPARK_DECIMAL = (10, 0)
_SIZE = re.compile(r"[0-9]{1,3}")


def column_type(tree: exp.DataType) -> ColumnType | None:
    """The model's type of a type in SQL, or None for one that it has not, such as an array.

    >>> str(column_type(exp.DataType.build("numeric(5)", dialect="spark")))
    'decimal(5,0)'
    """
    if not isinstance(tree.this, exp.DType):
        return None
    name = _NAMES.get(tree.this)
    if name is None:
        return None
    if name is not TypeName.DECIMAL:
        return ColumnType(name)
    sizes = [str(size.name) for size in tree.expressions]
    if not all(_SIZE.fullmatch(size) for size in sizes) or len(sizes) > len(_SPARK_DECIMAL):
        return None
    precision, scale = (*map(int, sizes), 0)[:2] if sizes else _SPARK_DECIMAL
    return ColumnType(name, precision, scale) if 0 < precision <= MOST_DIGITS and scale <= precision else None


def type_of_text(text: str | None) -> ColumnType | None:
    """The type that a text names in Spark's dialect, or None for one that the model has not.

    >>> str(type_of_text("decimal(9, 2)")), type_of_text("array<int>"), type_of_text(None)
    ('decimal(9,2)', None, None)
    """
    if not text:
        return None
    try:
        return column_type(exp.DataType.build(text, dialect="spark"))
    except ParseError:
        return None
