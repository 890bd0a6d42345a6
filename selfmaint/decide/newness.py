"""What makes the facts of J and their companions new: what is known has none of them, and none of their keys.

Conditions of soundness and completeness:

1. A fact with a fresh value is in no relation at hand, so only ground facts are looked up; likewise a key.
2. A fact of a relation with a key is new only if no known row has its key, and no inserted one: that row would be
   there beside it after the update. What is deleted is known, if the update is effective.
3. Two new facts of one relation differ in every key; that they are one fact is another instance of the body.
4. A unique constraint asks this of values that are not null.
5. The null of a companion stands for any value that nothing known tells: that the row with null is known absent, or
   would be deleted, rules out no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from datalog.model import Atom, Comparison, Constant, Literal, Negation, NullTest, Term, Variable, Version
from selfmaint.decide.new_facts import NewFacts
from selfmaint.warehouse.catalog import BaseRelation, Catalog
from selfmaint.warehouse.situation import Situation


def newness(catalog: Catalog, new_facts: NewFacts, situation: Situation) -> Iterator[Negation]:
    """What must not hold for the facts of J and their companions to be new, over the bound variables."""
    atoms = new_facts.atoms
    for at, fact in enumerate(atoms):
        relation = catalog.relations[fact.predicate.name]
        open_to_others = may_be_other(new_facts, at)
        yield from _unknown(relation, fact, new_facts.fresh, situation, open_to_others=open_to_others)
        for other in atoms[at + 1 :]:
            if other.predicate == fact.predicate:
                yield from _different(relation, fact, other, new_facts.fresh)


def may_be_other(new_facts: NewFacts, at: int) -> bool:
    """Whether a new fact is a companion whose null stands for any other value, too: condition 5."""
    fact = new_facts.atoms[at]
    return at >= len(new_facts.subgoals) and Constant(None) in fact.terms


def _unknown(
    relation: BaseRelation,
    fact: Atom,
    fresh: frozenset[Variable],
    situation: Situation,
    *,
    open_to_others: bool,
) -> Iterator[Negation]:
    """Conditions 1, 2 and 5 for one fact."""
    name = relation.name
    for key in relation.unique:
        if not fresh.intersection(fact.terms[i] for i in key):
            yield from _key_unknown(relation, fact, key, situation)
    if not fresh.intersection(fact.terms):
        if not relation.keys:
            yield Negation((fact.of(Version.KNOWN),))
            if name in situation.inserted:
                yield Negation((fact.of(Version.INSERTED),))
        if name in situation.deleted and not situation.effective and not open_to_others:
            yield Negation((fact.of(Version.DELETED),))
        if name in situation.absent and not open_to_others:
            yield Negation((fact.of(Version.ABSENT),))
    for region in sorted((r for r in situation.regions if r.name == name), key=lambda r: r.columns):
        terms = tuple(fact.terms[i] for i in region.columns)
        if not fresh.intersection(terms) and not (open_to_others and Constant(None) in terms):
            yield Negation((Atom(region, terms),))


def _key_unknown(
    relation: BaseRelation, fact: Atom, key: Sequence[int], situation: Situation
) -> Iterator[Negation]:
    """Conditions 2 and 4: no known and no inserted row has the fact's values in these columns."""
    values = [fact.terms[i] for i in key]
    if any(isinstance(t, Constant) and t.value is None for t in values):
        return
    present = tuple(
        NullTest(t)
        for i, t in zip(key, values, strict=True)
        if i in relation.nullable and isinstance(t, Variable)
    )
    row = tuple(
        t if i in key else Variable(f"{relation.columns[i]}_any{i}") for i, t in enumerate(fact.terms)
    )
    yield Negation((Atom(fact.predicate.of(Version.KNOWN), row), *present))
    if relation.name in situation.inserted:
        yield Negation((Atom(fact.predicate.of(Version.INSERTED), row), *present))


def _different(
    relation: BaseRelation, fact: Atom, other: Atom, fresh: frozenset[Variable]
) -> Iterator[Negation]:
    """Condition 3 for two new facts of one relation."""
    for key in relation.unique:
        equal = _equal([fact.terms[i] for i in key], [other.terms[i] for i in key], fresh)
        if equal:
            yield Negation(equal)


def _equal(one: Sequence[Term], other: Sequence[Term], fresh: frozenset[Variable]) -> tuple[Literal, ...]:
    """What makes two keys equal; nothing if they differ anyway, as those with null do (condition 4)."""
    found: list[Literal] = []
    if Constant(None) in (*one, *other):
        return ()
    for left, right in zip(one, other, strict=True):
        if left == right:
            continue
        if left in fresh or right in fresh or (isinstance(left, Constant) and isinstance(right, Constant)):
            return ()
        found.append(
            Comparison("=", right, left) if isinstance(left, Constant) else Comparison("=", left, right)
        )
    return tuple(found)
