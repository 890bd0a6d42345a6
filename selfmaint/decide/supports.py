"""The ways of satisfying the foreign keys of new facts.

Each foreign key of a new fact asks for a row with a certain key. It is satisfied by

- another new fact with that key: the same terms, or values that turn out to be equal;
- a known row: a *link*, an atom whose other terms occur nowhere else;
- a companion, which may ask for more, unless a subgoal outside J has that key: that row is known, or inserted;
- a null in the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from datalog.budget import check
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    NullTest,
    Predicate,
    Term,
    Variable,
)
from selfmaint.decide.companions import Obligation, unused_prefix
from selfmaint.decide.instances import Instance


@dataclass(frozen=True)
class Support:
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
    """Each way of satisfying the foreign keys of facts for some subgoals that no dead set rules out.

    Args:
        instance: the body, its companions and contradictions.
        subgoals: J, as a bit mask.
    """
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
