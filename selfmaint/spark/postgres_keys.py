"""Keys for a PostgreSQL table: typed in Spark, streamed to this process, and asked for in SQL.

`IS NOT DISTINCT FROM` uses no index. So keys are grouped by which of their columns are null: those are asked
for with `IS NULL`, the others with `=` against arrays, one array a column.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from psycopg import sql
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as st

from selfmaint.spark.column_types import column_type, spark_type
from selfmaint.spark.frames import positional
from selfmaint.spark.postgres_types import PostgresColumn, PostgresTable, identifier

KEYS_PER_STATEMENT = 20_000
"""How many keys go to the server at a time; bounds what this process holds."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class KeyQuery:
    """A statement for some keys that have their nulls in the same columns, and its parameters."""

    statement: sql.Composed
    parameters: tuple[list[object], ...]


def typed_keys(keys: DataFrame, columns: Sequence[PostgresColumn]) -> DataFrame:
    """The distinct keys, in the types of the table's columns; keys that no such column can hold are left out.

    Args:
        keys: one column for each of `columns`, in their order.
        columns: the table's columns that are looked up.
    """
    plain = positional(keys).distinct()
    pairs = list(zip(plain.schema.fields, columns, strict=True))
    held = plain.where(_all(_is_held(plain[field.name], field.dataType, column) for field, column in pairs))
    return held.select(*(_sent(held[field.name], column).alias(field.name) for field, column in pairs))


def _is_held(key: Column, kind: st.DataType, column: PostgresColumn) -> Column:
    """Whether the table's column can hold the key; null always."""
    known = column_type(kind)
    if known is None or known.family not in (column.stored.family, "any"):
        return key.isNull()
    if known.family == "number":
        return key.try_cast(spark_type(column.stored)).eqNullSafe(key)
    if known.family == "string":
        return key.isNull() | ~key.contains("\0")
    return f.lit(True)


def _sent(key: Column, column: PostgresColumn) -> Column:
    """The key as it travels: an instant as microseconds."""
    if column.is_instant:
        return f.unix_micros(key.cast(st.TimestampType()))
    return key.try_cast(spark_type(column.stored))


def _all(conditions: Iterable[Column]) -> Column:
    together = f.lit(True)
    for condition in conditions:
        together = together & condition
    return together


def key_batches(keys: DataFrame, columns: Sequence[PostgresColumn]) -> Iterator[list[Key]]:
    """The keys of `typed_keys` in this process, a bounded number at a time."""
    arriving = (
        tuple(
            _EPOCH + dt.timedelta(microseconds=value) if column.is_instant and value is not None else value
            for value, column in zip(row, columns, strict=True)
        )
        for row in keys.toLocalIterator()
    )
    while batch := list(islice(arriving, KEYS_PER_STATEMENT)):
        yield batch


def key_queries(
    table: PostgresTable,
    columns: Sequence[PostgresColumn],
    key_columns: Sequence[PostgresColumn],
    keys: Iterable[Key],
) -> Iterator[KeyQuery]:
    """The statements that read a table's rows for some distinct keys; no row comes twice.

    Example:
        Keys (1, 'a') and (2, NULL) for columns `k` and `s` make two statements:
        `SELECT ... FROM t JOIN unnest(ARRAY[1], ARRAY['a']) AS k (k0, k1) ON t.k = k.k0 AND t.s = k.k1` and
        `SELECT ... FROM t JOIN unnest(ARRAY[2]) AS k (k0) ON t.k = k.k0 WHERE t.s IS NULL`.
    """
    by_nulls: dict[tuple[bool, ...], list[Key]] = {}
    for key in keys:
        by_nulls.setdefault(tuple(value is None for value in key), []).append(key)
    for nulls, alike in by_nulls.items():
        given = [position for position, is_null in enumerate(nulls) if not is_null]
        absent = [column for column, is_null in zip(key_columns, nulls, strict=True) if is_null]
        statement = whole_table(table, columns)
        if given:
            statement += _join_keys([key_columns[position] for position in given])
        if absent:
            tests = (sql.SQL("{} IS NULL").format(_of_table(column)) for column in absent)
            statement += sql.SQL(" WHERE ") + sql.SQL(" AND ").join(tests)
        yield KeyQuery(statement, tuple([key[position] for key in alike] for position in given))


def whole_table(table: PostgresTable, columns: Sequence[PostgresColumn]) -> sql.Composed:
    """The statement that reads all rows."""
    return sql.SQL("SELECT {} FROM {} AS t").format(
        sql.SQL(", ").join(map(_of_table, columns)), table.identifier
    )


def _join_keys(columns: Sequence[PostgresColumn]) -> sql.Composed:
    names = [sql.Identifier(f"k{position}") for position in range(len(columns))]
    arrays = (sql.SQL("%s::{}[]").format(column.sql_type) for column in columns)
    conditions = (
        sql.SQL("{} = k.{}").format(_of_table(column), name)
        for column, name in zip(columns, names, strict=True)
    )
    return sql.SQL(" JOIN unnest({}) AS k ({}) ON {}").format(
        sql.SQL(", ").join(arrays), sql.SQL(", ").join(names), sql.SQL(" AND ").join(conditions)
    )


def _of_table(column: PostgresColumn) -> sql.Composed:
    return sql.SQL("t.{}").format(identifier(column.name))
