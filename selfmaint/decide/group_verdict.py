"""The verdict on a view that groups, once the core rows that it gains and loses are determined."""

from __future__ import annotations

from selfmaint.canonical.knowledge import Knowledge
from selfmaint.decide.verdict import SelfMaintainable, Undecided, Verdict
from selfmaint.engine.protocol import D
from selfmaint.maintain.groups import group_change
from selfmaint.warehouse.catalog import Catalog, View

SHOWN_GROUPS = 5
"""How many groups that are not determined a reason names."""

UNCOUNTABLE = "whether the rows of the update were there before is not known: say that it is effective"
"""Why a view that groups is not decided where the update may not be effective."""

INEXACT = "its sums of doubles can differ from recomputing in their last digits"
"""What is to be known of a view that adds up doubles."""


def group_verdict(known: Knowledge[D], catalog: Catalog, view: View) -> Verdict:
    """Whether the old values and the core rows gained and lost determine the new values.

    Args:
        known: everything known.
        catalog: the warehouse's schema.
        view: a view that groups, with a core whose test passes.
    """
    situation = known.situation
    assert view.core is not None
    touched = {a.predicate.name for a in view.core.body} & (situation.inserted | situation.deleted)
    if not touched:
        return SelfMaintainable(view.name)
    if not situation.effective:
        return Undecided(view.name, (str(view.limitation), UNCOUNTABLE))
    change = group_change(known, catalog, view)
    if change is None:
        return SelfMaintainable(view.name)
    if change.open is None:
        remarks = (INEXACT,) if view.grouped is not None and view.grouped.inexact else ()
        return SelfMaintainable(view.name, remarks)
    groups = known.engine.sample(change.open, SHOWN_GROUPS)
    shown = "; ".join(", ".join(str(v) for v in row[:-1]) or "the only one" for row in groups)
    return Undecided(view.name, (f"{_why(view)} (groups: {shown})",))


def _why(view: View) -> str:
    assert view.grouped is not None
    if not view.grouped.is_total and view.grouped.count_column is None:
        return f"`{view.name}` does not tell whether a group that loses rows is empty: add `count(*)` to it"
    return f"a value that an aggregate of `{view.name}` rests on is lost, and other rows of the group are not known"
