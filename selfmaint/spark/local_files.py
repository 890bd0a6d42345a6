"""Contents in local Parquet files of a session that runs on this machine: rows are looked up in them without a job.

Conditions of soundness; where one does not hold, Spark looks up:

1. Spark runs in this machine's processes alone.
2. The DataFrame is nothing but columns of Parquet files that Spark would read as they are: no filter, no partition
   values, no other format on top of them.
3. All files have the same columns, of types that are the same in Spark and in DuckDB.
4. No day lies before the Gregorian calendar: such days may be written in another one. Instants may be, too.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as st

from selfmaint.duckdb.database import Database, Relation
from selfmaint.duckdb.parquet_files import FOOTERS_READ, parquet_columns
from selfmaint.errors import InputError
from selfmaint.spark.column_types import types_of
from selfmaint.spark.session import is_on_this_machine

_FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_GREGORIAN = dt.date(1582, 10, 15)
_OTHER_CALENDAR = (st.TimestampType, st.TimestampNTZType)


def local_contents(frame: DataFrame, database: Database) -> Relation | None:
    """The rows of a DataFrame, read from its files when they are used; None where a condition fails."""
    kinds = [field.dataType for field in frame.schema.fields]
    if not kinds or any(isinstance(kind, _OTHER_CALENDAR) for kind in kinds):
        return None
    try:
        if not is_on_this_machine(frame.sparkSession):
            return None
        names = _stored_names(frame)
        files = _local_files(frame) if names else []
        days = [n for n, kind in zip(names, kinds, strict=True) if isinstance(kind, st.DateType)]
        if not files or not _are_alike(files, days):
            return None
        found = parquet_columns(database, files, names)
    except (InputError, OSError, ValueError, pa.ArrowException, Py4JError, PySparkException):
        return None
    return Relation(found.stored, tuple(frame.columns)) if list(found.types) == types_of(frame) else None


def _local_files(frame: DataFrame) -> list[Path]:
    """The local files that a DataFrame is read from; none if one is not local, or if there are too many."""
    parsed = [urlparse(file) for file in frame.inputFiles()]
    if len(parsed) > FOOTERS_READ or any(p.scheme not in ("", "file") for p in parsed):
        return []
    return [Path(unquote(p.path)) for p in parsed]


def _are_alike(files: list[Path], days: list[str]) -> bool:
    """Conditions 3 and 4."""
    footers = [pq.read_metadata(file) for file in files]
    schemas = [footer.schema.to_arrow_schema() for footer in footers]
    if any(not schema.equals(schemas[0]) for schema in schemas):
        return False
    groups = (footer.row_group(i) for footer in footers for i in range(footer.num_row_groups))
    return all(_is_gregorian(group, day) for group in groups for day in days)


def _is_gregorian(group: Any, name: str) -> bool:
    columns = (group.column(i) for i in range(group.num_columns))
    told = next((column.statistics for column in columns if column.path_in_schema == name), None)
    return told is not None and told.has_min_max and told.min >= _GREGORIAN


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
