"""Which keys a view will be asked for: those that the update carries.

Tests, deltas and checks all start at the update's rows, so the values that these rows have in a column are looked up
sooner or later in the views' columns that it joins with. Fetching them along with the first question means that a
view is read once for each key column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from datalog.model import Predicate, Row, Variable, Version, variables_of
from selfmaint.engine.lookups import Near
from selfmaint.engine.protocol import D
from selfmaint.warehouse.catalog import Catalog, View

_Place = tuple[str, int]
"""A column of a base relation."""


@dataclass
class ExpectedKeys:
    """The update's values for the columns of a view."""

    catalog: Catalog
    changes: dict[str, list[Iterable[Row]]]
    _joined: dict[_Place, frozenset[_Place]] = field(default_factory=dict)

    @classmethod
    def of(cls, catalog: Catalog, near: Near[D]) -> ExpectedKeys:
        """The keys of the update among some facts.

        Raises:
            OutOfReachError: the update has too many rows.
        """
        changes: dict[str, list[Iterable[Row]]] = {}
        for predicate in near.facts.relations:
            if predicate.version in (Version.INSERTED, Version.DELETED):
                changes.setdefault(predicate.name, []).append(near.rows(predicate))
        return cls(catalog, changes, _joined(catalog))

    def keys(self, predicate: Predicate, columns: tuple[int, ...]) -> Iterable[Row]:
        """The keys of one column of a relation; none where it is no view, or for several columns."""
        view = self._view(predicate)
        if view is None or len(columns) != 1:
            return ()
        places = {
            place
            for mine in _places(view, view.head.terms[columns[0]])
            for place in self._joined.get(mine, ())
        }
        return {(row[i],) for name, i in places for rows in self.changes.get(name, ()) for row in rows}

    def along(self, predicate: Predicate, columns: tuple[int, ...], wanted: tuple[int, ...]) -> Iterable[int]:
        """The other columns of the smallest subgoal that has those of a key of one column and those wanted."""
        view = self._view(predicate)
        if view is None or len(columns) != 1:
            return ()
        terms = {view.head.terms[c] for c in (*columns, *wanted)}
        having = [atom for atom in view.body if terms <= set(atom.terms)]
        smallest = min(having, key=lambda atom: atom.arity, default=None)
        stored = [] if smallest is None else variables_of([smallest])
        return [view.head.terms.index(t) for t in stored if t in view.head.terms]

    def _view(self, predicate: Predicate) -> View | None:
        return next((v for v in self.catalog.views if v.predicate == predicate), None)


def _places(view: View, term: object) -> list[_Place]:
    return [(atom.predicate.name, i) for atom in view.body for i, t in enumerate(atom.terms) if t == term]


def _joined(catalog: Catalog) -> dict[_Place, frozenset[_Place]]:
    """For each column of a base relation those that some view joins it with, over any number of joins."""
    groups: dict[_Place, frozenset[_Place]] = {}
    for view in catalog.views:
        for variable in {t for atom in view.body for t in atom.terms if isinstance(t, Variable)}:
            places = _places(view, variable)
            merged = frozenset(p for place in places for p in groups.get(place, {place}))
            groups.update(dict.fromkeys(merged, merged))
    return groups
