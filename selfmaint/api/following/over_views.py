"""Views over views: what is determined because all that a view reads is.

    by_region: SELECT region, COUNT(*) AS n, SUM(total) AS total FROM sale ... GROUP BY region
    large:     SELECT region FROM by_region WHERE total > 100 ORDER BY total LIMIT 10

The decision unfolds views of rules. What it cannot unfold is a query over the stored rows of other views, and
`maintain` computes it from their new rows. So is what it unfolds and does not decide, if it is written over stored
views.

Conditions of soundness:

1. The view reads views, the new states of all of which are determined, and base relations that stored rows tell whole:
   these are read from there, as the update leaves them (`fallback/told.py`), whatever becomes of the views. The views'
   rows are stored with the types that their queries give: as texts they would compare otherwise.
2. The query gives the same rows for the same rows: of a text that is run, one that has one result. Sums of doubles are
   near whatever the order; they may be shown, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from datalog.copies import replace
from datalog.model import AggregateFunction, NotToRun, OpaqueView, TextQuery, ViewDefinition, aggregates_of
from selfmaint.canonical import copied, untold
from selfmaint.decide.verdict import SelfMaintainable, Undecided, Verdict, Verdicts
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.over_stored import over_stored, with_views

if TYPE_CHECKING:
    from datalog.sql.affected import Table

INEXACT = "where it adds up doubles, their last digits depend on the order"
"""What is to be known of sums in a query of which the types are not."""
OPEN_ORDER = "which rows come first is not determined where its order leaves some equal: order by a key, too"
"""Why a view over what is determined is not."""
_SUMS = frozenset({AggregateFunction.SUM, AggregateFunction.AVG})


class Below(Struct, frozen=True):
    """What a view is computed from: views that it reads, and base relations of which stored rows tell all rows."""

    views: tuple[str, ...]
    told: tuple[str, ...]


def with_views_below(catalog: Catalog, views: Iterable[View]) -> list[View]:
    """Some views and those that their verdicts rest on, in the catalog's order."""
    found: set[str] = set()
    waiting = list(views)
    if {view.name for view in waiting} == {view.name for view in catalog.views}:
        return list(catalog.views)
    while waiting:
        view = waiting.pop()
        if view.name not in found:
            found.add(view.name)
            below = what_is_below(catalog, view)
            waiting += [catalog.view(name) for name in (below.views if below else ())]
    return [view for view in catalog.views if view.name in found]


def of_views_below(catalog: Catalog, verdicts: Mapping[str, Verdict], anew: Collection[str] = ()) -> Verdicts:
    """The verdicts, where views over views have those that what they read gives them.

    Views `anew` are computed from what they read, though they could be decided.
    """
    found = dict(verdicts)
    left = {
        view.name: below
        for view in catalog.views
        if not found.get(view.name, True)
        and (below := _what_is_below(catalog, view, is_anew=view.name in anew)) is not None
    }
    while ready := {name: below for name, below in left.items() if _are_determined(below.views, found)}:
        for name, below in ready.items():
            view = catalog.view(name)
            found[name] = SelfMaintainable(
                name, _remarks(catalog, view), view.semantics, over=below.views, told=below.told
            )
            del left[name]
    for name, below in left.items():
        for helper in below.views:
            its = found.get(helper)
            if catalog.helpers.get(helper) == name and isinstance(its, Undecided):
                reasons = (f"its helper `{helper}` is undecided", *its.reasons)
                found[name] = Undecided(name, reasons, semantics=catalog.view(name).semantics)
    for view in catalog.views:
        verdict = found.get(view.name)
        if isinstance(verdict, Undecided) and _has_open_order(catalog, view, found):
            found[view.name] = verdict.because_of(OPEN_ORDER)
        elif isinstance(verdict, Undecided) and (missing := _nearly_told(catalog, view, found)):
            found[view.name] = verdict.because_of(missing)
    return Verdicts(found)


def _nearly_told(catalog: Catalog, view: View, verdicts: Mapping[str, Verdict]) -> str | None:
    """Which columns would have to be shown for stored rows to tell all that a text reads; None if more is missing."""
    query = view.definition.query if isinstance(view.definition, OpaqueView) else None
    if not isinstance(query, TextQuery):
        return None
    bases = [name for name in query.relations if name in catalog.relations]
    copies = copied(catalog.apart)
    waiting = [name for name in bases if name not in copies]
    missing = untold(catalog.apart) if waiting else {}
    others = (name for name in query.relations if name not in bases)
    if not waiting or not missing.keys() >= {*waiting} or not _are_determined(others, verdicts):
        return None
    if not gives_one_result(catalog, query):
        return None
    columns = {n: catalog.relations[n].names(sorted(missing[n])) for n in waiting}
    said = " and ".join(f"`{name}` ({its})" for name, its in columns.items())
    return f"stored views tell all but some columns of {said}: show these, too, beside the key"


def with_what_is_not_run(catalog: Catalog, verdicts: Verdicts) -> Verdicts:
    """The verdicts; of views that are computed from others it is said where DuckDB does not run their queries."""
    found = dict(verdicts)
    for name, verdict in verdicts.items():
        view = catalog.view(name)
        if not isinstance(verdict, SelfMaintainable) or not isinstance(view.definition, OpaqueView):
            continue
        if why := _why_not_run(catalog, view) if verdict.over or verdict.told else None:
            said = f"its query is run by Spark alone: {why}"
            found[name] = replace(verdict, remarks=(*verdict.remarks, said))
    return Verdicts(found, verdicts.examined, verdicts.ways)


def _why_not_run(catalog: Catalog, view: View) -> str | None:
    from selfmaint.api.following.how_followed import why_not_run  # noqa: PLC0415 - where there are texts

    return why_not_run(view, tables_known(catalog))


def _are_determined(views: Iterable[str], verdicts: Mapping[str, Verdict]) -> bool:
    return all(isinstance(verdicts.get(name), SelfMaintainable) for name in views)


def told_by_others(catalog: Catalog) -> tuple[Catalog, list[str]]:
    """The views whose rows other stored views tell, through the rows of whole tables too, and how they are computed.

    Not those that are stored as other values than their queries give, as texts for numbers.
    """
    views = [view for view in catalog.views if catalog.loose is None or catalog.loose(view.name) is None]
    by_tables = [
        v.name for v in views if (found := _as_it_is(catalog, v)) and not _is_copy(catalog, v, found)
    ]
    others = [v.name for v in views if v.name not in by_tables and over_stored_views(catalog, v)]
    now = with_views_over_stored(catalog, others)
    return now, [name for name in [*by_tables, *others] if _what_is_below(now, now.view(name), is_anew=True)]


def _as_it_is(catalog: Catalog, view: View) -> Below | None:
    """What a view is computed from by its own definition."""
    from selfmaint.fallback.recompute import reads  # noqa: PLC0415 - an audit of decided views does without

    return _of_reads(catalog, view, reads(catalog, view))


def _is_copy(catalog: Catalog, view: View, below: Below) -> bool:
    """Whether a view is itself what tells the rows of a table that it reads."""
    copies = copied(catalog.apart)
    return any(catalog.whole(its.name) == view.name for name in below.told for its in copies[name].stored)


def _has_open_order(catalog: Catalog, view: View, verdicts: Mapping[str, Verdict]) -> bool:
    """Whether all that a text reads is determined, and an order that leaves rows equal is what is not."""
    query = view.definition.query if isinstance(view.definition, OpaqueView) else None
    if not isinstance(query, TextQuery):
        return False
    below = _below(catalog, view, query.relations)
    if below is None or not _are_determined(below.views, verdicts):
        return False
    from datalog.sql.views.kept.one_result import has_open_order  # noqa: PLC0415 - where there are texts

    return has_open_order(query)


def what_is_below(catalog: Catalog, view: View) -> Below | None:
    """What a view is computed from; None if it reads a base relation that stored rows do not tell, or is unfolded."""
    return _what_is_below(catalog, view)


def computed_as(catalog: Catalog, view: View) -> View:
    """A view that is computed from what is below it, as it is computed: itself, or its query over stored views."""
    other = None if _as_it_is(catalog, view) is not None else over_stored_views(catalog, view)
    return view if other is None else other


def is_over_views(catalog: Catalog, view: View) -> bool:
    """Whether a view is computed from others, perhaps beside base relations, and has one result."""
    from selfmaint.fallback.recompute import reads  # noqa: PLC0415 - see `_as_it_is`

    if what_is_below(catalog, view) is not None:
        return True
    is_told = not isinstance(view.definition, OpaqueView) or gives_one_result(catalog, view.definition.query)
    return is_told and not catalog.relations.keys() >= {*reads(catalog, view)}


def _what_is_below(catalog: Catalog, view: View, *, is_anew: bool = False) -> Below | None:
    if (not view.is_decided or is_anew) and (found := _as_it_is(catalog, view)):
        return found
    other = over_stored_views(catalog, view)
    return None if other is None else _of_reads(catalog, other, _text(other).relations)


def over_stored_views(catalog: Catalog, view: View) -> View | None:
    """A view as its query over stored views, where it is written so, and DuckDB is known to run that.

    Not where it adds up doubles: which rows it has may depend on the order.
    """
    other = over_stored(catalog, view)
    return (
        other if other is not None and catalog.once("is run", view, lambda: _is_run(catalog, other)) else None
    )


def _is_run(catalog: Catalog, view: View) -> bool:
    from selfmaint.api.following.how_followed import is_run, query_of, sums_of_doubles  # noqa: PLC0415 - where there are texts

    query, tables = query_of(catalog, view, tables_known(catalog)), tables_known(catalog)
    return query is not None and is_run(query, tables) and not sums_of_doubles(query, tables)


def with_views_over_stored(catalog: Catalog, names: Collection[str]) -> Catalog:
    """The catalog with some views as such queries, where they are some."""
    views = [view for view in catalog.views if view.name in names]
    return with_views(
        catalog, [one for view in views if (one := over_stored_views(catalog, view)) is not None]
    )


def _of_reads(catalog: Catalog, view: View, names: Sequence[str]) -> Below | None:
    if isinstance(view.definition, OpaqueView):
        query = view.definition.query
        if not catalog.once("whether it has one result", view, lambda: gives_one_result(catalog, query)):
            return None
    below = _below(catalog, view, names)
    if below is None or not catalog.once(
        "whether sums decide", view, lambda: _shows_sums_alone(catalog, view)
    ):
        return None
    return below


def _shows_sums_alone(catalog: Catalog, view: View) -> bool:
    """Whether sums of doubles decide nothing: which rows there are, or in what order."""
    from datalog.sql.affected import are_only_shown  # noqa: PLC0415 - where there are such views
    from selfmaint.api.following.how_followed import query_of  # noqa: PLC0415 - see above

    near = _sums_of_doubles(catalog, view)
    query = query_of(catalog, view, tables_known(catalog)) if near else None
    return query is None or are_only_shown(query.plan, near or frozenset())


def _sums_of_doubles(catalog: Catalog, view: View) -> frozenset[int] | None:
    """The columns of its query that are sums of doubles; None where it has sums, and its shape is not known."""
    from selfmaint.api.following.how_followed import query_of, sums_of_doubles  # noqa: PLC0415 - where there are texts

    def found() -> frozenset[int] | None:
        query = query_of(catalog, view, tables_known(catalog))
        return None if query is None else sums_of_doubles(query, tables_known(catalog))

    return catalog.once("sums of doubles", view, found) if has_sums(view) else frozenset()


def _text(view: View) -> TextQuery:
    assert isinstance(view.definition, OpaqueView)
    assert isinstance(view.definition.query, TextQuery)
    return view.definition.query


def _below(catalog: Catalog, view: View, names: Sequence[str]) -> Below | None:
    """The same of what a view reads, whether or not that has one result."""
    told = tuple(name for name in names if name in catalog.relations)
    views = tuple(name for name in names if name not in catalog.relations)
    is_told = bool(names) and view.name not in names and set(told) <= set(copied(catalog.apart))
    if catalog.loose is not None and any(map(catalog.loose, views)):
        return None
    return Below(views, told) if is_told else None


def gives_one_result(catalog: Catalog, query: TextQuery | NotToRun) -> bool:
    """Whether a query has one result, as its orders or the keys of what it reads tell."""
    from datalog.sql.affected import has_one_result_by_keys  # noqa: PLC0415 - where there are texts
    from datalog.sql.views.kept.one_result import has_one_result  # noqa: PLC0415 - see above

    if not isinstance(query, TextQuery) or query.refused is not None:
        return False
    if has_one_result(query):
        return True
    return has_one_result_by_keys(query, tables_known(catalog))


def tables_known(catalog: Catalog) -> Mapping[str, Table]:
    """Base relations and stored views with what is known of their columns and keys; found out once."""
    from selfmaint.api.following.how_followed import tables_of_all  # noqa: PLC0415 - where there are texts

    return catalog.once("tables", None, lambda: tables_of_all(catalog))


def _remarks(catalog: Catalog, view: View) -> tuple[str, ...]:
    """What to know of the rows."""
    near = _sums_of_doubles(catalog, view)
    return () if near is not None and not near else (INEXACT,)


def has_sums(view: View) -> bool:
    """Whether a view's query has sums or averages."""
    from datalog.sql.views.kept.one_result import adds_up  # noqa: PLC0415 - where there are texts

    match view.definition:
        case OpaqueView(query=TextQuery() as text):
            return adds_up(text)
        case ViewDefinition(blocks=blocks):
            its = [one for block in blocks for one in aggregates_of([*block.outputs, *block.having])]
            return any(one.function in _SUMS for one in its)
        case _:
            return False
