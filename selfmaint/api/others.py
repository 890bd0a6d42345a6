"""What becomes, within `maintain`, of views that are neither decided nor settled: keyed reads, or recomputing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic

from datalog.diagnostics import Diagnostic
from selfmaint.api.keyed import ByKeys, Plan, followed_by_keys, plans_by_keys
from selfmaint.api.not_maintained import NotMaintainedError
from selfmaint.api.recompute import recomputed_views, require_recomputable
from selfmaint.api.tolerance import beyond_tolerance, near_columns
from selfmaint.api.update import Update
from selfmaint.api.verify import SHOWN_ROWS, Difference
from selfmaint.api.warehouse import Warehouse
from selfmaint.decide.verdict import Verdict
from selfmaint.engine.protocol import D
from selfmaint.errors import Code
from selfmaint.fallback.keyed import KeyedDelta
from selfmaint.fallback.recompute import reads
from selfmaint.maintain import applied
from selfmaint.warehouse.catalog import View
from selfmaint.warehouse.situation import Situation


@dataclass
class Others(Generic[D]):
    """Views that are followed by keys where that can be, and else recomputed if that is told.

    Attributes:
        warehouse: the warehouse.
        situation: what changes.
        most_keys: how many keys of base rows may be asked for; 0 for none.
        recompute: what is not followed may be recomputed.
        reasons: by view, why it is not followed by keys.
        again: the views that are recomputed.
    """

    warehouse: Warehouse[D]
    situation: Situation
    most_keys: int
    recompute: bool
    reasons: dict[str, str] = field(default_factory=dict)
    again: list[View] = field(default_factory=list)
    _plans: dict[str, Plan] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """The names of all of these views."""
        return frozenset(self._plans) | {view.name for view in self.again}

    @property
    def views(self) -> list[View]:
        """All of these views."""
        return [view for view in self.warehouse.catalog.views if view.name in self.names]

    def can_follow(self, views: Sequence[View]) -> bool:
        """Whether all of some views can be followed by keys."""
        if not self.most_keys:
            return False
        plans, _ = plans_by_keys(self.warehouse, views, self.situation)
        return all(view.name in plans for view in views)

    def add(self, views: Sequence[View], verdicts: Mapping[str, Verdict]) -> None:
        """Takes views that can be followed by keys, or recomputed; leaves the others.

        Raises:
            NotMaintainedError: SM404 one is to be recomputed, and cannot be.
        """
        plans: dict[str, Plan] = {}
        if self.most_keys:
            plans, reasons = plans_by_keys(self.warehouse, views, self.situation)
            self._plans |= plans
            self.reasons |= reasons
        left = [view for view in views if view.name not in plans]
        again = left if self.recompute else self._over_followed_views(left, views)
        require_recomputable(self.warehouse, again, verdicts)
        self.again += again

    def _over_followed_views(self, left: Sequence[View], others: Sequence[View]) -> list[View]:
        """Of some views, those that are computed from views that are followed, or from such."""
        found: list[View] = []
        while True:
            lost = [view for view in others if view not in found]
            more = [view for view in left if view in lost and self._reads_followed_views(view, lost)]
            if not more:
                return found
            found += more

    def _reads_followed_views(self, view: View, others: Sequence[View]) -> bool:
        """Whether all that changes of what a view reads are views that are followed: these are its sources."""
        catalog, situation = self.warehouse.catalog, self.situation
        names = set(reads(catalog, view))
        bases = names & set(catalog.relations)
        lost = {other.name for other in others} - set(self._plans) - {view.name}
        at_rest = set(self.warehouse.readable) - situation.inserted - situation.deleted
        if bases and not (self.most_keys and bases <= at_rest):  # 0: no base row is to be read
            return False
        return names > bases and not names & lost

    def followed(
        self, update: Update[D], verdicts: Mapping[str, Verdict], progress: Callable[[str], None]
    ) -> ByKeys[D]:
        """Follows the views that it can be done for; those for which it turns out otherwise are recomputed.

        Raises:
            NotMaintainedError: SM404 one can be followed no further, and is not to be recomputed, or cannot be.
            SourceError: a source that does not answer, or is in another state (SM402).
        """
        found = followed_by_keys(self.warehouse, update, self._plans, progress, self.most_keys)
        self.reasons |= found.failed
        failed = [view for view in self.warehouse.catalog.views if view.name in found.failed]
        if failed and not self.recompute:
            raise NotMaintainedError([_failed(view, found.failed[view.name]) for view in failed], verdicts)
        require_recomputable(self.warehouse, failed, verdicts)
        self.again += failed
        return found


def _failed(view: View, why: str) -> Diagnostic:
    return Diagnostic(
        code=Code.NOT_MAINTAINED,
        message=f"the view `{view.name}` is not decided by what is known, and not followed by keys",
        note=why,
        hint="recompute it from its sources, `--recompute`, or take it out of this warehouse",
    )


def not_by_keys(reason: str | None) -> str | None:
    """Why a view is not followed by reading the base rows of the keys that a change affects, as a note."""
    return None if reason is None else f"it is not followed by keyed reads either: {reason}"


def unlike_recomputed(
    warehouse: Warehouse[D],
    update: Update[D],
    followed: Sequence[KeyedDelta[D]],
    contents: Callable[[View], D],
) -> tuple[Difference, ...]:
    """The views that were followed by keys whose new contents are not what their sources give, read whole.

    Args:
        warehouse: the warehouse.
        update: the update.
        followed: the views.
        contents: the new contents of others that they read.

    Raises:
        SourceError: a source that does not answer, or is in another state (SM402).
        InputError: SM404 a query that cannot be run.
    """
    engine, catalog = warehouse.engine, warehouse.catalog
    views = [catalog.view(one.view) for one in followed]
    truth = recomputed_views(warehouse, update, views, contents, lambda _message: None)
    found = []
    for view, one in zip(views, followed, strict=True):
        new = applied(engine, view, warehouse.contents[view.name], one.delta)
        right = truth.contents[view.name]
        differing = (engine.minus_all(right, new), engine.minus_all(new, right))
        beyond = beyond_tolerance(engine, near_columns(catalog, view), *differing)
        missing, extra = (engine.sample(rows, SHOWN_ROWS) for rows in beyond)
        if missing or extra:
            found.append(Difference(view.name, tuple(missing), tuple(extra)))
    return tuple(found)
