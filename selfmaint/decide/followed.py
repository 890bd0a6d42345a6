"""Which finer views have determined new rows, and these rows: what coarser groups are rolled up from.

Conditions of soundness:

1. A view's new rows are determined if its test has no row and none of its groups stays open; they are the old ones
   with its delta.
2. What is determined stays so when more is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from datalog.model import Predicate
from selfmaint.decide.decision import Decision
from selfmaint.decide.procedure import failing_views
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.maintain import applied, delta, group_change, new_rows
from selfmaint.warehouse.catalog import View
from selfmaint.warehouse.situation import Situation


def followed(
    decision: Decision, engine: Engine[D], facts: Facts[D], situation: Situation
) -> tuple[Facts[D], Situation]:
    """What is known, with the new rows of the finer views that a coarser view needs.

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
        if view.core is not None
        and decision.finer[view.name]
        and changed.intersection(a.predicate.name for a in view.core.body)
    ]


def _determined(
    decision: Decision, engine: Engine[D], facts: Facts[D], situation: Situation, views: Sequence[View]
) -> frozenset[str]:
    """The names of those of some views for which condition 1 holds."""
    asked = [view for view in views if decision.has_rules(view, situation)]
    failing = failing_views(decision, engine, facts, situation, asked)
    known = decision.knowledge(engine, facts, situation)

    def leaves_none_open(view: View) -> bool:
        if view.core is None:
            return view.limitation is None
        change = group_change(known, decision.catalog, view)
        return change is None or change.open is None

    return frozenset(view.name for view in asked if view.name not in failing and leaves_none_open(view))


def _new_rows(
    decision: Decision, engine: Engine[D], facts: Facts[D], situation: Situation, views: list[View]
) -> Iterator[tuple[Predicate, D]]:
    known = decision.knowledge(engine, facts, situation)
    for view in views:
        if view.core is not None:
            change = delta(known, decision.catalog, view)
            stored = facts.relations[view.predicate]
            yield new_rows(view), applied(engine, view, stored, change)
