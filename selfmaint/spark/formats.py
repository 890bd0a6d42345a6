"""How Spark writes each file format, so that reading gives the same values back."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f
from pyspark.sql.types import NullType

from selfmaint.errors import Code, input_error
from selfmaint.spark.failures import SPARK_ERRORS, first_line, translated
from selfmaint.spark.frames import positional
from selfmaint.spark.session import is_on_this_machine
from selfmaint.store.delta import is_delta_table, live_files
from selfmaint.store.formats import WILDCARD, Format, data_files
from selfmaint.store.write import Write

CSV_OPTIONS: Mapping[str, str] = {
    "header": "true",
    "quote": '"',
    "escape": '"',
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
CSV_READ_OPTIONS: Mapping[str, str] = {
    **CSV_OPTIONS,
    "mode": "FAILFAST",
    "multiLine": "true",
    # What is read is compared with this: so only a field without quotes is null, and `""` is not. No field of
    # any file is equal to it, not even by intent.
    "nullValue": f"null {uuid.uuid4().hex}",
    "emptyValue": "",
}
IN_ORDER: Mapping[str, str] = {
    "parquet.block.size": str(4 * 2**20),
    "parquet.page.row.count.limit": "2000",
    "parquet.dictionary.page.size": str(64 * 2**10),
}
"""Small row groups, pages and dictionaries: what is looked up by the column of the order is found without reading
much else. A dictionary is read whole for any of its values."""
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
"""By default these are in a type of which most other readers take instants for local times."""
TIMESTAMP_OPTIONS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""By default, microseconds are cut off."""


def spark_path(location: str) -> str:
    """A location as Spark takes it: a local path stays local, and none of its characters is a wildcard."""
    if "://" in location:
        return location
    return "file://" + WILDCARD.sub(r"\\\g<0>", str(Path(location).resolve()))


def parquet_paths(location: str) -> list[str]:
    """Where the Parquet files of some contents are; of a Delta table those that hold its rows now.

    Raises:
        InputError: SM103 a Delta table without files; see `live_files`.
    """
    if "://" in location or not is_delta_table(Path(location)):
        return [spark_path(location)]
    files = live_files(Path(location))
    if not files:
        raise input_error(Code.MISSING_CONTENTS, f"there are no data files in the Delta table `{location}`")
    return [spark_path(str(file)) for file in files]


def writing(frame: DataFrame) -> Write:
    """What writes a frame's rows.

    It raises InputError SM103 or SM104, where stored contents turn out to be unreadable.
    """

    def write(path: Path, format_: Format, order: str | None, /, *, single: bool = False) -> None:
        try:
            with translated():
                write_files(frame.coalesce(1) if single else frame, path, format_, order)
        except SPARK_ERRORS as failure:
            raise OSError(first_line(failure)) from failure

    return write


def write_files(frame: DataFrame, path: Path, format_: Format, order: str | None = None) -> None:
    """Writes a frame's rows into a new directory, which must not exist yet; Parquet in the order of a column.

    A column of nothing but nulls, which has no type, is written as a string column.

    Raises:
        InputError: SM405 null in a CSV file of one column, where it would be an empty line, which is no row; files
            of executors on other machines that are not in the directory as it is seen here.
    """
    schema = frame.schema.fields
    if any(isinstance(field.dataType, NullType) for field in schema):
        plain = positional(frame)
        columns = (
            plain[f"c{i}"].cast("string") if isinstance(field.dataType, NullType) else plain[f"c{i}"]
            for i, field in enumerate(schema)
        )
        frame = plain.select(*columns).toDF(*frame.columns)
    options: Mapping[str, str] = {}
    match format_:
        case Format.CSV:
            if len(schema) == 1 and positional(frame).where("c0 IS NULL").limit(1).collect():
                raise input_error(
                    Code.WRITE_FAILED,
                    f"a CSV file of one column cannot hold null, and `{path.name}` would",
                    hint="store these contents as Parquet",
                )
            options = {**CSV_OPTIONS, **TIMESTAMP_OPTIONS}
        case Format.JSON_LINES:
            options = {"ignoreNullFields": "false", **TIMESTAMP_OPTIONS}
        case _ if order is not None and order in frame.columns:
            frame, options = _in_order(frame, frame.columns.index(order)), IN_ORDER
    kind = {Format.CSV: "csv", Format.JSON_LINES: "json"}.get(format_, "parquet")
    if is_on_this_machine(frame.sparkSession):
        _saved(frame, path, kind, options)
        return
    written = Observation()
    # Outermost: what is below may run twice, for the bounds of ranges.
    _saved(frame.observe(written, f.count(f.lit(1)).alias("rows")), path, kind, options)
    _require_there(frame, path, kind, written.get["rows"])


def _saved(frame: DataFrame, path: Path, kind: str, options: Mapping[str, str]) -> None:
    settings = frame.sparkSession.conf
    given = settings.get(_TIMESTAMPS, None)
    settings.set(_TIMESTAMPS, "TIMESTAMP_MICROS")
    try:
        frame.write.mode("errorifexists").options(**options).format(kind).save(f"file://{path.resolve()}")
    finally:
        settings.unset(_TIMESTAMPS) if given is None else settings.set(_TIMESTAMPS, given)


def _require_there(frame: DataFrame, path: Path, kind: str, rows: int) -> None:
    """Refuses files that are not all there: where a folder is not shared, Spark commits those that it sees."""
    if kind == "parquet":
        there = sum(pq.read_metadata(file).num_rows for file in data_files(path))
    else:
        options = CSV_READ_OPTIONS if kind == "csv" else {}
        reader = frame.sparkSession.read.schema(frame.schema).options(**options).format(kind)
        there = reader.load(spark_path(str(path))).count()
    if there != rows:
        message = f"Spark's executors wrote {rows} rows to `{path}`, and {there} of them are there"
        hint = "keep what is written in a folder that all machines see, under the same path"
        raise input_error(Code.WRITE_FAILED, message, hint)


def _in_order(frame: DataFrame, column: int) -> DataFrame:
    """The rows such that those of near values in a column lie together in few files."""
    plain = positional(frame)
    key = plain[f"c{column}"]
    return plain.repartitionByRange(key).sortWithinPartitions(key).toDF(*frame.columns)
