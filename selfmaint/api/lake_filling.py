"""A lake is filled: with what is stored elsewhere, or computed from the sources."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from datalog.diagnostics import Diagnostic
from selfmaint.api.apply import as_declared
from selfmaint.api.columns import columns_of
from selfmaint.api.lake import OpenLake, changing
from selfmaint.api.places import Location
from selfmaint.api.platform import Platform, with_counts
from selfmaint.engine.protocol import D, Facts
from selfmaint.errors import Code, InputError, first_line, input_error
from selfmaint.fallback.recompute import Recomputing, obstacles
from selfmaint.store.lake_place import Commit, LakePlace
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.situation import Situation

if TYPE_CHECKING:
    from selfmaint.api.log_source import Start
    from selfmaint.api.warehouse_file import WarehouseFile
    from selfmaint.duckdb import Relation
    from selfmaint.duckdb.lake import Lake
    from selfmaint.fallback.settle import Readable
    from selfmaint.store.log_position import LogPosition

Told = Callable[[str], None]


@dataclass(frozen=True)
class Filling:
    """What contents a lake gets.

    Attributes:
        origins: for views and partial copies, the files, folders or tables that their rows are brought in from;
            views that are not named are computed from their sources.
        views: the views to bring in, where the lake is there already; None for a new lake, which gets all.
        progress: told of each step.
    """

    origins: Mapping[str, Location] = field(default_factory=dict)
    views: Collection[str] | None = None
    progress: Told = lambda _message: None


def fill_lake(
    file: WarehouseFile, platform: Platform[D], readable: Mapping[str, Readable[D]], filling: Filling
) -> dict[str, int]:
    """Makes a lake with the contents of all views, or brings some views in anew; all or nothing.

    Returns:
        For each table the number of its rows.

    Raises:
        InputError: SM103 a view with neither origin nor sources; SM104 contents that do not fit; SM405 the lake is
            there already, or is being written to; SM408.
        SourceError: a source that does not answer.
    """
    assert file.lake is not None
    names = _tables(file, filling)
    origins = {name: filling.origins[name] for name in names if name in filling.origins}
    columns, catalog = columns_of(file.catalog), file.catalog
    given = {n: platform.read_rows(place, columns[n.partition("@")[0]]) for n, place in origins.items()}
    computed = [view for view in catalog.views if view.name in names and view.name not in given]
    _require_computable(
        file, computed, readable, [name for name in names if "@" in name and name not in given]
    )
    open_ = None if filling.views is None else OpenLake.at(platform, file.lake)
    before = None if open_ is None else open_.log_position()
    is_whole = len(computed) == len(catalog.views) and not given
    with _start(file, readable, before, is_whole=is_whole) as start:
        others = given if open_ is None else {**_stored(platform, open_, file.catalog, names), **given}
        rows = {**given, **_computed(platform, catalog, computed, others, readable, filling.progress)}
        filling.progress("writing the lake")
        log = None if start is None else start.position(before)
    if open_ is None:
        return _made(platform, file.lake, rows, Commit("init", log=log))
    with changing(open_, "import") as folder:
        new = _in_lake(platform, open_.lake, rows, folder)
        open_.lake.commit({}, Commit("import", log=log), new=new)
    return _sizes(new)


def _start(
    file: WarehouseFile, readable: Mapping[str, Readable[D]], before: LogPosition | None, *, is_whole: bool
) -> contextlib.AbstractContextManager[Start | None]:
    """Where contents that are computed meanwhile are in the log that they will follow; None if they follow none."""
    if file.follow is None and before is None:
        return contextlib.nullcontext()
    from selfmaint.api.log_source import started  # noqa: PLC0415 - the driver only where a log is followed

    return started(file, next((one.source for one in readable.values()), None), before, is_whole=is_whole)


def _stored(platform: Platform[D], open_: OpenLake, catalog: Catalog, but: Collection[str]) -> dict[str, D]:
    """The rows of the other views that the lake has."""
    columns, there = columns_of(catalog), open_.lake.catalog.tables(open_.version)
    return {
        view.name: platform.read_lake(open_.lake, open_.table(view.name), columns[view.name])
        for view in catalog.views
        if view.name in there and view.name not in but
    }


def _tables(file: WarehouseFile, filling: Filling) -> list[str]:
    """The tables that get contents."""
    copies = [
        place.text
        for entry in file.copies.values()
        for place in (entry.present, entry.absent)
        if place is not None
    ]
    every = [*(view.name for view in file.catalog.views), *copies]
    wrong = [name for name in (*filling.origins, *(filling.views or ())) if name not in every]
    if wrong:
        message = f"`{wrong[0]}` is no view or partial copy of the warehouse"
        raise input_error(Code.UNKNOWN_RELATION, message, f"there are these: {', '.join(every)}")
    helper = next((name for name in filling.origins if name in file.catalog.helpers), None)
    if helper is not None:
        # What is computed from a helper depends on the types of its columns: they are those of its query.
        message = (
            f"`{helper}` is the helper of `{file.catalog.helpers[helper]}`, and is computed from its sources"
        )
        raise input_error(Code.UNKNOWN_RELATION, message, "leave its rows out of what is brought in")
    folded: dict[str, str] = {}
    for name in every:
        other = folded.setdefault(name.casefold(), name)
        if other != name:
            message = (
                f"the names `{other}` and `{name}` differ in case alone: a lake has one table of the two"
            )
            raise input_error(Code.LAKE, message, "rename one")
    return every if filling.views is None else [name for name in every if name in filling.views]


def _require_computable(
    file: WarehouseFile, views: list[View], readable: Mapping[str, Readable[D]], copies: list[str]
) -> None:
    """Refuses, before anything is read, what has neither origin nor sources."""
    found = [
        Diagnostic(
            Code.MISSING_CONTENTS,
            f"the partial copy `{name}` has no origin",
            hint=f"give `--from {name}=PATH`",
        )
        for name in copies
    ]
    for one in obstacles(file.catalog, views, readable):
        hint = f"{one.hint}; or say where its rows are: `--from VIEW=PATH`"
        found.append(Diagnostic(Code.MISSING_CONTENTS, one.message, one.span, hint=hint))
    if found:
        raise InputError(found)


def _computed(
    platform: Platform[D],
    catalog: Catalog,
    views: list[View],
    given: Mapping[str, D],
    readable: Mapping[str, Readable[D]],
    progress: Told,
) -> dict[str, D]:
    """The rows of views, each as often as it stands, from their sources."""
    from selfmaint.decide.procedure import Decision  # noqa: PLC0415 - only where something is computed

    if not views:
        return {}
    engine, columns = platform.engine, columns_of(catalog)
    # Nothing is known of the sources: what the lake holds may be what is to be repaired.
    empty = {v.name: engine.load((), columns[v.name].names, columns[v.name].types) for v in catalog.views}
    facts = {catalog.view(n).predicate: rows for n, rows in with_counts(platform, catalog, empty).items()}
    counted = with_counts(platform, catalog, {n: rows for n, rows in given.items() if "@" not in n})
    recomputing = Recomputing(
        Decision(catalog),
        engine,
        Facts(facts),
        Situation(),
        readable,
        lambda view: counted[view.name],
        progress,
    )
    found = recomputing.recomputed(views).contents
    bags = {
        catalog.view(n).predicate: engine.bags.expanded(r) if catalog.view(n).is_counted else r
        for n, r in found.items()
    }
    return {predicate.name: rows for predicate, rows in as_declared(catalog, bags, platform).items()}


def _made(platform: Platform[D], place: LakePlace, rows: Mapping[str, D], said: Commit) -> dict[str, int]:
    """A new lake, put in its place as a whole."""
    from selfmaint.duckdb.lake import Lake  # noqa: PLC0415 - see `OpenLake.at`

    new = place.new
    try:
        if place.folder.exists() and (not place.folder.is_dir() or any(place.folder.iterdir())):
            message = f"there is something at `{place.folder}` already"
            hint = "`selfmaint import` brings views into a lake; give a new one another folder"
            raise input_error(Code.WRITE_FAILED, message, hint, "nothing was written")
        if place.server is not None and place.server.exists():
            message = f"there is a lake in the schema `{place.server.schema}` already"
            raise input_error(Code.WRITE_FAILED, message, "name another one: `schema`", "nothing was written")
        new.folder.mkdir(parents=True, exist_ok=True)
        with new.writing("init"), tempfile.TemporaryDirectory(prefix="selfmaint-lake-") as folder:
            for left in new.folder.iterdir():  # of one that died
                if left.name != "writer.lock":
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
            new.files.mkdir()
            new.catalog.cleared()
            lake = Lake.new(platform.lake_database, new)
            tables = _in_lake(platform, lake, rows, Path(folder))
            lake.commit({}, said, new=tables)
            sizes = _sizes(tables)
            if place.folder.exists():
                place.folder.rmdir()
            new.folder.rename(place.folder)
            new.catalog.published(place.catalog)
    except OSError as failure:
        message = f"the lake `{place.folder}` cannot be made: {first_line(failure)}"
        raise input_error(Code.WRITE_FAILED, message) from failure
    return sizes


def _in_lake(platform: Platform[D], lake: Lake, rows: Mapping[str, D], folder: Path) -> dict[str, Relation]:
    return {name: platform.in_lake(lake, one, folder / str(i)) for i, (name, one) in enumerate(rows.items())}


def _sizes(tables: Mapping[str, Relation]) -> dict[str, int]:
    return {name: rows.stored.known_rows or 0 for name, rows in tables.items()}
