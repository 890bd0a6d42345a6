"""Views that are decided over base relations, as what they are written as: queries over other stored views.

    stg: SELECT id, upper(kind) AS kind, area FROM site           a site changes its area: `stg` tells which
    v:   SELECT kind, COUNT(DISTINCT area) FROM stg GROUP BY kind     decided over `site`; over `stg` it is computed

Conditions of soundness:

1. The stored rows of each view are what its query gives, so both say the same of the view.
2. It is left as it is where its rows are stored in another form than its query gives them, as rows with their counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from datalog.model import OpaqueView, TextQuery, ViewDefinition
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.definitions import limited_view
from selfmaint.warehouse.views import Limitation, Outside, View


def over_stored(catalog: Catalog, view: View) -> View | None:
    """A view as its query over what it is written over; None if that is no stored view, or is what it is already."""
    return catalog.once("over stored views", view, lambda: _over_stored(catalog, view))


def _over_stored(catalog: Catalog, view: View) -> View | None:
    if catalog.queries is None or view.is_counted or catalog.parts(view) != (view,):
        return None
    if view.name in {*catalog.summands, *catalog.grouped_summands} or isinstance(view.definition, OpaqueView):
        return None
    query = catalog.queries(view.name)
    if not isinstance(query, TextQuery) or catalog.relations.keys() >= set(query.relations):
        return None
    read = view.definition.reads if isinstance(view.definition, ViewDefinition) else ()
    if {one.name for one in read} == {*query.relations}:
        return None
    definition = OpaqueView(view.name, query.text, (), view.stored_columns, view.rule.span, query)
    return limited_view(definition, view.stored_columns, Limitation(Outside.OPAQUE, "it is not decided so"))


def with_views(catalog: Catalog, others: Iterable[View]) -> Catalog:
    """The catalog with such views in place of those of their names."""
    found = {view.name: view for view in others}
    if not found:
        return catalog
    views = tuple(found.get(view.name, view) for view in catalog.views)
    rules = tuple(rule for rule in catalog.program.rules if rule.head.predicate.name not in found)
    return replace(catalog, views=views, program=replace(catalog.program, rules=rules))
