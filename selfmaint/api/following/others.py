"""What becomes, within `maintain`, of views that are neither decided nor settled: keyed reads, or recomputing.

Views that read stored views come after these: `views_as_tables.py`, `by_rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Generic

from msgspec import Struct, field

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from selfmaint.api.file.file_settings import EngineKind
from selfmaint.api.following.by_rows import followed_by_rows, source_of
from selfmaint.api.following.moved import Moved
from selfmaint.api.following.not_maintained import RECOMPUTE, NotMaintainedError
from selfmaint.api.following.over_views import with_views_over_stored
from selfmaint.api.following.recompute import Anew, recomputed_views, require_recomputable
from selfmaint.api.stored_types import require_stored_as_queried
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.decide.verdict import SelfMaintainable, Verdict
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, InputError
from selfmaint.fallback.keyed_rows import MOST_KEYS, ByKeys, KeyedDelta
from selfmaint.fallback.recompute import reads
from selfmaint.maintain import Delta
from selfmaint.sources.protocol import Read
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.situation import Situation

if TYPE_CHECKING:
    from selfmaint.api.following.keyed import Plan

MANY_ROWS = 100_000
"""What reads stored views of fewer rows in all is computed anew from them."""
ON_SPARK = 10
"""On Spark of so many times as many: there a statement takes longer, whatever it reads."""
SHARE = 4
"""So is what reads a stored view of which a larger part than one of so many changes."""


class Others(Struct, Generic[D]):
    """Views that are followed by keys where that can be, and else recomputed if that is told.

    Attributes:
        most_keys: how many keys of base rows may be asked for; 0 for none.
        told: the base relations that stored views copy, and that are read there.
        recompute: what is not followed may be recomputed.
        reasons: by view, why it is not followed by keys.
        again: the views that are recomputed, as they are defined now.
        now: the definitions, where these are others than those that the contents are of.
    """

    warehouse: Warehouse[D]
    situation: Situation
    most_keys: int
    recompute: bool
    told: frozenset[str] = frozenset()
    reasons: dict[str, str] = field(default_factory=dict)
    again: list[View] = field(default_factory=list)
    now: Catalog | None = None
    _plans: dict[str, Plan] = field(default_factory=dict)
    _above: dict[str, Plan] = field(default_factory=dict)
    _moved: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """The names of all of these views."""
        return frozenset(self._plans) | frozenset(self._above) | {view.name for view in self.again}

    @property
    def views(self) -> list[View]:
        """All of these views."""
        return [view for view in self.warehouse.catalog.views if view.name in self.names]

    def plan(self, name: str) -> Plan | None:
        """How a view is followed by keys, if it is."""
        return self._plans.get(name) or self._above.get(name)

    def can_follow(self, views: Sequence[View], verdicts: Mapping[str, Verdict]) -> bool:
        """Whether all of some views can be followed without recomputing one from its sources."""
        trial = replace(
            self,
            recompute=False,
            reasons=dict(self.reasons),
            again=list(self.again),
            _plans=dict(self._plans),
            _above=dict(self._above),
        )
        with suppress(NotMaintainedError, InputError):
            trial.add(views, verdicts)
            return True
        return False

    def add(self, views: Sequence[View], verdicts: Mapping[str, Verdict]) -> None:
        """Takes views that can be followed by keys, or recomputed; leaves the others.

        Raises:
            NotMaintainedError: SM404 one is to be recomputed, and cannot be.
            InputError: SM104 one reads a view that is stored with other types than its query gives.
        """
        require_stored_as_queried(self.warehouse.catalog, views)
        views = self._over_stored(views, [view for view in views if _is_told(verdicts, view.name)])
        plans: dict[str, Plan] = {}
        if self.most_keys and views:
            from selfmaint.api.following.keyed import plans_by_keys  # noqa: PLC0415 - see above

            plans, reasons = plans_by_keys(self.warehouse, views, self.situation)
            self._plans |= plans
            self.reasons |= reasons
        views = self._over_stored(views, [view for view in views if view.name not in plans])
        plans = {**plans, **self._planned_above([view for view in views if view.name not in plans])}
        left = [view for view in views if view.name not in plans]
        again = left if self.recompute else self._over_followed_views(left, views)
        require_recomputable(self.warehouse, again, verdicts, self.now)
        self.again += again

    def _over_stored(self, views: Sequence[View], which: Sequence[View]) -> Sequence[View]:
        """Some views, those `which` are followed no other way as their queries over stored views."""
        if self.now is None and which:
            catalog = with_views_over_stored(self.warehouse.catalog, [view.name for view in which])
            if catalog is not self.warehouse.catalog:
                self.warehouse = replace(self.warehouse, catalog=catalog)
        return [self.warehouse.catalog.view(view.name) for view in views]

    def _planned_above(self, left: Sequence[View]) -> dict[str, Plan]:
        """Of views that are not followed by keys of tables alone, how those are that read views that are followed."""
        catalog = self.warehouse.catalog
        waiting = [
            view for view in left if _reads_views(catalog, view) and not source_of(self.warehouse, view)
        ]
        if not self.most_keys:
            waiting = [view for view in waiting if _reads_views_alone(catalog, view)]
        if not waiting:
            return {}
        from selfmaint.api.following.keyed import plans_by_keys  # noqa: PLC0415 - see above
        from selfmaint.api.following.views_as_tables import changing, with_views_as_tables  # noqa: PLC0415 - see above

        found: dict[str, Plan] = {}
        while waiting:
            others = [view for view in (*left, *self.again) if view.name not in found]
            anew = self._over_followed_views([v for v in others if _reads_views_alone(catalog, v)], others)
            lost = {view.name for view in others} - {view.name for view in anew}
            # A name that stands behind `not` alone may be no view's.
            views = {view.name for view in catalog.views} - lost
            below = views.intersection(name for view in waiting for name in reads(catalog, view))
            over = with_views_as_tables(self.warehouse, below, {})
            situation = changing(self.warehouse, self.situation, below)
            plans, reasons = plans_by_keys(over, waiting, situation, below)
            unread = {v.name: set(reads(catalog, v)) - over.catalog.relations.keys() for v in waiting}
            unlike = {name: _unlike_tables(sorted(its), lost) for name, its in unread.items() if its}
            self.reasons |= {**reasons, **unlike}
            if not plans:
                break
            found |= plans
            self._above |= plans
            waiting = [view for view in waiting if view.name not in plans]
        return found

    def add_moved(self, moved: Moved, verdicts: Mapping[str, Verdict]) -> None:
        """Takes the views whose definitions say something else now.

        Raises:
            NotMaintainedError: SM404 one reads base rows and is not to be recomputed, or cannot be.
        """
        bases, computed = set(self.warehouse.catalog.relations) - self.told, moved.computed
        over_bases = [view.name for view in moved.views() if bases & set(reads(computed, view))]
        self.now = with_views_over_stored(computed, [name for name in over_bases if _is_told(verdicts, name)])
        views = [view for view in self.now.views if view.name in moved.names]
        left = [view for view in views if bases & set(reads(self.now, view))]
        if left and not self.recompute:
            raise NotMaintainedError([_moved(view, moved.why) for view in left], verdicts)
        require_recomputable(self.warehouse, views, verdicts, self.now)
        self.again += views
        self._moved = frozenset(view.name for view in views)

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
        bases = names & set(catalog.relations) - self.told
        lost = {other.name for other in others} - set(self._plans) - set(self._above) - {view.name}
        at_rest = set(self.warehouse.readable) - situation.inserted - situation.deleted
        if bases and not (self.most_keys and bases <= at_rest):  # 0: no base row is to be read
            return False
        return names > bases and lost.isdisjoint(names)

    def followed(
        self, update: Update[D], verdicts: Mapping[str, Verdict], progress: Callable[[str], None]
    ) -> ByKeys[D]:
        """Follows the views that it can be done for; those for which it turns out otherwise are recomputed.

        If none is to be recomputed, those are that read what other views tell, or views that are followed.

        Raises:
            NotMaintainedError: SM404 one can be followed no further, and is not to be recomputed, or cannot be.
            SourceError: a source that does not answer, or is in another state (SM402).
        """
        if not self._plans:
            return ByKeys()
        from selfmaint.api.following.keyed import followed_by_keys  # noqa: PLC0415 - see above

        found = followed_by_keys(self.warehouse, update, self._plans, progress, self.most_keys)
        self._fail(found.failed, verdicts)
        return found

    def _fail(self, why: Mapping[str, str], verdicts: Mapping[str, Verdict]) -> None:
        """Recomputes views that keys did not follow, if that may be."""
        self.reasons |= why
        failed = [view for view in self.warehouse.catalog.views if view.name in why]
        again = failed if self.recompute else [v for v in failed if self._reads_followed_views(v, failed)]
        if left := [view for view in failed if view not in again]:
            helped = bool(self.warehouse.catalog.helpers)
            failures = [_failed(view, why[view.name], has_helpers=helped) for view in left]
            raise NotMaintainedError(failures, verdicts)
        require_recomputable(self.warehouse, again, verdicts, self.now)
        self.again += again

    def computed(
        self,
        update: Update[D],
        deltas: Mapping[str, Delta[D]],
        verdicts: Mapping[str, Verdict],
        contents: Callable[[View, Delta[D]], D],
        progress: Callable[[str], None],
    ) -> tuple[ByKeys[D], Anew[D]]:
        """What becomes of the views over views, and of those that are recomputed: of some only the rows that change.

        Raises:
            NotMaintainedError: SM404 one can be followed no further, and is not to be recomputed, or cannot be.
            SourceError: a source that does not answer, or is in another state (SM402).
            InputError: SM404 a query that cannot be run; SM104 one with other columns.
        """
        found, early = self._followed_above(update, deltas, verdicts, contents, progress)
        known = {**deltas, **{name: one.delta for name, one in found.followed.items()}, **early.deltas}
        left = [view for view in self.again if view.name not in early.contents]
        unmoved = [view for view in left if view.name not in self._moved]
        by_rows = followed_by_rows(self.warehouse, update, unmoved, known)
        known |= {name: one.delta for name, one in by_rows.items()}
        again = [view for view in left if view.name not in by_rows]
        anew = recomputed_views(
            self.warehouse, update, again, lambda view: contents(view, known[view.name]), progress, self.now
        )
        return replace(found, followed={**found.followed, **by_rows}), early.with_(anew)

    def _followed_above(
        self,
        update: Update[D],
        deltas: Mapping[str, Delta[D]],
        verdicts: Mapping[str, Verdict],
        contents: Callable[[View, Delta[D]], D],
        progress: Callable[[str], None],
    ) -> tuple[ByKeys[D], Anew[D]]:
        """Follows views over views by keys, each after those that it reads, some of which are computed anew before."""
        if not self._above:
            return ByKeys(), Anew()
        from selfmaint.api.following.keyed import followed_by_keys  # noqa: PLC0415 - see above
        from selfmaint.api.following.views_as_tables import with_changes_of_views, with_views_as_tables  # noqa: PLC0415

        catalog, waiting = self.warehouse.catalog, dict(self._above)
        followed: dict[str, KeyedDelta[D]] = {}
        every: list[Read] = []
        early, known = Anew[D](), dict(deltas)

        def new_rows(view: View) -> D:
            return contents(view, known[view.name])

        while waiting:
            ready = {name: plan for name, plan in waiting.items() if self._views_of(name) <= known.keys()}
            if whole := [name for name in ready if self._is_sooner_whole(name, known)]:
                self._fail(dict.fromkeys(whole, "computing it anew takes less"), verdicts)
                waiting = {name: plan for name, plan in waiting.items() if name not in whole}
                continue
            if ready:
                its = {name: known[name] for name in set().union(*map(self._views_of, ready))}
                over = with_views_as_tables(self.warehouse, its, its)
                made = followed_by_keys(
                    over, with_changes_of_views(update, its), ready, progress, self.most_keys or MOST_KEYS
                )
                followed |= made.followed
                known |= {name: one.delta for name, one in made.followed.items()}
                every += made.reads
                self._fail(made.failed, verdicts)
                waiting = {name: plan for name, plan in waiting.items() if name not in ready}
                continue
            left = [
                view for view in self.again if view.name not in known and _reads_views_alone(catalog, view)
            ]
            left = [view for view in left if self._views_of(view.name) <= known.keys()]
            if not left:
                break
            more = recomputed_views(self.warehouse, update, left, new_rows, progress, self.now)
            early = early.with_(more)
            known |= more.deltas
        self._fail(dict.fromkeys(waiting, "a view that it reads is recomputed"), verdicts)
        return ByKeys(followed, {}, tuple(every)), early

    def _is_sooner_whole(self, name: str, known: Mapping[str, Delta[D]]) -> bool:
        """Whether a view over views alone is computed anew sooner than by keys: of few rows, or of many new ones."""
        catalog, count = self.warehouse.catalog, self.warehouse.engine.count
        if not _reads_views_alone(catalog, catalog.view(name)):
            return False
        sizes = {one: count(self.warehouse.contents[one]) for one in self._views_of(name)}
        most = MANY_ROWS * (ON_SPARK if self.warehouse.engine.name == EngineKind.SPARK else 1)
        return sum(sizes.values()) < most or any(
            SHARE * (count(known[one].gained) + count(known[one].lost)) > size for one, size in sizes.items()
        )

    def _views_of(self, name: str) -> set[str]:
        """The views that a view reads."""
        catalog = self.warehouse.catalog
        return set(reads(catalog, catalog.view(name))) - catalog.relations.keys()


def _reads_views_alone(catalog: Catalog, view: View) -> bool:
    names = reads(catalog, view)
    return bool(names) and catalog.relations.keys().isdisjoint(names)


def _reads_views(catalog: Catalog, view: View) -> bool:
    return not catalog.relations.keys() >= set(reads(catalog, view))


def _is_told(verdicts: Mapping[str, Verdict], name: str) -> bool:
    """Whether a view is told by the views that it reads."""
    verdict = verdicts.get(name)
    return isinstance(verdict, SelfMaintainable) and bool(verdict.over)


def _unlike_tables(names: Sequence[str], lost: Collection[str]) -> str:
    """Why some views are not read by keys, as tables are."""
    name = next((name for name in names if name in lost), names[0])
    why = "which is not followed itself" if name in lost else "of which equal rows may be kept"
    return f"it reads the view `{name}`, {why}"


_OR_HELPERS = f"{RECOMPUTE}; of some views a lake has helpers (`helpers = true`)"


def _moved(view: View, why: str) -> Diagnostic:
    message = f"the view `{view.name}` is to be computed anew: {why}"
    return Diagnostic(Code.NOT_MAINTAINED, message, hint=_OR_HELPERS)


def _failed(view: View, why: str, *, has_helpers: bool) -> Diagnostic:
    message = f"the view `{view.name}` is not decided by what is known, and not followed by keys: {why}"
    hint = f"{RECOMPUTE}, or take it out of this warehouse" if has_helpers else _OR_HELPERS
    return Diagnostic(Code.NOT_MAINTAINED, message, hint=hint)
