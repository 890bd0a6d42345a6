"""Rows of which only the key is known: whether what they may have to hold could rule new facts out.

A foreign key proves that its row exists. Where nothing copies the referenced relation, the row's other columns are
unknown, and the test takes them as free. They may not be: few values, comparisons, further keys and references in turn
may leave one choice; the relation is *forced* then, and so are those that it references, by unknown keys. So it is
where a view joins it with itself on such columns: one row may be both subgoals, whatever it holds there. Still, a
database that explains what is known has made its choices, and new facts can be added to it as far as the test tells,
unless a half-known row of a forced relation is in the way.

Conditions of soundness, for "new facts are possible whatever half-known rows hold":

1. No such row is a new fact, nor has a key of one: the relation of no new fact is forced. A row that must exist and
   is left one choice is certain, although no known row is it.
2. No such row and new fact together match the body of a view: no view has both among its subgoals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

from datalog.model import Atom, Comparison, Variable
from selfmaint.decide.new_facts import NewFacts
from selfmaint.warehouse.catalog import BaseRelation, Catalog
from selfmaint.warehouse.constraints import unifier


@dataclass(frozen=True)
class HalfKnown:
    """Which relations may have half-known rows that are left few choices.

    Attributes:
        catalog: the warehouse's schema.
        copied: relations of which a view is a copy: they have no half-known rows.
    """

    catalog: Catalog
    copied: frozenset[str]

    @cached_property
    def forced(self) -> frozenset[str]:
        """The forced relations."""
        found = {name for name in self._relations if self._may_be_forced(self.catalog.relations[name])}
        waiting = list(found)
        while waiting:
            for reference in self.catalog.relations[waiting.pop()].references:
                if reference.target in self._relations and reference.target not in found:
                    found.add(reference.target)
                    waiting.append(reference.target)
        return frozenset(found)

    @property
    def _relations(self) -> frozenset[str]:
        referenced = (name for name, references in self.catalog.referenced_by.items() if references)
        return frozenset(referenced) - self.copied

    def _may_be_forced(self, relation: BaseRelation) -> bool:
        references = self.catalog.referenced_by[relation.name]
        keys = {i for _, reference in references for i in reference.target_columns}
        others = set(range(relation.arity)) - keys
        referencing = {i for reference in relation.references for i in reference.columns}
        finite = {i for i in others if relation.types[i].is_finite}
        compared = others & self._compared(relation.name)
        tied = any(not relation.can_differ(reference.target_columns) for _, reference in references)
        return (
            tied or bool(others & referencing or finite or compared) or self._is_joined(relation.name, others)
        )

    def _is_joined(self, name: str, others: set[int]) -> bool:
        """Whether one row could be two subgoals of a view that are joined on columns which may be unknown."""
        bodies = ([atom for atom in v.body if atom.predicate.name == name] for v in self.catalog.views)
        return any(
            isinstance(one.terms[i], Variable)
            and one.terms[i] in other.terms
            and unifier(one, other) is not None
            for body in bodies
            for one, other in permutations(body, 2)
            for i in others
        )

    def _compared(self, name: str) -> set[int]:
        """The columns of a relation that some view compares."""
        found: set[int] = set()
        for view in self.catalog.views:
            compared = {t for c in view.comparisons for t in _sides(c) if isinstance(t, Variable)}
            for atom in view.body:
                if atom.predicate.name == name:
                    found.update(i for i, t in enumerate(atom.terms) if t in compared)
        return found

    def may_rule_out(self, new_facts: NewFacts) -> bool:
        """Whether half-known rows could be in the way of some new facts."""
        new = {atom.predicate.name for atom in new_facts.atoms}
        return bool(new & self.forced) or any(self._has_both(view.body, new) for view in self.catalog.views)

    def _has_both(self, body: tuple[Atom, ...], new: set[str]) -> bool:
        """Condition 2."""
        return any(
            one.predicate.name in self.forced and other.predicate.name in new
            for at, one in enumerate(body)
            for number, other in enumerate(body)
            if at != number
        )


def _sides(comparison: Comparison) -> tuple[object, object]:
    return comparison.left, comparison.right
