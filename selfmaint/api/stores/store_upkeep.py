"""A store made and filled; its history, the way back, and its upkeep."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from datalog.copies import replace
from selfmaint.api.file.file_settings import EngineKind
from selfmaint.api.file.places import Location
from selfmaint.api.file.warehouse_file import WarehouseFile, read_warehouse_file
from selfmaint.api.load import readable
from selfmaint.api.platforms.platform import engines_for, first_that_can, opened_engine, platform_of
from selfmaint.api.stores.store import OpenStore, changing, snapshot_of
from selfmaint.api.stores.store_filling import Filling, fill_store
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.store import opened
from selfmaint.errors import Code, SelfmaintError, input_error
from selfmaint.sources.protocol import close_sources
from selfmaint.store.formats import data_files
from selfmaint.store.stored_tables import Commit, Occupied, Snapshot

if TYPE_CHECKING:
    from selfmaint.spark import SparkSession

_LOG = logging.getLogger(__name__)

KEPT_DAYS = 7.0
"""How long snapshots stay, unless it is said otherwise."""

Origins = Mapping[str, str | Path]


def init(  # noqa: PLR0913 - each is a choice of its own
    path: str | Path,
    spark: SparkSession | None = None,
    *,
    origins: Origins | None = None,
    views: Collection[str] | None = None,
    keep: Collection[str] = (),
    engine: Literal["spark", "duckdb"] | None = None,
    progress: Callable[[str], None] = lambda _message: None,
    told: Callable[[str], None] = lambda _message: None,
) -> dict[str, int]:
    """Makes the store of a warehouse file with the contents of all views; or brings some views into it anew.

    Args:
        path: the warehouse file; its `[store]` is a store.
        spark: the session to use, which makes the engine Spark.
        origins: for views (and partial copies, `RELATION@present`) the files, folders or tables of Spark's catalog
            (`table:NAME`) that hold their rows. Views that are not named are computed from their sources.
        views: the views to bring into a store that is there, and the views that read them; by default the store is
            made.
        keep: views in the store whose rows stay: they are those of their new definitions, too.
        engine: which engine computes.
        progress: told of each step.
        told: told why Spark is used, where DuckDB refuses something.

    Returns:
        For each table the number of its rows.

    Raises:
        InputError: SM101 the file names no store; SM102 an origin of something unknown; SM103 a view with neither
            origin nor sources; SM104 contents that do not fit; SM405 the store is there already, or is being written
            to; SM408. Nothing is done then.
        SourceError: a source that does not answer.
    """
    file = read_warehouse_file(path, spark)
    _require_store(file)
    folder = Path.cwd()
    places = {name: _place(str(where), folder) for name, where in (origins or {}).items()}
    filling = Filling(places, views, keep, progress)

    def run(kind: EngineKind) -> dict[str, int]:
        platform = platform_of(opened_engine(kind, spark, file.engine))
        sources = readable(platform, file)
        try:
            return fill_store(file, platform, sources, filling)
        finally:
            close_sources(entry.source for entry in sources.values())

    chosen = engine if spark is None else EngineKind.SPARK
    if any(place.is_table for place in places.values()):
        chosen = EngineKind.SPARK
    return first_that_can(engines_for(file, None if chosen is None else EngineKind(chosen)), run, told)


def origins_in(folder: Path, names: Collection[str]) -> dict[str, Path]:
    """The files and folders in a folder that are named as views are, with or without a suffix."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        name = path.name if path.name in names else path.stem
        if name in names and (path.is_file() or data_files(path)):
            if name in found:
                message = f"`{found[name]}` and `{path}` are both named as `{name}`"
                raise input_error(Code.WAREHOUSE_FILE, message, "say which: `--from NAME=PATH`")
            found[name] = path
    return found


def _place(text: str, folder: Path) -> Location:
    if text.startswith("table:"):
        return Location(text.removeprefix("table:"), is_table=True)
    return Location(text if "://" in text else str((folder / text).absolute()))


def store_of(path: str | Path) -> OpenStore:
    """The store of a warehouse file, opened without the rest.

    Raises:
        InputError: SM101 the file names no store; SM408 there is none.
    """
    file = read_warehouse_file(path)
    _require_store(file)
    assert file.store is not None
    return OpenStore.over(opened(Database(file.engine.options), file.store))


def _require_store(file: WarehouseFile) -> None:
    if file.store is None:
        message = f"`{file.path}` keeps its views in places of their own, not in a store"
        hint = 'add `[store]` with `kind = "lake"` and `path`, and leave the paths of the views out'
        raise input_error(Code.WAREHOUSE_FILE, message, hint)


def history(path: str | Path) -> list[Snapshot]:
    """The states of a warehouse's store, oldest first: when each was committed, by which update, and what changed.

    Raises:
        InputError: SM101 the file names no store; SM408 there is none.
    """
    return _snapshots(store_of(path))


def _snapshots(open_: OpenStore) -> list[Snapshot]:
    """The states of a store; of tables that readers are not shown it is not said how they changed."""
    catalog = open_.store.catalog
    hidden = catalog.hidden(catalog.newest())
    commits = [
        (version, replace(said, changes={n: one for n, one in said.changes.items() if n not in hidden}))
        if said.changes
        else (version, said)
        for version, said in open_.store.commits()
    ]
    return catalog.history(commits)


def undo(path: str | Path, to: int | str | None = None) -> tuple[Snapshot, int]:
    """Puts the contents of all views back to what they were before the last update, or at a snapshot, as a new one.

    Args:
        path: the warehouse file.
        to: the snapshot, or the id of the update that made it; by default that before the last update.

    Returns:
        The snapshot whose contents the store has again, and the new one.

    Raises:
        InputError: SM101 the file names no store; SM405 somebody writes; SM408 there is nothing to undo, or the
            snapshot is gone.
    """
    old, new, _ = undone(path, to)
    return old, new


def undone(path: str | Path, to: int | str | None) -> tuple[Snapshot, int, tuple[str, ...]]:
    """The same, with the updates and imports that were taken back, by what tells people which they were."""
    open_ = store_of(path)
    known = {one.version: one for one in _snapshots(open_)}
    done = [version for version, said in open_.commits() if said.kind == "maintain"]
    before = max((version for version in known if done and version < done[-1]), default=-1)
    wanted = before if to is None else snapshot_of(open_.store, to)
    if wanted not in known:
        what = f"the store has no snapshot {wanted}" if wanted >= 0 else "no update is there to be undone"
        hint = "`selfmaint history` lists the snapshots"
        raise input_error(Code.LAKE, f"`{open_.store.place.folder}`: {what}", hint, "nothing was changed")
    kept = [said for version, said in open_.commits() if version <= wanted]
    back = [
        said.about or f"{said.kind} in snapshot {version}"
        for version, said in open_.commits()
        if version > wanted
    ]
    with changing(open_, "undo"):
        new = open_.store.undo(wanted, Commit("undo", str(wanted), kept[-1].positions if kept else None))
    return known[wanted], new, tuple(back)


def compact(
    path: str | Path, *, keep_days: float | None = KEPT_DAYS, dry_run: bool = False
) -> tuple[Occupied, Occupied]:
    """Writes files with many deleted rows anew, puts small ones together, lets go of old snapshots.

    Args:
        path: the warehouse file.
        keep_days: how many days snapshots stay; None keeps all.
        dry_run: only look.

    Returns:
        What the files took up before and after.

    Raises:
        InputError: SM101 the file names no store; SM405 somebody writes; SM408.
    """
    open_ = store_of(path)
    before = open_.store.catalog.occupied()
    if dry_run:
        return before, before
    with changing(open_, "compact"):
        open_.store.compact(keep_days)
    return before, open_.store.catalog.occupied()


def compact_if_due(open_: OpenStore, progress: Callable[[str], None]) -> None:
    """Compacts the tables of the store that have many files or deleted rows.

    Who writes meanwhile goes first: then it is left to the next time.
    """
    tables = open_.store.due()
    if not tables:
        return
    progress("compacting the store")
    try:
        with changing(open_, "compact"):
            open_.store.compact(KEPT_DAYS, tables)
        open_.version = open_.store.catalog.newest()
    except SelfmaintError as error:
        _LOG.warning("the store is not compacted: %s", error)
