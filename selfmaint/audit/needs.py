"""Which base relations, if readable, make a view self-maintainable whatever the data: all smallest sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from selfmaint.audit.changes import Change
from selfmaint.audit.outcome import Always
from selfmaint.audit.search import Search
from selfmaint.warehouse.catalog import Catalog, View

COST = 1.0
"""Of looking up one key of a relation, where nothing is said."""

LIMIT = 10
"""Of a view over more relations, and relations that these reference, only sets of those in doubt are tried."""


@dataclass(frozen=True, slots=True)
class Need:
    """Base relations that suffice, none of which can be left out.

    Attributes:
        relations: their names; none where the views suffice.
        cost: of one key of each.
    """

    relations: tuple[str, ...]
    cost: float


def needs(search: Search, view: View, change: Change, costs: Mapping[str, float]) -> tuple[Need, ...]:
    """All minimal sets of base relations that make the verdict "always" if they are readable, cheapest first.

    Complexity: one search for each set tried, at most 2^n for n relations that matter.
    """
    names = relevant(search, view, change)
    found: list[frozenset[str]] = []
    for size in range(len(names) + 1):
        for chosen in combinations(names, size):
            subset = frozenset(chosen)
            if any(smaller <= subset for smaller in found):
                continue
            if isinstance(search.readable(subset | search.known.readable).outcome(view, change), Always):
                found.append(subset)
    made = [
        Need(tuple(n for n in names if n in subset), sum(costs.get(n, COST) for n in subset))
        for subset in found
    ]
    return tuple(sorted(made, key=lambda need: (need.cost, need.relations)))


def relevant(search: Search, view: View, change: Change) -> tuple[str, ...]:
    """The relations that could matter: those of the view, and what they reference; in the order of the body."""
    names = closure(search.catalog, view)
    if len(names) <= LIMIT:
        return names
    rules = search.decision.depends(view, change.situation(search.catalog, search.known))
    doubtful = {atom.predicate.name for rule in rules for atom in rule.new_facts.atoms}
    return tuple(name for name in names if name in doubtful)


def closure(catalog: Catalog, view: View) -> tuple[str, ...]:
    """The base relations of a view and those that foreign keys lead to from them."""
    found = dict.fromkeys(atom.predicate.name for atom in view.body)
    waiting = list(found)
    while waiting:
        for reference in catalog.relations[waiting.pop(0)].references:
            if reference.target not in found:
                found[reference.target] = None
                waiting.append(reference.target)
    return tuple(found)
