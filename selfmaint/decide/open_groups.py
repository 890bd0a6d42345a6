"""Whether a view that groups is determined where its core is: by its old values, and the core rows gained and lost."""

from __future__ import annotations

from datalog.model import AggregateFunction
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.verdict import SelfMaintainable, Undecided, Verdict
from selfmaint.engine.protocol import D
from selfmaint.maintain import group_change
from selfmaint.warehouse.catalog import GroupedView

_SHOWN = 5
"""How many groups that are not determined a reason names."""

UNCOUNTABLE = "whether the rows of the update were there before is not known: say that it is effective"
"""Why a view that groups is not decided where the update may not be effective."""

INEXACT = "its sums of doubles can differ from recomputing in their last digits"
"""What is to be known of a view that adds up doubles."""


def group_verdict(known: Knowledge[D], view: GroupedView) -> Verdict:
    """Whether old values and the core rows gained and lost determine the new ones, where the core's test passes."""
    situation = known.situation
    touched = {a.predicate.name for a in view.core.body} & (situation.inserted | situation.deleted)
    if not touched:
        return SelfMaintainable(view.name, exact=True)
    if not situation.effective:
        return Undecided(view.name, (str(view.limitation), UNCOUNTABLE))
    change = group_change(known, view)
    if change is None:
        return SelfMaintainable(view.name)
    if change.open is None:
        remarks = (INEXACT,) if view.grouped.inexact else ()
        return SelfMaintainable(view.name, remarks)
    groups = known.engine.sample(change.open, _SHOWN)
    shown = "; ".join(", ".join(str(v) for v in row[:-1]) or "the only one" for row in groups)
    return Undecided(view.name, (f"{_why(view)} (groups: {shown})",))


def may_stay_open(known: Knowledge[D], view: GroupedView) -> bool:
    """Whether groups may stay open although all core rows gained and lost are known."""
    deleted = known.situation.deleted.intersection(atom.predicate.name for atom in view.core.body)
    return bool(view.alone or view.grouped.block.having or deleted)


def _why(view: GroupedView) -> str:
    if view.grouped.block.having:
        return f"nothing tells all that {view.shown} asks for and shows of some groups that gain or lose rows"
    if not view.grouped.is_total and view.grouped.count_column is None:
        return view.uncounted
    extrema = AggregateFunction.MIN, AggregateFunction.MAX
    if view.alone and not any(m.aggregate.function in extrema for m in view.grouped.measures):
        return view.alone
    return f"a value that an aggregate of {view.shown} rests on is lost, and other rows of the group are not known"
