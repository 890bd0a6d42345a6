"""Which engine a warehouse is opened with, and what its file says of it.

[engine]
kind = "duckdb"                   # embedded, no Java; or "spark"; by default see `default_engine`
memory_limit = "4GB"              # optional, of DuckDB: what does not fit spills to
temp_directory = "/var/tmp"       # this folder, by default one of the system's
threads = 2                       # by default one for each processor
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, unique

from selfmaint.api.toml_tables import TomlTable
from selfmaint.warehouse.near import near_miss

_OF_DUCKDB = ("memory_limit", "temp_directory", "threads")


@unique
class EngineKind(StrEnum):
    """The engines for data in files, tables and databases."""

    SPARK = "spark"
    DUCKDB = "duckdb"


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What a warehouse file says of the engine.

    Attributes:
        kind: which one, if it says so.
        options: settings of DuckDB's, by their names.
    """

    kind: EngineKind | None = None
    options: Mapping[str, str | int] = field(default_factory=dict)


def engine_settings(root: TomlTable) -> EngineSettings:
    """The settings of a warehouse file; what is wrong is reported in it."""
    table = root.table("engine", ("kind", *_OF_DUCKDB))
    name = table.text("kind")
    kinds = [kind.value for kind in EngineKind]
    if name is not None and name not in kinds:
        hint = near_miss(name, kinds, "engine")
        root.file.report(("engine", "kind"), f"`{name}` is no kind of engine", hint=hint)
        return EngineSettings()
    kind = None if name is None else EngineKind(name)
    options: dict[str, str | int] = {}
    for key in _OF_DUCKDB:
        if key in table.data and kind is EngineKind.SPARK:
            root.file.report(("engine", key), f"`{key}` is a setting of the engine `duckdb`")
    for key in ("memory_limit", "temp_directory"):
        text = table.text(key)
        if text is not None:
            options[key] = text
    threads = table.number("threads")
    if threads is not None and (threads < 1 or threads != int(threads)):
        root.file.report(("engine", "threads"), "`threads` is a number of threads, at least 1")
    elif threads is not None:
        options["threads"] = int(threads)
    return EngineSettings(kind, options)
