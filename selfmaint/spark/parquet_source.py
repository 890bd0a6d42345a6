"""Base relations in files or in tables of Spark's catalog."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq
from msgspec import Struct
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as st

from datalog.model import TypeName
from selfmaint.sources.between import Between
from selfmaint.sources.protocol import Read, Stored
from selfmaint.spark.failures import SPARK_ERRORS, first_line, translated
from selfmaint.spark.frames import positional
from selfmaint.spark.tables import read_contents, read_undeclared
from selfmaint.store.expected import Expected
from selfmaint.store.formats import Format, data_files, format_of

_FOOTERS_READ = 100
"""Of how many files the footers are read for an estimate; the rest count by their size."""
_BITS: dict[type[st.DataType], int] = {
    st.BooleanType: 1,
    st.ByteType: 8,
    st.ShortType: 16,
    st.DecimalType: 128,
}
_OFFSET_BITS = 32


class StoredRelation(Struct, frozen=True):
    """Where a base relation is stored, and what it holds.

    Attributes:
        location: a file, a directory of files, a URI, or the name of a table of Spark's catalog.
        expected: names and types of its columns.
        format: how it is stored; by default told from the names of the files.
        declared: whether the names of the columns are declared; if not, columns may match by position.
    """

    location: str
    expected: Expected
    format: Format | None = None
    declared: bool = True


class SparkSource(Stored[StoredRelation]):
    """Base relations that Spark reads: Parquet, CSV and JSON lines, and tables of its catalog."""

    def __init__(self, name: str, spark: SparkSession, relations: Mapping[str, StoredRelation]) -> None:
        super().__init__(name, relations)
        self._spark = spark
        self._held: list[DataFrame] = []

    def row_count(self, relation: str) -> int:
        """An estimate of the relation's size, from footers of files or Spark's statistics, without a scan.

        Raises:
            SourceError: SM102 unknown, SM103 not there, SM104 other columns.
        """
        stored = self._stored(relation)
        with self._as_source_error(relation, SPARK_ERRORS, first_line):
            rows = _footer_rows(stored)
            return _estimated_rows(self._frame(stored)) if rows is None else rows

    def read(
        self, relation: str, key_columns: Sequence[str], keys: DataFrame | None
    ) -> tuple[DataFrame, Read]:
        """The rows whose `key_columns` equal one of `keys`, nulls equal, or all of them.

        Rows that were looked up are computed once and held until `close`; a whole relation stays where it is.

        Raises:
            SourceError: SM102 unknown, SM103 not there, SM104 other columns or types, SM401 not reachable.
        """
        stored = self._stored(relation)
        with self._as_source_error(relation, SPARK_ERRORS, first_line), translated():
            frame = self._frame(stored)
            asked = 0
            if keys is not None:
                wanted = positional(keys).distinct()
                asked = wanted.count()
                frame = _semi_join(frame, key_columns, wanted).persist(StorageLevel.MEMORY_AND_DISK)
                self._held.append(frame)
            rows, size = _measured(frame)
        columns = () if keys is None else tuple(key_columns)
        return frame, Read(relation, columns, asked, rows, size, self._name)

    def read_between(self, relation: str, asked: Between) -> tuple[DataFrame, Read]:
        """The rows with a value in some spans, held until `close`: what files and partitions tell is asked first.

        Raises:
            SourceError: SM102 unknown, SM103 not there, SM104 other columns or types, SM401 not reachable.
        """
        stored = self._stored(relation)
        with self._as_source_error(relation, SPARK_ERRORS, first_line), translated():
            frame = self._frame(stored)
            plain = positional(frame)
            kept = plain.filter(_within(plain[f"c{frame.columns.index(asked.column)}"], asked))
            frame = kept.toDF(*frame.columns).persist(StorageLevel.MEMORY_AND_DISK)
            self._held.append(frame)
            rows, size = _measured(frame)
        return frame, Read(relation, (asked.column,), asked.number, rows, size, self._name, is_of_spans=True)

    def version(self) -> str | None:
        """A digest of all files' names, sizes and times; None if some relation is not in local files."""
        digest = hashlib.sha256()
        for relation in sorted(self._relations):
            path = Path(self._relations[relation].location)
            if not path.exists():
                return None
            for file in data_files(path):
                stat = file.stat()
                digest.update(f"{file}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
        return digest.hexdigest()

    def close(self) -> None:
        """Lets go of the rows that were read."""
        while self._held:
            self._held.pop().unpersist()

    def _frame(self, stored: StoredRelation) -> DataFrame:
        read = read_contents if stored.declared else read_undeclared
        return read(self._spark, stored.location, stored.expected, stored.format)


def _within(column: Column, asked: Between) -> Column:
    """Whether a row is asked for."""
    kind = {TypeName.DATE: "date", TypeName.TIMESTAMP_NTZ: "timestamp_ntz"}.get(asked.type.name, "timestamp")
    test = column.isNull() if asked.with_null else f.lit(False)
    for start, end in asked.texts:
        inside = column.isNotNull()
        if start is not None:
            inside &= column >= f.lit(start).cast(kind)
        if end is not None:
            inside &= column < f.lit(end).cast(kind)
        test |= inside
    return test


def _semi_join(frame: DataFrame, key_columns: Sequence[str], keys: DataFrame) -> DataFrame:
    """The rows of `frame` whose key is among `keys`, nulls equal; the keys go to where the rows are."""
    plain = positional(frame)
    renamed = keys.toDF(*(f"k{i}" for i in range(len(key_columns))))
    conditions = [
        plain[f"c{frame.columns.index(column)}"].eqNullSafe(renamed[f"k{i}"])
        for i, column in enumerate(key_columns)
    ]
    return plain.join(f.broadcast(renamed), conditions, "left_semi").toDF(*frame.columns)


def _measured(frame: DataFrame) -> tuple[int, int]:
    """Rows and the bytes that they take in Arrow's layout, validity bitmaps left out; one job."""
    plain = positional(frame)
    fields = plain.schema.fields
    lengths: list[Column] = [
        f.octet_length(plain[field.name]) for field in fields if isinstance(field.dataType, st.StringType)
    ]
    text = f.sum(sum((f.coalesce(length, f.lit(0)) for length in lengths), f.lit(0)))
    counted = plain.agg(f.count(f.lit(1)).alias("rows"), text.alias("text")).first()
    rows, characters = (counted["rows"], counted["text"]) if counted else (0, 0)
    bits = sum(_width_bits(field.dataType) for field in fields)
    return rows, (characters or 0) + rows * bits // 8


def _width_bits(stored: st.DataType) -> int:
    if isinstance(stored, st.StringType):
        return _OFFSET_BITS
    if isinstance(stored, st.IntegerType | st.FloatType | st.DateType):
        return 32
    return _BITS.get(type(stored), 64)


def _footer_rows(stored: StoredRelation) -> int | None:
    """The number of rows that the footers of local Parquet files tell; None where there are none."""
    path = Path(stored.location)
    if not path.exists() or (stored.format or format_of(stored.location)) is not Format.PARQUET:
        return None
    sizes = {file: file.stat().st_size for file in data_files(path)}
    read = list(sizes)[:: -(-len(sizes) // _FOOTERS_READ) or 1]
    rows: int = sum(pq.read_metadata(file).num_rows for file in read)
    seen = sum(sizes[file] for file in read)
    return rows if len(read) == len(sizes) else round(rows * sum(sizes.values()) / max(seen, 1))


def _estimated_rows(frame: DataFrame) -> int:
    """The number of rows by Spark's statistics: a count where it has one, else from the size in bytes."""
    statistics = frame._jdf.queryExecution().optimizedPlan().stats()
    if statistics.rowCount().isDefined():
        return int(str(statistics.rowCount().get()))
    width = max(1, sum(_width_bits(field.dataType) for field in frame.schema.fields) // 8)
    return int(str(statistics.sizeInBytes())) // width
