"""Views that are computed from each row of a stored view alone: they follow by that view's changed rows.

Conditions of soundness:

1. Each row of the stored view makes the same rows of the view, whatever others there are: the query has no group, no
   DISTINCT and no other relation. So the rows that its lost rows make go, and those that its gained rows make come.
2. The stored rows are what the query gives to the last digit: not where they may have been brought in from elsewhere
   with others, as those of variances.
3. That holds of bags: equal rows may come from several. So where rows are kept as sets, nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datalog.model import Atom, Comparison, NullTest, Semantics, ViewDefinition
from selfmaint.api.following.recompute import recomputing_of
from selfmaint.api.update import Update
from selfmaint.api.verify import near_columns
from selfmaint.api.warehouse import Warehouse
from selfmaint.engine.protocol import D
from selfmaint.fallback.keyed_rows import KeyedDelta
from selfmaint.fallback.recompute import reads
from selfmaint.maintain import Delta, difference
from selfmaint.warehouse.catalog import View
from selfmaint.warehouse.row_key import row_key


def followed_by_rows(
    warehouse: Warehouse[D], update: Update[D], views: Sequence[View], deltas: Mapping[str, Delta[D]]
) -> dict[str, KeyedDelta[D]]:
    """The changes of those of some views that are computed from each row of a followed view alone."""
    if warehouse.engine.name == "memory":  # condition 3
        return {}
    found: dict[str, KeyedDelta[D]] = {}
    waiting = list(views)
    while waiting:
        known = {**deltas, **{name: one.delta for name, one in found.items()}}
        ready = [view for view in waiting if source_of(warehouse, view) in known]
        if not ready:
            break
        for view in ready:
            found[view.name] = _followed(warehouse, update, view, known)
        waiting = [view for view in waiting if view.name not in found]
    return found


def source_of(warehouse: Warehouse[D], view: View) -> str | None:
    """The stored view of which each row alone makes rows of a view."""
    definition, catalog = view.definition, warehouse.catalog
    if not isinstance(definition, ViewDefinition) or definition.semantics is not Semantics.BAG:
        return None
    if len(definition.blocks) != 1 or definition.is_grouped or view.is_decided:
        return None
    body = definition.blocks[0].core.body
    names = [one.predicate.name for one in body if isinstance(one, Atom)]
    if len(names) != 1 or not all(isinstance(one, Atom | Comparison | NullTest) for one in body):
        return None
    source = next((one for one in catalog.views if one.name == names[0]), None)
    if near_columns(catalog, view):  # condition 2
        return None
    if source is None or source.is_counted or reads(catalog, view) != (source.name,):
        return None
    return source.name


def _followed(
    warehouse: Warehouse[D], update: Update[D], view: View, deltas: Mapping[str, Delta[D]]
) -> KeyedDelta[D]:
    engine, catalog = warehouse.engine, warehouse.catalog
    name = source_of(warehouse, view)
    assert name is not None
    change, source = deltas[name], catalog.view(name)
    recomputing = recomputing_of(warehouse, update, lambda other: warehouse.contents[other.name])
    new, old = (recomputing.evaluated(view, {name: rows}) for rows in (change.gained, change.lost))
    columns = engine.columns(warehouse.contents[name])
    key = tuple(columns[i] for i in row_key(source, catalog.relations))
    keys = max(engine.count(change.gained), engine.count(change.lost))
    return KeyedDelta(view.name, key, keys, (), (), difference(engine, view, new, old), name)
