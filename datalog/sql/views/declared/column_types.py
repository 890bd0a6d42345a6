"""Types of columns as SQL writes them: those that the language has, and those that it does not model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

from sqlglot import Dialects, exp
from sqlglot.errors import ParseError, SqlglotError

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


_DIALECTS = {"sqlserver": "tsql", "fabric": "tsql", "synapse": "tsql", "athena": "trino"}
"""What adapters of dbt are called here whose names are no dialects."""
_OF_EVERY_DIALECT: Mapping[exp.DType, TypeName] = {
    exp.DType.BOOLEAN: TypeName.BOOLEAN,
    **dict.fromkeys((exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.NVARCHAR, exp.DType.UUID), TypeName.STRING),
    exp.DType.TINYINT: TypeName.TINYINT,
    exp.DType.SMALLINT: TypeName.SMALLINT,
    exp.DType.INT: TypeName.INT,
    exp.DType.BIGINT: TypeName.BIGINT,
    exp.DType.DOUBLE: TypeName.DOUBLE,
    exp.DType.DATE: TypeName.DATE,
    exp.DType.TIMESTAMPTZ: TypeName.TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TypeName.TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TypeName.TIMESTAMP_NTZ,
    **dict.fromkeys((exp.DType.TIMESTAMP, exp.DType.DATETIME, exp.DType.DATETIME2), TypeName.TIMESTAMP_NTZ),
}
"""Types as the parsers of other dialects than Spark's have them: there a `timestamp` of nothing else has no zone."""
_SINGLE = frozenset({"duckdb", "postgres", "mysql", "trino"})
"""Dialects whose `float`, or `real`, is of single precision; in others it may be double."""
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


def column_in(name: str, text: str | None, dialect: str) -> Column:
    """A column of the type that a text names in another dialect: of any type where it is not sure which of ours it is.

    >>> str(column_in("x", "NUMBER(9, 2)", "snowflake").type), str(column_in("x", "NUMBER", "snowflake").type)
    ('decimal(9,2)', 'any')
    >>> str(column_in("x", "TIMESTAMP", "duckdb").type), column_in("x", "time", "postgres").unmodelled.text
    ('timestamp_ntz', 'time')
    """
    dialect = _DIALECTS.get(dialect, dialect)
    if not text or dialect not in {one.value for one in Dialects}:
        return Column(name)
    try:
        tree: object = exp.DataType.build(text, dialect=dialect)
    except (SqlglotError, TypeError):
        tree = None
    if not isinstance(tree, exp.DataType) or not isinstance(tree.this, exp.DType):
        return Column(name, unmodelled=Unmodelled(text.lower(), UNKNOWN_HINT))
    found = _OF_EVERY_DIALECT.get(tree.this)
    if found is not None:
        is_wide = dialect == "snowflake" and found.is_integer  # all whole numbers have 38 digits there
        return Column(name, ColumnType(TypeName.DECIMAL, MAX_PRECISION, 0) if is_wide else ColumnType(found))
    if tree.this is exp.DType.FLOAT:
        return Column(name, ColumnType(TypeName.FLOAT)) if dialect in _SINGLE else Column(name)
    if tree.this is exp.DType.DECIMAL:  # each dialect has another size where none is written
        return Column(name, (column_type(tree) if "(" in text else None) or ANY)
    hint = PADDED_HINT if tree.this in _PADDED else OTHER_HINT
    return Column(name, unmodelled=Unmodelled(text.lower(), hint))


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
