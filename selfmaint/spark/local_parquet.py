"""Looking up rows in local Parquet files from this process, by Arrow: a job of Spark costs more than few rows do.

Row groups whose statistics exclude every key are passed over; of the others the key's columns are read first, and
further columns only where a key was found.

Conditions of soundness; where one does not hold, the look-up is left to Spark:

1. The DataFrame is nothing but columns of Parquet files that Spark would read as they are: no filter, no partition
   values, no other format on top of them.
2. Each file has the columns under the same names, in Arrow types whose values are those of Spark's.
3. No day lies before the Gregorian calendar: such days may be written in another one.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as st

from datalog.model import Row
from selfmaint.engine.arrow_rows import python_values
from selfmaint.spark.exact_rows import are_exact, arrow_type
from selfmaint.store.formats import data_files
from selfmaint.store.order import MOST_FILES

MOST_SCANNED = 50_000_000
"""Where statistics leave more rows to be scanned, Spark scans them: it may have more processors."""

MOST_CANDIDATES = 4
"""So many times the rows wanted are looked at for keys of several columns, each of which is looked up by itself."""

_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_GREGORIAN = dt.date(1582, 10, 15)

Group: TypeAlias = tuple[pq.ParquetFile, int]
"""A row group of a file."""


def local_files(frame: DataFrame) -> list[Path]:
    """The local files that a DataFrame is read from; none if one is not local, or if there are too many."""
    files = list(frame.inputFiles())
    parsed = [urlparse(file) for file in files]
    if len(files) > MOST_FILES or any(p.scheme not in ("", "file") for p in parsed):
        return []
    return [Path(unquote(p.path)) for p in parsed]


def stored_schema(path: Path) -> st.StructType | None:
    """The columns of a local Parquet file, or of a directory of them, as Spark wrote them; None if they are others'."""
    files = data_files(path)
    if not files or any(file.parent not in (path, path.parent) for file in files):
        return None
    try:
        said = (pq.read_metadata(files[0]).metadata or {}).get(_SCHEMA_KEY)
        return None if said is None else st.StructType.fromJson(json.loads(said))
    except (OSError, pa.ArrowException, ValueError, KeyError):
        return None


def local_parquet(frame: DataFrame) -> LocalParquet | None:
    """The files and columns that a DataFrame consists of (condition 1); None if it is more, or something else."""
    kinds = [field.dataType for field in frame.schema.fields]
    if not kinds or not are_exact(kinds) or any(isinstance(kind, st.TimestampType) for kind in kinds):
        return None
    try:
        names = _stored_names(frame)
        files = local_files(frame) if names else []
    except (Py4JError, PySparkException):
        return None
    return LocalParquet(tuple(files), tuple(names), tuple(map(arrow_type, kinds))) if files else None


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


@dataclass(frozen=True)
class LocalParquet:
    """A DataFrame that is columns of local Parquet files.

    Attributes:
        files: the files.
        names: for each column, its name in the files.
        types: their Arrow types.
    """

    files: tuple[Path, ...]
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]

    def rows(self, limit: int) -> list[Row] | None:
        """All rows, as often as they are stored; None if there are more than `limit`, or a condition fails."""
        every = range(len(self.names))
        try:
            with self._opened(every) as groups:
                if groups is None or sum(_size(group) for group in groups) > limit:
                    return None
                return [row for group in groups for row in _python(self._read(group, every))]
        except (OSError, OverflowError, pa.ArrowException):
            return None

    def never_null(self) -> frozenset[int]:
        """The columns without null, as far as the files' statistics tell."""
        every = range(len(self.names))
        try:
            with self._opened(()) as groups:
                return frozenset(
                    c for c in every if all(_has_no_null(g, self.names[c]) for g in groups or ())
                )
        except (OSError, pa.ArrowException):
            return frozenset()

    def look_up(
        self, columns: Sequence[int], keys: Collection[Row], wanted: Sequence[int], limit: int
    ) -> set[Row] | None:
        """The distinct rows of some keys, cut to some columns; None if they are too many, or a condition fails.

        Args:
            columns: the columns of the key.
            keys: at least one, of values that the columns' types can hold; null equals null.
            wanted: the columns of the result.
            limit: the most rows to return.
        """
        read = list(dict.fromkeys([*columns, *wanted]))
        values = [{key[i] for key in keys} for i in range(len(columns))]
        try:
            asked = [pa.array(v, self.types[c]) for c, v in zip(columns, values, strict=True)]
            with self._opened(read) as groups:
                if groups is None:
                    return None
                near = [g for g in groups if self._may_hold(g, columns, values)]
                if sum(map(_size, near)) > MOST_SCANNED:
                    return None
                found: list[pa.Table] = []
                for group in near:
                    found += self._held(group, columns, asked, read)
                    if sum(map(len, found)) > MOST_CANDIDATES * limit:
                        found = [_distinct(found)]
                        if len(found[0]) > MOST_CANDIDATES * limit:
                            return None
                rows = _cut(_distinct(found), keys, columns, wanted, read) if found else set()
                return rows if len(rows) <= limit else None
        except (OSError, OverflowError, pa.ArrowException):
            return None

    def _held(
        self, group: Group, columns: Sequence[int], asked: Sequence[pa.Array], read: Sequence[int]
    ) -> list[pa.Table]:
        """The rows, cut to `read`, if there are any, that hold a value asked for in each column of the key."""
        table = self._read(group, columns)
        hits = None
        for column, values in zip(table.columns, asked, strict=True):
            hit = pc.is_in(column, value_set=values)
            hits = hit if hits is None else pc.and_(hits, hit)
        if hits is None or not pc.any(hits).as_py():
            return []
        rest = [c for c in read if c not in columns]
        if rest:
            for name, column in zip(map(str, rest), self._read(group, rest).columns, strict=True):
                table = table.append_column(name, column)
        return [table.filter(hits)]

    def _read(self, group: Group, columns: Sequence[int]) -> pa.Table:
        """Columns of a row group in the frame's types, named by their positions."""
        file, number = group
        names = [self.names[c] for c in columns]
        table = file.read_row_group(number, columns=list(dict.fromkeys(names)))
        parts = [table.column(name).cast(self.types[c]) for c, name in zip(columns, names, strict=True)]
        return pa.Table.from_arrays(parts, names=[str(c) for c in columns])

    def _may_hold(self, group: Group, columns: Sequence[int], values: Sequence[set[Any]]) -> bool:
        """Whether the statistics of a row group leave room for one of the values in each column."""
        for column, wanted in zip(columns, values, strict=True):
            if None in wanted or not _is_ordered(self.types[column]):
                continue
            held = _range(group, self.names[column])
            if held is not None and not any(held[0] <= value <= held[1] for value in wanted):
                return False
        return True

    @contextmanager
    def _opened(self, columns: Sequence[int]) -> Iterator[list[Group] | None]:
        """The row groups of all files; None if a file's columns are not those of conditions 2 and 3."""
        with ExitStack() as stack:
            files = [stack.enter_context(pq.ParquetFile(file)) for file in self.files]
            groups = [(file, i) for file in files for i in range(file.metadata.num_row_groups)]
            plain = all(self._is_plain(file.schema_arrow, c) for file in files for c in columns) and all(
                _is_gregorian(group, self.names[c])
                for c in columns
                if pa.types.is_date(self.types[c])
                for group in groups
            )
            yield groups if plain else None

    def _is_plain(self, schema: pa.Schema, column: int) -> bool:
        """Condition 2."""
        found = schema.get_all_field_indices(self.names[column])
        if len(found) != 1:
            return False
        kind = schema.field(found[0]).type
        return bool(kind == self.types[column] or _are_texts(kind, self.types[column]))


def _are_texts(stored: pa.DataType, wanted: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(stored) and pa.types.is_string(wanted))


def _is_ordered(kind: pa.DataType) -> bool:
    """Whether the statistics of a type are compared as its values are, whoever wrote them."""
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_date32(kind))


def _size(group: Group) -> int:
    file, number = group
    return int(file.metadata.row_group(number).num_rows)


def _is_gregorian(group: Group, name: str) -> bool:
    """Condition 3."""
    held = _range(group, name)
    return held is not None and held[0] >= _GREGORIAN


def _has_no_null(group: Group, name: str) -> bool:
    found = _statistics(group, name)
    return found is not None and found.has_null_count and found.null_count == 0


def _range(group: Group, name: str) -> tuple[Any, Any] | None:
    """The smallest and the largest value that the statistics state; None where they say nothing."""
    found = _statistics(group, name)
    return (found.min, found.max) if found is not None and found.has_min_max else None


def _statistics(group: Group, name: str) -> pq.Statistics | None:
    file, number = group
    footer: Any = file.metadata.row_group(number)
    columns = (footer.column(i) for i in range(footer.num_columns))
    return next((column.statistics for column in columns if column.path_in_schema == name), None)


def _distinct(tables: Sequence[pa.Table]) -> pa.Table:
    together = pa.concat_tables(tables)
    return together.group_by(together.column_names, use_threads=False).aggregate([])


def _python(table: pa.Table) -> Iterator[Row]:
    return zip(*(python_values(column) for column in table.columns), strict=True)


def _cut(
    held: pa.Table, keys: Collection[Row], columns: Sequence[int], wanted: Sequence[int], read: Sequence[int]
) -> set[Row]:
    """Of some rows of the columns `read` those whose key is asked for, cut to the columns wanted."""
    rows = _python(held)
    if len(columns) > 1:
        asked, by = set(keys), [read.index(c) for c in columns]
        rows = (row for row in rows if tuple([row[i] for i in by]) in asked)
    take = [read.index(c) for c in wanted]
    return set(rows) if take == list(range(len(read))) else {tuple([row[i] for i in take]) for row in rows}
