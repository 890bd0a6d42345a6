"""Contents in local Parquet files of a session that runs on this machine: read without a job.

Spark hears of such contents when it is to read them. Small ones are brought here, in large ones rows are looked up, and
what reads one of them streams it. Conditions of soundness; where one does not hold, Spark reads:

1. Spark runs in this machine's processes alone.
2. The DataFrame is nothing but columns of Parquet files that Spark would read as they are: no filter, no partition
   values, no other format on top of them.
3. All files have the same columns, of types that are the same in Spark and in DuckDB.
4. No day lies before the Gregorian calendar: such days may be written in another one. Instants may be, too.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from datalog.model import ColumnType, TypeName
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.failures import changed
from selfmaint.duckdb.file_marks import mark
from selfmaint.duckdb.parquet_files import FOOTERS_READ, parquet_columns
from selfmaint.duckdb.relation import Relation
from selfmaint.engine.arrow_types import arrow_type, column_type
from selfmaint.engine.column_types import settled
from selfmaint.errors import InputError
from selfmaint.spark.column_types import spark_type, stored_type, types_of
from selfmaint.spark.formats import spark_path
from selfmaint.spark.lazy_frames import LazyFrame
from selfmaint.spark.session import is_on_this_machine
from selfmaint.store.expected import Expected
from selfmaint.store.formats import data_files

_FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_GREGORIAN = dt.date(1582, 10, 15)
_OTHER_CALENDAR = (st.TimestampType, st.TimestampNTZType)
_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
"""Under this key Spark notes a schema in the files that it writes."""

_SUMMARIES = ("_metadata", "_common_metadata")
"""Files that Spark takes the schema from, before data files."""

_PLAIN = frozenset(
    arrow_type(ColumnType(name))
    for name in TypeName
    if name not in (TypeName.DECIMAL, TypeName.TIMESTAMP, TypeName.TIMESTAMP_NTZ, TypeName.ANY)
)
"""Types, beside decimals, that Spark infers as what they are, whatever its settings."""


class FileFrame(LazyFrame):
    """All columns of local Parquet files, of which conditions 1 and 2 hold; the files as they are when it is made."""

    def __init__(self, spark: SparkSession, files: Sequence[Path], schema: st.StructType) -> None:
        super().__init__(spark, schema)
        self.marks = {file: mark(str(file)) for file in files}

    @property
    def size(self) -> int:
        """The bytes of the files."""
        return sum(its[0] for its in self.marks.values() if its is not None)

    def files(self) -> list[Path]:
        """The files.

        Raises:
            InputError: SM103 one is gone; SM104 one has changed.
        """
        for file, its in self.marks.items():
            if its is None or mark(str(file)) != its:
                raise changed(str(file))
        return list(self.marks)

    def made(self) -> DataFrame:
        """What Spark reads."""
        files = self.files()
        for folder in {file.parent for file in files}:
            self._session.catalog.refreshByPath(spark_path(str(folder)))
        return self._session.read.schema(self.schema).parquet(*(spark_path(str(file)) for file in files))


def local_frame(spark: SparkSession, location: str, expected: Expected) -> FileFrame | None:
    """Contents at a path with the expected columns; see `frame_of_files`."""
    path = Path(location)
    if "://" in location or any((path / summary).exists() for summary in _SUMMARIES):
        return None
    return frame_of_files(spark, _flat_files(path), expected)


def frame_of_files(spark: SparkSession, files: Sequence[Path], expected: Expected) -> FileFrame | None:
    """The rows of files with the expected columns; None if not all are such, or Spark is to cast or to refuse them."""
    names = expected.columns
    if not 0 < len(files) <= FOOTERS_READ or not is_on_this_machine(spark):
        return None
    try:
        schema, noted = _common_schema(files), _noted(files[0])
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return None
    kinds = {field.name: column_type(field.type) for field in schema or () if _is_plain(field.type)}
    if schema is None or kinds.keys() != set(names) or len({n.casefold() for n in names}) < len(schema):
        return None
    if noted is not None and {field.name: stored_type(field) for field in noted.fields} != kinds:
        return None
    types = [kinds[name] for name in names]
    if types != list(map(settled, types, expected.given(types).types)):
        return None
    fields = (st.StructField(name, spark_type(kind)) for name, kind in zip(names, types, strict=True))
    return FileFrame(spark, files, st.StructType(list(fields)))


def _is_plain(kind: pa.DataType) -> bool:
    return kind in _PLAIN or pa.types.is_decimal128(kind)


def stored_schema(path: Path) -> st.StructType | None:
    """The columns of a local Parquet file, or of a directory of them, as Spark wrote them; None if they are others'."""
    files = _flat_files(path)
    try:
        return _noted(files[0]) if files else None
    except (OSError, pa.ArrowException, ValueError, KeyError):
        return None


def _noted(file: Path) -> st.StructType | None:
    said = (_footer(file).metadata or {}).get(_SCHEMA_KEY)
    return None if said is None else st.StructType.fromJson(json.loads(said))


def _flat_files(path: Path) -> list[Path]:
    """The files at a path; none if some are in folders of their own."""
    files = data_files(path)
    return [] if any(file.parent not in (path, path.parent) for file in files) else files


def local_contents(frame: DataFrame, database: Database) -> Relation | None:
    """The rows of a DataFrame, read from its files when they are used; None where a condition fails."""
    kinds = [field.dataType for field in frame.schema.fields]
    if not kinds or any(isinstance(kind, _OTHER_CALENDAR) for kind in kinds):
        return None
    try:
        if isinstance(frame, FileFrame):
            names, files = frame.columns, frame.files()
        elif is_on_this_machine(frame.sparkSession):
            names = _stored_names(frame)
            files = _local_files(frame) if names else []
        else:
            return None
        days = [n for n, kind in zip(names, kinds, strict=True) if isinstance(kind, st.DateType)]
        if not files or _common_schema(files) is None or not _are_gregorian(files, days):
            return None
        found = parquet_columns(database, files, names)
    except (InputError, OSError, ValueError, OverflowError, pa.ArrowException, Py4JError, PySparkException):
        return None  # a date before the year 1 is none of Python's
    return Relation(found.stored, tuple(frame.columns)) if list(found.types) == types_of(frame) else None


def _local_files(frame: DataFrame) -> list[Path]:
    """The local files that a DataFrame is read from; none if one is not local, or if there are too many."""
    parsed = [urlparse(file) for file in frame.inputFiles()]
    if len(parsed) > FOOTERS_READ or any(p.scheme not in ("", "file") for p in parsed):
        return []
    return [Path(unquote(p.path)) for p in parsed]


def _common_schema(files: Sequence[Path]) -> pa.Schema | None:
    """The columns of some files; None if they differ."""
    first, *others = (_footer(file).schema.to_arrow_schema() for file in files)
    return first if all(one.equals(first) for one in others) else None


def _are_gregorian(files: Sequence[Path], days: Collection[str]) -> bool:
    """Condition 4, of some columns."""
    for footer in map(_footer, files):
        places = [i for i in range(footer.num_columns) if footer.schema.column(i).path in days]
        groups = (footer.row_group(i) for i in range(footer.num_row_groups))
        told = (group.column(place).statistics for group in groups for place in places)
        if len(places) < len(days) or any(
            one is None or not one.has_min_max or one.min < _GREGORIAN for one in told
        ):
            return False
    return True


def _footer(file: Path) -> Any:
    return _read_footer(file, mark(str(file)))


@lru_cache(maxsize=FOOTERS_READ)
def _read_footer(file: Path, _mark: object) -> Any:
    return pq.read_metadata(file)


def _stored_names(frame: DataFrame) -> list[str]:
    """For each column its name in the Parquet relation that the frame consists of; none if it does not."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    wanted = [attribute.exprId().id() for attribute in _items(plan.output())]
    source: dict[int, int] = {}
    while plan.nodeName() == "Project":
        for item in _items(plan.projectList()):
            origin = item.child() if item.nodeName() == "Alias" else item
            if origin.nodeName() != "AttributeReference":
                return []
            source[item.exprId().id()] = origin.exprId().id()
        plan = plan.child()
    if plan.nodeName() != "LogicalRelation" or plan.isStreaming():
        return []
    relation = plan.relation()
    if (
        relation.getClass().getSimpleName() != "HadoopFsRelation"
        or relation.fileFormat().getClass().getName() != _FORMAT
        or not relation.partitionSchema().isEmpty()
    ):
        return []
    stored = {attribute.exprId().id(): str(attribute.name()) for attribute in _items(plan.output())}
    return [stored[_origin(column, source)] for column in wanted]


def _origin(column: int, source: Mapping[int, int]) -> int:
    """Where a column comes from; an attribute that is merely passed on stands for itself."""
    while column in source and source[column] != column:
        column = source[column]
    return column


def _items(seq: Any) -> list[Any]:
    return [seq.apply(i) for i in range(seq.size())]
