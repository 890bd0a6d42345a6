"""What the whole warehouse needs a base relation for: what must be readable, and whether one can be lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct

from datalog.budget import left
from selfmaint.audit.changes import Change, Kind, closure, relations_of
from selfmaint.audit.example import Always, Depends, Outcome, Unclear
from selfmaint.audit.search import Search
from selfmaint.warehouse.catalog import View

_COST = 1.0
"""Of looking up one key of a relation, where nothing is said."""

_TRIED = 500
"""So many sets are searched with at most."""


class Need(Struct, frozen=True):
    """Base relations that suffice, none of which can be left out.

    Attributes:
        relations: their names; none where the views suffice.
        cost: of one key of each.
    """

    relations: tuple[str, ...]
    cost: float


def needs(search: Search, view: View, change: Change, costs: Mapping[str, float]) -> tuple[Need, ...]:
    """The minimal sets of base relations that make the verdict "always" if they are readable, cheapest first.

    An example for a set is one for each other set of which its two databases show no difference: one of the relations
    in which they differ has to be in each set that suffices. So what is searched with next is a smallest set that has
    one of each of these. Where there is no example, of a set that does not suffice, more may be added as long as it
    still does not: the relations that are left are such ones.

    Complexity: one search for each set tried; at most `_TRIED`, and as many as the budget allows.
    """
    names = closure(search.catalog, view)
    everything = frozenset(names)

    def missing(chosen: frozenset[str]) -> frozenset[str] | None:
        """Relations one of which has to be added to a set; None if it suffices."""
        match search.readable(chosen | search.known.readable).outcome(view, change):
            case Always():
                return None
            case Depends(example=example):
                return example.differing & everything
            case Unclear():
                return everything - chosen

    found: list[frozenset[str]] = []
    waiting: set[frozenset[str]] = {frozenset()} if missing(everything) is None else set()
    for _ in range(_TRIED):
        if not waiting or left() <= 0:
            break
        chosen = min(waiting, key=lambda subset: (len(subset), sorted(subset)))
        more = missing(chosen)
        if more is None:
            found.append(chosen)
            waiting = {subset for subset in waiting if not chosen <= subset}
        else:
            more = _least(more, everything, missing)
            missed = {subset for subset in waiting if subset.isdisjoint(more)}
            waiting -= missed
            waiting |= _extended(missed, more, found)
    made = [
        Need(tuple(n for n in names if n in subset), sum(costs.get(n, _COST) for n in subset))
        for subset in found
    ]
    return tuple(sorted(made, key=lambda need: (need.cost, need.relations)))


def _least(
    names: frozenset[str],
    everything: frozenset[str],
    missing: Callable[[frozenset[str]], frozenset[str] | None],
) -> frozenset[str]:
    """Of relations one of which is in each set that suffices, a smallest part of which that can be said, too.

    All other relations do not suffice. If they do not with one of these added either, it is not needed for that.
    """
    for name in sorted(names):
        if name in names and len(names) > 1 and left() > 0:
            rest = missing(everything - (names - {name}))
            names = names if rest is None else rest
    return names


def _extended(
    subsets: Iterable[frozenset[str]], names: Iterable[str], found: Sequence[frozenset[str]]
) -> set[frozenset[str]]:
    """Sets with one more name, without those that a smaller one that suffices makes needless."""
    more = {subset | {name} for name in names for subset in subsets}
    return {subset for subset in more if not any(smaller <= subset for smaller in found)}


@dataclass(frozen=True)
class Broken:
    """A view that cannot always follow.

    Attributes:
        changed: the relation whose changes it cannot follow; None: only a mix on several relations.
    """

    view: str
    changed: str | None
    outcome: Outcome


@dataclass(frozen=True)
class Loss:
    """What breaks if some relations are no longer readable.

    Attributes:
        broken: the views that cannot always follow changes, all other relations readable.
    """

    lost: tuple[str, ...]
    broken: tuple[Broken, ...]

    @property
    def by_others(self) -> tuple[Broken, ...]:
        """What breaks even if the lost relations never change again, as one that is dropped or archived."""
        return tuple(one for one in self.broken if one.changed not in self.lost)


def loss(search: Search, lost: Iterable[str]) -> Loss:
    """What breaks without some base relations.

    Without a relation means: it can never be read again. All others can be, and the changes of all, its own too, still
    arrive as long as there are any.
    """
    gone = tuple(dict.fromkeys(lost))
    others = frozenset(search.catalog.relations) - frozenset(gone)
    broken: list[Broken] = []
    for view in search.catalog.views:
        readable = search.of(view).readable(others.intersection(search.of(view).catalog.relations))
        its = [
            Broken(view.name, name, outcome)
            for name in relations_of(search.catalog, view)
            if not isinstance(outcome := readable.outcome(view, Change(Kind.ANY, name)), Always)
        ]
        if not its:
            outcome = readable.outcome(view, Change(Kind.ANY))
            its = [] if isinstance(outcome, Always) else [Broken(view.name, None, outcome)]
        broken.extend(its)
    return Loss(gone, tuple(broken))
