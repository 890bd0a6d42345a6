"""How a view can be followed, by its definition alone: by what rows add up to, by keys, with how many rows read."""

from __future__ import annotations

from collections.abc import Mapping

from datalog.model import ANY, ColumnType, OpaqueView, TextQuery, Variable, ViewDefinition
from datalog.sql.affected import (
    Additive,
    Keyed,
    NotKeyed,
    Query,
    Table,
    UnknownShapeError,
    additive,
    differing,
    inexact_sums,
    key_of,
    keyed,
    nullable_outputs,
    plan_of_definition,
    plan_of_text,
)
from selfmaint.fallback.recompute import reads
from selfmaint.warehouse.base_relations import BaseRelation, variable_types
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.cores import output_types
from selfmaint.warehouse.over_stored import over_stored
from selfmaint.warehouse.reads import reads as reads_of_all
from selfmaint.warehouse.row_key import row_key


def tables_of(relations: Mapping[str, BaseRelation]) -> dict[str, Table]:
    """Base relations, as the analysis of queries knows them."""
    return {
        name: Table(name, one.columns, one.types, one.nullable, one.keys) for name, one in relations.items()
    }


def tables_of_views(schema: Catalog) -> dict[str, Table]:
    """The stored rows of those views of which keys tell in which columns they differ, in the same way."""
    found = {}
    for view in schema.views:
        if isinstance(view, GroupedView) and not view.is_counted:
            types = output_types(view, schema.relations)
            plain = {i for i in view.grouped.columns if (kind := types[i]) and not kind.name.has_signed_zeros}
            plain |= set(view.grouped.group_terms)
        elif view.limitation is None and not view.is_counted and not view.unchanging:
            plain = set(range(len(view.head.terms)))
            known = variable_types(view.body, schema.relations)
            types = tuple(known.get(t) if isinstance(t, Variable) else None for t in view.head.terms)
        else:
            continue
        key = row_key(view, schema.relations)
        if plain.issuperset(key) and key:
            names, kinds = view.stored_columns, tuple(one or ANY for one in types)
            nullable = frozenset(range(len(names))) - schema.not_null(view)
            found[view.name] = Table(view.name, names, kinds, nullable, (key,))
    return found


def tables_of_all(schema: Catalog) -> dict[str, Table]:
    """Base relations and stored views, with the keys that are known of them; of some columns no types are."""
    below = reads_of_all(schema)
    found = {**tables_of(schema.relations), **tables_of_views(schema)}
    for view in sorted(
        schema.views, key=lambda view: len(below[view.name])
    ):  # each behind those that it reads
        if view.name in found:
            continue
        if (its_own := _table_of_query(schema, view, found)) is not None:
            found[view.name] = its_own
        elif names := view.stored_columns:
            its = output_types(view, schema.relations) if isinstance(view, GroupedView) else ()
            its = its[: len(names)] if view.is_counted else its
            types = tuple(one or ANY for one in its) if len(its) == len(names) else (ANY,) * len(names)
            found[view.name] = Table(view.name, names, types, frozenset(range(len(names))))
    return found


def _table_of_query(schema: Catalog, view: View, tables: Mapping[str, Table]) -> Table | None:
    """A view that is not decided, as its query tells; None if that has no shape that is known."""
    if view.is_decided:
        return None
    over = over_stored(schema, view) or view
    written = _written(schema, view)
    names = (*reads(schema, over), *reads(schema, view), *(written.relations if written else ()))
    given = [tables.get(name) for name in dict.fromkeys(names)]
    definition, read, table = schema.held.get(view.name, (None, None, None))
    if definition is None or definition != over.definition or read != given:
        table = _found(schema, view, over, tables)
        schema.held[view.name] = over.definition, given, table
    found: Table | None = table
    return found


def _found(schema: Catalog, view: View, over: View, tables: Mapping[str, Table]) -> Table | None:
    query = query_of(schema, over, tables)
    if query is None:
        return None
    names, kinds = tuple(n for n, _ in query.outputs), kinds_of(query, tables)
    types = tuple(kinds.get(number, ANY) for _, number in query.outputs)
    key = key_of(as_written(schema, view, tables) or query)
    return Table(view.name, names, types, nullable_outputs(query), () if key is None else (key,))


def kinds_of(query: Query, tables: Mapping[str, Table]) -> dict[int, ColumnType]:
    """The types of a query's columns, by number, as far as they are known."""
    from datalog.sql.duckdb.plans import kinds_of_plan  # noqa: PLC0415 - only for views over views

    found = kinds_of_plan(query.plan, {name: one.types for name, one in tables.items()})
    return {number: kind for number, kind in found.items() if isinstance(kind, ColumnType)}


def is_run(query: Query, tables: Mapping[str, Table]) -> bool:
    """Whether DuckDB is known to give what Spark does."""
    from datalog.sql.duckdb import UnlikeSparkError  # noqa: PLC0415 - see above
    from datalog.sql.duckdb.plans import query_of_plan  # noqa: PLC0415 - see above

    try:
        query_of_plan(query, {n: n for n in tables}, {n: one.types for n, one in tables.items()})
    except UnlikeSparkError:
        return False
    return True


def why_not_run(view: View, tables: Mapping[str, Table]) -> str | None:
    """Why DuckDB does not run a view's query, as far as that is told without its rows."""
    from datalog.sql.duckdb import UnlikeSparkError  # noqa: PLC0415 - see above
    from datalog.sql.duckdb.plans import query_of_plan  # noqa: PLC0415 - see above

    if isinstance(view.definition, ViewDefinition):
        return _why_not_written(view.definition, tables)
    text = view.definition.query if isinstance(view.definition, OpaqueView) else None
    if not isinstance(text, TextQuery) or not all(name in tables for name in text.relations):
        return None
    if text.refused is not None:  # nor does Spark
        return None
    types = {name: tables[name].types for name in text.relations}
    try:
        query = plan_of_text(text, tables)
        if any(ANY in its for its in types.values()):
            return None
        query_of_plan(query, {name: name for name in types}, types)
    except UnknownShapeError as unknown:
        return str(unknown)
    except UnlikeSparkError as unlike:
        return f"DuckDB is not known to compute the same for {unlike}"
    return None


def _why_not_written(definition: ViewDefinition, tables: Mapping[str, Table]) -> str | None:
    """The same of a definition."""
    from datalog.sql import Table as Named  # noqa: PLC0415 - see above
    from datalog.sql.duckdb import UnlikeSparkError  # noqa: PLC0415 - see above
    from datalog.sql.duckdb.expressions import view as query_of_view  # noqa: PLC0415 - see above

    types = {p: tables[p.name].types for p in definition.reads if p.name in tables}
    if len(types) < len(definition.reads) or any(ANY in its for its in types.values()):
        return None
    named = {p: Named((p.name,), tables[p.name].columns) for p in types}
    try:
        query_of_view(definition, named, types, distinct=False)
    except UnlikeSparkError as unlike:
        return f"DuckDB is not known to compute the same for {unlike}"
    return None


def sums_of_doubles(query: Query, tables: Mapping[str, Table]) -> frozenset[int]:
    """The columns of a query that are sums and averages of doubles, or may be."""
    return inexact_sums(query.plan, kinds_of(query, tables))


def is_added_up(schema: Catalog, view: View) -> bool:
    """Whether what rows add and take away tells a view's new groups, whatever values its sums are of."""
    if view.is_decided and not isinstance(view, GroupedView):
        return True
    query = query_of(schema, view)
    if query is None:
        return False
    found = additive(query, set(reads(schema, view)))
    return isinstance(found, Additive) and found.is_certain


def is_followed(schema: Catalog, helper: View) -> bool:
    """Whether a helper is decided, or is followed by keyed reads, whichever relation changes."""
    if helper.is_decided or is_keyed(schema, helper):
        return True
    query = query_of(schema, helper)
    return query is not None and all(
        isinstance(additive(query, {name}), Additive) for name in reads(schema, helper)
    )


def is_cheap(schema: Catalog, view: View, *, is_summed: bool) -> bool:
    """Whether keyed reads need few base rows: those of single keys, or those that change, whichever relation does.

    All rows of a group are not few where its sums tell as much without any (`is_summed`).
    """
    query = query_of(schema, view)
    if query is None:
        return False
    for name in reads(schema, view):
        how = keyed(query, {name})
        if isinstance(how, Keyed) and how.looks_up and not (is_summed and how.finds_many):
            continue
        added = additive(query, {name})
        if isinstance(added, NotKeyed) or not (added.groups or added.is_certain):
            return False
    return True


def is_keyed(schema: Catalog, view: View) -> bool:
    """Whether keys lead to the base rows that a view depends on, whichever relation changes."""
    query = query_of(schema, view)
    return query is not None and all(_leads(view, query, {name}) for name in reads(schema, view))


def _leads(view: View, query: Query, changed: set[str]) -> bool:
    """Whether a key, shown or not, leads to the rows that a change reaches."""
    if isinstance(keyed(query, changed), Keyed):
        return True
    return isinstance(view.definition, OpaqueView) and isinstance(differing(query, changed), Keyed)


def query_of(schema: Catalog, view: View, tables: Mapping[str, Table] | None = None) -> Query | None:
    """A view's query over tables, the base relations if none are given; None if its shape is not known."""
    tables = tables_of(schema.relations) if tables is None else tables
    try:
        match view.definition:
            case OpaqueView(query=TextQuery() as text):
                return plan_of_text(text, tables)
            case ViewDefinition() as definition:
                return plan_of_definition(definition, tables)
            case _:
                return None
    except UnknownShapeError:
        return None


def as_written(schema: Catalog, view: View, tables: Mapping[str, Table]) -> Query | None:
    """The query of a view with LEFT JOINs that is read as two: as written, whose keys tell more; None of others."""
    text = _written(schema, view)
    try:
        found = None if text is None else plan_of_text(text, tables)
    except UnknownShapeError:
        return None
    return found if found and len(found.outputs) == len(view.stored_columns) else None


def _written(schema: Catalog, view: View) -> TextQuery | None:
    definition = view.definition
    if not isinstance(definition, ViewDefinition) or not definition.is_split or schema.queries is None:
        return None
    return schema.queries(view.name, schema.relations)
