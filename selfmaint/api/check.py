"""`check`: is each view's new state determined without reading any base relation?"""

from __future__ import annotations

from collections.abc import Sequence

from selfmaint.api.validate import require_possible
from selfmaint.api.warehouse import Update, Warehouse
from selfmaint.decide.informed import informed
from selfmaint.decide.procedure import check as decide
from selfmaint.decide.verdict import Verdict
from selfmaint.engine.protocol import D


def check(
    warehouse: Warehouse[D],
    update: Update[D],
    views: Sequence[str] | None = None,
    *,
    full: bool = False,
    budget_s: float | None = None,
) -> dict[str, Verdict]:
    """The verdict on each view, from the views, partial copies and the update alone.

    Args:
        warehouse: the views and what is known besides.
        update: the change of the base relations, as a whole.
        views: names of the views to decide; all by default.
        full: also check that the views explain each other, at the cost of recomputing them.
        budget_s: how many seconds the search for what a view depends on may take, and again its test on the data;
            by default as the warehouse says. A view for which it is spent is undecided.

    Returns:
        For each view's name a `SelfMaintainable`, `NotSelfMaintainable` or `Undecided`, in order of definition.

    Raises:
        InputError: SM101 a budget that is not positive; SM102 an unknown name; SM2xx, SM3xx contradictions
            in what is given.

    Semantics:
        Sets; null is one stored value that never joins; contents and partial copies are before-images.

    Source:
        Huyn, Multiple-View Self-Maintenance in Data Warehousing Environments, VLDB 1997, sections 2-4 and 6.
    """
    decision = warehouse.decision_within(budget_s)
    facts, situation = warehouse.given(update)
    require_possible(warehouse, facts, situation, update.files, full=full)
    facts, situation = informed(decision, warehouse.engine, facts, situation)
    chosen = warehouse.catalog.views if views is None else [warehouse.view(name) for name in views]
    return decide(decision, warehouse.engine, facts, situation, chosen)
