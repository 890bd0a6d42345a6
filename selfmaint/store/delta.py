"""Delta tables: which of a folder's Parquet files hold its rows now. The others are of former versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

from selfmaint.errors import Code, SelfmaintError, first_line, input_error

_PLAIN = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""What a table may need of its readers for its rows to be those of its files."""


def is_delta_table(path: Path) -> bool:
    """Whether a directory is a Delta table."""
    return (path / "_delta_log").is_dir()


def delta_table(path: Path) -> Any:
    """The table, opened by the package `deltalake`.

    Raises:
        InputError: SM607 it is not installed.
    """
    try:
        from deltalake import DeltaTable  # noqa: PLC0415 - only who reads Delta tables needs it
    except ImportError:
        raise input_error(
            Code.FEED_PACKAGE,
            f"`{path}` is a Delta table, and the package `deltalake` is not installed",
            hint="`pip install selfmaint[delta]`, or let a Spark that has Delta's jars read it, and give the DataFrame",
        ) from None
    return DeltaTable(str(path))


def live_files(path: Path) -> list[Path]:
    """The files of a table's last version.

    Raises:
        InputError: SM104 a table that cannot be read; SM502 one whose rows are not those of its files alone; SM607
            `deltalake` is not installed.
    """
    import pyarrow as pa  # noqa: PLC0415 - not where nothing is a Delta table

    try:
        table = delta_table(path)
        needed, partitions = table.protocol().reader_features or (), table.metadata().partition_columns
        mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
        names = pa.table(table.get_add_actions(flatten=True)).column("path").to_pylist()
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
    return sorted(path / unquote(name) for name in names)
