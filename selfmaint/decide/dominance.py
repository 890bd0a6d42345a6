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
from typing import TypeAlias

from datalog.containment import containment_mapping
from datalog.model import Atom, Literal, Predicate, Term, Variable, Version, variables_of
from selfmaint.decide.inconsistency import Contradiction
from selfmaint.decide.instances import Instance
from selfmaint.decide.new_facts import NewFacts
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.situation import Situation

_Residues: TypeAlias = dict[int, list[tuple[Contradiction, frozenset[Predicate]]]]


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
    _possible: dict[tuple[int, int, int], list[Contradiction]] = field(default_factory=dict)
    _implied: dict[tuple[int, int, int], bool] = field(default_factory=dict)
    _residues: dict[int, _Residues] = field(default_factory=dict)
    _smaller: dict[tuple[int, int, int], bool] = field(default_factory=dict)

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
        key = (id(new_facts.instance), new_facts.facts, g)
        if key not in self._smaller:
            more = self._plain.get((key[0], new_facts.facts | 1 << g))
            self._smaller[key] = more is not None and self._dominates(new_facts, more, g)
        return self._smaller[key]

    def _dominates(self, smaller: NewFacts, larger: NewFacts, g: int) -> bool:
        atom = smaller.instance.body[g]
        relation = self.catalog.relations[atom.predicate.name]
        if relation.unique or relation.references or larger.fresh.isdisjoint(atom.terms):
            return False
        added = (
            c
            for c in larger.instance.within(larger.facts)
            if c.facts >> g & 1 and c.bound.isdisjoint(larger.fresh)
        )
        return all(self._is_covered(smaller, new, g) for new in added)

    def _is_covered(self, smaller: NewFacts, new: Contradiction, g: int) -> bool:
        """Condition 2 for one contradiction that J with g adds."""
        facts, fresh, instance = smaller.facts, smaller.fresh, smaller.instance
        return any(
            old.applies(facts, fresh) and self._is_implied(instance, old, new, g)
            for old in self._candidates(instance, new, g)
        )

    def _needs(self, instance: Instance) -> _Residues:
        """The contradictions of an instance by their new facts, with the predicates of what known facts must match."""
        if id(instance) not in self._residues:
            found: _Residues = {}
            for c in instance.contradictions:
                needs = frozenset(li.predicate for li in c.residue if isinstance(li, Atom))
                found.setdefault(c.facts, []).append((c, needs))
            self._residues[id(instance)] = found
        return self._residues[id(instance)]

    def _candidates(self, instance: Instance, new: Contradiction, g: int) -> list[Contradiction]:
        """The contradictions without g that one with g may imply; what only lacks g first, for it usually does."""
        key = (id(instance), id(new), g)
        if key not in self._possible:
            rest = new.facts & ~(1 << g)
            given = {li.predicate for li in _premises(instance, new, g) if isinstance(li, Atom)}
            found = [
                old
                for facts, olds in self._needs(instance).items()
                if not facts & ~rest
                for old, needs in olds
                if needs <= given
                and set(old.conditions) <= set(new.conditions)
                and old.not_null <= new.not_null
            ]
            found.sort(key=lambda old: (old.facts != rest, old.view is not new.view))
            self._possible[key] = found
        return self._possible[key]

    def _is_implied(self, instance: Instance, old: Contradiction, new: Contradiction, g: int) -> bool:
        """Condition 2: whether a contradiction happens where one with g does, the fact of g known."""
        key = (id(old), id(new), g)
        if key not in self._implied:
            self._implied[key] = _follows(old, _premises(instance, new, g), instance.occurrences)
        return self._implied[key]


def _premises(instance: Instance, new: Contradiction, g: int) -> tuple[Literal, ...]:
    """What holds where a contradiction with g happens and the fact of g is known."""
    known = instance.body[g]
    return (*new.demanded, Atom(known.predicate.of(Version.KNOWN), known.terms))


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
