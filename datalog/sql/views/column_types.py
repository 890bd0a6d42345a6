"""Column types of SQL as the model's."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import ParseError

from datalog.model import ANY, MAX_PRECISION, Column, ColumnType, TypeName, Unmodelled
from datalog.model.schema import BINARY_HINT, OTHER_HINT, PADDED_HINT

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
    exp.DType.DATE: TypeName.DATE,
    exp.DType.TIMESTAMP: TypeName.TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TypeName.TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TypeName.TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TypeName.TIMESTAMP_NTZ,
}
_SIZE = re.compile(r"[0-9]{1,3}")
_PADDED = (exp.DType.CHAR, exp.DType.NCHAR, exp.DType.BPCHAR)
_OTHERS = (
    *(exp.DType.BINARY, exp.DType.VARBINARY, exp.DType.BLOB),
    *(exp.DType.ARRAY, exp.DType.MAP, exp.DType.STRUCT, exp.DType.VARIANT, exp.DType.OBJECT, exp.DType.JSON),
    *(exp.DType.TIME, exp.DType.TIMETZ, exp.DType.INTERVAL, exp.DType.GEOGRAPHY, exp.DType.GEOMETRY),
)
_WITHOUT_ZONE = re.compile(r"timestamp *(\(\d+\))? +without +time +zone", re.IGNORECASE)
_COLLATE = re.compile(r"\bcollate\s+[`\"']?(\w+)", re.IGNORECASE)
_BINARY_COLLATION = "utf8_binary"


_MOST_SIZES = 2
"""Precision and scale."""


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
    if not all(_SIZE.fullmatch(size) for size in sizes) or len(sizes) > _MOST_SIZES:
        return None
    precision, scale = ColumnType(name, *map(int, sizes)).decimal_size
    return (
        ColumnType(name, precision, scale) if 0 < precision <= MAX_PRECISION and scale <= precision else None
    )


def unmodelled(tree: exp.DataType, collation: str | None = None) -> Unmodelled | None:
    """A type whose equality or order is not the model's; None for any other.

    >>> unmodelled(exp.DataType.build("char(5)", dialect="spark")).text
    'char(5)'
    """
    text = tree.sql().lower()
    if collation is not None and collation.casefold() != _BINARY_COLLATION:
        return Unmodelled(f"{text} collate {collation.lower()}", BINARY_HINT)
    if tree.this in _PADDED:
        return Unmodelled(text, PADDED_HINT)
    if tree.this in _OTHERS or not isinstance(tree.this, exp.DType):
        return Unmodelled(text, OTHER_HINT)
    return None


def column_of_text(name: str, text: str | None) -> Column:
    """A column of the type that a text names in Spark's dialect; of any type where it names none.

    >>> str(column_of_text("x", "decimal(9, 2)").type), column_of_text("x", "array<int>").unmodelled.text
    ('decimal(9,2)', 'array<int>')
    """
    tree = _tree(text)
    if tree is None:
        return Column(name)
    return Column(name, column_type(tree) or ANY, unmodelled=unmodelled(tree, _collation(text)))


def _tree(text: str | None) -> exp.DataType | None:
    if not text:
        return None
    if _WITHOUT_ZONE.fullmatch(
        text.strip()
    ):  # PostgreSQL's name, which Spark's dialect reads as another type
        return exp.DataType(this=exp.DType.TIMESTAMPNTZ)
    try:
        return exp.DataType.build(text, dialect="spark")
    except ParseError:
        return None


def _collation(text: str | None) -> str | None:
    found = _COLLATE.search(text or "")
    return None if found is None else found[1]
