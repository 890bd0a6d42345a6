"""Keys for a PostgreSQL table: those that it can hold, in the types of its columns, and the SQL that asks for them.

`IS NOT DISTINCT FROM` uses no index. So keys are grouped by which of their columns are null: those are asked
for with `IS NULL`, the others with `=` against arrays, one array a column.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Context, Decimal
from itertools import islice
from typing import Any, TypeAlias

from msgspec import Struct
from psycopg import sql

from datalog.copies import replace
from datalog.model import ColumnType, Row, TypeName, Value
from selfmaint.postgres.types import PostgresColumn, PostgresTable
from selfmaint.sources.between import Between
from selfmaint.store.exchange import Rows

KEYS_PER_STATEMENT = 20_000
"""How many keys go to the server at a time; bounds what this process holds."""

_SQL_TYPES = {TypeName.DATE: "date", TypeName.TIMESTAMP_NTZ: "timestamp", TypeName.TIMESTAMP: "timestamptz"}
_Key: TypeAlias = tuple[object, ...]
_WIDE = Context(prec=200)
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class KeyQuery(Struct, frozen=True):
    """A statement for some keys that have their nulls in the same columns, and its parameters."""

    statement: sql.Composed
    parameters: tuple[object, ...]


def compared(columns: Sequence[PostgresColumn], keys: Rows) -> list[PostgresColumn]:
    """The columns of a table, each in the type in which it is compared with the keys.

    A number that is not exact is compared with any other as a double, as the engines do it.
    """
    return [
        replace(column, stored=ColumnType(TypeName.DOUBLE), sql_type=sql.SQL("double precision"))
        if column.stored.name.is_floating or (column.stored.family == "number" and _is_float(kind))
        else column
        for column, kind in zip(columns, keys.types, strict=True)
    ]


def _is_float(kind: ColumnType | None) -> bool:
    return kind is not None and kind.name.is_floating


def key_batches(keys: Rows, columns: Sequence[PostgresColumn]) -> Iterator[list[_Key]]:
    """The keys that a table can hold, in the types of its columns, a bounded number at a time."""
    is_known = [
        kind is not None and kind.family in (column.stored.family, "any")
        for kind, column in zip(keys.types, columns, strict=True)
    ]
    arriving = iter(keys.rows)
    while batch := list(islice(arriving, KEYS_PER_STATEMENT)):
        held = [key for key in batch if all(map(_is_held, key, is_known, columns))]
        sent = _fitting(held, [column.stored for column in columns])
        yield [tuple(map(_sent, key, columns)) for key in sent]


def _is_held(value: object, is_known: bool, column: PostgresColumn) -> bool:
    """Whether a column may hold a value: of its family, and as a text one that the server has."""
    if not isinstance(value, str) or column.stored.family != "string":
        return value is None or is_known
    if column.kind == "uuid":  # it takes other forms, too, and writes this one
        return is_known and _UUID.fullmatch(value) is not None
    return is_known and "\0" not in value and not (column.kind == "bpchar" and value.endswith(" "))


def _sent(value: object, column: PostgresColumn) -> object:
    """A value as the driver takes it for a column's type."""
    if value is None:
        return None
    if column.stored.name is TypeName.DOUBLE:
        return float(value)  # type: ignore[arg-type]
    return value.replace(tzinfo=dt.UTC) if column.is_instant and isinstance(value, dt.datetime) else value


def key_queries(
    table: PostgresTable,
    columns: Sequence[PostgresColumn],
    key_columns: Sequence[PostgresColumn],
    keys: Iterable[_Key],
) -> Iterator[KeyQuery]:
    """The statements that read a table's rows for some distinct keys; no row comes twice.

    Example:
        Keys (1, 'a') and (2, NULL) for columns `k` and `s` make two statements:
        `SELECT ... FROM t JOIN unnest(ARRAY[1], ARRAY['a']) AS k (k0, k1) ON t.k = k.k0 AND t.s = k.k1` and
        `SELECT ... FROM t JOIN unnest(ARRAY[2]) AS k (k0) ON t.k = k.k0 WHERE t.s IS NULL`.
    """
    by_nulls: dict[tuple[bool, ...], list[_Key]] = {}
    for key in keys:
        by_nulls.setdefault(tuple(value is None for value in key), []).append(key)
    for nulls, alike in by_nulls.items():
        given = [position for position, is_null in enumerate(nulls) if not is_null]
        absent = [column for column, is_null in zip(key_columns, nulls, strict=True) if is_null]
        statement = whole_table(table, columns)
        if given:
            statement += _join_keys([key_columns[position] for position in given])
        if absent:
            tests = (sql.SQL("{} IS NULL").format(column.compared) for column in absent)
            statement += sql.SQL(" WHERE ") + sql.SQL(" AND ").join(tests)
        yield KeyQuery(statement, tuple([key[position] for key in alike] for position in given))


def span_query(table: PostgresTable, columns: Sequence[PostgresColumn], asked: Between) -> KeyQuery:
    """The statement that reads a table's rows with a value in some spans, so that an index of the column is used."""
    column = next(one for one in columns if one.name == asked.column)
    kind, is_instant = _SQL_TYPES[asked.type.name], asked.type.name is TypeName.TIMESTAMP
    tests: list[sql.Composable] = [sql.SQL("{} IS NULL").format(column.compared)] if asked.with_null else []
    parameters: list[object] = []
    for ends in asked.spans:
        bounds = [(sign, at) for sign, at in zip((">=", "<"), ends, strict=True) if at is not None]
        both = [sql.SQL(f"{{}} {sign} %s::{kind}").format(column.compared) for sign, _ in bounds]
        tests.append(sql.SQL("({})").format(sql.SQL(" AND ").join(both)) if both else sql.SQL("TRUE"))
        parameters += [
            at.replace(tzinfo=dt.UTC) if is_instant and isinstance(at, dt.datetime) else at
            for _, at in bounds
        ]
    where = sql.SQL(" OR ").join(tests) if tests else sql.SQL("FALSE")
    return KeyQuery(whole_table(table, columns) + sql.SQL(" WHERE ") + where, tuple(parameters))


def whole_table(table: PostgresTable, columns: Sequence[PostgresColumn]) -> sql.Composed:
    """The statement that reads all rows."""
    return sql.SQL("SELECT {} FROM {} AS t").format(
        sql.SQL(", ").join(column.read for column in columns), table.identifier
    )


def _join_keys(columns: Sequence[PostgresColumn]) -> sql.Composed:
    names = [sql.Identifier(f"k{position}") for position in range(len(columns))]
    arrays = (sql.SQL("%s::{}[]").format(column.sql_type) for column in columns)
    conditions = (
        sql.SQL("{} = k.{}").format(column.compared, name)
        for column, name in zip(columns, names, strict=True)
    )
    return sql.SQL(" JOIN unnest({}) AS k ({}) ON {}").format(
        sql.SQL(", ").join(arrays), sql.SQL(", ").join(names), sql.SQL(" AND ").join(conditions)
    )


def _fitting(rows: Collection[Row], types: Sequence[ColumnType | None]) -> list[Row]:
    """Those rows whose values the types can hold, as equal values of these types: a 5.00 is a 5 among integers.

    Args:
        rows: rows of exact values.
        types: a type a column; None for one that the language does not have, which takes values as they are.
    """
    if all(map(_are_of, zip(*rows, strict=True), types)):
        return list(rows)
    found = []
    for row in rows:
        try:
            found.append(tuple([_as(value, kind) for value, kind in zip(row, types, strict=True)]))
        except ValueError:
            continue
    return found


def _are_of(column: Collection[Value], kind: ColumnType | None) -> bool:
    """Whether all values of a column are a type's as they are; looked at together, which is faster."""
    if kind is None or not _is_sized(kind):
        return True
    expected = Decimal if kind.name is TypeName.DECIMAL else int
    return set(map(type, column)) <= {expected, type(None)} and all(
        _holds(kind, value) for value in set(column) if value is not None
    )


def _is_sized(kind: ColumnType) -> bool:
    """Whether a type holds exact numbers, and not all of them."""
    return kind.name.is_integer or kind.name is TypeName.DECIMAL


def _as(value: Value, kind: ColumnType | None) -> Value:
    """An equal value of a type."""
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if not is_number or kind is None or not _is_sized(kind):
        return value
    if not _holds(kind, value):
        raise ValueError(value)
    assert isinstance(value, int | Decimal)
    return Decimal(value) if kind.name is TypeName.DECIMAL else int(value)


def _holds(kind: ColumnType, value: Any) -> bool:
    """Whether a type of whole numbers, or of decimals, holds a number."""
    if kind.name.bits is not None:
        half = 2 ** (kind.name.bits - 1)
        return bool(value == int(value) and -half <= value < half)
    precision, scale = kind.decimal_size
    scaled = Decimal(value).scaleb(scale, _WIDE)
    return scaled == scaled.to_integral_value() and abs(scaled) < 10**precision
