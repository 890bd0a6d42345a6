"""`apply`: the new contents of every view that changed, all of them or none."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from datalog.diagnostics import Diagnostic
from datalog.model import ColumnType, Predicate, Program, Version
from selfmaint.api.columns import columns_of
from selfmaint.api.file.places import Location, fingerprints, require_unchanged
from selfmaint.api.maintain import new_contents
from selfmaint.api.maintained import Maintained
from selfmaint.api.platforms.platform import Platform, expected_columns, platform_of, with_counts
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.engine.column_types import fits
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.errors import Code, InputError, input_error
from selfmaint.store.delta import is_delta_table
from selfmaint.store.expected import require_types
from selfmaint.store.stored_tables import Rewritten, TableChange
from selfmaint.store.write import StagedWrites
from selfmaint.warehouse.catalog import Catalog

_GAINED, _LOST = Version.GAINED, Version.LOST


@dataclass(frozen=True, slots=True)
class Written:
    """Something whose stored rows changed.

    Attributes:
        name: a view, or `relation@present` or `relation@absent`.
        rewritten: what files that took, in a store that writes files anew to delete rows of them.
    """

    name: str
    path: str
    rewritten: Rewritten | None = None


def apply(warehouse: Warehouse[D], maintained: Maintained[D]) -> tuple[Written, ...]:
    """Writes what changes, all or nothing, and goes on with it; see `Warehouse.apply`."""
    _require_current(warehouse, maintained)
    if maintained.differences:
        which = ", ".join(f"`{one.view}`" for one in maintained.differences)
        message = (
            f"recomputing from the sources gives other rows of {which} (`differences`): nothing was written"
        )
        hint = "see which rows differ; `selfmaint import` brings a view in anew"
        raise input_error(Code.NOT_MAINTAINED, message, hint)
    if warehouse.store is not None:
        return _committed(warehouse, maintained)
    filled = _filled(warehouse, maintained)
    tables = _table_changes(warehouse, maintained, filled)
    views = _views(warehouse, maintained, filled)
    counted = {view.predicate for view in warehouse.catalog.views if view.is_counted}
    bags = {p: warehouse.engine.bags.expanded(r) if p in counted else r for p, r in views.items()}
    changes = {**bags, **dict(_new_copies(warehouse, maintained.update))}
    places = _paths(warehouse)
    _require_local(changes, places)
    written = [Written(str(predicate), places[predicate]) for predicate in changes]
    written += [Written(one.view, warehouse.tables[one.view]) for one in tables]
    if written:
        platform = platform_of(warehouse.engine)
        changes |= as_declared(warehouse.catalog, bags, platform)
        files = [Path(places[predicate]) for predicate in changes]
        with contextlib.ExitStack() as held:
            statements = held.enter_context(platform.table_writes(tables)) if tables else None
            writes = held.enter_context(StagedWrites(files, map(Path, places.values())))
            require_unchanged(warehouse.fingerprints)
            for predicate, rows in changes.items():
                writes.add(Path(places[predicate]), platform.writing(rows))
            if statements is not None:  # what may fail comes before what is undone by itself
                statements.run()
            writes.switch()
        _go_on(warehouse, [*changes, *(warehouse.view(one.view).predicate for one in tables)], platform)
    order = {view.name: place for place, view in enumerate(warehouse.catalog.views)}
    return tuple(sorted(written, key=lambda one: order.get(one.name, len(order))))


def _filled(warehouse: Warehouse[D], maintained: Maintained[D]) -> frozenset[Predicate]:
    """The sides of the deltas that have rows."""
    deltas = {
        view.predicate.of(version): rows
        for view in warehouse.catalog.views
        for version, rows in (
            (_GAINED, maintained.every[view.name].gained),
            (_LOST, maintained.every[view.name].lost),
        )
    }
    return warehouse.engine.nonempty(Program(), tuple(deltas), Facts(deltas))


def _table_changes(
    warehouse: Warehouse[D], maintained: Maintained[D], filled: frozenset[Predicate]
) -> list[TableChange[D]]:
    """What becomes of the views that are tables of a catalog."""
    from selfmaint.api.printing.statements import tables_of  # noqa: PLC0415 - only where there are such

    found, engine = [], warehouse.engine
    tables = tables_of(warehouse.catalog, warehouse.tables) if warehouse.tables else {}
    for view in warehouse.catalog.views:
        if view.name not in warehouse.tables or not {view.predicate.of(v) for v in (_GAINED, _LOST)} & filled:
            continue
        delta, stored = maintained.every[view.name], warehouse.contents[view.name]
        gained, lost = (
            engine.like(rows, stored) if view.predicate.of(version) in filled else None
            for version, rows in ((_GAINED, delta.gained), (_LOST, delta.lost))
        )
        table = tables[view.predicate.of(Version.BAG) if view.is_counted else view.predicate]
        found.append(TableChange(view.name, table, gained, lost, stored if view.is_counted else None))
    return found


def _committed(warehouse: Warehouse[D], maintained: Maintained[D]) -> tuple[Written, ...]:
    """One transaction of the store: what the views and partial copies gain and lose, and the update."""
    from selfmaint.api.stores.store import commit_changes  # noqa: PLC0415 - only where there is one

    assert warehouse.store is not None
    engine, catalog = warehouse.engine, warehouse.catalog
    sides: dict[Predicate, D] = {}
    stored: dict[str, D] = {}
    for view in catalog.views:
        delta, stored[view.name] = maintained.every[view.name], warehouse.contents[view.name]
        sides |= {view.predicate.of(_GAINED): delta.gained, view.predicate.of(_LOST): delta.lost}
    changed = maintained.update.sides
    for copy, rows, joining, leaving in _copies(warehouse):
        stored[table := str(copy)] = rows
        more = engine.minus(changed[joining], rows) if joining in changed else None
        # Of a partial copy nobody promised that it holds what leaves.
        fewer = _both(engine, changed[leaving], rows) if leaving in changed else None
        sides |= {Predicate(table, v): r for v, r in ((_GAINED, more), (_LOST, fewer)) if r is not None}
    filled = engine.nonempty(Program(), tuple(sides), Facts(sides))
    counted = {view.name for view in catalog.views if view.is_counted}

    def side(name: str, version: Version) -> D | None:
        predicate = Predicate(name, version)
        if predicate not in filled:
            return None
        rows = engine.like(sides[predicate], stored[name])
        return engine.bags.expanded(rows) if name in counted else rows

    changes = {name: (side(name, _GAINED), side(name, _LOST)) for name in stored}
    changes = {name: pair for name, pair in changes.items() if pair != (None, None)}
    now = None if maintained.moved is None else maintained.moved.catalog
    if not changes and now is None and _is_nothing(maintained.update, warehouse.store.positions()):
        return ()
    moment = None if now is None or now.clock is None else now.clock.moment
    done = commit_changes(warehouse, changes, maintained.update, moment)
    if now is not None:
        warehouse.define(now)
    _read_again(warehouse, changes)
    where = warehouse.store.store.place.where
    return tuple(Written(name, str(where(name)), done.rewritten.get(name)) for name in changes)


def _is_nothing(update: Update[D], positions: Mapping[str, str]) -> bool:
    """Whether an update has no rows to know it by, no id, and no position beyond those that its feeds had."""
    moves = any(positions.get(feed) != end for feed, end in update.positions.items())
    return not (update.digest or update.id or moves or update.log)


def _read_again(warehouse: Warehouse[D], changed: Collection[str]) -> None:
    """Takes what was committed for the warehouse's contents."""
    open_, platform = warehouse.store, platform_of(warehouse.engine)
    assert open_ is not None
    warehouse.close()
    columns = columns_of(warehouse.catalog)

    def stored(names: Iterable[str], suffix: str = "") -> dict[str, D]:
        return {
            name: platform.read_stored(open_.table(name + suffix), columns[name])
            for name in names
            if name + suffix in changed
        }

    views = stored(warehouse.contents)
    warehouse.contents = {**warehouse.contents, **with_counts(platform, warehouse.catalog, views)}
    warehouse.present = {**warehouse.present, **stored(warehouse.present, "@present")}
    warehouse.absent = {**warehouse.absent, **stored(warehouse.absent, "@absent")}


def _both(engine: Engine[D], one: D, other: D) -> D:
    """The rows that are in both."""
    return engine.minus(one, engine.minus(one, other))


def _require_current(warehouse: Warehouse[D], maintained: Maintained[D]) -> None:
    """Refuses deltas of other contents than the warehouse has: those would be wrong, or applied twice."""
    if not isinstance(maintained, Maintained):  # callers may not be type-checked
        message = f"`apply` is given a `{type(maintained).__name__}`, and takes what `maintain` gives"
        raise input_error(Code.WRITE_FAILED, message, "`warehouse.apply(warehouse.maintain(update))`")
    if maintained.before is not warehouse.contents:
        raise input_error(
            Code.WRITE_FAILED,
            "these deltas were computed from other contents than the warehouse has now",
            note="another update has been applied since, or this one was; nothing was written",
            hint="`maintain` the update again, if it has not been applied",
        )


def _go_on(warehouse: Warehouse[D], written: Sequence[Predicate], platform: Platform[D]) -> None:
    """Takes what was written for the warehouse's contents; all else that is known of the old ones is let go of."""
    warehouse.close()
    columns, places = columns_of(warehouse.catalog), _paths(warehouse)

    def stored(predicate: Predicate) -> D:
        table = warehouse.tables.get(predicate.name) if predicate not in places else None
        place = Location(places[predicate]) if table is None else Location(table, is_table=True)
        return platform.read_rows(place, columns[predicate.name])

    new = {version: {p.name: stored(p) for p in written if p.version is version} for version in Version}
    warehouse.contents = {
        **warehouse.contents,
        **with_counts(platform, warehouse.catalog, new[Version.STORED]),
    }
    warehouse.present = {**warehouse.present, **new[Version.PRESENT]}
    warehouse.absent = {**warehouse.absent, **new[Version.ABSENT]}
    warehouse.fingerprints = fingerprints(warehouse.fingerprints)


def _paths(warehouse: Warehouse[D]) -> dict[Predicate, str]:
    views = {warehouse.view(name).predicate: path for name, path in warehouse.locations.items()}
    return {**views, **warehouse.copy_locations}


def _views(
    warehouse: Warehouse[D], maintained: Maintained[D], filled: frozenset[Predicate]
) -> dict[Predicate, D]:
    """The new contents of the views in files with a delta that has rows."""
    return {
        view.predicate: maintained.recomputed[view.name]
        if view.name in maintained.recomputed
        else new_contents(warehouse, view, maintained.every[view.name])
        for view in warehouse.catalog.views
        if view.name not in warehouse.tables
        and {view.predicate.of(_GAINED), view.predicate.of(_LOST)} & filled
    }


def _copies(warehouse: Warehouse[D]) -> Iterator[tuple[Predicate, D, Predicate, Predicate]]:
    """The partial copies with their rows, and which side of an update joins each, and which one leaves it."""
    for copies, version, joining, leaving in (
        (warehouse.present, Version.PRESENT, Version.INSERTED, Version.DELETED),
        (warehouse.absent, Version.ABSENT, Version.DELETED, Version.INSERTED),
    ):
        for name, rows in copies.items():
            yield Predicate(name, version), rows, Predicate(name, joining), Predicate(name, leaving)


def _new_copies(warehouse: Warehouse[D], update: Update[D]) -> Iterator[tuple[Predicate, D]]:
    """The partial copies after the update, of the relations that it changes."""
    engine, changed = warehouse.engine, update.sides
    there = warehouse.present or warehouse.absent
    filled = engine.nonempty(Program(), tuple(changed), Facts(changed)) if there and changed else frozenset()
    for copy, rows, joining, leaving in _copies(warehouse):
        left = engine.minus(rows, changed[leaving]) if leaving in filled else rows
        after = engine.union([left, changed[joining]]) if joining in filled else left
        if after is not rows:
            yield copy, after


def as_declared(catalog: Catalog, bags: Mapping[Predicate, D], platform: Platform[D]) -> dict[Predicate, D]:
    """The rows in the types that they are read in: of joined columns the engine may have taken a wider number.

    Raises:
        InputError: SM104 types that could not be read.
    """
    columns, made = columns_of(catalog), {}
    for predicate, rows in bags.items():
        if columns[predicate.name].open:
            made[predicate] = rows
            continue
        types = platform.types(rows)
        expected = expected_columns(columns[predicate.name]).given(types)
        wanted = [
            its if _is_wider(its, found) else found for found, its in zip(types, expected.types, strict=True)
        ]
        made[predicate] = rows if wanted == [*types] else platform.retyped(rows, wanted)
        require_types(wanted, expected)
    return made


def _is_wider(declared: ColumnType, found: ColumnType) -> bool:
    """Whether a number is declared, and one is found that may be too wide."""
    return declared.family == found.family == "number" and not fits(found, declared)


def _require_local(changes: Mapping[Predicate, D], places: Mapping[Predicate, str]) -> None:
    """Refuses to write what is not in local files, before anything is written."""
    refused = [p for p in changes if p not in places or is_delta_table(Path(places[p]))]
    if refused:
        raise InputError(
            [
                Diagnostic(
                    Code.WRITE_FAILED,
                    f"`{predicate}` changes, and is not stored in local files that can be replaced",
                    note="nothing was written",
                    hint='store it as plain local files; Delta tables change in a `[store]` with `kind = "delta"`'
                    if predicate in places
                    else "take its `deltas`; a warehouse of `load` says where its rows are written",
                )
                for predicate in refused
            ]
        )
