"""How `maintain` goes on with views that are no "yes", by what is declared: nothing is read for it."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from selfmaint.api.not_maintained import NotMaintainedError
from selfmaint.api.others import Others
from selfmaint.api.recompute import not_followed
from selfmaint.api.warehouse import Warehouse
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.verdict import SelfMaintainable, Verdict, Way
from selfmaint.engine.protocol import D
from selfmaint.fallback.keyed_rows import MOST_KEYS
from selfmaint.fallback.recompute import obstacles, reads
from selfmaint.fallback.told import told_sources
from selfmaint.warehouse.catalog import View
from selfmaint.warehouse.reads import reads as reads_of_all

if TYPE_CHECKING:
    from selfmaint.api.keyed import Plan


def ways(
    warehouse: Warehouse[D],
    known: Knowledge[D],
    found: Mapping[str, Verdict],
    verdicts: Mapping[str, Verdict],
) -> dict[str, Way]:
    """By view; not of one of which a view below was not looked at.

    Args:
        warehouse: the views.
        known: their contents and the update.
        found: the verdicts, on the branches of unions where they are told apart.
        verdicts: those on the views.
    """
    if all(verdicts.values()):
        return {}
    catalog = warehouse.catalog
    parts = [part for part in catalog.apart.views if not isinstance(found.get(part.name), SelfMaintainable)]
    names = {
        catalog.whole(p.name)
        for p in not_followed([p for p in parts if p.name in found], known.situation, found)
    }
    told, here = told_sources(known), copy.copy(warehouse)
    here.readable = {**warehouse.readable, **told}
    others = Others(here, known.situation, MOST_KEYS, recompute=False, told=frozenset(told))
    try:
        others.add([view for view in catalog.views if view.name in names], verdicts)
    except NotMaintainedError:  # one that is computed from other views cannot be run; so says `maintain`
        return {}
    below = reads_of_all(catalog)
    return {
        name: _way(here, others, catalog.view(name), below[name], is_settled=name not in names)
        for name, verdict in verdicts.items()
        if not verdict and below[name] <= verdicts.keys() | catalog.relations.keys()
    }


def _way(
    warehouse: Warehouse[D], others: Others[D], view: View, below: Collection[str], *, is_settled: bool
) -> Way:
    catalog = warehouse.catalog
    bases = [n for n in reads(catalog, view) if n in catalog.relations and n not in others.told]
    plan = others.plan(view.name)
    if plan is not None:
        looked_up, whole = _read(plan)
        its = tuple(name for name in bases if name in looked_up | whole)
        return Way("keyed reads" if its else "views", its, tuple(name for name in its if name in whole))
    if view in others.again:
        return Way("views", tuple(bases), tuple(bases))
    if is_settled and (its := tuple(name for name in bases if name in warehouse.readable)):
        return Way("reads", its)
    lost = set(below) - others.names
    anew = [one for one in catalog.views if one is view or (one.name in lost and not one.is_decided)]
    if obstacles(catalog, anew, warehouse.readable):
        return Way("nothing")
    return Way("recomputing", tuple(bases))


def _read(plan: Plan) -> tuple[set[str], set[str]]:
    """The relations that a plan reads by keys, and those that it reads whole."""
    tried = [plan.keyed, plan.differing, None if plan.added is None else plan.added.rows]
    its = next(one for one in tried if one is not None)
    return {step.relation for step in its.steps}, set(its.whole)
