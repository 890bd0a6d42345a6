"""Evaluating the maintenance queries: in one go on small data, by look-ups or step by step on large data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from datalog.model import Atom, Predicate, Program, Row, Rule, variables_of
from selfmaint.canonical.stages import Stages
from selfmaint.engine.lookups import near_rows
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.engine.topdown import TopDown
from selfmaint.maintain.groups import group_change
from selfmaint.maintain.rules import gained, gaining, lost, maintenance_program
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


def delta(stages: Stages[D], catalog: Catalog, view: View, *, whole: bool = False) -> Delta[D]:
    """The change of a view whose new state is determined, held by the engine.

    Args:
        stages: everything known.
        catalog: the warehouse's schema.
        view: the view.
        whole: of a view that groups, whether all core rows of the groups that would be open are known.
    """
    engine, facts = stages.engine, stages.facts
    if view.core is not None:
        return _of_groups(stages, catalog, view, whole=whole)
    program = maintenance_program(stages.support, stages.situation, view)
    if not engine.is_large(facts):
        more = _evaluated(engine, program, gained(view), facts, view)
        fewer = _evaluated(engine, program, lost(view), facts, view)
        return _delta(engine, facts, view, more, fewer)
    queries, arity = TopDown(program, stages.near), view.head.arity
    gone, new = (near_rows(queries, goal, arity) for goal in (lost(view), gained(view)))
    fewer = _held(engine, gone or frozenset(), facts, view)
    if gone is None:
        fewer = _evaluated(engine, program, lost(view), facts, view)
    more = _gained_in_steps(stages, catalog, view) if new is None else _held(engine, new, facts, view)
    return _delta(engine, facts, view, more, fewer)


def _held(engine: Engine[D], rows: frozenset[Row], facts: Facts[D], view: View) -> D | None:
    """Rows of a view that are at hand."""
    return engine.shaped(rows, facts.relations[view.predicate], range(view.head.arity)) if rows else None


def _delta(engine: Engine[D], facts: Facts[D], view: View, more: D | None, fewer: D | None) -> Delta[D]:
    nothing = engine.empty(facts.relations[view.predicate])
    return Delta(nothing if more is None else more, nothing if fewer is None else fewer)


def _of_groups(stages: Stages[D], catalog: Catalog, view: View, *, whole: bool) -> Delta[D]:
    """The rows of the touched groups, or their numbers of copies, as far as they differ."""
    engine = stages.engine
    change = group_change(stages, catalog, view, whole=whole)
    if change is None:
        nothing = engine.empty(stages.facts.relations[view.predicate])
        return Delta(nothing, nothing)
    if change.open is not None:
        raise ValueError(f"groups of `{view.name}` are not determined")
    new = engine.like(change.new, stages.facts.relations[view.predicate])
    if view.is_counted:
        return recounted(engine, new, change.old)
    return Delta(engine.keep(engine.minus(new, change.old)), engine.keep(engine.minus(change.old, new)))


def _evaluated(engine: Engine[D], program: Program, goal: Predicate, facts: Facts[D], view: View) -> D | None:
    if not program.rules_for(goal):
        return None
    return engine.keep(engine.evaluate(program, goal, facts, view.columns))


def _gained_in_steps(stages: Stages[D], catalog: Catalog, view: View) -> D | None:
    """The gained rows, from the rows that arrived."""
    parts = []
    variables = variables_of(view.body)
    for index, atom in enumerate(view.body):
        name = atom.predicate.name
        arrived = stages.arrived(catalog.relations[name]) if name in stages.situation.inserted else None
        if arrived is not None:
            _, *others = gaining(view, index)
            found = stages.joined((Atom(arrived, atom.terms), *others), variables)
            if found is not None:
                parts.append(found)
    together = stages.united(parts)
    if together is None:
        return None
    goal, source = gained(view), Predicate("bindings")
    rule = Rule(Atom(goal, view.head.terms), (Atom(source, together.variables),))
    facts = Facts({source: together.rows})
    return stages.engine.evaluate(Program((rule,)), goal, facts, view.columns)
