"""How `maintain` goes on with views that are no "yes", by what is declared: nothing is read for it."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from selfmaint.api.following.not_maintained import NotMaintainedError
from selfmaint.api.following.others import Others
from selfmaint.api.following.recompute import is_cut, not_followed
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
    from selfmaint.api.following.keyed import Plan


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
    open_ = {name: verdict for name, verdict in found.items() if not isinstance(verdict, SelfMaintainable)}
    parts = [part for part in catalog.apart.views if part.name in open_]
    closed = {catalog.whole(p.name) for p in parts if not p.is_decided or is_cut(open_[p.name])}
    left = not_followed(catalog, parts, known.situation, found, verdicts)
    names = {catalog.whole(part.name) for part in left}
    told, here = told_sources(known), copy.copy(warehouse)
    here.readable = {**warehouse.readable, **told}
    others = Others(here, known.situation, MOST_KEYS, recompute=False, told=frozenset(told))
    try:
        others.add([view for view in catalog.views if view.name in names], verdicts)
    except NotMaintainedError:  # one that is computed from other views cannot be run; so says `maintain`
        return {}
    below = reads_of_all(catalog)
    made = {
        name: _way(here, others, catalog.view(name), below[name], is_settled=name not in closed)
        for name, verdict in verdicts.items()
        if not verdict and below[name] <= verdicts.keys() | catalog.relations.keys()
    }
    return {name: _through_helpers(name, way, catalog.helpers, made) for name, way in made.items()}


def _through_helpers(name: str, way: Way, helpers: Mapping[str, str], made: Mapping[str, Way]) -> Way:
    """With what the helpers of a view read, of which it is computed."""
    mine = [made[helper] for helper, of in helpers.items() if of == name and helper in made]
    if way.by != "views" or not mine:
        return way
    if worst := next((its for its in mine if its.by in ("recomputing", "nothing")), None):
        return worst
    read = tuple(dict.fromkeys(base for one in (way, *mine) for base in one.reads))
    whole = tuple(dict.fromkeys(base for one in (way, *mine) for base in one.whole))
    return Way("helpers", read, whole)


def _way(
    warehouse: Warehouse[D], others: Others[D], view: View, below: Collection[str], *, is_settled: bool
) -> Way:
    catalog, view = others.warehouse.catalog, others.warehouse.catalog.view(view.name)
    bases = [n for n in reads(catalog, view) if n in catalog.relations and n not in others.told]
    plan = others.plan(view.name)
    if plan is not None:
        looked_up, whole = _read(plan)
        its = tuple(name for name in bases if name in looked_up | whole)
        certain = plan.keyed or plan.differing or plan.others or (plan.added and plan.added.is_certain)
        if not certain:
            return Way("reads" if its else "views", its)  # what is stored and what changes may not tell
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
    tried = [plan.keyed, plan.differing, *plan.others[:1], None if plan.added is None else plan.added.rows]
    its = next(one for one in tried if one is not None)
    return {step.relation for step in its.steps}, set(its.whole)
