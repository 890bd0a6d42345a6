"""What is known, with what stored groups tell about the facts that failing tests assume.

Repeated until nothing more is learnt: the new rows of finer views (`_followed`), witnesses that no group has room for
(`room.py`), and facts that are certain since one of a few must be there (`_certain_facts`).

Condition of soundness: knowing less only leaves more databases. So what a spent budget leaves out makes no "yes"; and
where views group, a "no" has two databases to show for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from datalog.budget import BudgetSpentError, limit
from datalog.model import (
    ANY,
    Atom,
    Constant,
    Predicate,
    Row,
    Term,
    Variable,
    Version,
    apply_atom,
    variables_of,
)
from selfmaint.decide.decision import Decision
from selfmaint.decide.procedure import TOGETHER, failing_rules, failing_views
from selfmaint.decide.room import Room, World, expanded
from selfmaint.decide.selftest import DependsRules, told_subgoals
from selfmaint.decide.verdict import Witness
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.maintain import applied, delta, group_change, new_rows
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.situation import Situation

_WITNESSES = 200
"""A test with more witnesses is not looked into."""

_ROUNDS = 4
"""How often what was learnt is used to learn more."""
_CHANGED_ROWS = 20_000
"""Where the update has more rows of a relation, nothing is concluded."""


def informed(
    decision: Decision, engine: Engine[D], facts: Facts[D], situation: Situation
) -> tuple[Facts[D], Situation]:
    """What is known, with what the stored groups tell where tests fail.

    Args:
        decision: the symbolic side.
        engine: evaluates, and holds what is learnt.
        facts: what is known.
        situation: the kinds of it.
    """
    if not (decision.catalog.grouped_views and situation.effective):
        return facts, situation
    for view in decision.catalog.views:
        decision.has_rules(view, situation)  # finding them has a budget of its own, for each view
    with suppress(BudgetSpentError), limit(decision.budget_s, "finding what stored groups tell"):
        for _ in range(_ROUNDS):
            facts, situation = _followed(decision, engine, facts, situation)
            before = situation
            facts, situation, learnt = _learnt(decision, engine, facts, situation)
            if not learnt and before == situation:
                break
    return facts, situation


def _learnt(
    decision: Decision, engine: Engine[D], facts: Facts[D], situation: Situation
) -> tuple[Facts[D], Situation, bool]:
    """What is known with what failing tests tell, and whether that is more."""
    views = [view for view in decision.catalog.views if decision.has_rules(view, situation)]
    if sum(len(decision.depends(view, situation)) for view in views) > TOGETHER:
        return facts, situation, False
    failing = failing_rules(decision, engine, facts, situation, views)
    fetched = [(rules, engine.fetch(rows, _WITNESSES)) for rules, rows in failing]
    if not any(rows for _, rows in fetched):
        return facts, situation, False
    room = Room(decision.knowledge(engine, facts, situation), decision.catalog)
    assumed = [a for rules, rows in fetched if rows for a in _assumptions(room, rules, rows)]
    impossible = room.impossible(world for a in assumed for world in a.worlds)
    left = [replace(a, worlds=a.worlds - impossible) for a in assumed]
    more = dict(_ruled_out(decision, engine, facts, [a for a in left if not a.worlds]))
    result = facts.extended(more)
    situation = replace(situation, ruled_out=situation.ruled_out.union(more))
    complete = {v.name for v in views} - {r.new_facts.view.name for r, rows in fetched if rows is None}
    found = [
        f for name in sorted(complete) for f in _certain_facts(decision, engine, facts, situation, name, left)
    ]
    present = dict(_present(decision, engine, facts, situation, found))
    result = result.extended(present)
    situation = replace(situation, present=situation.present.union(p.name for p in present))
    return result, situation, bool(more or present)


def _assumptions(room: Room[D], rules: DependsRules, rows: Iterable[Row]) -> Iterator[Assumption]:
    for row in rows:
        witness = Witness(rules.new_facts, dict(zip(rules.new_facts.bound, row, strict=True)))
        facts = witness.unknown[: len(rules.new_facts.subgoals)]  # of companions little is known
        yield Assumption(rules, row, expanded(room, facts))


def _ruled_out(
    decision: Decision, engine: Engine[D], facts: Facts[D], assumed: Iterable[Assumption]
) -> Iterator[tuple[Predicate, D]]:
    """The witnesses that are impossible, by test, with those that were so before."""
    by_rules: dict[Predicate, list[Assumption]] = {}
    for one in assumed:
        by_rules.setdefault(one.rules.goal, []).append(one)
    for goal, found in by_rules.items():
        predicate = goal.of(Version.IMPOSSIBLE, goal.columns)
        new_facts = found[0].rules.new_facts
        atoms = [*new_facts.instance.atoms, *new_facts.links, *new_facts.patterns]
        types = variable_types(atoms, decision.catalog.relations)
        names = [f"x{i}" for i in range(len(new_facts.bound))]
        rows = engine.load([a.row for a in found], names, [types.get(v, ANY) for v in new_facts.bound])
        old = facts.relations.get(predicate)
        yield predicate, engine.keep(rows if old is None else engine.union([old, rows]))


def _present(
    decision: Decision,
    engine: Engine[D],
    facts: Facts[D],
    situation: Situation,
    found: Iterable[tuple[str, Row]],
) -> Iterator[tuple[Predicate, D]]:
    """Certain facts as rows of partial copies, with those known before."""
    by_name: dict[str, list[Row]] = {}
    for name, row in dict.fromkeys(found):
        by_name.setdefault(name, []).append(row)
    for name, rows in by_name.items():
        relation = decision.catalog.relations[name]
        predicate = Predicate(name, Version.PRESENT)
        data = engine.load(rows, relation.columns, relation.types)
        old = [facts.relations[predicate]] if name in situation.present else []
        yield predicate, engine.keep(engine.union([*old, data]))


__all__ = ["World", "informed"]


def _followed(
    decision: Decision, engine: Engine[D], facts: Facts[D], situation: Situation
) -> tuple[Facts[D], Situation]:
    """What is known, with the new rows of the finer views that a coarser view needs.

    Conditions of soundness:

    1. A view's new rows are determined if its test has no row and none of its groups stays open; they are the old ones
       with its delta.
    2. What is determined stays so when more is known.

    Args:
        decision: the symbolic side.
        engine: evaluates tests and deltas.
        facts: what is known.
        situation: the kinds of it.
    """
    coarse = _touched(decision, situation) if situation.effective else []
    while coarse:
        names = {name for view in coarse for name in decision.finer[view.name]} - situation.followed
        asked = [
            *coarse,
            *(view for view in decision.catalog.views if view.name in names and view not in coarse),
        ]
        determined = _determined(decision, engine, facts, situation, asked)
        coarse = [view for view in coarse if view.name not in determined]
        names = {name for view in coarse for name in decision.finer[view.name]} - situation.followed
        found = [view for view in decision.catalog.views if view.name in names & determined]
        if not found:
            break
        rows = dict(_new_rows(decision, engine, facts, situation, found))
        facts = facts.extended(rows, small=False)
        situation = replace(situation, followed=situation.followed.union(v.name for v in found))
    return facts, situation


def _touched(decision: Decision, situation: Situation) -> list[View]:
    """The views that change and have finer ones."""
    changed = situation.inserted | situation.deleted
    return [
        view
        for view in decision.catalog.grouped_views
        if decision.finer[view.name] and changed.intersection(a.predicate.name for a in view.core.body)
    ]


def _determined(
    decision: Decision, engine: Engine[D], facts: Facts[D], situation: Situation, views: Sequence[View]
) -> frozenset[str]:
    """The names of those of some views for which condition 1 of `_followed` holds."""
    asked = [view for view in views if decision.has_rules(view, situation)]
    failing = failing_views(decision, engine, facts, situation, asked)
    known = decision.knowledge(engine, facts, situation)

    def leaves_none_open(view: View) -> bool:
        if not isinstance(view, GroupedView):
            return view.limitation is None
        change = group_change(known, decision.catalog, view)
        return change is None or change.open is None

    return frozenset(view.name for view in asked if view.name not in failing and leaves_none_open(view))


def _new_rows(
    decision: Decision, engine: Engine[D], facts: Facts[D], situation: Situation, views: list[View]
) -> Iterator[tuple[Predicate, D]]:
    known = decision.knowledge(engine, facts, situation)
    for view in views:
        if isinstance(view, GroupedView):
            change = delta(known, decision.catalog, view)
            stored = facts.relations[view.predicate]
            yield new_rows(view), applied(engine, view, stored, change)


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


def _certain_facts(
    decision: Decision,
    engine: Engine[D],
    facts: Facts[D],
    situation: Situation,
    name: str,
    assumed: Sequence[Assumption],
) -> Iterator[tuple[str, Row]]:
    """The facts that the witnesses of one view's failing tests make certain.

    A row of a relation whose foreign keys reach all other subgoals of a core is part of exactly one core row. If the
    update inserts or deletes it and that core row is not known, then one of the witnesses of the failing test is
    true, and what all of them assume is a fact.

        sale(s8, k2, 8) inserted, sale references cust; the witnesses assume { cust(k2, eu) } and nothing else

    Conditions of soundness:

    1. Every other subgoal has a key that is referenced by a foreign key of a subgoal reached before; its other terms
       are variables that nothing before it has.
    2. What the core tests besides is told by the row itself, and columns that reference are not null in it.
    3. All witnesses are at hand: those that no longer count are impossible, and none was left out for a finer view.

    Args:
        decision: the symbolic side.
        engine: holds the update's rows.
        facts: what is known.
        situation: the kinds of it.
        name: the view.
        assumed: all witnesses of its tests that are not impossible.
    """
    stored = decision.catalog.view(name)
    view = stored if not isinstance(stored, GroupedView) else stored.core
    mine = [a for a in assumed if a.rules.new_facts.view.name == name]
    told = told_subgoals(decision.catalog, situation, stored)
    for index, atom in enumerate(view.body if mine else ()):
        if (told and index not in told) or not _reaches_all(decision.catalog, view, index):
            continue
        for version in (Version.INSERTED, Version.DELETED):
            changed = facts.relations.get(Predicate(atom.predicate.name, version))
            rows = None if changed is None else engine.fetch(changed, _CHANGED_ROWS)
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
    """Conditions 1 and 2 of `_certain_facts`, but for nulls."""
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
    """Condition 2 of `_certain_facts` for nulls: no variable that must not be null is null in the row."""
    return all(value is not None or t not in view.not_null for t, value in zip(atom.terms, row, strict=True))
