"""Sets J that need not be tested because a larger one is: it fails wherever they fail.

Take a witness of J, and let g be a subgoal outside J whose fact is known. If new facts for J and g are possible
whenever those for J alone are, then the witness is one of J with g as well, and J need not be tested. Where the
fact of g is inserted, the test of J that is anchored at g sees the witness.

Conditions of soundness:

1. g holds a variable that J with g alone binds: a fresh value there makes the fact new. Its relation has no key
   whose values could be known, and is not fully known anywhere.
2. Every contradiction that J with g adds happens only where one of J happens, given that the fact of g is known.
3. The anchor is another subgoal than g.
4. Nothing else comes along: no companions, links or positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from datalog.containment import containment_mapping
from datalog.model import Atom, Literal, Term, Variable, Version, variables_of
from selfmaint.decide.inconsistency import Contradiction
from selfmaint.decide.instances import Instance, places
from selfmaint.decide.new_facts import NewFacts
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.situation import Situation


@dataclass
class Dominance:
    """Which tests of some surviving sets are needless.

    Attributes:
        catalog: the warehouse's schema.
        survivors: the surviving sets of one view.
    """

    catalog: Catalog
    survivors: Sequence[NewFacts]
    _plain: dict[tuple[int, int], NewFacts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._plain = {(id(n.instance), n.facts): n for n in self.survivors if _is_plain(n)}

    def needed(self, new_facts: NewFacts, anchors: Iterable[int], situation: Situation) -> list[int]:
        """The anchors at which J must be tested.

        Args:
            new_facts: J.
            anchors: the subgoals outside J whose relations get inserted rows.
            situation: which relations change, and what is known.
        """
        settled = {r.name for r in situation.regions} | situation.readable
        left = list(anchors)
        if (id(new_facts.instance), new_facts.facts) not in self._plain:
            return left
        for g in new_facts.outside:
            matters = new_facts.instance.body[g].predicate.name not in settled and left not in ([], [g])
            if matters and self._is_smaller(new_facts, g):
                left = [anchor for anchor in left if anchor == g]
        return left

    def _is_smaller(self, new_facts: NewFacts, g: int) -> bool:
        """Whether J with g fails wherever J fails with the fact of g known."""
        larger = self._plain.get((id(new_facts.instance), new_facts.facts | 1 << g))
        if larger is None:
            return False
        key, found = (new_facts.facts, g), new_facts.instance.dominated
        if key not in found:
            found[key] = self._dominates(new_facts, larger, g)
        return found[key]

    def _dominates(self, smaller: NewFacts, larger: NewFacts, g: int) -> bool:
        instance = smaller.instance
        atom = instance.body[g]
        relation = self.catalog.relations[atom.predicate.name]
        if relation.unique or relation.references or larger.fresh.isdisjoint(atom.terms):
            return False
        added = instance.applicable(larger.facts, larger.fresh) & instance.uses[g]
        before = instance.applicable(smaller.facts, smaller.fresh)
        return all(_is_covered(instance, new, g, before) for new in places(added))


def _is_covered(instance: Instance, new: int, g: int, before: int) -> bool:
    """Condition 2 for one contradiction that J with g adds, by its place: whether one of some happens, g known."""
    if (new, g) not in instance.covered:
        instance.covered[new, g] = (0, ~_candidates(instance, new, g))
    happen, asked = instance.covered[new, g]
    if happen & before:
        return True
    added = instance.contradictions[new]
    rest = added.facts & ~(1 << g)
    waiting = [(at, instance.contradictions[at]) for at in places(before & ~asked)]
    waiting.sort(
        key=lambda old: (old[1].facts != rest, old[1].view is not added.view)
    )  # it usually lacks only g
    for at, old in waiting:
        asked |= 1 << at
        if _follows(old, _premises(instance, added, g), instance.occurrences):
            happen |= 1 << at
            break
    instance.covered[new, g] = (happen, asked)
    return bool(happen & before)


def _candidates(instance: Instance, new: int, g: int) -> int:
    """The contradictions without g that one with g may imply, as a bit set."""
    added = instance.contradictions[new]
    given = {li.predicate for li in _premises(instance, added, g) if isinstance(li, Atom)}
    found = instance.applicable(added.facts & ~(1 << g))
    for predicate, needing in instance.needs.items():
        if predicate not in given:
            found &= ~needing
    for at in places(found & instance.conditional):
        old = instance.contradictions[at]
        if not (set(old.conditions) <= set(added.conditions) and old.not_null <= added.not_null):
            found &= ~(1 << at)
    return found


def _premises(instance: Instance, new: Contradiction, g: int) -> tuple[Literal, ...]:
    """What holds where a contradiction with g happens and the fact of g is known."""
    known = instance.body[g]
    return (*new.demanded, known.of(Version.KNOWN))


def _follows(old: Contradiction, premises: Sequence[Literal], own: Mapping[Variable, int]) -> bool:
    mine = (*old.residue, *old.comparisons)
    if frozenset(mine).issubset(premises):
        return True
    fixed: dict[Variable, Term] = {v: v for v in variables_of(mine) if v in own}
    return containment_mapping(mine, premises, fixed) is not None


def _is_plain(new_facts: NewFacts) -> bool:
    """Condition 4."""
    return not (
        new_facts.links
        or new_facts.positions
        or new_facts.conditions
        or new_facts.is_vague
        or new_facts.facts >> len(new_facts.instance.body)
        or any(new_facts.instance.chased.obligations)
        or new_facts.instance.comparisons
    )
