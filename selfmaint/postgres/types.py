"""The columns of a PostgreSQL table, their types, and which of them the language has."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from msgspec import Struct
from psycopg import Connection, sql

from datalog.diagnostics import Diagnostic
from datalog.model import MAX_PRECISION, ColumnType, TypeName
from selfmaint.engine.arrow_types import ArrowType, arrow_type
from selfmaint.engine.column_types import fits, settled
from selfmaint.errors import Code, InputError, first_line, input_error
from selfmaint.store.expected import Expected, require_names

_COLUMNS = sql.SQL("""
    SELECT
        a.attname,
        CASE WHEN COALESCE(b.typtype, t.typtype) = 'e' THEN 'enum' ELSE COALESCE(b.typname, t.typname) END,
        CASE WHEN b.oid IS NULL THEN a.atttypmod ELSE t.typtypmod END,
        CASE WHEN to_jsonb(c) ->> 'collisdeterministic' = 'false' THEN c.collname END
    FROM pg_catalog.pg_attribute AS a
    JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
    LEFT JOIN pg_catalog.pg_type AS b ON b.oid = t.typbasetype AND t.typtype = 'd'
    LEFT JOIN pg_catalog.pg_collation AS c ON c.oid = a.attcollation
    WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum
""")
_TYPES = {
    "bool": (TypeName.BOOLEAN, sql.SQL("boolean")),
    "int2": (TypeName.SMALLINT, sql.SQL("smallint")),
    "int4": (TypeName.INT, sql.SQL("integer")),
    "int8": (TypeName.BIGINT, sql.SQL("bigint")),
    "float4": (TypeName.FLOAT, sql.SQL("real")),
    "float8": (TypeName.DOUBLE, sql.SQL("double precision")),
    "numeric": (TypeName.DECIMAL, sql.SQL("numeric")),
    "text": (TypeName.STRING, sql.SQL("text")),
    "varchar": (TypeName.STRING, sql.SQL("varchar")),
    "date": (TypeName.DATE, sql.SQL("date")),
    "timestamp": (TypeName.TIMESTAMP_NTZ, sql.SQL("timestamp")),
    "timestamptz": (TypeName.TIMESTAMP, sql.SQL("timestamptz")),
    "uuid": (TypeName.STRING, sql.SQL("uuid")),
    "enum": (TypeName.STRING, sql.SQL("text")),
    "bpchar": (TypeName.STRING, sql.SQL("bpchar")),
}
_AS_TEXT = ("uuid", "enum")
"""Types of which the text is read that the server has for each value."""
_ANY_DECIMAL = ColumnType(TypeName.DECIMAL, MAX_PRECISION, 18)
"""What a `numeric` without precision is read as where none is declared."""


def identifier(*parts: str) -> sql.Identifier:
    """A name in a statement that is executed with parameters, where a percent sign is doubled."""
    return sql.Identifier(*(part.replace("%", "%%") for part in parts))


class PostgresTable(Struct, frozen=True):
    """A table's name: itself, or after its schema."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> PostgresTable:
        """The table of `schema.table` or `table`; what follows the first full stop is the table's name."""
        return cls(tuple(text.split(".", 1)))

    @property
    def identifier(self) -> sql.Identifier:
        """The name in a statement with parameters."""
        return identifier(*self.parts)


class PostgresColumn(Struct, frozen=True):
    """A column that is read.

    Attributes:
        type: the type that it is read as.
        stored: the type that it has, no wider than `type`: what a key must be to be found.
        sql_type: the server's own name of that type, or of the one in which it is compared.
        kind: what the server calls the type, `enum` for any enumeration.
        relation: whose column it is, for messages.
    """

    name: str
    type: ColumnType
    stored: ColumnType
    sql_type: sql.SQL
    kind: str = ""
    relation: str = ""

    @property
    def read(self) -> sql.Composed:
        """Its value in a statement, as it is read."""
        column = sql.SQL("t.{}").format(identifier(self.name))
        return column + sql.SQL("::text") if self.kind in _AS_TEXT else column

    @property
    def compared(self) -> sql.Composed:
        """Its value in a statement, as it is compared with a key: an index is used where there is one."""
        return self.read if self.kind == "enum" else sql.SQL("t.{}").format(identifier(self.name))

    @property
    def is_instant(self) -> bool:
        """Whether it is a `timestamp with time zone`."""
        return self.type.name is TypeName.TIMESTAMP

    @property
    def arrow(self) -> ArrowType:
        """Arrow's type for its values."""
        return arrow_type(self.type)


def columns_of(
    connection: Connection[tuple[object, ...]], table: PostgresTable, expected: Expected, source: str = ""
) -> list[PostgresColumn]:
    """The expected columns of a table or view, in the order expected; `source` is what messages call the database.

    Raises:
        InputError: SM103 no such table; SM104 columns that are missing or of other types. A table may have
            more columns than are expected: they are not read.
    """
    shown = sql.Identifier(*table.parts).as_string(connection)
    found: dict[str, tuple[str, int, object]] = {
        str(name): (str(kind), int(str(size)), collation)
        for name, kind, size, collation in connection.execute(_COLUMNS, [shown])
    }
    if not found:
        where = f" in the source `{source}`" if source else ""
        raise input_error(Code.MISSING_CONTENTS, f"there is no table `{shown}`{where}")
    require_names(list(found), expected, extra_allowed=True)
    columns = [
        _column(expected.name, name, *found[name], declared)
        for name, declared in zip(expected.columns, expected.types, strict=True)
    ]
    wrong = [column for column in columns if isinstance(column, Diagnostic)]
    if wrong:
        raise InputError(wrong)
    return [column for column in columns if isinstance(column, PostgresColumn)]


def _column(
    relation: str, name: str, kind: str, size: int, collation: object, declared: ColumnType
) -> PostgresColumn | Diagnostic:
    if kind not in _TYPES:
        return Diagnostic(
            code=Code.COLUMNS_DIFFER,
            message=f"column `{name}` of `{relation}` has the type `{kind}`, which cannot be read",
            hint="read a view of the table that casts it, for example to `text`",
        )
    if collation is not None:
        return Diagnostic(
            code=Code.COLUMNS_DIFFER,
            message=f"column `{name}` of `{relation}` has the collation `{collation}`: different texts are equal",
            hint=f'read a view of the table that has `{name} COLLATE "C"` for it',
        )
    type_name, sql_type = _TYPES[kind]
    stored = ColumnType(type_name)
    if type_name is TypeName.DECIMAL:
        stored = _decimal(size, declared)
    if not fits(stored, declared):
        return Diagnostic(
            code=Code.COLUMNS_DIFFER,
            message=f"column `{name}` of `{relation}` is `{stored}`, not `{declared}`",
            hint=f"declare `{name}` as `{stored}`",
        )
    return PostgresColumn(name, settled(stored, declared), stored, sql_type, kind, relation)


def _decimal(size: int, declared: ColumnType) -> ColumnType:
    """A numeric's type; one without a precision of its own is what is declared, and checked as it is read."""
    precision, scale = ((size - 4) >> 16) & 0xFFFF, (size - 4) & 0x7FF
    if size >= 0 and precision <= MAX_PRECISION and scale <= precision:
        return ColumnType(TypeName.DECIMAL, precision, scale)
    is_sized = declared.name is TypeName.DECIMAL and declared.precision is not None
    return declared if is_sized else _ANY_DECIMAL


def arrow_batch(rows: Sequence[Sequence[object]], columns: Sequence[PostgresColumn]) -> pa.RecordBatch:
    """Rows as the server's driver gives them, as an Arrow batch.

    Raises:
        InputError: SM104 a value that the column's type cannot hold.
    """
    arrays = []
    for position, column in enumerate(columns):
        values = [row[position] for row in rows]
        if column.kind == "bpchar" and any(str(value).endswith(" ") for value in values):
            message = (
                f"column `{column.name}` has the type `char(n)`, and values that are filled up with blanks"
            )
            hint = f"read a view of the table that has `{column.name}::text`, without the blanks"
            raise input_error(Code.COLUMNS_DIFFER, message, hint)
        try:
            if (
                column.stored.name is TypeName.FLOAT
            ):  # its text is the shortest one, not that of the double it is
                arrays.append(pa.array(values, type=arrow_type(column.stored)).cast(column.arrow))
            else:
                arrays.append(pa.array(values, type=column.arrow))
        except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as failure:
            message = (
                f"column `{column.name}` of `{column.relation}` has a value that `{column.type}` cannot hold"
            )
            hint = f"declare `{column.name}` with more digits"
            raise input_error(Code.COLUMNS_DIFFER, message, hint, first_line(failure)) from failure
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(columns))


def arrow_schema(columns: Sequence[PostgresColumn]) -> pa.Schema:
    """The schema of `arrow_batch`."""
    return pa.schema([(column.name, column.arrow) for column in columns])
