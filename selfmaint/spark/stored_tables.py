"""Tables of a store as DataFrames, without a jar: Parquet files, and files that say which of their rows are deleted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from selfmaint.spark.formats import spark_path
from selfmaint.store.stored_tables import SNAPSHOT_COLUMN, DataFile, TableFiles

_TYPES = {
    "VARCHAR": "string",
    "BLOB": "binary",
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP WITH TIME ZONE": "timestamp",
}
"""Types that Spark names otherwise than DuckDB."""


def stored_rows(spark: SparkSession, table: TableFiles) -> DataFrame:
    """The rows of a table of a store, read when they are used."""
    wanted = [_quoted(name) for name in table.columns]
    older = [file for file in table.files if not file.is_newer and not file.is_deleted_newer]
    # Files of rows of several snapshots have one more column.
    alike = [older, *([file] for file in table.files if file not in older)]
    parts = [_rows(spark, table.version, files, wanted) for files in alike if files]
    if not parts:
        typed = zip(table.types, wanted, strict=True)
        return spark.range(0).selectExpr(
            *(f"cast(null as {_TYPES.get(t, t)}) as {name}" for t, name in typed)
        )
    return reduce(DataFrame.unionAll, parts)


def _rows(spark: SparkSession, version: int, files: Sequence[DataFile], wanted: Sequence[str]) -> DataFrame:
    """The rows of some files that are not deleted; of a single one that may hold newer ones, those that are not."""
    rows = spark.read.parquet(*(spark_path(file.path) for file in files))
    if files[0].is_newer:
        rows = rows.where(sf.col(SNAPSHOT_COLUMN) <= version)
    deleted = {Path(file.deleted).name: file for file in files if file.deleted is not None}
    if not deleted:
        return rows.select(*wanted)
    file_of = sf.create_map(
        *(sf.lit(text) for name, file in deleted.items() for text in (name, Path(file.path).name))
    )
    gone = spark.read.parquet(*(spark_path(file.deleted) for file in files if file.deleted is not None))
    if files[0].is_deleted_newer:
        gone = gone.where(sf.col(SNAPSHOT_COLUMN) <= version)
    gone = gone.select(file_of[sf.col("_metadata.file_name")].alias("file"), sf.col("pos").alias("row"))
    at = (sf.col("_metadata.file_name").alias("_file"), sf.col("_metadata.row_index").alias("_row"))
    numbered = rows.select(*wanted, *at)
    same = (numbered["_file"] == gone["file"]) & (numbered["_row"] == gone["row"])
    return numbered.join(sf.broadcast(gone), same, "left_anti").select(*wanted)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
