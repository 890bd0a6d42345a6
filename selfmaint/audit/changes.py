"""Kinds of change: what an update may do, before any row of it is known."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, unique

from msgspec import Struct

from datalog.copies import replace
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.reads import reads
from selfmaint.warehouse.situation import Situation


@unique
class Kind(Enum):
    """What happens to the rows of a relation."""

    INSERT = "insert"
    DELETE = "delete"
    UPDATE = "update"
    """Rows change in some columns: each deleted row is inserted again, equal in the other columns."""
    ANY = "any"
    """Any mix of insertions and deletions."""


class Change(Struct, frozen=True):
    """A kind of change.

    Attributes:
        relation: the one base relation that changes; None for a mix on all relations.
        columns: of an update the positions that may change; no others do.
    """

    kind: Kind
    relation: str | None = None
    columns: frozenset[int] = frozenset()

    def situation(self, catalog: Catalog, known: Situation) -> Situation:
        """Which relations gain and lose rows, with what is known besides the views."""
        changed = frozenset(catalog.relations if self.relation is None else [self.relation])
        gains = self.kind in (Kind.INSERT, Kind.UPDATE, Kind.ANY)
        loses = self.kind in (Kind.DELETE, Kind.UPDATE, Kind.ANY)
        return replace(
            known, inserted=changed if gains else frozenset(), deleted=changed if loses else frozenset()
        )


ANYTHING = Change(Kind.ANY)
"""Any mix of insertions and deletions on all relations, as one update."""


def updatable(catalog: Catalog, relation: str) -> frozenset[int]:
    """The columns that an update of a row changes, where nothing is said: all but the first key's."""
    its = catalog.relations[relation]
    return frozenset(range(its.given)) - frozenset(its.unique[0] if its.unique else ())


def changes_of(catalog: Catalog, relation: str) -> Iterator[Change]:
    """The kinds of change of one relation, the mix last."""
    yield Change(Kind.INSERT, relation)
    yield Change(Kind.DELETE, relation)
    yield Change(Kind.UPDATE, relation, updatable(catalog, relation))
    yield Change(Kind.ANY, relation)


def relations_of(catalog: Catalog, view: View) -> tuple[str, ...]:
    """The base relations that a view reads: in the order of its body, then of other rules and other views."""
    if view.definition is not None and hasattr(view.definition, "reads"):
        names = [predicate.name for predicate in view.definition.reads]
    else:
        names = [atom.predicate.name for atom in view.body]
    names += sorted(reads(catalog)[view.name])
    return tuple(dict.fromkeys(name for name in names if name in catalog.relations))


def closure(catalog: Catalog, view: View) -> tuple[str, ...]:
    """The base relations of a view and those that foreign keys lead to from them."""
    found = dict.fromkeys(relations_of(catalog, view))
    waiting = list(found)
    while waiting:
        for reference in catalog.relations[waiting.pop(0)].references:
            if reference.target not in found:
                found[reference.target] = None
                waiting.append(reference.target)
    return tuple(found)
