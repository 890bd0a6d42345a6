"""The file formats of stored contents, told from the names of files."""

from __future__ import annotations

import re
from enum import Enum, unique
from pathlib import Path

from selfmaint.errors import Code, input_error
from selfmaint.store.delta import is_delta_table, live_files


@unique
class Format(Enum):
    """How contents are stored."""

    PARQUET = "parquet"
    CSV = "csv"
    """With a header line; quotes are doubled, null is an empty field and the empty string is `\"\"`."""
    JSON_LINES = "jsonl"
    TABLE = "table"
    """A table or view of Spark's catalog."""


_BY_SUFFIX = {
    ".parquet": Format.PARQUET,
    ".csv": Format.CSV,
    ".json": Format.JSON_LINES,
    ".jsonl": Format.JSON_LINES,
    ".ndjson": Format.JSON_LINES,
}
WILDCARD = re.compile(r"[{}\[\]*?\\]")
"""The characters that patterns of paths use."""


def is_hidden(name: str) -> bool:
    """Whether a file is Spark's own, and no data."""
    return name.startswith(("_", "."))


def data_files(path: Path) -> list[Path]:
    """The data files at a local path: itself, or what lies under it; of a Delta table those that hold its rows now."""
    if path.is_file():
        return [path]
    if is_delta_table(path):
        return live_files(path)
    below = (file for file in path.rglob("*") if file.is_file())
    return sorted(f for f in below if not any(is_hidden(part) for part in f.relative_to(path).parts))


def has_wildcard(path: str) -> bool:
    """Whether a path holds a character that patterns of paths use."""
    return WILDCARD.search(path) is not None


def format_of(location: str) -> Format:
    """The format of some contents, by the file's name or by the names of the files in the directory.

    The location is a path, a URI, or the name of a table of Spark's catalog.

    Returns:
        `TABLE` where nothing says that it is a file: no such path, no suffix, no separator.

    Raises:
        InputError: SM103 a directory without data files.
    """
    by_name = _BY_SUFFIX.get(Path(location).suffix.lower())
    path = Path(location)
    if is_delta_table(path):
        return Format.PARQUET
    if path.is_dir():
        files = data_files(path)
        if not files and by_name is None:
            raise input_error(Code.MISSING_CONTENTS, f"the directory `{location}` holds no data files")
        return by_name or _BY_SUFFIX.get(files[0].suffix.lower(), Format.PARQUET)
    if by_name is not None:
        return by_name
    is_path = path.exists() or "/" in location or "\\" in location
    return Format.PARQUET if is_path else Format.TABLE
