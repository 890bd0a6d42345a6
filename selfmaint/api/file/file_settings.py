"""Parts of a warehouse file: which engine it is opened with, how feeds are to be read, which log the views follow.

[engine]
kind = "duckdb"                   # embedded, no Java; or "spark"; by default see `default_engine`
memory_limit = "4GB"              # optional, of DuckDB: what does not fit spills to
temp_directory = "/var/tmp"       # this folder, by default one of the system's
threads = 2                       # by default one for each processor
spark.master = "spark://host:7077"  # optional, of Spark: any of its settings, for a session that is started
[feed]
ignored = ["audit_log"]           # source tables whose events are left out
decimals = "text"                 # or "base64": how decimals are written where the feed has no schemas
timestamps = "us"                 # or "ms", "ns": what integers count where the feed has no schemas
full_before_images = true         # the source logs whole rows (REPLICA IDENTITY FULL)
[feed.tables]                     # source tables that are not called like their relations
"public.orders_2026" = "orders"
[follow]
source = "shop"                   # a source of PostgreSQL, in which all base relations are
slot = "selfmaint"                # optional: its replication slot, for this warehouse alone
publication = "selfmaint"         # optional: its publication, of the base relations' tables
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, StrEnum, unique
from typing import TypeVar

from msgspec import Struct, field

from datalog.sql_settings import SQL_SETTINGS
from selfmaint.api.file.toml_tables import KeyPath, TomlTable, dotted
from selfmaint.decide.search_budget import DEFAULT_SEARCH, SearchBudget
from selfmaint.errors import Code
from selfmaint.feeds.settings import DecimalText, FeedSettings, TimeUnit
from selfmaint.warehouse.near import near_miss

_OF_DUCKDB = ("memory_limit", "temp_directory", "threads")
_OF_SPARK = "spark"


@unique
class EngineKind(StrEnum):
    """The engines for data in files, tables and databases."""

    SPARK = "spark"
    DUCKDB = "duckdb"


class EngineSettings(Struct, frozen=True):
    """What a warehouse file says of the engine.

    Attributes:
        kind: which one, if it says so.
        options: settings of DuckDB's, by their names.
        spark: settings of Spark's, by their full names.
    """

    kind: EngineKind | None = None
    options: Mapping[str, str | int] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)


def engine_settings(root: TomlTable) -> EngineSettings:
    """The settings of a warehouse file; what is wrong is reported in it."""
    table = root.table("engine", ("kind", *_OF_DUCKDB, _OF_SPARK))
    name = table.among("kind", EngineKind, "`{}` is no kind of engine", "engine")
    kind = None if name is None else EngineKind(name)
    options: dict[str, str | int] = {}
    if kind is EngineKind.SPARK:
        table.refuse(_OF_DUCKDB, "`{}` is a setting of the engine `duckdb`")
    for path, value in _leaves(table.table(_OF_SPARK, tuple(table.data.get(_OF_SPARK) or ())).data):
        if kind is EngineKind.DUCKDB or not isinstance(value, str | bool | int | float):
            wrong = (
                "is a setting of the engine `spark`" if kind is EngineKind.DUCKDB else "has no single value"
            )
            root.file.report(("engine", _OF_SPARK, *path), f"`{dotted((_OF_SPARK, *path))}` {wrong}")
        elif str(value).casefold() != (means := SQL_SETTINGS.get(_of_spark(path), str(value))).casefold():
            wrong = f"has to be `{means}`: SQL means something else otherwise than is read here"
            root.file.report(("engine", _OF_SPARK, *path), f"`{dotted((_OF_SPARK, *path))}` {wrong}")
    for key in ("memory_limit", "temp_directory"):
        text = table.text(key)
        if text is not None:
            options[key] = text
    threads = table.number("threads")
    if threads is not None and (threads < 1 or threads != int(threads)):
        table.report("threads", "`threads` is a number of threads, at least 1")
    elif threads is not None:
        options["threads"] = int(threads)
    return EngineSettings(kind, options, spark_settings(root))


def spark_settings(root: TomlTable) -> dict[str, str]:
    """The settings of Spark's that a warehouse file has, by their full names; what is wrong is left out."""
    engine = root.data.get("engine")
    given = engine.get(_OF_SPARK) if isinstance(engine, dict) else None
    leaves = _leaves(given) if isinstance(given, dict) else ()
    return {
        _of_spark(path): str(value).lower() if isinstance(value, bool) else str(value)
        for path, value in leaves
        if isinstance(value, str | bool | int | float)
    }


def _of_spark(path: KeyPath) -> str:
    """A setting's full name."""
    return ".".join((_OF_SPARK, *map(str, path)))


def _leaves(table: Mapping[str, object]) -> Iterator[tuple[KeyPath, object]]:
    """What stands in a table and the tables inside it, with its path."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from (((key, *path), leaf) for path, leaf in _leaves(value))
        else:
            yield (key,), value


_Choice = TypeVar("_Choice", bound=Enum)
_OF_FEEDS = ("tables", "ignored", "decimals", "timestamps", "full_before_images")


def feed_settings(root: TomlTable, relations: Mapping[str, object] | None) -> FeedSettings:
    """What `[feed]` says; what does not fit is reported to the file."""
    table = root.table("feed", _OF_FEEDS)
    named = table.table("tables", tuple(table.data.get("tables") or ()))
    tables = {name: relation for name in named.data if (relation := named.text(name)) is not None}
    for name, relation in tables.items():
        if relations is not None and relation not in relations:
            hint = near_miss(relation, relations, "base relation")
            message = f"`{relation}` is no base relation of the program"
            table.file.report((*named.path, name), message, hint=hint, code=Code.UNKNOWN_RELATION)
    return FeedSettings(
        tables=tables,
        ignored=frozenset(table.texts("ignored")),
        decimals=_choice(table, "decimals", DecimalText),
        timestamps=_choice(table, "timestamps", TimeUnit),
        full_before_images=bool(table.flag("full_before_images")),
    )


def _choice(table: TomlTable, key: str, choices: type[_Choice]) -> _Choice | None:
    text = table.text(key)
    known = [choice.value for choice in choices]
    if text is not None and text not in known:
        hint = f"one of {', '.join(f'`{k}`' for k in known)}"
        table.report(key, f"`{key}` in {table.shown} is `{text}`", hint)
        return None
    return None if text is None else choices(text)


_OF_LOGS = ("source", "slot", "publication")
_NAME = "selfmaint"


class FollowSettings(Struct, frozen=True):
    """Which log the views follow.

    Attributes:
        source: the source of PostgreSQL.
        slot: its logical replication slot.
        publication: the publication of the base relations' tables.
    """

    source: str
    slot: str = _NAME
    publication: str = _NAME


def follow_settings(root: TomlTable, sources: Mapping[str, str | None]) -> FollowSettings | None:
    """What `[follow]` says; what does not fit is reported to the file."""
    table = root.table("follow", _OF_LOGS)
    if "follow" not in root.data:
        return None
    source = source_in(table, sources)
    slot, publication = (table.text(key) or _NAME for key in ("slot", "publication"))
    if source is not None and sources[source] not in (None, "postgres"):
        message = f"the source `{source}` is of kind `{sources[source]}`, which has no log to follow"
        table.report("source", message, "name a source of kind `postgres`")
        return None
    return None if source is None else FollowSettings(source, slot, publication)


def source_in(table: TomlTable, sources: Iterable[str]) -> str | None:
    """The source that a table has to name."""
    if table.required("source", "name a `[sources.NAME]`") is None:
        return None
    return table.among("source", sources, "there is no source `{}`", "source")


def search_budget(root: TomlTable) -> SearchBudget:
    """The table `[search]`: how much a search near the update may take.

    [search]
    seconds = 1                       # optional: for the views that the tests leave undecided
    rows = 200                        # optional: of the views near the update, and of the update
    """
    table, default = root.table("search", ("seconds", "rows")), DEFAULT_SEARCH
    seconds, rows = table.seconds("seconds"), table.whole("rows")
    return SearchBudget(
        default.seconds if seconds is None else seconds, default.rows if rows is None else rows
    )
