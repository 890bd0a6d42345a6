"""Delta tables: opened by the package `deltalake`, and which of a folder's Parquet files hold a version's rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from selfmaint.errors import Code, SelfmaintError, first_line, input_error
from selfmaint.store.journal import sync
from selfmaint.store.stored_tables import DataFile, TableFiles

_PLAIN = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""What a table may need of its readers for its rows to be those of its files."""
_TYPES = {
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}
"""Types of Delta's with DuckDB's names of them."""
_WHOLE = ("byte", "short", "integer", "long")


def is_delta_table(path: Path) -> bool:
    """Whether a directory is a Delta table."""
    return (path / "_delta_log").is_dir()


def delta_table(path: Path, version: int | None = None) -> Any:
    """The table, at a version or the last one, opened by the package `deltalake`.

    Raises:
        InputError: SM607 it is not installed.
    """
    require_package(path)
    from deltalake import DeltaTable  # noqa: PLC0415 - only who reads Delta tables needs it

    return DeltaTable(str(path), version=version)


def require_package(path: Path) -> None:
    """Refuses a table where `deltalake` is not installed.

    Raises:
        InputError: SM607.
    """
    try:
        import deltalake  # noqa: F401, PLC0415 - see `delta_table`
    except ImportError:
        raise input_error(
            Code.FEED_PACKAGE,
            f"`{path}` is a Delta table, and the package `deltalake` is not installed",
            hint="`pip install selfmaint[delta]`, or let a Spark that has Delta's jars read it, and give the DataFrame",
        ) from None


def live_files(path: Path, table: Any = None) -> list[Path]:
    """The files of a table's last version, or of the one at which it was opened.

    Raises:
        InputError: SM104 a table that cannot be read; SM502 one whose rows are not those of its files alone; SM607
            `deltalake` is not installed.
    """
    _, actions = _opened(path, None, table)
    return sorted(path / unquote(name) for name in actions.column("path").to_pylist())


def without_rows(path: Path) -> Any:
    """An Arrow table with the columns of a Delta table, and no rows."""
    import pyarrow as pa  # noqa: PLC0415 - as a rule there are rows

    return pa.schema(delta_table(path).schema().to_arrow()).empty_table()


def table_files(name: str, path: Path, version: int | None = None) -> TableFiles:
    """What makes up a table at a version.

    Raises:
        InputError: see `live_files`.
    """
    table, actions = _opened(path, version)
    fields = table.schema().fields
    kinds = [_duckdb_type(name, field) for field in fields]
    told = set(actions.column_names)
    rows = actions.column("num_records").to_pylist() if "num_records" in told else [None] * len(actions)
    files = []
    for file, number in zip(actions.column("path").to_pylist(), rows, strict=True):
        place = path / unquote(file)
        files.append(DataFile(str(place), _footer_rows(place) if number is None else number))

    def ends(kind: str, column: str) -> list[Any]:
        key = f"{kind}.{column}"
        return actions.column(key).to_pylist() if key in told else [None]

    spreads = {}
    for i, field in enumerate(fields):
        if str(getattr(field.type, "type", "")) in _WHOLE:
            least, most = ends("min", field.name), ends("max", field.name)
            if files and all(type(end) is int for end in (*least, *most)):
                spreads[i] = max(most) - min(least) + 1
    never = frozenset(
        i for i, field in enumerate(fields) if all(n == 0 for n in ends("null_count", field.name))
    )
    return TableFiles(
        name,
        int(table.version()),
        tuple(field.name for field in fields),
        tuple(kinds),
        tuple(files),
        spreads,
        never,
    )


def sizes(path: Path, version: int) -> dict[str, int]:
    """The files of a version, by name, and how many bytes each has."""
    _, actions = _opened(path, version)
    return dict(
        zip(actions.column("path").to_pylist(), actions.column("size_bytes").to_pylist(), strict=True)
    )


class LogEntry(Struct, frozen=True):
    """A commit of a table's log.

    Attributes:
        version: the version that it made.
        operation: what was done, as the writer says.
        changes_data: whether rows may be others than before.
        marks: what its writer said besides.
        restored: the version whose rows it brought back; None if it did something else.
    """

    version: int
    operation: str
    changes_data: bool
    marks: dict[str, Any]
    restored: int | None = None


def log_entries(path: Path, after: int, upto: int) -> Sequence[LogEntry]:
    """The commits of a table after a version, up to one, oldest first.

    One that is no longer there, or cannot be read, may have changed anything.
    """
    return [_log_entry(path, version) for version in range(after + 1, upto + 1)]


def sync_version(path: Path, version: int) -> None:
    """Has the operating system write what a commit added to the disk: `deltalake` leaves it in its memory.

    Raises:
        OSError: it cannot.
    """
    log = path / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    added = [one[kind]["path"] for one in actions for kind in ("add", "cdc") if kind in one]
    files = [file for file in (path / unquote(name) for name in added) if file.exists()]
    for place in (*files, log, *{file.parent for file in files}, log.parent, path):
        sync(place)


def _log_entry(path: Path, version: int) -> LogEntry:
    try:
        text = (path / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8")
        actions = [json.loads(line) for line in text.splitlines() if line.strip()]
        said: dict[str, Any] = next((one["commitInfo"] for one in actions if "commitInfo" in one), {})
        files = [one.get("add") or one.get("remove") for one in actions if "add" in one or "remove" in one]
        changed = any(file.get("dataChange", True) for file in files)
        operation, restored = (
            str(said.get("operation", "?")),
            said.get("operationParameters", {}).get("version"),
        )
        is_restored = operation == "RESTORE" and restored is not None
        return LogEntry(version, operation, changed, said, int(restored) if is_restored else None)
    except (OSError, ValueError, TypeError, AttributeError):
        return LogEntry(version, "?", changes_data=True, marks={})


def _opened(path: Path, version: int | None, table: Any = None) -> tuple[Any, Any]:
    """A table of which the files say all, and what its log says of each of them, as a table of Arrow."""
    import pyarrow as pa  # noqa: PLC0415 - not where nothing is a Delta table

    try:
        table = delta_table(path, version) if table is None else table
        needed, partitions = table.protocol().reader_features or (), table.metadata().partition_columns
        mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
        # `pa.table` would load pandas to ask whether it is a frame of it.
        actions = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()
    except SelfmaintError:
        raise
    except Exception as failure:
        message = f"the Delta table `{path}` cannot be read: {first_line(failure)}"
        raise input_error(Code.COLUMNS_DIFFER, message) from failure
    if partitions or mapped or not _PLAIN.issuperset(needed):
        raise input_error(
            Code.ENGINE_DIFFERS,
            f"the rows of the Delta table `{path}` are not those of its files alone: it has partitions, "
            "deletion vectors, mapped columns or the like",
            hint="write it without them, or name a table of the catalog of a Spark that has Delta's jars",
        )
    return table, actions


def _duckdb_type(name: str, field: Any) -> str:
    kind = str(getattr(field.type, "type", field.type))
    found = kind.upper() if kind.startswith("decimal(") else _TYPES.get(kind)
    if found is None:
        message = f"column `{field.name}` of the Delta table `{name}` has the type `{kind}`"
        raise input_error(Code.COLUMNS_DIFFER, message, "views have columns of plain values")
    return found


def _footer_rows(file: Path) -> int:
    """The number of rows of a file whose writer did not say it in the log."""
    import pyarrow as pa  # noqa: PLC0415 - see `_opened`
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        return int(pq.read_metadata(file).num_rows)
    except (OSError, pa.ArrowException) as failure:
        message = f"the file `{file}` of a Delta table cannot be read: {first_line(failure)}"
        raise input_error(Code.MISSING_CONTENTS, message) from failure
