"""The ways of satisfying the foreign keys of new facts.

Each foreign key of a new fact asks for a row with a certain key. It is satisfied by

- another new fact with that key: the same terms, or values that turn out to be equal;
- a known row: a *link*, an atom whose other terms occur nowhere else;
- a companion, which may ask for more, unless a subgoal outside J has that key: that row is known, or inserted;
- a null in the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice, permutations

from msgspec import Struct

from datalog.budget import check
from datalog.copies import replace
from datalog.model import Atom, Comparison, Constant, Literal, NullTest, Predicate, Term, Variable
from selfmaint.decide.companions import Obligation, unused_prefix
from selfmaint.decide.instances import Instance
from selfmaint.decide.new_facts import NewFacts
from selfmaint.warehouse.catalog import BaseRelation, Catalog
from selfmaint.warehouse.constraints import unifier
from selfmaint.warehouse.few_values import has_few_values

_MOST_WAYS = 300
"""In more ways only foreign keys that the view joins by are followed: each way is a test."""


class Support(Struct, frozen=True):
    """How the foreign keys of new facts are satisfied.

    Attributes:
        facts: the new facts, companions too, as a bit mask over the instance's atoms.
        links: known rows that are referenced.
        conditions: equalities and null tests.
        is_cut: whether a foreign key was not followed to its end.
    """

    facts: int
    links: tuple[Atom, ...] = ()
    conditions: tuple[Literal, ...] = ()
    is_cut: bool = False


def supports(instance: Instance, subgoals: int) -> Iterator[Support]:
    """Each way of satisfying the foreign keys of facts for some subgoals that no dead set rules out."""
    waiting = [
        obligation
        for j, obligations in enumerate(instance.chased.obligations)
        if subgoals >> j & 1
        for obligation in obligations
    ]
    seen = set()
    for found in _ways(instance, subgoals, waiting, Support(subgoals)):
        if found not in seen:
            seen.add(found)
            yield found


def has_many_supports(instance: Instance) -> bool:
    """Whether the foreign keys of facts for the subgoals can be satisfied in too many ways to look at each."""
    number = 1
    for j in (j for j in range(len(instance.body)) if not instance.old >> j & 1):
        number *= max(sum(1 for _ in islice(supports(instance, 1 << j), _MOST_WAYS)), 1)
    return number >= _MOST_WAYS


def _ways(
    instance: Instance, subgoals: int, waiting: Sequence[Obligation], made: Support
) -> Iterator[Support]:
    check()
    if any(not c.facts & ~made.facts for c in instance.dead):
        return
    if not waiting:
        yield made
        return
    obligation, rest = waiting[0], waiting[1:]
    everything = (1 << len(instance.body)) - 1
    chosen = [instance.atoms[j] for j in _bits(made.facts)]
    if any(_provides(atom, obligation) for atom in (*chosen, *made.links)):
        yield from _ways(instance, subgoals, rest, made)
        return
    for variable in obligation.nullable:
        null = _with(made, NullTest(variable, negated=False))
        yield from _ways(instance, subgoals, rest, null)
    there = _with(made, *(NullTest(v) for v in obligation.nullable))
    link = _link(instance, obligation, len(made.links))
    yield from _ways(instance, subgoals, rest, replace(there, links=(*made.links, link)))
    outside = (instance.atoms[j] for j in _bits(everything & ~subgoals))
    if not any(_provides(atom, obligation) for atom in outside):
        yield from _with_companion(instance, subgoals, rest, there, obligation)
    for j in _bits(made.facts):
        equal = _equalities(obligation, instance.atoms[j])
        if equal is not None:
            yield from _ways(instance, subgoals, rest, _with(there, *equal))


def _with_companion(
    instance: Instance, subgoals: int, rest: Sequence[Obligation], made: Support, obligation: Obligation
) -> Iterator[Support]:
    if obligation.companion is None:
        yield from _ways(instance, subgoals, rest, replace(made, is_cut=True))
        return
    more = instance.chased.obligations[obligation.companion]
    bigger = replace(made, facts=made.facts | 1 << obligation.companion)
    yield from _ways(instance, subgoals, [*rest, *more], bigger)


def _bits(mask: int) -> Iterator[int]:
    return (j for j in range(mask.bit_length()) if mask >> j & 1)


def _with(made: Support, *conditions: Literal) -> Support:
    return replace(made, conditions=tuple(dict.fromkeys((*made.conditions, *conditions))))


def _provides(atom: Atom, obligation: Obligation) -> bool:
    """Whether an atom is the referenced row, by its terms."""
    reference = obligation.reference
    return atom.predicate.name == reference.target and reference.key_in(atom) == obligation.key


def _link(instance: Instance, obligation: Obligation, number: int) -> Atom:
    reference = obligation.reference
    prefix = unused_prefix("K", instance.atoms)
    at: dict[int, Term] = dict(zip(reference.target_columns, obligation.key, strict=True))
    arity = obligation.target_arity
    terms = tuple(at.get(i, Variable(f"{prefix}{number}_{i}")) for i in range(arity))
    return Atom(Predicate(reference.target), terms)


def _equalities(obligation: Obligation, atom: Atom) -> tuple[Literal, ...] | None:
    """What makes an atom of J the referenced row, or None."""
    reference = obligation.reference
    if atom.predicate.name != reference.target:
        return None
    found: list[Literal] = []
    for left, right in zip(obligation.key, reference.key_in(atom), strict=True):
        if left == right:
            continue
        if isinstance(left, Constant) and isinstance(right, Constant):
            return None
        sides = (right, left) if isinstance(left, Constant) else (left, right)
        found.append(Comparison("=", *sides))
    return tuple(found)


class HalfKnown(Struct, frozen=True, dict=True):
    """Which relations may have half-known rows that are left few choices.

    A foreign key proves that its row exists. Where nothing copies the referenced relation, the row's other columns
    are unknown, and the test takes them as free. They may not be: few values, comparisons, further keys and
    references in turn may leave one choice; the relation is *forced* then, and so are those that it references, by
    unknown keys. So it is where a view joins it with itself on such columns: one row may be both subgoals, whatever
    it holds there. Still, a database that explains what is known has made its choices, and new facts can be added to
    it as far as the test tells, unless a half-known row of a forced relation is in the way.

    Conditions of soundness, for "new facts are possible whatever half-known rows hold":

    1. No such row is a new fact, nor has a key of one: the relation of no new fact is forced. A row that must exist and
       is left one choice is certain, although no known row is it.
    2. No such row and new fact together match the body of a view: no view has both among its subgoals.

    Attributes:
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
        finite = {i for i in others if has_few_values(self.catalog, relation.name, i)}
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
            compared = {t for c in view.comparisons for t in (c.left, c.right) if isinstance(t, Variable)}
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
