"""Recomputing, within `maintain`: which views, whether they can be, and their changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic

from msgspec import Struct, field

from selfmaint.api.following.not_maintained import NotMaintainedError, uncountable
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.decide.decision import Decision
from selfmaint.decide.verdict import SelfMaintainable, Undecided, Verdict
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, input_error
from selfmaint.fallback.recompute import Recomputing, obstacles
from selfmaint.maintain import Delta, difference
from selfmaint.sources.protocol import Read
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.situation import Situation


class Anew(Struct, Generic[D], frozen=True):
    """Views that were recomputed.

    Attributes:
        contents: by view, all its new rows.
        deltas: by view, how they differ from the old ones, each row as often as it is more or less; counted rows of
            views that keep duplicates and are decided.
        reads: every read of a base relation.
    """

    contents: Mapping[str, D] = field(default_factory=dict)
    deltas: Mapping[str, Delta[D]] = field(default_factory=dict)
    reads: tuple[Read, ...] = ()

    def with_(self, more: Anew[D]) -> Anew[D]:
        """With other views."""
        return Anew(
            {**self.contents, **more.contents}, {**self.deltas, **more.deltas}, (*self.reads, *more.reads)
        )


def require_not_strict(*, recompute: bool, strict: bool) -> None:
    """Refuses to recompute where no base relation may be read.

    Raises:
        InputError: SM404.
    """
    if recompute and strict:
        message = "views cannot be recomputed in strict mode, in which no base relation may be read"
        raise input_error(Code.NOT_MAINTAINED, message, "leave one of the two out")


def not_followed(
    catalog: Catalog,
    open_views: Sequence[View],
    situation: Situation,
    found: Mapping[str, Verdict],
    verdicts: Mapping[str, Verdict],
) -> list[View]:
    """The views, of those that are not self-maintainable, that reading some rows does not help, or all of a group's.

    And those, or branches of those, that are as a whole by the views that they read.

    Args:
        catalog: all views.
        open_views: those, and branches of unions, that are not self-maintainable.
        situation: what is known of the update.
        found: the verdicts on views and branches.
        verdicts: those on the views.
    """
    doubtful = [*uncountable(open_views, situation), *(v for v in open_views if is_cut(found[v.name]))]
    alone = [v for v in open_views if isinstance(v, GroupedView) and v.alone]
    return [
        v
        for v in open_views
        if not v.is_decided
        or v in doubtful
        or v in alone
        or isinstance(verdicts.get(catalog.whole(v.name)), SelfMaintainable)
    ]


def is_cut(verdict: Verdict) -> bool:
    """Whether it took too long to find."""
    return isinstance(verdict, Undecided) and verdict.is_cut


def require_recomputable(
    warehouse: Warehouse[D],
    views: Sequence[View],
    verdicts: Mapping[str, Verdict],
    now: Catalog | None = None,
) -> None:
    """Refuses, before anything is read, views that cannot be recomputed; see `recomputing_of`.

    Raises:
        NotMaintainedError: SM404 for each of them, with the reason.
    """
    found = obstacles(now or warehouse.catalog, views, warehouse.readable)
    if found:
        raise NotMaintainedError(found, verdicts)


def recomputing_of(
    warehouse: Warehouse[D],
    update: Update[D],
    followed: Callable[[View], D],
    progress: Callable[[str], None] = lambda _message: None,
    now: Catalog | None = None,
    *,
    is_doubted: bool = False,
) -> Recomputing[D]:
    """What runs the views' queries after an update, unions whole; see `recomputed_views` and `Recomputing`."""
    decision = warehouse.decision
    if warehouse.catalog.unions:
        decision = Decision(warehouse.catalog, decision.budget_s)
    known = decision.knowledge(warehouse.engine, *warehouse.given(update))
    return Recomputing(known, warehouse.readable, followed, progress, now, is_doubted)


def recomputed_views(
    warehouse: Warehouse[D],
    update: Update[D],
    views: Sequence[View],
    followed: Callable[[View], D],
    progress: Callable[[str], None],
    now: Catalog | None = None,
) -> Anew[D]:
    """The new contents and changes of views that nothing stands in the way of recomputing.

    `now` has the definitions where these are others than those that the contents are of.

    Raises:
        SourceError: a source that does not answer, or is neither right before nor right after the update (SM402).
        InputError: SM404 a query that cannot be run; SM104 one with other columns.
    """
    if not views:
        return Anew()
    engine = warehouse.engine
    found = recomputing_of(warehouse, update, followed, progress, now).recomputed(views)
    changes = {}
    for name, rows in found.contents.items():
        old = warehouse.contents[name]
        changes[name] = difference(engine, warehouse.catalog.view(name), rows, old)
    return Anew(found.contents, changes, found.reads)
