"""Facts that are certain because one of a few must be there.

A row of a relation whose foreign keys reach all other subgoals of a core is part of exactly one core row. If the update
inserts or deletes it and that core row is not known, then one of the witnesses of the failing test is true, and what
all of them assume is a fact.

    sale(s8, k2, 8) inserted, sale references cust; the witnesses assume { cust(k2, eu) } and nothing else

Conditions of soundness:

1. Every other subgoal has a key that is referenced by a foreign key of a subgoal reached before; its other terms
   are variables that nothing before it has.
2. What the core tests besides is told by the row itself, and columns that reference are not null in it.
3. All witnesses are at hand: those that no longer count are impossible, and none was left out for a finer view.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from datalog.model import Atom, Constant, Predicate, Row, Term, Variable, Version, apply_atom, variables_of
from selfmaint.decide.decision import Decision
from selfmaint.decide.room import World
from selfmaint.decide.selftest import DependsRules, told_subgoals
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.situation import Situation

CHANGED_ROWS = 20_000
"""Where the update has more rows of a relation, nothing is concluded."""


@dataclass(frozen=True)
class Assumption:
    """A witness of a failing test, and the sets of facts one of which it assumes."""

    rules: DependsRules
    row: Row
    worlds: frozenset[World]

    @property
    def version(self) -> Version:
        """Whether it starts at inserted rows or at deleted ones."""
        anchor = self.rules.positive[0][0]
        assert isinstance(anchor, Atom)
        return Version.DELETED if anchor.predicate.version is Version.DELETED else Version.INSERTED

    def fact(self, atom: Atom) -> Row | None:
        """The row that one of the view's subgoals has in it; None if that is one of the facts assumed."""
        new_facts = self.rules.new_facts
        image = apply_atom(new_facts.instance.substitution, atom)
        outside = [new_facts.instance.body[j] for j in new_facts.outside]
        if image not in outside:
            return None
        values = dict(zip(new_facts.bound, self.row, strict=True))
        return tuple(t.value if isinstance(t, Constant) else values[t] for t in image.terms)


def certain_facts(
    decision: Decision,
    engine: Engine[D],
    facts: Facts[D],
    situation: Situation,
    name: str,
    assumed: Sequence[Assumption],
) -> Iterator[tuple[str, Row]]:
    """The facts that the witnesses of one view's failing tests make certain.

    Args:
        decision: the symbolic side.
        engine: holds the update's rows.
        facts: what is known.
        situation: the kinds of it.
        name: the view.
        assumed: all witnesses of its tests that are not impossible.
    """
    stored = decision.catalog.view(name)
    view = stored if stored.core is None else stored.core
    mine = [a for a in assumed if a.rules.new_facts.view.name == name]
    told = told_subgoals(decision.catalog, situation, stored)
    for index, atom in enumerate(view.body if mine else ()):
        if (told and index not in told) or not _reaches_all(decision.catalog, view, index):
            continue
        for version in (Version.INSERTED, Version.DELETED):
            changed = facts.relations.get(Predicate(atom.predicate.name, version))
            rows = None if changed is None else engine.fetch(changed, CHANGED_ROWS)
            by_row: dict[Row, list[frozenset[World]]] = {}
            for one in mine:
                row = one.fact(atom) if one.version is version else None
                if row is not None and rows is not None and row in rows and _is_whole(view, atom, row):
                    by_row.setdefault(row, []).append(one.worlds)
            for found in by_row.values():
                worlds = [world for each in found for world in each]
                if worlds:
                    yield from frozenset.intersection(*worlds)


def _reaches_all(catalog: Catalog, view: View, start: int) -> bool:
    """Conditions 1 and 2, but for nulls."""
    row = view.body[start]
    if not set(variables_of(view.filters)) <= set(row.terms):
        return False
    reached: list[Atom] = [row]
    waiting = [a for i, a in enumerate(view.body) if i != start]
    while waiting:
        known: set[Term] = set(variables_of(reached))
        found = next((a for a in waiting if _is_referenced(catalog, a, reached, row, known)), None)
        if found is None:
            return False
        waiting.remove(found)
        reached.append(found)
    return True


def _is_referenced(
    catalog: Catalog, atom: Atom, reached: Sequence[Atom], row: Atom, known: set[Term]
) -> bool:
    target = catalog.relations[atom.predicate.name]
    for other in reached:
        relation = catalog.relations[other.predicate.name]
        for reference in relation.references:
            key = reference.key_of(other)
            others = [t for i, t in enumerate(atom.terms) if i not in reference.target_columns]
            never_null = other is row or relation.nullable.isdisjoint(reference.columns)
            if (
                reference.target == target.name
                and reference.target_columns in target.keys
                and key == reference.key_in(atom)
                and never_null
                and all(isinstance(t, Variable) and t not in known for t in others)
                and len(set(others)) == len(others)
            ):
                return True
    return False


def _is_whole(view: View, atom: Atom, row: Row) -> bool:
    """Condition 2 for nulls: no variable that must not be null is null in the row."""
    return all(value is not None or t not in view.not_null for t, value in zip(atom.terms, row, strict=True))
