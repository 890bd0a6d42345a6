"""Groups of which all core rows are known: those rows, and whether they gave the stored rows before the update.

    stored: group 1 has 2 rows.     deleted: one of them.     known after the update: two rows of group 1

Where the rows come from a source that has moved, they are more, or others, than the stored rows and the update say.
"""

from __future__ import annotations

from datalog.model import Atom, Constant, Predicate, Program, Rule, Variable, Version
from selfmaint.canonical.support import CanonicalDatabase
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.maintain.core_rows import Asked, for_changes, gained_rows, lost_rows, or_empty, rows_of
from selfmaint.maintain.group_plan import OLD, ROWS, GroupPlan
from selfmaint.maintain.group_values import variables
from selfmaint.warehouse.catalog import GroupedView, View
from selfmaint.warehouse.grouped import Grouped

ASKED = Predicate("open", Version.STEP)
"""Groups that are asked for: their values, with a 1 behind them."""
_AMONG = Predicate("among", Version.STEP)


def asked_groups(grouped: Grouped, groups: D) -> Asked[D] | None:
    """Some groups as an atom over the core's terms; None if a group is told by an expression."""
    terms = [grouped.terms.get(g) if isinstance(g, Variable) else None for g in grouped.groups]
    if None in terms:
        return None
    atom = Atom(ASKED, (*(t for t in terms if t is not None), Constant(1)))
    return Asked(atom, {ASKED: groups})


def known_rows(
    known: CanonicalDatabase[D], core: View, groups: Asked[D] | None, *, every: bool = False
) -> D | None:
    """The core rows of some groups that are there after the update for certain; None if none are known.

    `every`: where no groups can be asked for, the rows of all instead of none.
    """
    if groups is None and not every:
        return None
    start = () if groups is None else (groups.atom,)
    atoms = (a.of(Version.AFTER) for a in core.body)
    given = None if groups is None else groups.given
    return rows_of(known, core, [(*start, *atoms, *core.filters)], given)


def of_groups(engine: Engine[D], view: GroupedView, groups: D, rows: D) -> D:
    """Those of some of a view's rows that are of some groups, held by the engine."""
    columns = variables("O", view.head.arity)
    key = Atom(ASKED, (*(columns[c] for c in view.grouped.columns), Constant(1)))
    rule = Rule(Atom(OLD, columns), (key, Atom(_AMONG, columns)))
    given = {ASKED: groups, _AMONG: rows}
    names = [f"c{i}" for i in range(len(columns))]
    return engine.keep(engine.evaluate(Program((rule,)), OLD, Facts(given, {}, frozenset(given)), names))


def contradicts(known: CanonicalDatabase[D], view: GroupedView, groups: D) -> bool:
    """Whether the core rows of some groups, all of which are known, did not give their stored rows before the update.

    Sums of doubles tell nothing: they are hardly ever the same. Nor do rows that are known as a finer view's groups.
    """
    if view.grouped.inexact or for_changes(known.catalog, known.situation, view) is not None:
        return False
    engine, plan = known.engine, GroupPlan(view, known.catalog.relations)
    rows, new, gone = (
        or_empty(engine, one, plan.column_types)
        for one in (
            known_rows(known, plan.core, asked_groups(view.grouped, groups), every=True),
            gained_rows(known, view),
            lost_rows(known, view, {}),
        )
    )
    before = {ROWS: engine.keep(engine.union([engine.minus(rows, new), gone]))}
    facts = Facts(before, {}, frozenset(before))
    made = engine.evaluate_view(plan.anew, facts, {ROWS: plan.column_types})
    stored = known.facts.relations[view.predicate]
    was, old = (of_groups(engine, view, groups, side) for side in (engine.like(made, stored), stored))
    return any(engine.count(engine.minus(*sides)) for sides in ((was, old), (old, was)))
