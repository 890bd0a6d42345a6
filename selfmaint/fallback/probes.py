"""Which keys of which base relations to read next, and why (Huyn 1997, section 6).

A failing J says which facts are unknown, and with which bound values. Reading one of its relations for those
values settles the witness when the fact is absent, and moves it to a smaller J when it is present. So one
relation of every failing J is enough for a round; the cheapest is read first, and the test asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from datalog.model import (
    Atom,
    Constant,
    Literal,
    Negation,
    Predicate,
    Program,
    Rule,
    Variable,
    Version,
    variables_of,
)
from selfmaint.decide.newness import may_be_other
from selfmaint.decide.selftest import DependsRules
from selfmaint.warehouse.catalog import Catalog


class Probe(Struct, frozen=True):
    """A read that would settle some witnesses.

    Attributes:
        columns: 0-based positions of the key; empty to read the whole relation.
        program: rules that compute the keys from witnesses.
    """

    relation: str
    columns: tuple[int, ...]
    program: Program
    goals: tuple[Predicate, ...]

    @property
    def keys(self) -> Predicate:
        """The predicate of the keys."""
        return Predicate(self.relation, Version.PROBE, self.columns)

    @property
    def region(self) -> Predicate:
        """The predicate that records on which keys the relation is fully known."""
        return Predicate(self.relation, Version.REGION, self.columns)


def options(catalog: Catalog, rules: DependsRules) -> tuple[Probe, ...]:
    """The reads that would settle a failing J: one for each of its new facts.

    A row is looked up by its key where the subgoals outside J bind one, else by all columns that they bind. The null
    of a companion stands for other values as well: it is not looked up.
    """
    new_facts = rules.new_facts
    outside = {t for j in new_facts.outside for t in new_facts.instance.body[j].terms}
    found = {}
    for at, atom in enumerate(new_facts.atoms):
        assumed = {Constant(None)} if may_be_other(new_facts, at) else set()
        known = tuple(
            i
            for i, t in enumerate(atom.terms)
            if t in outside or (isinstance(t, Constant) and t not in assumed)
        )
        keys = catalog.relations[atom.predicate.name].keys
        columns = next((tuple(sorted(key)) for key in keys if set(key) <= set(known)), known)
        goal = Atom(
            Predicate(atom.predicate.name, Version.PROBE, columns), tuple(atom.terms[i] for i in columns)
        )
        program = Program((Rule(goal, (rules.head,)),)) if columns else Program()
        found[goal.predicate] = Probe(atom.predicate.name, columns, program, (rules.goal,))
    return tuple(found.values())


def roughly(test: DependsRules, goal: Atom) -> Iterator[Rule]:
    """Rules for the keys that a probe looks up, and perhaps more: of the test they ask only what leads to the keys.

    Semantics:
        Each body is a part of one of the test's, so every key of a row of the test is among them.
    """
    for body in test.positive:
        atoms = _leading([literal for literal in body if isinstance(literal, Atom)], goal)
        own = frozenset(variables_of(body)).difference(variables_of(atoms))  # what the part does not bind

        def is_bound(literal: Literal, own: frozenset[Variable] = own) -> bool:
            return own.isdisjoint(variables_of([literal]))

        filters = (literal for literal in body if not isinstance(literal, Atom) and is_bound(literal))
        facts = (n for n in test.negative if isinstance(n, Negation) and len(n.body) == 1 and is_bound(n))
        yield Rule(goal, (*atoms, *filters, *facts))


def _leading(atoms: Sequence[Atom], goal: Atom) -> tuple[Atom, ...]:
    """The first of some atoms, those that bind the goal's variables, and those that join these with it, in order."""
    before: dict[int, int] = {}
    reached, waiting = [0], list(range(1, len(atoms)))
    for at in reached:
        near = [i for i in waiting if not set(variables_of([atoms[i]])).isdisjoint(atoms[at].terms)]
        before.update(dict.fromkeys(near, at))
        reached.extend(near)
        waiting = [i for i in waiting if i not in near]
    order = [*reached, *waiting]
    needed = {0}
    for variable in variables_of([goal]):
        found: int | None = next(i for i in order if variable in atoms[i].terms)
        while found is not None:
            needed.add(found)
            found = before.get(found)
    return tuple(atoms[i] for i in order if i in needed)


def next_probes(
    catalog: Catalog, failing: Sequence[DependsRules], costs: Mapping[str, float]
) -> tuple[Probe, ...]:
    """The reads of the next round: of the cheapest relation that is some failing J's cheapest.

    Returns:
        Probes of one relation, one for each set of key columns; empty if some J has no readable relation.
    """
    chosen: list[Probe] = []
    for rules in failing:
        readable = [probe for probe in options(catalog, rules) if probe.relation in costs]
        if not readable:
            return ()
        chosen.append(min(readable, key=lambda p: _price(p, costs)))
    first = min(chosen, key=lambda p: _price(p, costs)).relation
    merged: dict[Predicate, Probe] = {}
    for probe in chosen:
        if probe.relation == first:
            old = merged.get(probe.keys)
            merged[probe.keys] = probe if old is None else _merge(old, probe)
    if any(not probe.columns for probe in merged.values()):
        return tuple(probe for probe in merged.values() if not probe.columns)
    return tuple(merged.values())


def _price(probe: Probe, costs: Mapping[str, float]) -> tuple[bool, float, int, str]:
    """Whole relations last; then by cost, then by how selective the key is."""
    return (not probe.columns, costs[probe.relation], -len(probe.columns), probe.relation)


def _merge(left: Probe, right: Probe) -> Probe:
    return Probe(
        left.relation,
        left.columns,
        Program((*left.program.rules, *right.program.rules)),
        (*left.goals, *right.goals),
    )
