"""The rows that a coarser view is rolled up from: a finer view's rows joined with the other subgoals.

    gained   cust@inserted(C, R), by_customer@after(C, N, S)        and core rows of customers that stay
    lost     cust@deleted(C, R), by_customer(C, N, S)               and core rows of customers that stay
    all      cust@after(C, R), by_customer@after(C, N, S)

Conditions of soundness:

1. The finer view's rows after the update are at hand (`Situation.followed`), those before it are stored.
2. The update is effective: a core row is gained with an inserted fact of another subgoal, or with none such and an
   inserted fact of the finer view's subgoals; never both ways. So for lost ones.
3. For all rows of a group, all facts of the other subgoals must be known: their relations are, wholly, or plain views
   whose new rows are determined hold all their matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from datalog.model import Atom, Literal, Negation, Predicate, Term, Variable, Version, variables_of
from selfmaint.canonical.stages import Bindings, Stages
from selfmaint.engine.protocol import D
from selfmaint.maintain.core_rows import anchored, rows_of
from selfmaint.maintain.roll_up import RollUp, roll_ups
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.finer import finer_views
from selfmaint.warehouse.situation import Situation


def usable(catalog: Catalog, situation: Situation, view: View) -> Iterator[RollUp]:
    """The ways of rolling up a view from finer ones whose new rows are at hand."""
    if situation.followed:
        yield from (found for found in roll_ups(catalog, view) if found.name in situation.followed)


def for_changes(catalog: Catalog, situation: Situation, view: View) -> RollUp | None:
    """How the core rows that a view gains and loses by changes of other subgoals are told by a finer view.

    Args:
        catalog: the warehouse's schema.
        situation: what changes, and what is known.
        view: a view with a core.
    """
    changed = situation.inserted | situation.deleted
    for found in usable(catalog, situation, view):
        body = found.plan.core.body
        if found.part is not None and any(body[i].predicate.name in changed for i in found.others):
            return found
    return None


def for_all_rows(
    catalog: Catalog, situation: Situation, whole: frozenset[str], view: View
) -> RollUp | frozenset[int] | None:
    """How all core rows of a group after the update are told; all subgoals if the known facts do so.

    Args:
        catalog: the warehouse's schema.
        situation: what changes, and what is known.
        whole: the base relations all of whose facts are known.
        view: a view with a core.

    Returns:
        A way of rolling up, or the subgoals' indices, or None if not all rows are told.
    """
    assert view.core is not None
    every = frozenset(range(len(view.core.body)))
    told = {i for i in every if view.core.body[i].predicate.name in whole}
    for finer in finer_views(catalog.views, view):
        if finer.view.core is None and finer.view.name in situation.followed:
            told |= finer.subgoals
    if told == every:
        return every
    for found in usable(catalog, situation, view):
        if told.issuperset(found.others):
            return found
    return None


def rolled_gained(stages: Stages[D], catalog: Catalog, roll: RollUp) -> D | None:
    """The rows gained with an inserted fact of another subgoal; columns as in `RollUp.columns`."""
    return _changed(stages, catalog, roll, Version.INSERTED, Version.AFTER)


def rolled_lost(stages: Stages[D], catalog: Catalog, roll: RollUp) -> D | None:
    """The rows lost with a deleted fact of another subgoal; columns as in `RollUp.columns`."""
    return _changed(stages, catalog, roll, Version.DELETED, Version.KNOWN)


def _changed(
    stages: Stages[D], catalog: Catalog, roll: RollUp, version: Version, others: Version
) -> D | None:
    body = roll.plan.core.body
    row = _versioned(roll.row, others if others is Version.AFTER else Version.STORED)
    bodies = []
    for index in roll.others:
        start = _start(stages, catalog, body[index], version)
        if start is not None:
            rest = [_versioned(body[i], others) for i in roll.others if i != index]
            bodies.append((start, *joined_first(start.terms, [*rest, row])))
    return _found(stages, roll, bodies)


def all_rows(stages: Stages[D], roll: RollUp, keys: Atom | None) -> D | None:
    """All rows after the update, of some groups if a relation of keys is given."""
    after = [_versioned(roll.plan.core.body[i], Version.AFTER) for i in roll.others]
    atoms = [*after, _versioned(roll.row, Version.AFTER)]
    start = [] if keys is None else [keys]
    return _found(stages, roll, [(*start, *joined_first(() if keys is None else keys.terms, atoms))])


def kept_gained(stages: Stages[D], catalog: Catalog, roll: RollUp) -> D | None:
    """Condition 2: the core rows gained without an inserted fact of another subgoal; columns as in the core's head."""
    return _kept(stages, catalog, roll, Version.INSERTED, Version.AFTER)


def kept_lost(stages: Stages[D], catalog: Catalog, roll: RollUp) -> D | None:
    """Condition 2: the core rows lost without a deleted fact of another subgoal; columns as in the core's head."""
    return _kept(stages, catalog, roll, Version.DELETED, Version.KNOWN)


def _kept(stages: Stages[D], catalog: Catalog, roll: RollUp, version: Version, others: Version) -> D | None:
    core, changed = roll.plan.core, stages.situation
    names = changed.inserted if version is Version.INSERTED else changed.deleted
    stay = [
        Negation((_versioned(core.body[i], version),))
        for i in roll.others
        if core.body[i].predicate.name in names
    ]
    bodies: list[Sequence[Literal]] = []
    for index in sorted(roll.finer.subgoals):
        start = _start(stages, catalog, core.body[index], version)
        if start is not None:
            _, *rest = anchored(core, index, version, others)
            bodies.append((start, *rest, *stay))
    return rows_of(stages, core, bodies)


def _start(stages: Stages[D], catalog: Catalog, atom: Atom, version: Version) -> Atom | None:
    """A subgoal over the update's rows; None if there are none."""
    name = atom.predicate.name
    if version is Version.DELETED:
        return _versioned(atom, version) if name in stages.situation.deleted else None
    if name not in stages.situation.inserted:
        return None
    arrived = stages.arrived(catalog.relations[name])
    return None if arrived is None else Atom(arrived, atom.terms)


def _found(stages: Stages[D], roll: RollUp, bodies: Iterable[Sequence[Atom]]) -> D | None:
    tests = [f for f in roll.plan.core.filters if set(variables_of([f])) <= set(roll.columns)]
    parts: list[Bindings[D]] = []
    for body in bodies:
        found = stages.joined((*body, *tests), roll.columns)
        if found is not None:
            parts.append(found)
    together = stages.united(parts)
    return None if together is None else together.rows


def _versioned(atom: Atom, version: Version) -> Atom:
    return Atom(atom.predicate.of(version), atom.terms)


def joined_first(known: Iterable[Term], atoms: Sequence[Atom]) -> list[Atom]:
    """The atoms so that each joins with what stands before it, where possible."""
    bound = {t for t in known if isinstance(t, Variable)}
    waiting, ordered = list(atoms), []
    while waiting:
        chosen = max(waiting, key=lambda a: len(bound.intersection(a.terms)))
        waiting.remove(chosen)
        bound.update(variables_of([chosen]))
        ordered.append(chosen)
    return ordered


def new_rows(view: View) -> Predicate:
    """The predicate of a followed view's rows after the update."""
    return view.predicate.of(Version.AFTER)
