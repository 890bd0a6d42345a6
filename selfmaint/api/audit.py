"""`audit`: for each view and kind of change, whether it is always self-maintainable, from definitions alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from datalog.budget import DEFAULT_S
from datalog.copies import replace
from selfmaint.api.following.over_views import what_is_below, with_views_below
from selfmaint.api.garbage import seldom_collected
from selfmaint.audit.advice import Advice, advised
from selfmaint.audit.derived import (
    advice_of_unions,
    loss_of_unions,
    of_gone_rows,
    of_shown_rows,
    of_unions,
    of_views_below,
)
from selfmaint.audit.matrix import Audit, audited
from selfmaint.audit.needs import Loss, loss
from selfmaint.audit.search import Search
from selfmaint.decide.verdict import html_table
from selfmaint.errors import Code, input_error
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.helper_costs import Helper
from selfmaint.warehouse.near import near_miss, require_known
from selfmaint.warehouse.situation import Situation

if TYPE_CHECKING:
    from selfmaint.api.warehouse import Warehouse

D = TypeVar("D")


@dataclass(frozen=True, repr=False)
class AuditReport:
    """An audit with what was asked of it besides.

    Attributes:
        audit: the verdicts.
        advice: what to add so that more of them are "always".
        loss: what breaks without some base relations; None if that was not asked.
        cut: the views for which the budget was spent before all advice was tried.
        helpers: those that the lake keeps, or of views that do not always follow those that a lake could keep.
    """

    audit: Audit
    advice: tuple[Advice, ...] = ()
    loss: Loss | None = None
    cut: tuple[str, ...] = ()
    helpers: tuple[Helper, ...] = ()

    def __str__(self) -> str:
        """A line for each view and kind of change; `selfmaint audit` prints examples and advice, too."""
        return "\n".join(f"{view} after {change}: {word}" for view, change, word in self._cells())

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return html_table(("view", "change", "self-maintainable"), [*self._cells()])

    def _cells(self) -> Iterator[tuple[str, str, str]]:
        for (view, relation, kind), word in self.audit.words().items():
            yield view, f"{kind} on {'all relations' if relation == '*' else relation}", word

    def __repr__(self) -> str:
        counted = Counter(self.audit.words().values())
        return f"AuditReport({', '.join(f'{number} {word}' for word, number in counted.items())})"


class AuditOptions(Struct, frozen=True):
    """What to audit.

    Attributes:
        views: names of the views; all if None.
        without: base relations that can no longer be read.
        updates: for some relations the names of the columns that updates change; all but the key's by default.
        costs: of looking up one key of a relation.
        sizes: rows of base relations, where known: for estimates.
        advise: whether to look for what to add.
        progress: told what is being done.
        budget_s: how many seconds the search may take for one view.
        processes: how many look for verdicts, each on views of its own.
    """

    views: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    updates: Mapping[str, tuple[str, ...]] | None = None
    costs: Mapping[str, float] | None = None
    sizes: Mapping[str, int] | None = None
    advise: bool = True
    progress: Callable[[str], None] = lambda _: None
    budget_s: float = DEFAULT_S
    processes: int = 1


def audit(
    warehouse: Warehouse[D],
    *,
    views: Iterable[str] | None = None,
    without: Iterable[str] = (),
    advise: bool = True,
    effective: bool | None = None,
    budget_s: float | None = None,
) -> AuditReport:
    """The verdict on each view for every kind of change; see `Warehouse.audit`."""
    known = Situation(
        present=frozenset(warehouse.present),
        absent=frozenset(warehouse.absent),
        effective=warehouse.effective if effective is None else effective,
    )
    costs = {name: its.cost for name, its in warehouse.readable.items() if its.cost is not None}
    options = AuditOptions(
        views=None if views is None else tuple(views),
        without=tuple(without),
        costs=costs,
        advise=advise,
        budget_s=warehouse.decision_within(budget_s).budget_s,
    )
    return audit_catalog(warehouse.catalog, known, options)


@seldom_collected()
def audit_catalog(catalog: Catalog, known: Situation, options: AuditOptions) -> AuditReport:
    """The audit of definitions that are at hand without any data.

    Raises:
        InputError: SM102 an unknown name.
    """
    names = [view.name for view in catalog.views]
    require_known(options.views or (), names, "view")
    for part in (options.without, options.updates or {}, options.sizes or {}):
        require_known(part, catalog.relations, "base relation")
    search = Search(catalog.apart, known, budget_s=options.budget_s)
    asked = [view for view in catalog.views if options.views is None or view.name in options.views]
    chosen = [part for view in with_views_below(catalog, asked) for part in catalog.parts(view)]
    columns = _positions(catalog, options.updates or {})
    cut: list[str] = []
    if min(options.processes, len(chosen)) > 1:
        found, advice = _side_by_side(search, chosen, columns, options, cut)
    else:
        told = options.progress
        found = audited(search, costs=options.costs, columns=columns, views=chosen, progress=told)
        advice = ()
        if options.advise:
            advice = advised(search, sizes=options.sizes, views=chosen, progress=told, cut=cut.append)
    lost = loss_of_unions(catalog, loss(search, options.without)) if options.without else None
    unfinished = tuple(dict.fromkeys(map(catalog.whole, cut)))
    below = {view.name: its.views for view in catalog.views if (its := what_is_below(catalog, view))}
    whole = of_views_below(_of_own_rows(catalog, of_unions(catalog, found)), below)
    shown = replace(whole, views=tuple(one for one in whole.views if one.view in asked))
    return AuditReport(shown, advice_of_unions(catalog, advice, found.words()), lost, unfinished)


def _of_own_rows(catalog: Catalog, audit: Audit) -> Audit:
    """The verdicts with those on views whose own rows tell their new ones."""
    if all(view.is_decided for view in catalog.views):
        return audit
    from selfmaint.api.following.gone_rows import relations_shown  # noqa: PLC0415 - see above
    from selfmaint.api.following.shown_rows import LOST, shown_rows_of  # noqa: PLC0415 - only where there are texts

    found = {
        view.name: shown for view in catalog.views if (shown := shown_rows_of(catalog, view)) is not None
    }
    why = {name: None if its.first is None else LOST for name, its in found.items()}
    gone = {view.name: names for view in catalog.views if (names := relations_shown(catalog, view))}
    return of_gone_rows(of_shown_rows(audit, why), gone)


def _side_by_side(
    search: Search,
    views: Sequence[View],
    columns: Mapping[str, frozenset[int]],
    options: AuditOptions,
    cut: list[str],
) -> tuple[Audit, tuple[Advice, ...]]:
    # More imports, which an audit of a few views does without.
    from selfmaint.audit.processes import Work, advised_side_by_side, audited_side_by_side  # noqa: PLC0415

    told = options.progress
    given = (search.catalog, search.known, search.budget_s, options.costs or {}, columns, options.sizes or {})
    work, processes = Work(*given), min(options.processes, len(views))
    found = audited_side_by_side(search, views, work, processes, told)
    if not options.advise:
        return found, ()
    return found, advised_side_by_side(search, views, work, processes, told, cut.append)


def _positions(catalog: Catalog, updates: Mapping[str, tuple[str, ...]]) -> dict[str, frozenset[int]]:
    found = {}
    for name, columns in updates.items():
        known = catalog.relations[name].columns
        for column in columns:
            if column not in known:
                raise input_error(
                    Code.UNKNOWN_RELATION,
                    f"`{column}` is no column of `{name}`",
                    near_miss(column, known, "column"),
                )
        found[name] = frozenset(known.index(column) for column in columns)
    return found
