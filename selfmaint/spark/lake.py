"""Tables of a lake as DataFrames, without a jar: Parquet files, and files that say which of their rows are deleted."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from selfmaint.duckdb.lake import LakeTable
from selfmaint.spark.formats import spark_path


def lake_rows(spark: SparkSession, table: LakeTable) -> DataFrame:
    """The rows of a table of a lake, read when they are used.

    At an older snapshot, of which compaction may have put the rows into one file with later ones, they are read from
    a copy that DuckDB makes; and so is a table that has no files.
    """
    pairs = table.lake.data_files(table)
    columns = table.lake.columns(table)
    if not pairs or table.version != table.lake.newest():
        folder = tempfile.mkdtemp(prefix="selfmaint-lake-")
        weakref.finalize(table.lake, shutil.rmtree, folder, ignore_errors=True)
        pairs = [(table.lake.copied(table, Path(folder)), None)]
    rows = spark.read.parquet(*(spark_path(file) for file, _ in pairs))
    wanted = [_column(name) for name in columns]
    deleted = {Path(gone).name: Path(file).name for file, gone in pairs if gone is not None}
    if not deleted:
        return rows.select(*wanted)
    file_of = sf.create_map(*(sf.lit(name) for pair in deleted.items() for name in pair))
    places = [spark_path(gone) for _, gone in pairs if gone is not None]
    gone = spark.read.parquet(*places).select(
        file_of[sf.col("_metadata.file_name")].alias("file"), sf.col("pos").alias("row")
    )
    at = (sf.col("_metadata.file_name").alias("_file"), sf.col("_metadata.row_index").alias("_row"))
    numbered = rows.select(*wanted, *at)
    there = numbered.join(
        sf.broadcast(gone),
        (numbered["_file"] == gone["file"]) & (numbered["_row"] == gone["row"]),
        "left_anti",
    )
    return there.select(*wanted)


def _column(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
