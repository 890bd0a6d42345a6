"""`check`: is each view's new state determined without reading any base relation?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from selfmaint.api.moved import moved
from selfmaint.api.over_views import of_views_below, with_views_below
from selfmaint.api.update import Update
from selfmaint.api.validate import require_possible
from selfmaint.api.warehouse import Warehouse
from selfmaint.decide.evaluation import foresee
from selfmaint.decide.procedure import check as decide
from selfmaint.decide.unions import of_unions
from selfmaint.decide.verdict import Verdicts
from selfmaint.engine.protocol import D

if TYPE_CHECKING:
    from selfmaint.cross_examine.examine import CrossExamination


def check(
    warehouse: Warehouse[D],
    update: Update[D],
    views: Sequence[str] | None = None,
    *,
    full: bool = False,
    budget_s: float | None = None,
    cross_examine: bool | CrossExamination = False,
) -> Verdicts:
    """The verdict on each view; see `Warehouse.check`."""
    decision, turned = warehouse.decision_within(budget_s), moved(warehouse)
    facts, situation = warehouse.given(update)
    catalog = warehouse.catalog
    chosen = catalog.views if views is None else [warehouse.view(name) for name in views]
    parts = [part for view in with_views_below(catalog, chosen) for part in catalog.parts(view)]
    known = decision.knowledge(warehouse.engine, facts, situation)
    foresee(known, parts, maintained=False)
    require_possible(warehouse, facts, situation, update.files, full=full)
    found = decide(known, parts)
    verdicts = of_views_below(catalog, of_unions(catalog, found))
    if turned is not None:
        verdicts = Verdicts(turned.verdicts(verdicts))
    hidden = catalog.helpers if views is None else ()
    wanted = {v.name: verdicts[v.name] for v in chosen if v.name not in hidden}
    if not cross_examine:
        return Verdicts(wanted)
    from selfmaint.api.cross_examine import cross_examined  # noqa: PLC0415 - only where it is asked for

    result = cross_examined(warehouse, update, known, found, wanted, cross_examine)
    return Verdicts(result.less(wanted, {}), result.views)
