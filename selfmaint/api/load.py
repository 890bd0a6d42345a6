"""`load`: a warehouse from its TOML file, its contents as DataFrames, its sources not connected to yet."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.model import Predicate, Version
from selfmaint.api.columns import Columns, columns_of
from selfmaint.api.file.file_settings import EngineKind
from selfmaint.api.file.places import Location, fingerprints
from selfmaint.api.file.warehouse_file import SourceEntry, SourceKind, WarehouseFile, read_warehouse_file
from selfmaint.api.following.moved import of_contents
from selfmaint.api.platforms.platform import (
    Platform,
    engines_for,
    expected_columns,
    first_that_can,
    known_families,
    opened_engine,
    platform_of,
    with_counts,
)
from selfmaint.api.stored_types import StoredTypes, as_queried
from selfmaint.api.stores.store import OpenStore, no_snapshots, require_unedited, snapshot_of
from selfmaint.api.warehouse import Warehouse
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, InputError, SourceError
from selfmaint.fallback.settle import Readable
from selfmaint.sources.protocol import LazySource, Source
from selfmaint.store.formats import Format, format_of
from selfmaint.store.write import recover

if TYPE_CHECKING:
    from selfmaint.duckdb import Relation
    from selfmaint.spark import DataFrame, SparkSession


def readable(platform: Platform[D], file: WarehouseFile) -> dict[str, Readable[D]]:
    """The base relations that may be read: one source for all relations of a `[sources.NAME]`."""
    sources = {
        entry.source.name: LazySource(entry.source.name, partial(_connected, platform, file, entry.source))
        for entry in file.relations.values()
    }
    return {
        name: Readable(sources[entry.source.name], entry.cost, entry.is_after)
        for name, entry in file.relations.items()
    }


def _connected(platform: Platform[D], file: WarehouseFile, source: SourceEntry) -> Source[D]:
    """The source, ready to be read."""
    mine = {name: entry for name, entry in file.relations.items() if entry.source == source}
    columns = columns_of(file.catalog)
    if source.kind is not SourceKind.POSTGRES:
        return platform.source(source, mine, columns)
    from selfmaint.postgres.connection import TIMEOUT_S  # noqa: PLC0415 - the driver only when it is needed
    from selfmaint.postgres.source import PostgresSource  # noqa: PLC0415

    tables = {name: entry.location.text for name, entry in mine.items()}
    expected = {name: expected_columns(columns[name]) for name in mine}
    timeout_s = TIMEOUT_S if source.timeout_s is None else source.timeout_s
    return PostgresSource(source.name, url_of(source), platform.exchange, tables, expected, timeout_s)


def url_of(source: SourceEntry) -> str:
    """The URL of a source of PostgreSQL.

    Raises:
        SourceError: SM401 it is not in the environment.
    """
    if source.url is not None:
        return source.url
    assert source.url_env is not None
    url = os.environ.get(source.url_env, "")
    if not url:
        message = (
            f"the source `{source.name}` has no URL: the environment variable `{source.url_env}` is not set"
        )
        raise SourceError([Diagnostic(Code.SOURCE_UNREACHABLE, message, hint=f"set `{source.url_env}`")])
    return url


@overload
def load(
    path: str | Path,
    spark: SparkSession,
    *,
    engine: Literal["spark"] | None = None,
    as_of: int | str | None = None,
) -> Warehouse[DataFrame]: ...


@overload
def load(
    path: str | Path, spark: None = None, *, engine: Literal["spark"], as_of: int | str | None = None
) -> Warehouse[DataFrame]: ...


@overload
def load(
    path: str | Path, spark: None = None, *, engine: Literal["duckdb"], as_of: int | str | None = None
) -> Warehouse[Relation]: ...


@overload
def load(
    path: str | Path, spark: None = None, *, engine: None = None, as_of: int | str | None = None
) -> Warehouse[Any]: ...


def load(
    path: str | Path,
    spark: SparkSession | None = None,
    *,
    engine: Literal["spark", "duckdb"] | None = None,
    as_of: int | str | None = None,
) -> Warehouse[Any]:
    """A warehouse from its file; see `warehouse_file` for the format.

    Use it as a context manager, so that connections and kept data are let go of:

        with selfmaint.load("warehouse.toml") as warehouse:
            verdicts = warehouse.check(Update.from_files(warehouse, "update"))

    Args:
        path: the TOML file.
        spark: the session to use, which makes the engine Spark; by default the active one, else a new local one.
        engine: which engine to use; by default the one that the file names, else Spark where a session is active
            or DuckDB does not read what is there, else DuckDB.
        as_of: the snapshot of the store to read, or the id of the update that made it; by default the newest.

    Returns:
        The warehouse. Its views and partial copies are read when they are used; a source is connected to when
        a base relation is first read.

    Raises:
        ProgramError: the program is not valid.
        InputError: SM101 the file has unknown, missing or wrong entries, SM102 misspelt names, SM103 contents
            that are not there, SM104 columns that do not fit, SM105 a program that defines no views; all of
            one kind at once. SM501 Spark or Java is missing; SM502 contents that the engine does not read.
        SelfmaintError: SM405 another process is writing the views just now, SM407 a journal beside them that
            was not written for them. SM408 the store is not there, or has no such snapshot.
    """
    file = at_snapshot(read_warehouse_file(path, spark), as_of)
    chosen = engine if spark is None else EngineKind.SPARK
    return open_warehouse(file, spark, None if chosen is None else EngineKind(chosen))


def at_snapshot(file: WarehouseFile, as_of: int | str | None) -> WarehouseFile:
    """A warehouse file with its store at a snapshot.

    Raises:
        InputError: SM101 its views are not in a store; SM408 no update of that id was committed to it.
    """
    if as_of is None:
        return file
    if file.store is None:
        raise no_snapshots(f"`{file.path}`")
    if isinstance(as_of, str):
        from selfmaint.duckdb.database import Database  # noqa: PLC0415 - DuckDB only where there is a store
        from selfmaint.duckdb.store import opened  # noqa: PLC0415

        as_of = snapshot_of(opened(Database(file.engine.options), file.store), as_of)
    return replace(file, store=replace(file.store, version=as_of))


def open_warehouse(
    file: WarehouseFile, spark: SparkSession | None = None, engine: EngineKind | None = None
) -> Warehouse[Any]:
    """The warehouse that a warehouse file describes; see `load`."""
    return first_that_can(engines_for(file, engine), lambda kind: _opened(file, spark, kind))


def _opened(file: WarehouseFile, spark: SparkSession | None, kind: EngineKind) -> Warehouse[Any]:
    """The warehouse, with an engine."""
    local = [*_locations(file).values(), *_copy_locations(file).values()]
    recover([Path(path) for path in local])
    platform = platform_of(opened_engine(kind, spark, file.engine))
    marks = fingerprints(local)
    columns = columns_of(file.catalog)
    store = None if file.store is None else OpenStore.at(platform, file.store)
    file = replace(file, catalog=of_contents(file.catalog, store))
    if store is not None:
        require_unedited(file.catalog, store)
    contents, present, absent = _contents(platform, file, columns, store)
    in_text = {n for n, place in file.views.items() if store is None and _is_of_text(place)}
    return Warehouse(
        catalog=replace(
            file.catalog, loose=StoredTypes(platform, file.catalog, contents, frozenset(in_text))
        ),
        engine=platform.engine,
        contents=contents,
        present=present,
        absent=absent,
        readable=readable(platform, file),
        locations=_locations(file),
        copy_locations=_copy_locations(file),
        tables={name: place.text for name, place in file.views.items() if place.is_table},
        effective=file.effective,
        fingerprints=marks,
        feeds=file.feeds,
        budget_s=file.budget_s,
        search=file.search,
        store=store,
    )


def _is_of_text(location: Location) -> bool:
    return not location.is_table and format_of(location.text) in (Format.CSV, Format.JSON_LINES)


def _contents(
    platform: Platform[D], file: WarehouseFile, columns: Mapping[str, Columns], store: OpenStore | None
) -> tuple[dict[str, D], dict[str, D], dict[str, D]]:
    """The rows of the views and of both kinds of partial copies; what is wrong with any is raised at once."""
    problems: list[Diagnostic] = []

    def read(locations: Mapping[str, Location | None]) -> dict[str, D]:
        found = {}
        for name, location in locations.items():
            if location is not None:
                try:
                    found[name] = (
                        platform.read_rows(location, columns[name])
                        if store is None
                        else platform.read_stored(store.table(location.text), columns[name])
                    )
                except InputError as error:
                    problems.extend(error.diagnostics)
        return found

    views = read({view.name: file.views[view.name] for view in file.catalog.views})
    present = read({name: entry.present for name, entry in file.copies.items()})
    absent = read({name: entry.absent for name, entry in file.copies.items()})
    if not problems:
        problems = known_families(platform, file.catalog, views, present, absent).problems
    if problems:
        raise InputError(problems)
    return with_counts(platform, file.catalog, as_queried(platform, file.catalog, views)), present, absent


def _locations(file: WarehouseFile) -> dict[str, str]:
    """Where the views are that can be written: local files."""
    return {name: place.text for name, place in file.views.items() if place.is_local}


def _copy_locations(file: WarehouseFile) -> dict[Predicate, str]:
    found = {}
    for name, entry in file.copies.items():
        for version, place in ((Version.PRESENT, entry.present), (Version.ABSENT, entry.absent)):
            if place is not None and place.is_local:
                found[Predicate(name, version)] = place.text
    return found
