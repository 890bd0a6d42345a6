"""The warehouse file: TOML that says what the views are and where everything is. Reading it reads no data.

    program = "views.dl"              # rules and declarations, or SQL (`.sql`, or a directory of such files);
                                      # or program_text = '''...''', or dbt_manifest = "target/manifest.json",
                                      # or catalog = "database" (or a list of views) of Spark's catalog, with
                                      # tables = "tables.sql" for the keys of their tables
    [views.v1]                        # one for each view
    path = "views/v1"                 # Parquet, CSV or JSON lines; or table = "database.v1"; not with a store
    [store]                           # optional: where the views are kept that have no places of their own
    kind = "lake"                     # a DuckLake: all views change in one transaction; or "delta", Delta tables
    path = "lake"                     # its folder, which `selfmaint init` makes
    helpers = true                    # optional: keep the sums that views in SQL need beside them
    [sources.ops]                     # where base relations live
    kind = "postgres"                 # or "files", or "spark" (tables of Spark's catalog)
    url_env = "OPS_URL"               # the environment variable with the URL; or `url`, without a password
    timeout_s = 60                    # optional: how long the server may take to answer; or inf
    [relations.orders]                # optional: a base relation that may be read
    source = "ops"
    table = "public.orders"           # or path = "..." for files
    cost = 4.0                        # of one looked-up key; by default estimated from the number of rows
    [copies.part]                     # optional: a partial copy
    present = "copies/part_present"   # rows known to be there
    absent = "copies/part_absent"     # rows known not to be there; with a store `true` instead of a path
    [update]
    effective = true                  # inserted rows were absent before, deleted ones present
    inexact_sums = true               # optional, at the top: maintain sums of doubles, exact but for their last digits
    budget_s = 60                     # optional, at the top: seconds that a search may take for one view; 10
    [engine]                          # optional; and [search], [feed], [follow]: see `file_settings`

Paths are relative to the file. Every problem is reported at once, each with its place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from datalog.budget import DEFAULT_S
from datalog.diagnostics import Diagnostic, ProgramError
from datalog.model import Predicate
from datalog.syntax import show
from selfmaint.api.file.file_settings import (
    EngineSettings,
    FollowSettings,
    engine_settings,
    feed_settings,
    follow_settings,
    search_budget,
    source_in,
)
from selfmaint.api.file.places import (
    CopyEntry,
    Location,
    copy_of,
    has_helpers,
    is_in_store,
    local_path,
    paths_of_relations,
    report_overlaps,
    resolved,
    store,
    url_in,
    views_of,
)
from selfmaint.api.file.programs import catalog_of, catalog_of_path, catalog_of_sql
from selfmaint.api.file.toml_tables import KeyPath, TomlFile, TomlTable, dotted
from selfmaint.decide.search_budget import DEFAULT_SEARCH, SearchBudget
from selfmaint.errors import Code, InputError
from selfmaint.feeds.settings import FeedSettings
from selfmaint.store.place import Place
from selfmaint.warehouse import clock
from selfmaint.warehouse.catalog import Catalog, with_inexact_sums
from selfmaint.warehouse.helper_costs import Helper, helpers
from selfmaint.warehouse.near import near_miss
from selfmaint.warehouse.situation import Situation

if TYPE_CHECKING:
    from selfmaint.spark import SparkSession


_KEYS = (
    *("program", "program_text", "dbt_manifest", "dbt_unstored", "catalog", "tables", "inexact_sums"),
    *("budget_s", "search"),
    *("views", "store", "sources", "relations", "copies", "update", "engine", "feed", "follow"),
)
"""What may stand at the top of a warehouse file."""
_ONLY_FOR = {
    "tables": ("catalog", "views of Spark's catalog"),
    "dbt_unstored": ("dbt_manifest", "models of a dbt project"),
}


@unique
class SourceKind(Enum):
    """What a source is."""

    POSTGRES = "postgres"
    FILES = "files"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A place where base relations live; a URL is never shown.

    Attributes:
        name: its name in the file.
        url: how to connect, for PostgreSQL.
        url_env: the environment variable that holds the URL.
        timeout_s: how long the server may take to answer, if the file says so.
    """

    name: str
    kind: SourceKind
    url: str | None = dataclasses.field(default=None, repr=False)
    url_env: str | None = None
    timeout_s: float | None = None


_OF_SOURCES = ("kind", "url", "url_env", "timeout_s")
_LOCAL = SourceEntry("files", SourceKind.FILES)
"""Where a `path` is that names no source."""


class RelationEntry(Struct, frozen=True):
    """Where a base relation is, what looking up one key costs (None: to be estimated), and see `Readable`."""

    source: SourceEntry
    location: Location
    cost: float | None = None
    is_after: bool = False


class WarehouseFile(Struct, frozen=True):
    """What a warehouse file says.

    Attributes:
        catalog: the views' definitions and the base relations' declarations.
        views: where each view's rows are.
        relations: the base relations that may be read.
        copies: the partial copies by base relation.
        effective: whether updates are effective unless said otherwise.
        feeds: how change feeds are to be read.
        budget_s: how many seconds a search may take for one view.
        engine: which engine it is opened with, unless a call says otherwise.
        store: where views and partial copies are kept, if in a store.
        follow: the log that the views follow, if they do.
        is_dbt: whether the definitions are those of a dbt project.
    """

    path: Path
    catalog: Catalog
    views: Mapping[str, Location]
    relations: Mapping[str, RelationEntry] = field(default_factory=dict)
    copies: Mapping[str, CopyEntry] = field(default_factory=dict)
    effective: bool = False
    feeds: FeedSettings = field(default_factory=FeedSettings)
    budget_s: float = DEFAULT_S
    search: SearchBudget = DEFAULT_SEARCH
    engine: EngineSettings = field(default_factory=EngineSettings)
    store: Place | None = None
    follow: FollowSettings | None = None
    is_dbt: bool = False

    def known(self, effective: bool | None = None) -> Situation:
        """What it says to be known besides the views; `effective` goes before what it says of updates."""
        return Situation(
            present=frozenset(name for name, entry in self.copies.items() if entry.present),
            absent=frozenset(name for name, entry in self.copies.items() if entry.absent),
            effective=self.effective if effective is None else effective,
        )


def read_warehouse_file(path: str | Path, spark: SparkSession | None = None) -> WarehouseFile:
    """What a warehouse file says, checked as far as it can be without data.

    Args:
        path: the TOML file.
        spark: the session whose catalog has the views, if it says so; by default the active one, else a new one.

    Raises:
        ProgramError: the program is not valid, and nothing else is wrong.
        InputError: SM101 and SM102 for every unknown key, missing entry, wrong type and misspelt name, SM103
            for a missing file, SM105 for a fact among the rules; with the program's problems.
    """
    file = TomlFile.read(Path(path))
    root = file.root(_KEYS)
    schema, faults = _catalog(root, spark, helpers=has_helpers(root))
    if root.flag("inexact_sums") and schema is not None:
        schema = with_inexact_sums(schema)
    sources = {n: _source(n, t) for n, t in root.tables("sources", _OF_SOURCES).items()}
    place, in_store = store(root), is_in_store(root)
    views = views_of(root, schema, place)
    tables = root.tables("relations", ("source", "table", "path", "cost", "after_update"))
    relations = {n: _relation(t, sources) for n, t in tables.items()}
    tables = root.tables("copies", ("present", "absent"))
    copies = {n: copy_of(n, t, in_store=in_store) for n, t in tables.items()}
    budget_s, search = root.seconds("budget_s"), search_budget(root)
    effective = root.table("update", ("effective",)).flag("effective")
    engine = engine_settings(root)
    feeds = feed_settings(root, None if schema is None else schema.relations)
    follow = follow_settings(root, {n: None if s is None else s.kind.value for n, s in sources.items()})
    if schema is not None:
        if follow is not None:
            _check_followed(file, schema, relations, follow, in_store=in_store)
        _check_names(file, schema, in_store=in_store)
        _check_declared(file, schema, relations)
    _check_overlaps(root, views, relations, copies, place)
    if file.all_problems:
        file.problems.extend(faults)
        raise InputError(file.all_problems)
    if schema is None:
        raise ProgramError(faults)
    return WarehouseFile(
        path=file.path,
        catalog=schema,
        views={n: location for n, location in views.items() if location is not None},
        relations={n: entry for n, entry in relations.items() if entry is not None},
        copies=copies,
        effective=bool(effective),
        feeds=feeds,
        engine=engine,
        store=place,
        follow=follow,
        budget_s=DEFAULT_S if budget_s is None else budget_s,
        search=search,
        is_dbt="dbt_manifest" in root.data,
    )


def possible_helpers(path: str | Path) -> tuple[Helper, ...]:
    """The helpers of views where a lake keeps them, whether the warehouse file says so or not."""
    schema, _ = _catalog(TomlFile.read(Path(path)).root(_KEYS), None, helpers=True)
    return () if schema is None else helpers(schema)


def _catalog(
    root: TomlTable, spark: SparkSession | None, *, helpers: bool
) -> tuple[Catalog | None, tuple[Diagnostic, ...]]:
    """The program's catalog, or what is wrong with the program."""
    others = ("program", "program_text", "dbt_manifest")
    for key, (of, what) in _ONLY_FOR.items():
        if key in root.data and of not in root.data:
            root.file.report((key,), f"`{key}` is for {what}: there is no `{of}`")
    try:
        if "catalog" in root.data and not any(key in root.data for key in others):
            from selfmaint.api.file.catalog_views import read_catalog_key  # noqa: PLC0415 - SQL only where views are in it

            found = read_catalog_key(root, spark)
            return (None if found is None else catalog_of_sql(found)), ()
        given = root.one_of(*others, "catalog")
        return (None if given is None else _given_catalog(root, *given, helpers=helpers)), ()
    except ProgramError as error:
        return None, error.diagnostics
    except InputError as error:
        root.file.problems.extend(error.diagnostics)
        return None, ()


def _given_catalog(root: TomlTable, key: str, value: str, *, helpers: bool) -> Catalog:
    path = root.file.path.parent / value
    if key == "program":
        return catalog_of_path(path, helpers=helpers, moment=clock.now())
    if key == "dbt_manifest":
        from selfmaint.api.file.dbt_manifest import Given, catalog_of_dbt  # noqa: PLC0415 - see above

        given = Given(paths_of_relations(root), root.texts("dbt_unstored"))
        return catalog_of_dbt(path, given, helpers=helpers, moment=clock.now())
    text = root.file.in_place(key, value)
    return catalog_of(text, str(root.file.path), helpers=helpers, moment=clock.now())


def _source(name: str, table: TomlTable) -> SourceEntry | None:
    """A source; None for one that is reported."""
    kinds = [kind.value for kind in SourceKind]
    kind = table.required("kind", f"one of {', '.join(f'`{k}`' for k in kinds)}")
    if kind is None or table.among("kind", kinds, "`{}` is no kind of source", "kind") is None:
        return None
    if SourceKind(kind) is not SourceKind.POSTGRES:
        table.refuse(("url", "url_env", "timeout_s"), f"{table.shown} of kind `{kind}` has no `{{}}`")
        return SourceEntry(name, SourceKind(kind))
    given, timeout_s = url_in(table, "url"), table.seconds("timeout_s")
    if given is None:
        return None
    urls = dict([given])
    return SourceEntry(
        name, SourceKind.POSTGRES, url=urls.get("url"), url_env=urls.get("url_env"), timeout_s=timeout_s
    )


def _relation(table: TomlTable, sources: Mapping[str, SourceEntry | None]) -> RelationEntry | None:
    """A base relation that may be read; None for one that is reported."""
    cost, place = table.number("cost"), table.one_of("table", "path")
    is_after = bool(table.flag("after_update"))
    if "source" not in table.data and place is not None and place[0] == "path":
        return RelationEntry(_LOCAL, resolved(table, *place), cost, is_after)
    name = source_in(table, sources)
    source = None if name is None else sources[name]
    if source is None or place is None:
        return None
    wanted, kind = "path" if source.kind is SourceKind.FILES else "table", source.kind.value
    if place[0] != wanted:
        message = f"a relation in the source `{name}` of kind `{kind}` has a `{wanted}`, no `{place[0]}`"
        table.report(place[0], message)
        return None
    return RelationEntry(source, resolved(table, *place), cost, is_after)


def _check_names(file: TomlFile, schema: Catalog, *, in_store: bool) -> None:
    """Whether the file's views are the program's, and its relations and copies base relations."""
    views = [view.name for view in schema.views]
    given = file.data.get("views")
    # Of `[stor]` or `[veiws.v]` that is said, not what follows.
    is_misnamed = given is None and bool(file.unknown)
    for name in () if in_store or is_misnamed else views:
        if not isinstance(given, dict) or name not in given:
            message = f"the view `{name}` has no entry: its stored rows are needed"
            hint = f"add `[{dotted(('views', name))}]` with `path` or `table`"
            file.report(("views",), message, hint=hint, code=Code.MISSING_CONTENTS)
    known = {"views": views, "relations": [*schema.relations], "copies": [*schema.relations]}
    for section, names in known.items():
        kind = "view" if section == "views" else "base relation"
        entries = file.data.get(section)
        for name in entries if isinstance(entries, dict) else ():
            if name not in names:
                message, hint = f"`{name}` is no {kind} of the program", near_miss(name, names, kind)
                file.report((section, name), message, hint=hint, code=Code.UNKNOWN_RELATION)


def _check_overlaps(
    root: TomlTable,
    views: Mapping[str, Location | None],
    relations: Mapping[str, RelationEntry | None],
    copies: Mapping[str, CopyEntry],
    store: Place | None,
) -> None:
    """Whether everything that is written has a path of its own, in which nothing else lies."""
    written: dict[KeyPath, Location | None] = {("views", n, "path"): place for n, place in views.items()}
    written |= {("copies", name, "present"): entry.present for name, entry in copies.items()}
    written |= {("copies", name, "absent"): entry.absent for name, entry in copies.items()}
    if store is not None:
        written["store", "path"] = Location(str(store.folder))
        written |= {("views", name, "path"): Location(str(path)) for name, path in store.elsewhere.items()}
    sources: dict[KeyPath, Location | None] = {
        ("relations", n, "path"): entry.location for n, entry in relations.items() if entry
    }
    folder = root.file.path.parent
    inputs: dict[KeyPath, str] = {(): str(root.file.path)}
    for key in ("program", "dbt_manifest", "tables"):
        if isinstance(root.data.get(key), str):
            inputs[key,] = str(folder / root.data[key])
    report_overlaps(root.file, _local_paths(written), _local_paths(sources), inputs)


def _local_paths(places: Mapping[KeyPath, Location | None]) -> dict[KeyPath, str]:
    local = {key: place for key, place in places.items() if place and not (place.is_table or place.in_store)}
    found = {key: local_path(place.text) for key, place in local.items()}
    return {key: path for key, path in found.items() if path is not None}


def _check_declared(file: TomlFile, schema: Catalog, relations: Mapping[str, RelationEntry | None]) -> None:
    """Whether the columns of every relation in PostgreSQL have names: a server knows no positions."""
    for name, entry in relations.items():
        if entry is None or name not in schema.relations or schema.program.declaration(name) is not None:
            continue
        if entry.source.kind is SourceKind.POSTGRES:
            message = f"the columns of `{name}` are not declared, so it cannot be read from PostgreSQL"
            hint = f"add `.decl {show(Predicate(name))}(column: type, ...).` to the program"
            file.report(("relations", name), message, hint=hint)


def _check_followed(
    file: TomlFile,
    schema: Catalog,
    relations: Mapping[str, RelationEntry | None],
    follow: FollowSettings,
    *,
    in_store: bool,
) -> None:
    """Whether the views are in a store, and every base relation is a table of the source whose log they follow."""
    if not in_store:
        hint = 'add `[store]` with `kind = "lake"`: it keeps the position in the log with the views'
        file.report(("follow",), "`[follow]` is for views in a store", hint=hint)
    for name in schema.relations:
        entry = relations.get(name)
        if name not in relations or (entry is not None and entry.source.name != follow.source):
            where = "has no entry" if name not in relations else "is in another source"
            message = f"the base relation `{name}` {where}: the log of `{follow.source}` does not say how it changes"
            hint = f'add `[{dotted(("relations", name))}]` with `source = "{follow.source}"` and `table`'
            file.report(("relations", name) if name in relations else ("follow",), message, hint=hint)
