"""Helpers: views that are kept beside others for these to be computed from; see `datalog.sql.views.splitting`.

A view that cannot be followed by what it shows (a quotient of sums, an average alone, HAVING, the largest of all sums,
the first groups by an order) is read as a query over helpers, which are views like any other: all its groups, or
queries inside it (`datalog.sql.views.inner_queries`). They are called like the view with `__sums`, `__sums_2`, ...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from datalog.analysis.expression_types import expression_type
from datalog.diagnostics import ProgramError
from datalog.model import ANY, ColumnType, NotToRun, OpaqueView, TextQuery, ViewDefinition
from datalog.rewrite.numbered import as_written
from datalog.sql.affected import (
    Additive,
    Keyed,
    NotKeyed,
    Query,
    Table,
    UnknownShapeError,
    additive,
    differing,
    keyed,
    plan_of_definition,
    plan_of_text,
)
from datalog.sql.duckdb import UnlikeSparkError
from datalog.sql.duckdb.plans import query_of_plan
from datalog.sql.views import SqlText, SqlViews, read_sql
from datalog.sql.views.inner_queries import Kept, replaced, whole
from datalog.sql.views.levels import split_levels
from datalog.sql.views.row_helpers import split_rows
from datalog.sql.views.splitting import Split, split, split_first_groups
from selfmaint.errors import InputError
from selfmaint.fallback.recompute import reads
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog, GroupedView, View

SUFFIX = "__sums"
"""What a helper's name ends in."""


Read: TypeAlias = Callable[[Sequence[SqlText], Mapping[str, str]], SqlViews]
"""Reads a program with more texts, and by view with other queries in place of its own."""


def with_helpers(schema: Catalog, read: Read, unfolded: Sequence[SqlText] = ()) -> Catalog:
    """The catalog of a program in which views that gain by it have helpers.

    Args:
        schema: the catalog of the program as it is written.
        read: reads it again.
        unfolded: the queries of it that are no views of the warehouse, and are unfolded where they are read.
    """
    given = _Given(schema, tuple(unfolded))
    names = {view.name.casefold() for view in schema.views} | {name.casefold() for name in schema.relations}
    splits = {
        view.name: found
        for view in schema.views
        if not view.is_decided
        and not any(name.startswith(f"{view.name}{SUFFIX}".casefold()) for name in names)
        and (found := _split(given, view)) is not None
    }
    while splits:
        made = _read(read, splits)
        if made is None:  # one that cannot be read leaves the others theirs
            known = {n: one for n, one in splits.items() if _read(read, {n: one}) is not None}
            if len(known) == len(splits):
                return schema
            splits = known
            continue
        useless = {v for v, one in splits.items() if not _gains(schema, made, v, one)}
        if not useless:
            return made
        splits = {name: one for name, one in splits.items() if name not in useless}
    return schema


@dataclass(frozen=True, slots=True)
class _Given:
    """What a query is read with: the base relations, and queries that are unfolded."""

    schema: Catalog
    unfolded: tuple[SqlText, ...]


def _gains(schema: Catalog, made: Catalog, name: str, found: _Helpers) -> bool:
    """Whether the helpers of a view are followed, and leave it no relation to read that references others of its."""
    left = set(reads(made, made.view(name))) & set(schema.relations)
    before = set(reads(schema, schema.view(name))) & set(schema.relations)
    describes = {
        name for name in left if all(r.target not in before for r in schema.relations[name].references)
    }
    return (
        left < before
        and left == describes
        and all(_is_followed(made, made.view(helper)) for helper in found.queries)
    )


def tables_of(schema: Catalog) -> dict[str, Table]:
    """The base relations, as the analysis of queries knows them."""
    return {
        name: Table(name, one.columns, one.types, one.nullable, one.keys)
        for name, one in schema.relations.items()
    }


@dataclass(frozen=True, slots=True)
class _Helpers:
    """The helpers of a view.

    Attributes:
        queries: by name, the query of each.
        rest: the view's query over them.
    """

    queries: Mapping[str, str]
    rest: str


def _split(given: _Given, view: View) -> _Helpers | None:
    text = view.definition.text if isinstance(view.definition, ViewDefinition | OpaqueView) else None
    if text is None or (
        isinstance(view.definition, OpaqueView) and isinstance(view.definition.query, NotToRun)
    ):
        return None
    if _is_cheap(given.schema, view):
        return None
    name = f"{view.name}{SUFFIX}"
    found = split(text, name) or split_first_groups(text, name)
    if found is not None and _alone(given, found.helper) is not None:
        return _Helpers({name: found.helper}, found.rest)
    found = split_levels(text, name, partial(_types, given))
    if found is not None and _alone(given, found.helper) is not None:
        return _Helpers({name: found.helper}, found.rest)
    if _is_keyed(given.schema, view):
        return None
    rows = _rows(given, text, name)
    if rows is not None and _alone(given, rows.helper) is not None:
        return _Helpers({name: rows.helper}, rows.rest)
    return _split_inside(given, text, name)


def _split_inside(given: _Given, text: str, name: str) -> _Helpers | None:
    """The queries inside a query that are followed by themselves, or by the counts and sums of their groups."""

    def kept(inner: str) -> Kept | None:
        alone = _alone(given, inner)
        if alone is not None and _is_added_up(given.schema, alone):
            return whole(inner)
        sums = split(inner, name)
        if sums is not None and _alone(given, sums.helper) is not None:
            return Kept(sums.helper, lambda its: _over(inner, its))
        if alone is not None:
            return whole(inner)
        rows = _rows(given, inner, name)
        if rows is not None and _alone(given, rows.helper) is not None:
            return Kept(rows.helper, lambda its: _over_rows(given, inner, its))
        finer = split_levels(inner, name, partial(_types, given))
        if finer is not None and _alone(given, finer.helper) is not None:
            return Kept(finer.helper, lambda its: _finer(given, inner, its))
        return None

    rest, queries = replaced(text, kept, lambda number: name if number == 1 else f"{name}_{number}")
    return _Helpers(queries, rest) if queries else None


def _over(inner: str, helper: str) -> str:
    found = split(inner, helper)
    assert found is not None
    return found.rest


def _rows(given: _Given, text: str, helper: str) -> Split | None:
    """A query that looks at all rows as a helper and the query over it."""
    names = Counter(name.casefold() for name in given.schema.relations)
    hidden = {one.relation or one.parts[0] for one in given.unfolded}
    return split_rows(
        text,
        helper,
        {
            name.casefold(): one.columns[: one.given]
            for name, one in given.schema.relations.items()
            if names[name.casefold()] == 1 and name not in hidden
        },
    )


def _over_rows(given: _Given, inner: str, helper: str) -> str:
    found = _rows(given, inner, helper)
    assert found is not None
    return found.rest


def _finer(given: _Given, inner: str, helper: str) -> str:
    found = split_levels(inner, helper, partial(_types, given))
    assert found is not None
    return found.rest


def _types(given: _Given, text: str) -> Sequence[ColumnType] | None:
    """The types of a query's columns; None where they are not known."""
    made = _catalog(given, text)
    definition = None if made is None else made.views[0].definition
    if isinstance(definition, ViewDefinition):
        return _types_of(given.schema, definition)
    query = None if made is None else _query(made, made.views[0])
    if query is None:
        return None
    names = {name: name for name in given.schema.relations}
    try:
        _, kinds = query_of_plan(
            query, names, {name: one.types for name, one in given.schema.relations.items()}
        )
    except UnlikeSparkError:
        return None
    found = [kind for kind in kinds if not isinstance(kind, str)]
    return found if len(found) == len(kinds) else None


def _types_of(schema: Catalog, definition: ViewDefinition) -> Sequence[ColumnType] | None:
    one = definition.blocks[0]
    known = variable_types(one.core.atoms, schema.relations)
    kinds = [expression_type(output, known) for output in one.outputs]
    found = [kind for kind in kinds if kind is not None and kind != ANY]
    return found if len(found) == len(kinds) else None


def _alone(given: _Given, text: str) -> View | None:
    """A query as a view that is followed; None if it is not, or cannot be read."""
    made = _catalog(given, text)
    if made is None:
        return None
    (view,) = made.views
    types = _types(given, text)
    if types is None or ANY in types:
        return None  # a column of nulls alone would be stored as one of another type
    is_read = bool(set(reads(made, view)) & set(given.schema.relations))
    return view if is_read and _is_followed(made, view) else None


def _catalog(given: _Given, text: str) -> Catalog | None:
    """The catalog of one query over the base relations; None if it cannot be read."""
    bases = [as_written(d) for d in given.schema.program.declarations if d.name in given.schema.relations]
    texts = [*given.unfolded, SqlText(text, "a query inside", ("inner_query",))]
    names = [one.relation or one.parts[0] for one in given.unfolded]
    try:
        from selfmaint.api.programs import catalog_of_sql  # noqa: PLC0415 - it asks for helpers

        return catalog_of_sql(read_sql(texts, bases, unfolded=names))
    except (ProgramError, InputError):
        return None


def _read(read: Read, splits: Mapping[str, _Helpers]) -> Catalog | None:
    """The catalog with helpers; None if they cannot be read."""
    more = [
        SqlText(query, f"the helper of {name}", (helper,), helper)
        for name, one in splits.items()
        for helper, query in one.queries.items()
    ]
    try:
        from selfmaint.api.programs import catalog_of_sql  # noqa: PLC0415 - it asks for helpers

        made = catalog_of_sql(read(more, {name: one.rest for name, one in splits.items()}))
    except (ProgramError, InputError):
        return None
    return replace(made, helpers={helper: name for name, one in splits.items() for helper in one.queries})


def _is_added_up(schema: Catalog, view: View) -> bool:
    """Whether what rows add and take away tells a view's new groups, whatever values its sums are of."""
    if view.is_decided and not isinstance(view, GroupedView):
        return True
    query = _query(schema, view)
    if query is None:
        return False
    found = additive(query, set(reads(schema, view)))
    return isinstance(found, Additive) and found.is_certain


def _is_followed(schema: Catalog, helper: View) -> bool:
    """Whether a helper is decided, or is followed by keyed reads, whichever relation changes."""
    if helper.is_decided or _is_keyed(schema, helper):
        return True
    query = _query(schema, helper)
    return query is not None and all(
        isinstance(additive(query, {name}), Additive) for name in reads(schema, helper)
    )


def _is_cheap(schema: Catalog, view: View) -> bool:
    """Whether keyed reads need few base rows: those of single keys, or those that change, whichever relation does."""
    query = _query(schema, view)
    if query is None:
        return False
    for name in reads(schema, view):
        how = keyed(query, {name})
        if isinstance(how, Keyed) and how.looks_up:
            continue
        added = additive(query, {name})
        if isinstance(added, NotKeyed) or not (added.groups or added.is_certain):
            return False
    return True


def _is_keyed(schema: Catalog, view: View) -> bool:
    """Whether keys lead to the base rows that a view depends on, whichever relation changes."""
    query = _query(schema, view)
    return query is not None and all(_leads(view, query, {name}) for name in reads(schema, view))


def _leads(view: View, query: Query, changed: set[str]) -> bool:
    """Whether a key, shown or not, leads to the rows that a change reaches."""
    if isinstance(keyed(query, changed), Keyed):
        return True
    return isinstance(view.definition, OpaqueView) and isinstance(differing(query, changed), Keyed)


def _query(schema: Catalog, view: View) -> Query | None:
    """A view's query; None if its shape is not known."""
    try:
        match view.definition:
            case OpaqueView(query=TextQuery() as text):
                return plan_of_text(text, tables_of(schema))
            case ViewDefinition() as definition:
                return plan_of_definition(definition, tables_of(schema))
            case _:
                return None
    except UnknownShapeError:
        return None
