"""Can a base relation be dropped, archived or lost? What the whole warehouse needs it for.

Without a relation means: it can never be read again. All others can be, and the changes of all, its own too, still
arrive as long as there are any.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from selfmaint.audit.changes import Change, Kind, relations_of
from selfmaint.audit.outcome import Always, Outcome
from selfmaint.audit.search import Search


@dataclass(frozen=True)
class Broken:
    """A view that cannot always follow.

    Attributes:
        view: the view.
        changed: the relation whose changes it cannot follow; None: only a mix on several relations.
        outcome: why.
    """

    view: str
    changed: str | None
    outcome: Outcome


@dataclass(frozen=True)
class Loss:
    """What breaks if some relations are no longer readable.

    Attributes:
        lost: the relations.
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

    Args:
        search: the warehouse's search.
        lost: names of base relations.
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
