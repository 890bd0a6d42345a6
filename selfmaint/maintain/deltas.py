"""Evaluating the maintenance queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from datalog.model import Predicate, Program
from selfmaint.canonical.knowledge import Knowledge
from selfmaint.engine.protocol import D, Engine
from selfmaint.maintain.groups import group_change
from selfmaint.maintain.rules import gained, lost, maintenance_program
from selfmaint.warehouse.catalog import Catalog, View


@dataclass(frozen=True)
class Delta(Generic[D]):
    """A view's change: rows gained and rows lost, disjoint, over the old state.

    Of a view that keeps duplicates they are counted rows: the number of copies gained, or lost, is the last column.
    """

    gained: D
    lost: D


def applied(engine: Engine[D], view: View, stored: D, change: Delta[D]) -> D:
    """A view's rows after a change: those that it does not lose, and those that it gains; counted as before."""
    if view.is_counted:
        return engine.bags.recounted([(stored, 1), (change.gained, 1), (change.lost, -1)])
    return engine.union([engine.minus(stored, change.lost), change.gained])


def recounted(engine: Engine[D], new: D, old: D) -> Delta[D]:
    """How counted rows differ from old ones, held by the engine."""
    more, fewer = ([(new, sign), (old, -sign)] for sign in (1, -1))
    return Delta(engine.keep(engine.bags.recounted(more)), engine.keep(engine.bags.recounted(fewer)))


def delta(known: Knowledge[D], catalog: Catalog, view: View, *, whole: bool = False) -> Delta[D]:
    """The change of a view whose new state is determined, held by the engine.

    Args:
        known: everything known.
        catalog: the warehouse's schema.
        view: the view.
        whole: of a view that groups, whether all core rows of the groups that would be open are known.
    """
    if view.core is not None:
        return _of_groups(known, catalog, view, whole=whole)
    program = maintenance_program(known.support, known.situation, view)
    nothing = known.engine.empty(known.facts.relations[view.predicate])
    gone, new = (_evaluated(known, program, goal, view) for goal in (lost(view), gained(view)))
    return Delta(nothing if new is None else new, nothing if gone is None else gone)


def _evaluated(known: Knowledge[D], program: Program, goal: Predicate, view: View) -> D | None:
    if not program.rules_for(goal):
        return None
    return known.engine.keep(known.engine.evaluate(program, goal, known.facts, view.columns))


def _of_groups(known: Knowledge[D], catalog: Catalog, view: View, *, whole: bool) -> Delta[D]:
    """The rows of the touched groups, or their numbers of copies, as far as they differ."""
    engine = known.engine
    change = group_change(known, catalog, view, whole=whole)
    if change is None:
        nothing = engine.empty(known.facts.relations[view.predicate])
        return Delta(nothing, nothing)
    if change.open is not None:
        raise ValueError(f"groups of `{view.name}` are not determined")
    new = engine.like(change.new, known.facts.relations[view.predicate])
    if view.is_counted:
        return recounted(engine, new, change.old)
    return Delta(engine.keep(engine.minus(new, change.old)), engine.keep(engine.minus(change.old, new)))
