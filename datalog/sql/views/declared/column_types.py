"""Types of columns as SQL writes them: those that the language has, and those that it does not model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

from sqlglot import Dialects, exp
from sqlglot.errors import ParseError

from datalog.model import ANY, MAX_PRECISION, Column, ColumnType, TypeName, Unmodelled
from datalog.model.schema import BINARY_COLLATION, BINARY_HINT, OTHER_HINT, PADDED_HINT, UNKNOWN_HINT

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
    exp.DType.UUID: TypeName.STRING,
    exp.DType.DATE: TypeName.DATE,
    exp.DType.TIMESTAMP: TypeName.TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TypeName.TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TypeName.TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TypeName.TIMESTAMP_NTZ,
}
_SERIAL = {"serial": TypeName.INT, "bigserial": TypeName.BIGINT, "smallserial": TypeName.SMALLINT}
_SIZE = re.compile(r"[0-9]{1,3}")
_PADDED = (exp.DType.CHAR, exp.DType.NCHAR, exp.DType.BPCHAR)
_OTHERS = (
    *(exp.DType.BINARY, exp.DType.VARBINARY, exp.DType.BLOB, exp.DType.LONGBLOB, exp.DType.MEDIUMBLOB),
    *(exp.DType.TINYBLOB, exp.DType.INT4MULTIRANGE, exp.DType.INT8MULTIRANGE, exp.DType.NUMMULTIRANGE),
    *(exp.DType.TSMULTIRANGE, exp.DType.TSTZMULTIRANGE, exp.DType.DATEMULTIRANGE),
    *(exp.DType.ARRAY, exp.DType.MAP, exp.DType.STRUCT, exp.DType.VARIANT, exp.DType.OBJECT, exp.DType.JSON),
    *(exp.DType.TIME, exp.DType.TIMETZ, exp.DType.INTERVAL, exp.DType.GEOGRAPHY, exp.DType.GEOMETRY),
    *(exp.DType.JSONB, exp.DType.HSTORE, exp.DType.XML, exp.DType.BIT, exp.DType.VECTOR, exp.DType.LIST),
    *(exp.DType.INET, exp.DType.IPADDRESS, exp.DType.IPPREFIX, exp.DType.INT4RANGE, exp.DType.INT8RANGE),
    *(exp.DType.NUMRANGE, exp.DType.TSRANGE, exp.DType.TSTZRANGE, exp.DType.DATERANGE, exp.DType.USERDEFINED),
)
_WITHOUT_ZONE = re.compile(r"timestamp *(\(\d+\))? +without +time +zone", re.IGNORECASE)
_COLLATE = re.compile(r"\bcollate\s+[`\"']?(\w+)", re.IGNORECASE)


_LOCAL = frozenset({"duckdb", "postgres", "redshift"})
"""Dialects whose `timestamp` has no zone."""
_ALIKE = 0.82
"""How alike two names are at least, of which one is the other misspelt: `citext` is not `text`."""
_MOST_SIZES = 2
"""Precision and scale."""


def column_type(tree: exp.DataType) -> ColumnType | None:
    """The model's type of a type in SQL, or None for one that it has not, such as an array.

    >>> str(column_type(exp.DataType.build("numeric(5)", dialect="spark")))
    'decimal(5,0)'
    """
    if not isinstance(tree.this, exp.DType):
        return None
    name = _NAMES.get(tree.this) or _SERIAL.get(own_name(tree))
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


def own_name(tree: exp.DataType) -> str:
    """The name of a type that is none of SQL's, in lower case; else nothing."""
    kind = tree.args.get("kind") if tree.this is exp.DType.USERDEFINED else None
    return "" if kind is None else str(kind if isinstance(kind, str) else kind.sql()).lower()


def unmodelled(tree: exp.DataType, collation: str | None = None) -> Unmodelled | None:
    """A type whose equality or order is not the model's; None for any other.

    >>> unmodelled(exp.DataType.build("char(5)", dialect="spark")).text
    'char(5)'
    """
    text = tree.sql().lower()
    if collation is not None and collation.casefold() != BINARY_COLLATION:
        return Unmodelled(f"{text} collate {collation.lower()}", BINARY_HINT)
    if tree.this in _PADDED:
        return Unmodelled(text, PADDED_HINT)
    if own := own_name(tree):
        return None if own in _SERIAL else Unmodelled(text, UNKNOWN_HINT)
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


def in_spark(text: str, dialect: str) -> str:
    """A type of another dialect as Spark calls it; as it is where the dialect, or the type, is not known.

    >>> in_spark("TIMESTAMP", "duckdb"), in_spark("TIMESTAMP WITH TIME ZONE", "duckdb"), in_spark("int8", "postgres")
    ('TIMESTAMP_NTZ', 'TIMESTAMP', 'BIGINT')
    """
    if dialect not in {one.value for one in Dialects}:
        return text
    try:
        tree = exp.DataType.build(text, dialect=dialect)
    except ParseError:
        return text
    if tree.this is exp.DType.TIMESTAMP and dialect in _LOCAL:
        return "TIMESTAMP_NTZ"
    return tree.sql("spark")


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


def misspelt(own: str) -> str | None:
    """The type that was probably meant by a name that is none."""
    known = [*(one.value for one in TypeName if one is not TypeName.ANY), *_SERIAL]
    spelt = [*known, "integer", "numeric", "varchar", "interval", "timestamp_ltz", "binary"]
    return None if own in _SERIAL else next(iter(get_close_matches(own, spelt, 1, _ALIKE)), None)
