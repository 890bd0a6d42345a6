"""What Spark reads and writes: files, tables of its catalog, DataFrames."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from datalog.copies import replace
from datalog.model import ANY, ColumnType
from selfmaint.api.columns import Columns
from selfmaint.api.file.places import Location
from selfmaint.api.file.warehouse_file import RelationEntry, SourceEntry
from selfmaint.api.platforms.platform import expected_columns, not_a_frame
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.parquet_files import parquet
from selfmaint.duckdb.relation import Relation
from selfmaint.duckdb.store import Store
from selfmaint.sources.protocol import Source
from selfmaint.spark import DataFrame, SparkEngine
from selfmaint.spark.bags import counted
from selfmaint.spark.column_types import column_type, spark_type
from selfmaint.spark.exchange import SparkExchange
from selfmaint.spark.formats import writing
from selfmaint.spark.frames import digest_of, from_arrow, positional
from selfmaint.spark.local_files import frame_of_files
from selfmaint.spark.near import NearFrame
from selfmaint.spark.parquet_source import SparkSource, StoredRelation
from selfmaint.spark.query import answered
from selfmaint.spark.table_changes import TableWrites, table_writes
from selfmaint.spark.tables import (
    conform,
    conform_undeclared,
    read_as_stored,
    read_contents,
    read_undeclared,
    stored_rows,
)
from selfmaint.store.formats import Format, data_files, format_of
from selfmaint.store.frames import ArrowStream, arrow_frame
from selfmaint.store.stored_tables import TableChange, TableFiles
from selfmaint.store.write import Write

if TYPE_CHECKING:
    import pyarrow as pa


class SparkPlatform(Struct, frozen=True):
    """A `Platform` over one Spark session."""

    engine: SparkEngine

    def read_rows(self, location: Location, columns: Columns) -> DataFrame:
        spark, format_ = self.engine.spark, Format.TABLE if location.is_table else None
        if columns.open:
            return read_as_stored(spark, location.text, columns.name, format_)
        read = read_contents if columns.declared else read_undeclared
        types = columns.types_in(format_ or format_of(location.text))
        expected = replace(expected_columns(columns), types=types)
        return read(spark, location.text, expected, format_)

    @property
    def store_database(self) -> Database:
        return Database()

    def read_stored(self, table: TableFiles, columns: Columns) -> DataFrame:
        spark, expected = self.engine.spark, expected_columns(columns)
        if columns.open:
            return stored_rows(spark, table)
        whole = [Path(file.path) for file in table.files if not (file.is_newer or file.deleted)]
        found = frame_of_files(spark, whole, expected) if len(whole) == len(table.files) else None
        return conform(stored_rows(spark, table), expected) if found is None else found

    def in_store(self, store: Store, rows: DataFrame, folder: Path) -> Relation:
        if isinstance(rows, NearFrame) and rows.columns:
            here = rows.relation
            return Relation(store.database.given(rows.owner.rows(here), here.types), here.columns)
        writing(rows)(folder, Format.PARQUET, None)
        return parquet(store.database, data_files(folder), "the rows")

    def answered(
        self, query: str, views: Mapping[str, TableFiles | DataFrame], bases: Collection[str]
    ) -> AbstractContextManager[pa.RecordBatchReader]:
        return answered(self.engine.spark, query, views, bases)

    def fit_rows(self, rows: DataFrame | ArrowStream, columns: Columns) -> DataFrame:
        if not isinstance(rows, DataFrame):
            if not isinstance(rows, ArrowStream):  # callers may not be type-checked
                raise not_a_frame(rows, columns)
            table, spark = arrow_frame(rows, columns.name, columns.unread), self.engine.spark
            rows = from_arrow(spark, table) if table.num_columns else spark.range(table.num_rows).select()
        if columns.open:
            return rows
        return (conform if columns.declared else conform_undeclared)(rows, expected_columns(columns))

    def digest(self, rows: DataFrame) -> tuple[int, str]:
        return digest_of(rows)

    def types(self, rows: DataFrame) -> tuple[ColumnType, ...]:
        return tuple(column_type(stored.dataType) or ANY for stored in rows.schema.fields)

    def retyped(self, rows: DataFrame, types: Sequence[ColumnType]) -> DataFrame:
        plain = positional(rows)
        typed = (plain[f"c{i}"].cast(spark_type(its)) for i, its in enumerate(types))
        return plain.select(*typed).toDF(*rows.columns)

    def counted(self, rows: DataFrame, names: Sequence[str]) -> DataFrame:
        return counted(rows, names)

    def source(
        self, entry: SourceEntry, relations: Mapping[str, RelationEntry], columns: Mapping[str, Columns]
    ) -> Source[DataFrame]:
        stored = {
            name: StoredRelation(
                location=relation.location.text,
                expected=expected_columns(columns[name]),
                format=Format.TABLE if relation.location.is_table else None,
                declared=columns[name].declared,
            )
            for name, relation in relations.items()
        }
        return SparkSource(entry.name, self.engine.spark, stored)

    @property
    def exchange(self) -> SparkExchange:
        return SparkExchange(self.engine)

    def writing(self, rows: DataFrame) -> Write:
        return writing(rows)

    def table_writes(self, changes: Sequence[TableChange[DataFrame]]) -> AbstractContextManager[TableWrites]:
        return table_writes(self.engine.spark, changes)
