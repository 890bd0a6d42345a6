"""Stored views as tables whose change is known: what reads them beside tables is followed by keys, too.

    billed: SELECT meter, month, SUM(kwh) AS kwh FROM reading GROUP BY meter, month
    places: SELECT b.meter, b.month, RANK() OVER (PARTITION BY b.month, m.region ORDER BY b.kwh) AS place
            FROM billed b JOIN meter m ON b.meter = m.id

Once `billed` is followed, its change and that of `meter` lead to the regions and months of which rows may differ.

Conditions of soundness, besides those of keyed reads:

1. A view counts as a table only if no two of its rows are equal: as the keys of what it reads tell, or as it says
   itself, and one of a single row.
2. Its change is known, and what it loses is stored; so its rows after the update are those before it, changed so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Generic

from msgspec import Struct

from datalog.copies import replace
from datalog.model import ANY, ColumnType, OpaqueView
from datalog.sql.affected import UnknownShapeError, key_of, nullable_outputs
from selfmaint.api.following.how_followed import as_written, tables_of_views
from selfmaint.api.following.keyed import query_of_stored, stored_types, tables_and_views
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.engine.protocol import D
from selfmaint.fallback.settle import Readable
from selfmaint.fallback.told import NAME
from selfmaint.maintain import Delta, applied
from selfmaint.sources.between import Between
from selfmaint.sources.protocol import Read
from selfmaint.warehouse.catalog import BaseRelation, GroupedView, View
from selfmaint.warehouse.reads import reads
from selfmaint.warehouse.situation import Situation


def with_views_as_tables(
    warehouse: Warehouse[D], names: Collection[str], deltas: Mapping[str, Delta[D]]
) -> Warehouse[D]:
    """The warehouse where some stored views are tables besides, with the rows that they have after the update.

    Those of which rows may be equal are left out; without a change a view is as it was.
    """
    catalog = warehouse.catalog
    tables = {name: one for name, one in _tables(warehouse, names).items() if name in names}
    source = Readable(_Stored(warehouse, deltas), is_after=True)
    return replace(
        warehouse,
        catalog=replace(catalog, relations={**catalog.relations, **tables}),
        readable={**warehouse.readable, **dict.fromkeys(tables, source)},
    )


def with_changes_of_views(update: Update[D], deltas: Mapping[str, Delta[D]]) -> Update[D]:
    """The update with what some views gain and lose."""
    gained = {name: delta.gained for name, delta in deltas.items()}
    lost = {name: delta.lost for name, delta in deltas.items()}
    return replace(
        update, inserted={**update.inserted, **gained}, deleted={**update.deleted, **lost}, files={}
    )


def changing(warehouse: Warehouse[D], situation: Situation, names: Collection[str]) -> Situation:
    """The situation in which some views change as well, where a base relation below them does."""
    below, changed = reads(warehouse.catalog), situation.inserted | situation.deleted
    more = {name for name in names if not below[name].isdisjoint(changed)}
    return replace(situation, inserted=situation.inserted | more, deleted=situation.deleted | more)


def _tables(warehouse: Warehouse[D], names: Collection[str]) -> dict[str, BaseRelation]:
    """Views, and those below them, as tables."""
    catalog, below = warehouse.catalog, reads(warehouse.catalog)
    needed = {*names}.union(*(below[name] for name in names))
    keyed = tables_of_views(catalog)
    found: dict[str, BaseRelation] = {}
    in_order = sorted(
        catalog.views, key=lambda view: len(below[view.name])
    )  # each behind those that it reads
    for view in in_order:
        if view.name not in needed or view.is_counted:
            continue
        nullable = frozenset(range(len(view.stored_columns))) - catalog.not_null(view)
        key: tuple[int, ...] = ()
        if view.name in keyed:
            (key,) = keyed[view.name].keys
        elif (its := _by_query(warehouse, view, found)) is not None:
            key, nullable = its
        elif not _stands_once(view):
            continue
        # Rows at hand have no columns where there are none.
        columns = warehouse.engine.columns(warehouse.contents[view.name]) or view.stored_columns
        types: Sequence[ColumnType] = stored_types(warehouse, view) or (ANY,) * len(columns)
        unique = (key,) if key else ()
        found[view.name] = BaseRelation(view.name, tuple(columns), tuple(types), nullable, unique)
    return found


def _stands_once(view: View) -> bool:
    """Whether a view has one row, or says itself that equal rows stand once."""
    if isinstance(view, GroupedView) and view.grouped.is_total:
        return True
    return not isinstance(view.definition, OpaqueView) and view.stands_once


def _by_query(
    warehouse: Warehouse[D], view: View, tables: Mapping[str, BaseRelation]
) -> tuple[tuple[int, ...], frozenset[int]] | None:
    """A key of a view's rows, and which of its columns may be null, as its query tells; None if it tells no key."""
    if view.is_decided:
        return None
    try:
        query = query_of_stored(warehouse, view, tables)
    except UnknownShapeError:
        return None
    known = tables_and_views(warehouse.catalog, tables)
    key = key_of(as_written(warehouse.catalog, view, known) or query)
    return None if key is None else (key, nullable_outputs(query))


class _Stored(Struct, Generic[D], frozen=True):
    """A `Source` of stored views, in the state after the update."""

    warehouse: Warehouse[D]
    deltas: Mapping[str, Delta[D]]

    @property
    def name(self) -> str:
        """See `Source`."""
        return NAME

    def row_count(self, relation: str) -> int:
        """See `Source`."""
        return self.warehouse.engine.count(self.warehouse.contents[relation])

    def read(self, relation: str, key_columns: Sequence[str], keys: D | None) -> tuple[D, Read]:
        """See `Source`."""
        engine, rows = self.warehouse.engine, self.warehouse.contents[relation]
        change, number = self.deltas.get(relation), 0
        if keys is not None:
            columns = engine.columns(rows)
            places = tuple(columns.index(name) for name in key_columns)
            number, rows = engine.count(keys), engine.keep(engine.bags.matching(rows, places, keys))
            if change is not None:
                gained, lost = (
                    engine.bags.matching(one, places, keys) for one in (change.gained, change.lost)
                )
                change = Delta(gained, lost)
        if change is not None:
            rows = engine.keep(applied(engine, self.warehouse.catalog.view(relation), rows, change))
        return rows, Read(relation, tuple(key_columns), number, engine.count(rows), 0, NAME)

    def read_between(self, relation: str, asked: Between) -> tuple[D, Read]:
        """See `Source`: all rows, of which no base row is."""
        return self.read(relation, (), None)

    def version(self) -> str | None:
        """None: what is known does not move."""
        return None
