"""`apply`: the new contents of every view that changed, all of them or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from datalog.diagnostics import Diagnostic
from datalog.model import Predicate, Program, Version
from selfmaint.api.fingerprint import require_unchanged
from selfmaint.api.maintain import Maintained, new_contents
from selfmaint.api.platform import platform_of
from selfmaint.api.warehouse import Update, Warehouse
from selfmaint.engine.protocol import D, Facts
from selfmaint.errors import Code, InputError
from selfmaint.store.write import StagedWrites

_LEAVING, _JOINING = Version.DELETED, Version.INSERTED


@dataclass(frozen=True, slots=True)
class Written:
    """Something whose stored rows changed: a view, or `relation@present` or `relation@absent`."""

    name: str
    path: str


def apply(warehouse: Warehouse[D], maintained: Maintained[D]) -> tuple[Written, ...]:
    """Writes the new contents of the views that changed, and of the partial copies of the changed relations.

    All are written beside the old contents, and switched to only after all are written. A partial copy
    follows the update too, else it would be out of date for the next one: what was deleted leaves `present`
    and joins `absent`, and what was inserted the other way round. Of a view that keeps duplicates each row is
    written as many times as it stands in it.

    Args:
        warehouse: the warehouse, as it was given to `maintain`.
        maintained: what `maintain` returned, and the engine not released since.

    Returns:
        What was written, views in order of definition, then partial copies; nothing if nothing changed.

    Raises:
        InputError: SM405 something that changes is no local file or directory, or another process has written
            since the warehouse was loaded; nothing was written.
        SelfmaintError: SM405 writing or switching failed; every old contents is in place.

    Semantics:
        The warehouse's relations are over the old contents: `load` it anew for the next update.
    """
    views = _views(warehouse, maintained)
    counted = {view.predicate for view in warehouse.catalog.views if view.is_counted}
    bags = {p: warehouse.engine.bags.expanded(r) if p in counted else r for p, r in views.items()}
    changes = {**bags, **_copies(warehouse, maintained.update)}
    _require_local(changes, _paths(warehouse))
    places = _paths(warehouse)
    written = [Written(str(predicate), places[predicate]) for predicate in changes]
    if written:
        platform = platform_of(warehouse.engine)
        known = [Path(path) for path in places.values()]
        with StagedWrites([Path(entry.path) for entry in written], known) as writes:
            require_unchanged(warehouse.fingerprints)
            for predicate, rows in changes.items():
                writes.add(Path(places[predicate]), platform.writing(rows))
            writes.switch()
    return tuple(written)


def _paths(warehouse: Warehouse[D]) -> dict[Predicate, str]:
    views = {warehouse.view(name).predicate: path for name, path in warehouse.locations.items()}
    return {**views, **warehouse.copy_locations}


def _views(warehouse: Warehouse[D], maintained: Maintained[D]) -> dict[Predicate, D]:
    """The new contents of the views with a delta that has rows."""
    deltas = {
        view.predicate.of(version): rows
        for view in warehouse.catalog.views
        for version, rows in (
            (Version.GAINED, maintained.deltas[view.name].gained),
            (Version.LOST, maintained.deltas[view.name].lost),
        )
    }
    filled = warehouse.engine.nonempty(Program(), tuple(deltas), Facts(deltas))
    return {
        view.predicate: maintained.recomputed[view.name]
        if view.name in maintained.recomputed
        else new_contents(warehouse, view, maintained.deltas[view.name])
        for view in warehouse.catalog.views
        if {view.predicate.of(Version.GAINED), view.predicate.of(Version.LOST)} & filled
    }


def _copies(warehouse: Warehouse[D], update: Update[D]) -> dict[Predicate, D]:
    """The partial copies after the update, of the relations that it changes."""
    return {
        **dict(_followed(warehouse, Version.PRESENT, warehouse.present, update.deleted, update.inserted)),
        **dict(_followed(warehouse, Version.ABSENT, warehouse.absent, update.inserted, update.deleted)),
    }


def _followed(
    warehouse: Warehouse[D],
    version: Version,
    copies: Mapping[str, D],
    leaving: Mapping[str, D],
    joining: Mapping[str, D],
) -> Iterator[tuple[Predicate, D]]:
    engine = warehouse.engine
    changes = {
        Predicate(n, v): rows
        for v, part in ((_LEAVING, leaving), (_JOINING, joining))
        for n, rows in part.items()
    }
    filled = engine.nonempty(Program(), tuple(changes), Facts(changes)) if copies and changes else frozenset()
    for name, rows in copies.items():
        left = engine.minus(rows, leaving[name]) if Predicate(name, _LEAVING) in filled else rows
        after = engine.union([left, joining[name]]) if Predicate(name, _JOINING) in filled else left
        if after is not rows:
            yield Predicate(name, version), after


def _require_local(changes: Mapping[Predicate, D], places: Mapping[Predicate, str]) -> None:
    """Refuses to write what is not in local files, before anything is written."""
    refused = [predicate for predicate in changes if predicate not in places]
    if refused:
        raise InputError(
            [
                Diagnostic(
                    Code.WRITE_FAILED,
                    f"`{predicate}` changes, and is not stored in local files that can be replaced",
                    note="nothing was written",
                    hint="apply its delta where it is kept (a table: by MERGE), or store it as local files",
                )
                for predicate in refused
            ]
        )
