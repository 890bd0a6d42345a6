"""Stored contents as DataFrames: Parquet, CSV, JSON lines, tables of Spark's catalog, and of a store; checked.

Columns are matched by name, in any order. A type that is stored may be narrower than the declared one, never
wider and never of another family: what is read is exactly what is stored.

Where no declaration names the columns they are matched by name if the names fit, else by position.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from pathlib import Path

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from datalog.copies import replace
from datalog.model import ANY, MAX_PRECISION, ColumnType, TypeName
from selfmaint.engine.column_types import narrows, settled
from selfmaint.errors import Code, InputError, input_error
from selfmaint.spark.column_types import column_type, spark_type, stored_type
from selfmaint.spark.failures import translated
from selfmaint.spark.formats import CSV_OPTIONS, CSV_READ_OPTIONS, parquet_paths, spark_path
from selfmaint.spark.frames import positional
from selfmaint.spark.local_files import local_frame, stored_schema
from selfmaint.store.bad_values import TextReading, local_path, remember
from selfmaint.store.expected import (
    Expected,
    is_by_position,
    nothing_stored,
    require_names,
    require_types,
    type_difference,
)
from selfmaint.store.formats import Format, format_of, has_wildcard
from selfmaint.store.stored_tables import SNAPSHOT_COLUMN, DataFile, TableFiles

_ANY_DECIMAL = st.DecimalType(38, 18)
"""What a number in a text file is read as where a decimal without precision is declared."""


def read_contents(
    spark: SparkSession, location: str, expected: Expected, format_: Format | None = None
) -> DataFrame:
    """Contents of a view, a base relation or an update, with the expected columns in order.

    Args:
        spark: the session.
        location: a file, a directory of files, a URI, or the name of a table of Spark's catalog.
        expected: names and types of the columns.
        format_: how it is stored; by default told from the names of the files.

    Returns:
        The rows, not computed yet. A text file is parsed only when they are used: see `failures.translated`.

    Raises:
        InputError: SM103 nothing is stored there; SM104 other columns or types, every difference at once.
    """
    stored_as = format_ or format_of(location)
    with _missing_as_input_error(expected.name, location):
        if stored_as is Format.TABLE:
            return conform(spark.table(location), expected)
        if "://" not in location and not Path(location).exists():
            raise nothing_stored(expected.name, location)
        path = spark_path(location)
        found = local_frame(spark, location, expected) if stored_as is Format.PARQUET else None
        if found is not None:
            return found
        spark.catalog.refreshByPath(path)
        match stored_as:
            case Format.CSV:
                return _read_csv(spark, path, expected)
            case Format.JSON_LINES:
                return _read_json(spark, path, expected)
            case _:
                return conform(_read_parquet(spark, location), expected)


def read_as_stored(spark: SparkSession, location: str, name: str, format_: Format | None = None) -> DataFrame:
    """Contents of which nothing is known beforehand, with the columns that are stored; CSV values stay text.

    Raises:
        InputError: SM103 nothing is stored there.
    """
    stored_as = format_ or format_of(location)
    with _missing_as_input_error(name, location):
        if stored_as is Format.TABLE:
            return spark.table(location)
        if "://" not in location and not Path(location).exists():
            raise nothing_stored(name, location)
        path = spark_path(location)
        match stored_as:
            case Format.CSV:
                return spark.read.options(**CSV_READ_OPTIONS).csv(path)
            case Format.JSON_LINES:
                return spark.read.json(path)
            case _:
                return spark.read.parquet(*parquet_paths(location))


def conform(frame: DataFrame, expected: Expected) -> DataFrame:
    """The frame with the expected columns, matched by name, in order and in their types.

    Raises:
        InputError: SM104 other columns or types, every difference at once.
    """
    found = frame.columns
    require_names(found, expected)
    fields = [frame.schema.fields[found.index(name)] for name in expected.columns]
    types = [stored_type(field) for field in fields]
    expected = expected.given(types)
    require_types(types, expected)
    plain = positional(frame)
    wanted = []
    stored = (field.dataType for field in fields)
    for name, kind, declared in zip(expected.columns, stored, expected.types, strict=True):
        column = plain[f"c{found.index(name)}"]
        target = spark_type(settled(column_type(kind) or declared, declared))
        if narrows(column_type(kind) or declared, declared):
            said = f"`{name}` of `{expected.name}` is declared `{declared}`, which cannot hold "
            wanted.append(_narrowed(column, target, f.lit(said), column))
        else:
            wanted.append(column if kind == target else column.cast(target))
    return plain.select(*wanted).toDF(*expected.columns)


def _read_parquet(spark: SparkSession, location: str) -> DataFrame:
    """Parquet files; a job that finds out their columns is spared where Spark itself wrote these beside them."""
    schema = None if "://" in location else stored_schema(Path(location))
    return (spark.read if schema is None else spark.read.schema(schema)).parquet(*parquet_paths(location))


def _read_csv(spark: SparkSession, location: str, expected: Expected) -> DataFrame:
    """Each column is parsed as its declared type; a value that is none stops the reading."""
    if has_wildcard(location):  # Spark takes it for a pattern in CSV files of any name
        message = f"`{expected.name}`: the path of a CSV file cannot hold any of `{{}}[]*?` and backslash"
        raise input_error(Code.MISSING_CONTENTS, message)
    _remember(location, expected, Format.CSV)
    reader = spark.read.options(**CSV_READ_OPTIONS)
    header = reader.csv(location).columns
    if not header:
        raise input_error(
            Code.COLUMNS_DIFFER,
            f"`{expected.name}`: `{local_path(location) or location}` is empty",
            note="a CSV file starts with a header line, even if it has no rows",
            hint=f"write the line `{','.join(expected.columns)}`",
        )
    inferring = spark.read.options(**CSV_READ_OPTIONS, inferSchema="true")
    schema = _text_schema(header, expected, lambda: inferring.csv(location).schema)
    parsed = reader.option("enforceSchema", "false").schema(schema).csv(location)
    return conform(_exactly(parsed, expected), expected)


def _read_json(spark: SparkSession, location: str, expected: Expected) -> DataFrame:
    """Each field is parsed as its declared type; a value that is none stops the reading."""
    _remember(location, expected, Format.JSON_LINES)
    reader = spark.read.option("mode", "FAILFAST")
    inferred = reader.json(location).schema
    inferred = st.StructType([field for field in inferred.fields if field.name not in expected.unread])
    schema = _text_schema(inferred.names or expected.columns, expected, lambda: inferred)
    declared = dict(zip(expected.columns, expected.types, strict=True))
    differences = [
        type_difference(expected.name, field.name, stored_type(field), declared[field.name])
        for field in inferred.fields
        if declared[field.name].family == "string" and not isinstance(field.dataType, st.StringType)
    ]
    if differences:
        raise InputError(differences)
    return conform(_exactly(reader.schema(schema).json(location), expected), expected)


def _remember(location: str, expected: Expected, format_: Format) -> None:
    types = dict(zip(expected.columns, expected.types, strict=True))
    remember(location, TextReading(expected.name, types, format_))


def _text_schema(
    names: Sequence[str], expected: Expected, infer: Callable[[], st.StructType]
) -> st.StructType:
    """The schema to parse a text file with: the declared types under the names that the file has."""
    require_names(names, expected)
    declared = dict(zip(expected.columns, expected.types, strict=True))
    declared |= dict.fromkeys(expected.unread, ColumnType(TypeName.STRING))
    inferred: dict[str, st.DataType] = {}
    if ANY in expected.types:
        inferred = {field.name: field.dataType for field in infer().fields if declared[field.name] == ANY}
    return st.StructType(
        [st.StructField(name, inferred.get(name) or _parsed_type(declared[name])) for name in names]
    )


def _parsed_type(declared: ColumnType) -> st.DataType:
    """The type to parse text as: a decimal with as many digits behind the point as there can be.

    Of a JSON number 128 Spark makes the tinyint -128.
    """
    if declared.name is TypeName.TINYINT:
        return st.ShortType()
    if declared.name is not TypeName.DECIMAL:
        return spark_type(declared)
    if declared.precision is None:
        return _ANY_DECIMAL
    return st.DecimalType(MAX_PRECISION, MAX_PRECISION - declared.precision + (declared.scale or 0))


def _exactly(frame: DataFrame, expected: Expected) -> DataFrame:
    """What was parsed in the declared types; a decimal that would have to be rounded stops the reading."""
    plain = positional(frame)
    columns = []
    for name, column in zip(frame.columns, (plain[name] for name in plain.columns), strict=True):
        if name in expected.unread:
            columns.append(column)
            continue
        declared = expected.types[expected.columns.index(name)]
        if declared.name is TypeName.TINYINT or (
            declared.name is TypeName.DECIMAL and declared.precision is not None
        ):
            said = f.lit(f"`{name}` is `{declared}`, which cannot hold "), column, f.lit(" in the file ")
            columns.append(_narrowed(column, spark_type(declared), *said, f.input_file_name()))
        else:
            columns.append(column)
    return plain.select(*columns).toDF(*frame.columns)


def _narrowed(column: Column, to: st.DataType, *said: Column) -> Column:
    """A column in a narrower type; a value that it cannot hold stops the reading, and is told by what is said."""
    narrow = column.try_cast(to)
    return f.when(narrow.eqNullSafe(column), narrow).otherwise(f.raise_error(f.concat(*said)))


@contextlib.contextmanager
def _missing_as_input_error(name: str, location: str) -> Iterator[None]:
    """Spark's "there is no such table or path" as an input error."""
    try:
        with translated(location):
            yield
    except (AnalysisException, ParseException) as failure:
        raise input_error(
            Code.MISSING_CONTENTS,
            f"`{name}`: there is no table `{location}` in Spark's catalog that can be read",
            hint="give a path, or the name of a table as `database.table`",
        ) from failure


def read_undeclared(
    spark: SparkSession, location: str, expected: Expected, format_: Format | None = None
) -> DataFrame:
    """Stored contents with the expected columns, by name or by position.

    Returns:
        The rows under the expected names. By position unless some of the names are those expected.

    Raises:
        InputError: SM103 nothing is stored there; SM104 another number of columns, other types, or JSON
            lines, whose columns have no order, with other names.
    """
    try:
        return read_contents(spark, location, expected, format_)
    except InputError as by_name:
        if any(d.code is not Code.COLUMNS_DIFFER for d in by_name.diagnostics):
            raise
        with translated(location):
            found = _stored_columns(spark, location, format_ or format_of(location))
        if not found or not is_by_position(found, expected):
            raise
        stored = replace(expected, columns=tuple(found))
        return read_contents(spark, location, stored, format_).toDF(*expected.columns)


def conform_undeclared(frame: DataFrame, expected: Expected) -> DataFrame:
    """A frame with the expected columns, by name or by position; see `read_undeclared`.

    Raises:
        InputError: SM104 another number of columns, or other types.
    """
    if is_by_position(frame.columns, expected):
        stored = replace(expected, columns=tuple(f"c{i}" for i in range(len(expected.columns))))
        return conform(frame.toDF(*stored.columns), stored).toDF(*expected.columns)
    return conform(frame, expected)


def _stored_columns(spark: SparkSession, location: str, format_: Format) -> list[str] | None:
    """The names of the stored columns in their order; None where they have none."""
    match format_:
        case Format.PARQUET:
            return spark.read.parquet(*parquet_paths(location)).columns
        case Format.TABLE:
            return spark.table(location).columns
        case Format.CSV:
            return spark.read.options(**CSV_OPTIONS).csv(spark_path(location)).columns
        case Format.JSON_LINES:
            return None


_TYPES = {
    "VARCHAR": "string",
    "BLOB": "binary",
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP WITH TIME ZONE": "timestamp",
}
"""Types that Spark names otherwise than DuckDB."""


def stored_rows(spark: SparkSession, table: TableFiles) -> DataFrame:
    """The rows of a table of a store, read when they are used."""
    wanted = [quoted(name) for name in table.columns]
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


def quoted(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"
