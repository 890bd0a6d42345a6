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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from datalog.model import Atom, Negation, Predicate, Version, variables_of
from selfmaint.canonical.support import Knowledge
from selfmaint.engine.protocol import D
from selfmaint.maintain.core_rows import anchored, rows_of
from selfmaint.maintain.roll_up import RollUp, roll_ups
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.finer import finer_views
from selfmaint.warehouse.situation import Situation


@dataclass(frozen=True)
class Asked(Generic[D]):
    """Some groups, as an atom over a core's terms, and its rows."""

    atom: Atom
    given: Mapping[Predicate, D]


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


def rolled_gained(known: Knowledge[D], roll: RollUp) -> D | None:
    """The rows gained with an inserted fact of another subgoal; columns as in `RollUp.columns`."""
    return _changed(known, roll, Version.INSERTED, Version.AFTER)


def rolled_lost(known: Knowledge[D], roll: RollUp) -> D | None:
    """The rows lost with a deleted fact of another subgoal; columns as in `RollUp.columns`."""
    return _changed(known, roll, Version.DELETED, Version.KNOWN)


def _changed(known: Knowledge[D], roll: RollUp, version: Version, others: Version) -> D | None:
    body, names = roll.plan.core.body, _changing(known.situation, version)
    row = _versioned(roll.row, others if others is Version.AFTER else Version.STORED)
    bodies = []
    for index in roll.others:
        if body[index].predicate.name in names:
            start = _versioned(body[index], version)
            rest = [_versioned(body[i], others) for i in roll.others if i != index]
            bodies.append((start, *rest, row))
    return _found(known, roll, bodies)


def all_rows(known: Knowledge[D], roll: RollUp, keys: Asked[D] | None) -> D | None:
    """All rows after the update, of some groups if these are given."""
    after = [_versioned(roll.plan.core.body[i], Version.AFTER) for i in roll.others]
    start = [] if keys is None else [keys.atom]
    body = (*start, *after, _versioned(roll.row, Version.AFTER))
    return _found(known, roll, [body], {} if keys is None else keys.given)


def kept_gained(known: Knowledge[D], roll: RollUp) -> D | None:
    """Condition 2: the core rows gained without an inserted fact of another subgoal; columns as in the core's head."""
    return _kept(known, roll, Version.INSERTED, Version.AFTER)


def kept_lost(known: Knowledge[D], roll: RollUp) -> D | None:
    """Condition 2: the core rows lost without a deleted fact of another subgoal; columns as in the core's head."""
    return _kept(known, roll, Version.DELETED, Version.KNOWN)


def _kept(known: Knowledge[D], roll: RollUp, version: Version, others: Version) -> D | None:
    core, names = roll.plan.core, _changing(known.situation, version)
    stay = [
        Negation((_versioned(core.body[i], version),))
        for i in roll.others
        if core.body[i].predicate.name in names
    ]
    bodies = [
        (*anchored(core, index, version, others), *stay)
        for index in sorted(roll.finer.subgoals)
        if core.body[index].predicate.name in names
    ]
    return rows_of(known, core, bodies)


def _changing(situation: Situation, version: Version) -> frozenset[str]:
    """The relations that rows are inserted into, or deleted from."""
    return situation.inserted if version is Version.INSERTED else situation.deleted


def _found(
    known: Knowledge[D],
    roll: RollUp,
    bodies: Iterable[Sequence[Atom]],
    given: Mapping[Predicate, D] | None = None,
) -> D | None:
    tests = [f for f in roll.plan.core.filters if set(variables_of([f])) <= set(roll.columns)]
    found = known.bindings(((*body, *tests) for body in bodies), roll.columns, given)
    return None if found is None else found.rows


def _versioned(atom: Atom, version: Version) -> Atom:
    return Atom(atom.predicate.of(version), atom.terms)


def new_rows(view: View) -> Predicate:
    """The predicate of a followed view's rows after the update."""
    return view.predicate.of(Version.AFTER)
