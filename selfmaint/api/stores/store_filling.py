"""A store is filled: with what is stored elsewhere, or computed from the sources."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from selfmaint.api.apply import as_declared
from selfmaint.api.columns import Columns, columns_of
from selfmaint.api.declared_rows import require_as_declared
from selfmaint.api.file.file_settings import EngineKind
from selfmaint.api.file.places import Location
from selfmaint.api.file.warehouse_file import SourceKind
from selfmaint.api.following.how_followed import why_not_run
from selfmaint.api.following.moved import dated, of_contents
from selfmaint.api.following.over_views import tables_known
from selfmaint.api.platforms.platform import Platform, with_counts
from selfmaint.api.stored_types import StoredTypes, as_queried, require_stored_as_queried
from selfmaint.api.stores.store import OpenStore, above, changing, program_of, require_unedited, said_of
from selfmaint.engine.protocol import D, Facts
from selfmaint.errors import Code, InputError, first_line, input_error
from selfmaint.fallback.recompute import Recomputing, views_with_obstacles
from selfmaint.store.expected import nothing_stored
from selfmaint.store.place import Place
from selfmaint.store.stored_tables import Commit
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.reads import reads
from selfmaint.warehouse.situation import Situation

if TYPE_CHECKING:
    from selfmaint.api.file.warehouse_file import WarehouseFile
    from selfmaint.api.log.log_source import Start
    from selfmaint.duckdb import Relation
    from selfmaint.duckdb.store import Store
    from selfmaint.fallback.settle import Readable
    from selfmaint.store.log_position import LogPosition

Told = Callable[[str], None]


class Filling(Struct, frozen=True):
    """What contents a store gets.

    Attributes:
        origins: for views and partial copies, the files, folders or tables that their rows are brought in from;
            views that are not named are computed from their sources.
        views: the views to bring in, where the store is there already; None for a new store, which gets all.
        keep: views whose stored rows are those of their new definitions, too.
        progress: told of each step.
    """

    origins: Mapping[str, Location] = field(default_factory=dict)
    views: Collection[str] | None = None
    keep: Collection[str] = ()
    progress: Told = lambda _message: None


def fill_store(
    file: WarehouseFile, platform: Platform[D], readable: Mapping[str, Readable[D]], filling: Filling
) -> dict[str, int]:
    """Makes a store with the contents of all views, or brings some views in anew; all or nothing.

    Raises:
        InputError: SM103 a view with neither origin nor sources; SM104 contents that do not fit; SM303 base rows that
            are not as declared; SM405 the store is there already, or is being written to; SM408.
        SourceError: a source that does not answer.
    """
    filling = _with_others(file.catalog, filling)
    file = _at_contents(file, platform, filling)
    assert file.store is not None
    names = _tables(file, filling)
    origins = {name: filling.origins[name] for name in names if name in filling.origins}
    columns, catalog = columns_of(file.catalog), file.catalog
    given = {n: platform.read_rows(place, columns[n.partition("@")[0]]) for n, place in origins.items()}
    taken = {} if filling.views is not None else _taken(platform, file.store, columns)
    given |= taken
    given = as_queried(platform, catalog, given)
    computed = [view for view in catalog.views if view.name in names and view.name not in given]
    copies = [name for name in names if "@" in name and name not in given]
    _require_computable(file, platform, computed, readable, copies)
    open_ = None if filling.views is None else OpenStore.at(platform, file.store)
    if open_ is not None:
        file.store.require_writable()
        below = {name for view in computed for name in reads(catalog)[view.name]}
        require_unedited(catalog, open_, below - {*names, *filling.keep})
    before = None if open_ is None else open_.log_position()
    is_whole = len(computed) == len(catalog.views) and not given
    with _start(file, readable, before, is_whole=is_whole) as start:
        others = given if open_ is None else {**_stored(platform, open_, file.catalog, names), **given}
        others = as_queried(platform, catalog, others)
        loose = StoredTypes(platform, catalog, others, frozenset())
        require_stored_as_queried(replace(catalog, loose=loose), computed)
        rows = {**given, **_computed(platform, catalog, computed, others, readable, filling.progress)}
        filling.progress("writing the store")
        log = None if start is None else start.position(before)
    if open_ is None:
        mine = {name: its for name, its in rows.items() if name not in taken}
        definitions = said_of(catalog, names)
        moment, program = _moment(catalog), program_of(catalog)
        said = Commit("init", log=log, moment=moment, definitions=definitions, program=program)
        return _made(platform, file.store, mine, said, hidden=catalog.helpers)
    with changing(open_, "import") as folder:
        new = _in_store(platform, open_.store, rows, folder)
        definitions = said_of(catalog, {*names, *filling.keep})
        said = Commit("import", log=log, moment=_moment(catalog), definitions=definitions)
        open_.store.commit({}, said, after=open_.version, new=new, hidden=catalog.helpers)
    return _sizes(new)


def _with_others(catalog: Catalog, filling: Filling) -> Filling:
    """The same, with what has to follow the views that are brought in: their helpers, and the views that read them."""
    if filling.views is None:
        return filling
    names = {helper for helper, name in catalog.helpers.items() if name in filling.keep}
    names |= set(filling.views) - set(filling.keep)
    while more := _that_follow(catalog, names) - names - set(filling.keep):
        names |= more
    first = [name for name in filling.views if name in names]
    return replace(filling, views=[*first, *sorted(names - set(first))])


def _that_follow(catalog: Catalog, names: Collection[str]) -> frozenset[str]:
    """The helpers of views, the views of helpers, which are of one definition with them, and the views above.

    A view that is written over others may be decided over what is below these: its definition changes with theirs.
    """
    pairs = (pair for pair in catalog.helpers.items() if not set(names).isdisjoint(pair))
    queries = {view.name: catalog.queries and catalog.queries(view.name, ()) for view in catalog.views}
    written = {
        n for n, one in queries.items() if one is not None and not set(names).isdisjoint(one.relations)
    }
    return above(catalog, names) | written | {name for pair in pairs for name in pair}


def _moment(catalog: Catalog) -> datetime | None:
    """The moment that rows are of that are computed by these definitions."""
    return None if catalog.clock is None else catalog.clock.moment


def _at_contents(file: WarehouseFile, platform: Platform[D], filling: Filling) -> WarehouseFile:
    """The file with the definitions that new rows are to be of: those of the rows that the store has."""
    names = dated(file.catalog)
    wrong = next((name for name in names if name in filling.origins), None)
    if wrong is not None:
        message = (
            f"the rows of `{wrong}` depend on the current date or time, and nobody knows of which these are"
        )
        raise input_error(
            Code.UNKNOWN_RELATION, message, "leave them out: they are computed from its sources"
        )
    if filling.views is None or not names:
        return file
    assert file.store is not None
    open_ = OpenStore.at(platform, file.store)
    if open_.moment() is None and set(names) <= set(filling.views):
        return file
    return replace(file, catalog=of_contents(file.catalog, open_))


def _taken(platform: Platform[D], place: Place, columns: Mapping[str, Columns]) -> dict[str, D]:
    """The rows of the tables that a new store takes as they are."""
    if not place.elsewhere:
        return {}
    from selfmaint.store.delta import is_delta_table, table_files  # noqa: PLC0415 - where there are Delta tables

    for name, path in place.elsewhere.items():
        if not is_delta_table(path):
            message = f"`{path}`, where the view `{name}` is to be, is no Delta table"
            hint = "leave its `path` out, and `selfmaint init` makes one in the store's folder"
            raise input_error(Code.MISSING_CONTENTS, message, hint)
    return {n: platform.read_stored(table_files(n, p), columns[n]) for n, p in place.elsewhere.items()}


def _start(
    file: WarehouseFile, readable: Mapping[str, Readable[D]], before: LogPosition | None, *, is_whole: bool
) -> contextlib.AbstractContextManager[Start | None]:
    """Where contents that are computed meanwhile are in the log that they will follow; None if they follow none."""
    if file.follow is None and before is None:
        return contextlib.nullcontext()
    from selfmaint.api.log.log_source import started  # noqa: PLC0415 - the driver only where a log is followed

    return started(file, next((one.source for one in readable.values()), None), before, is_whole=is_whole)


def _stored(platform: Platform[D], open_: OpenStore, catalog: Catalog, but: Collection[str]) -> dict[str, D]:
    """The rows of the other views that the store has."""
    columns, there = columns_of(catalog), open_.store.catalog.tables(open_.version)
    return {
        view.name: platform.read_stored(open_.table(view.name), columns[view.name])
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
    given = (*filling.origins, *(filling.views or ()), *filling.keep)
    wrong = [name for name in given if name not in every]
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
                f"the names `{other}` and `{name}` differ in case alone: a store has one table of the two"
            )
            raise input_error(Code.LAKE, message, "rename one")
    return every if filling.views is None else [name for name in every if name in filling.views]


def _require_computable(
    file: WarehouseFile,
    platform: Platform[D],
    views: list[View],
    readable: Mapping[str, Readable[D]],
    copies: list[str],
) -> None:
    """Refuses, before anything is read, what has neither origin nor sources, and what the engine does not run."""
    found = [
        Diagnostic(
            Code.MISSING_CONTENTS,
            f"the partial copy `{name}` has no origin",
            hint=f"give `--from {name}=PATH`",
        )
        for name in copies
    ]
    timed = dated(file.catalog)
    for view, one in views_with_obstacles(file.catalog, views, readable):
        hint = (
            one.hint if view.name in timed else f"{one.hint}; or say where its rows are: `--from VIEW=PATH`"
        )
        hint = f"{hint}; or leave a model of dbt out: `dbt_unstored`" if file.is_dbt else hint
        found.append(Diagnostic(Code.MISSING_CONTENTS, one.message, one.span, hint=hint))
    needed = {name for view in views for name in reads(file.catalog)[view.name]}
    for name, entry in file.relations.items():
        place = entry.location.text
        here = entry.source.kind is SourceKind.FILES and "://" not in place
        if name in needed and here and not Path(place).exists():
            found += nothing_stored(name, place).diagnostics
    if platform.engine.name == EngineKind.DUCKDB:
        found += _not_run(file.catalog, views)
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
    from selfmaint.decide.decision import Decision  # noqa: PLC0415 - only where something is computed

    if not views:
        return {}
    engine, columns = platform.engine, columns_of(catalog)
    # Nothing is known of the sources: what the store holds may be what is to be repaired.
    empty = {v.name: engine.load((), columns[v.name].names, columns[v.name].types) for v in catalog.views}
    facts = {catalog.view(n).predicate: rows for n, rows in with_counts(platform, catalog, empty).items()}
    counted = with_counts(platform, catalog, {n: rows for n, rows in given.items() if "@" not in n})
    known = Decision(catalog).knowledge(engine, Facts(facts), Situation())
    recomputing = Recomputing(known, readable, lambda view: counted[view.name], progress)
    found = recomputing.recomputed(views).contents
    progress("checking what is declared of the base relations")
    require_as_declared(engine, catalog.relations, recomputing.bases)
    bags = {
        catalog.view(n).predicate: engine.bags.expanded(r) if catalog.view(n).is_counted else r
        for n, r in found.items()
    }
    return {predicate.name: rows for predicate, rows in as_declared(catalog, bags, platform).items()}


def _not_run(catalog: Catalog, views: Sequence[View]) -> Iterator[Diagnostic]:
    """The queries that DuckDB does not run."""
    from selfmaint.duckdb.text_views import refused_view  # noqa: PLC0415 - where there is DuckDB

    for view in views:
        why = why_not_run(view, tables_known(catalog))
        if why is not None:
            yield from refused_view(view.name, why).diagnostics


def _made(
    platform: Platform[D], place: Place, rows: Mapping[str, D], said: Commit, *, hidden: Collection[str]
) -> dict[str, int]:
    """A new store, put in its place as a whole."""
    from selfmaint.duckdb.store import made  # noqa: PLC0415 - see `OpenStore.at`

    new = place.new
    try:
        place.require_none()
        new.folder.mkdir(parents=True, exist_ok=True)
        with new.writing("init"):
            new.cleared()
            store = made(platform.store_database, new)
            with new.staging() as folder:
                tables = _in_store(platform, store, rows, folder)
                store.commit({}, said, after=None, new=tables, hidden=hidden)
                sizes = _sizes(tables)
            new.published(place)
    except OSError as failure:
        message = f"the {place.kind} `{place.folder}` cannot be made: {first_line(failure)}"
        raise input_error(Code.WRITE_FAILED, message) from failure
    return sizes


def _in_store(
    platform: Platform[D], store: Store, rows: Mapping[str, D], folder: Path
) -> dict[str, Relation]:
    return {
        name: platform.in_store(store, one, folder / str(i)) for i, (name, one) in enumerate(rows.items())
    }


def _sizes(tables: Mapping[str, Relation]) -> dict[str, int]:
    return {name: rows.stored.known_rows or 0 for name, rows in tables.items()}
