"""Views that are neither decided nor followed another way: few base rows settle them, or they are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic

from msgspec import Struct

from datalog.budget import BudgetSpentError, limit
from selfmaint.api.following.not_maintained import (
    RECOMPUTE,
    NotMaintainedError,
    countable,
    not_determined,
    not_maintained,
)
from selfmaint.api.following.others import Others
from selfmaint.decide.evaluation import joins_many
from selfmaint.decide.saturation import saturated, stays
from selfmaint.decide.verdict import SelfMaintainable, Undecided, Verdict, Verdicts
from selfmaint.engine.protocol import D
from selfmaint.fallback.groups import reads_whole, settle_groups
from selfmaint.fallback.settle import Reader, settle
from selfmaint.warehouse.catalog import Catalog, GroupedView, View

_SHORT = 0.2
"""The part of the budget that settling views may take where keyed reads, which read more, follow them in no time."""


class Opened(Struct, Generic[D]):
    """Settles views that are neither decided nor among the others.

    Attributes:
        found: the verdicts on branches of unions apart.
        verdicts: those on the views.
    """

    reader: Reader[D]
    others: Others[D]
    found: Mapping[str, Verdict]
    verdicts: Verdicts
    strict: bool

    def require_class(self, views: Sequence[View]) -> None:
        """Refuses views that no read could settle, as what was found for each of them says."""
        limited = [view for view in views if not view.is_decided]
        if limited:
            hint = f"{self._recompute}, or take it out of this warehouse"
            raise NotMaintainedError(
                [not_maintained(v, str(v.limitation), hint, self._not_by_keys(v)) for v in limited],
                self.verdicts,
            )
        cut = {v: its for v in views if isinstance(its := self.found[v.name], Undecided) and its.is_cut}
        if cut:
            raise self._untested(cut)

    def settled(self, views: list[View]) -> list[View]:
        """The views, settled by reads; without those where that takes too long: they are some of the others then."""
        views = self._without_large(views)
        whole, before = wholes(self.others.warehouse.catalog, views), self.reader.known
        try:
            try:
                self._settle(views, _SHORT)
            except BudgetSpentError:  # only now it matters, and it takes time to find out
                if self.others.can_follow(whole, self.verdicts):
                    raise
                self._settle(views, len(views))
        except BudgetSpentError as spent:
            self.reader.known = before
            cut = {view: self._cut(view, spent) for view in whole}
            undecided = {view.name: its for view, its in cut.items()}
            self.verdicts = Verdicts({**self.verdicts, **undecided}, self.verdicts.examined)
            self.others.add(whole, self.verdicts)
            if left := {view: its for view, its in cut.items() if view.name not in self.others.names}:
                raise self._untested(left) from None
            return []
        return views

    def _without_large(self, views: list[View]) -> list[View]:
        """The views but those that many rows would settle, or all of a relation, if keyed reads follow these."""
        catalog = self.others.warehouse.catalog
        groups = {view.name for view in views if isinstance(view, GroupedView) and reads_whole(view)}
        large = [view for view in views if view.name in groups or joins_many(self.reader.known, view)]
        whole = wholes(catalog, large)
        if not whole or not self.others.can_follow(whole, self.verdicts):
            return views
        self.others.add(whole, self.verdicts)
        return but(catalog, views, self.others.views)

    def _cut(self, view: View, spent: BudgetSpentError) -> Undecided:
        """The verdict on a view that reads were to settle: what was undecided before is still so."""
        before = self.verdicts.get(view.name)
        reasons = before.reasons if isinstance(before, Undecided) else ()
        return Undecided(view.name, (*reasons, str(spent)), is_cut=True)

    def _settle(self, views: Sequence[View], tries: float) -> None:
        """Reads everything that the views need, and tests them again for at most so many budgets."""
        reader, catalog, before = self.reader, self.others.warehouse.catalog, self.reader.known
        if views:
            with limit(reader.known.decision.budget_s * tries, "testing the views again after each read"):
                failing = settle(reader, views)
            if failing:
                names = {catalog.whole(r.new_facts.view.name) for r in failing}
                raise not_determined(names, self.verdicts, strict=self.strict)
        with_core = [view for view in views if isinstance(view, GroupedView)]
        if with_core:
            if reader.reads:
                told = [n for n, verdict in self.found.items() if isinstance(verdict, SelfMaintainable)]
                stays(before, reader.known, told)
                reader.known = saturated(reader.known, but=self.others.names)
            left = settle_groups(reader, countable(with_core, reader.known.situation, self.verdicts))
            if left:
                names = {catalog.whole(name) for name in left}
                raise not_determined(names, self.verdicts, strict=self.strict)

    @property
    def _recompute(self) -> str:
        """The way out for a view that no few rows settle; strictly nothing may be recomputed."""
        if not self.strict:
            return RECOMPUTE
        return (
            "leave `--strict` off: base rows of the keys that change are read then; "
            f"where that cannot be, {RECOMPUTE}"
        )

    def _not_by_keys(self, view: View) -> str | None:
        """Why it is not followed by reading the base rows of the keys that a change affects, as a note."""
        reason = None if self.strict else self.others.reasons.get(view.name)
        return None if reason is None else f"it is not followed by keyed reads either: {reason}"

    def _untested(self, cut: Mapping[View, Undecided]) -> NotMaintainedError:
        hint = f"give more time, or {self._recompute}"
        notes = {
            v: "; ".join([*its.because.splitlines(), *filter(None, [self._not_by_keys(v)])])
            for v, its in cut.items()
        }
        return NotMaintainedError(
            [not_maintained(v, "it is undecided", hint, note) for v, note in notes.items()], self.verdicts
        )


def wholes(catalog: Catalog, parts: Sequence[View]) -> list[View]:
    """The views that some views, or branches of unions, are of."""
    names = {catalog.whole(part.name) for part in parts}
    return [view for view in catalog.views if view.name in names]


def but(catalog: Catalog, parts: Sequence[View], left_out: Sequence[View]) -> list[View]:
    """The views and branches of unions that are not of some views."""
    names = {view.name for view in left_out}
    return [part for part in parts if catalog.whole(part.name) not in names]
