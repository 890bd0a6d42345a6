"""Helpers: views that are kept beside others for these to be computed from; see `datalog.sql.views.splitting`.

A view that cannot be followed by what it shows (a quotient of sums, an average alone, HAVING, the largest of all sums,
the first groups by an order) is read as a query over a helper, which is a view like any other. It is called like the
view with `__sums`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from datalog.diagnostics import ProgramError
from datalog.model import Declaration, NotToRun, OpaqueView, TextQuery, ViewDefinition
from datalog.sql.affected import (
    Additive,
    Keyed,
    NotKeyed,
    Query,
    Table,
    UnknownShapeError,
    additive,
    keyed,
    plan_of_definition,
    plan_of_text,
)
from datalog.sql.views import SqlText, read_sql
from datalog.sql.views.splitting import Split, split, split_first_groups, split_inside
from selfmaint.errors import InputError
from selfmaint.fallback.recompute import reads
from selfmaint.warehouse.catalog import Catalog, View

SUFFIX = "__sums"
"""What a helper's name ends in."""


def with_helpers(
    schema: Catalog, texts: Sequence[SqlText], declarations: Sequence[Declaration] = ()
) -> Catalog:
    """The catalog of some texts in which views that gain by it have a helper.

    Args:
        schema: the catalog of the texts as they are written.
        texts: the texts.
        declarations: of further base relations.
    """
    names = {view.name.casefold() for view in schema.views} | {name.casefold() for name in schema.relations}
    splits = {
        view.name: found
        for view in schema.views
        if not view.is_decided
        and f"{view.name}{SUFFIX}".casefold() not in names
        and (found := _split(schema, view)) is not None
    }
    while splits:
        made = _read(texts, declarations, splits)
        if made is None:
            return schema
        useless = {v for v in splits if not _is_followed(made, made.view(f"{v}{SUFFIX}"))}
        if not useless:
            return made
        splits = {name: one for name, one in splits.items() if name not in useless}
    return schema


def tables_of(schema: Catalog) -> dict[str, Table]:
    """The base relations, as the analysis of queries knows them."""
    return {
        name: Table(name, one.columns, one.types, one.nullable, one.keys)
        for name, one in schema.relations.items()
    }


def _split(schema: Catalog, view: View) -> Split | None:
    text = view.definition.text if isinstance(view.definition, ViewDefinition | OpaqueView) else None
    if text is None or (
        isinstance(view.definition, OpaqueView) and isinstance(view.definition.query, NotToRun)
    ):
        return None
    if _is_cheap(schema, view):
        return None
    name = f"{view.name}{SUFFIX}"
    found = split(text, name) or split_first_groups(text, name)
    if found is not None or _is_keyed(schema, view):
        return found
    return split_inside(text, name)


def _read(
    texts: Sequence[SqlText], declarations: Sequence[Declaration], splits: Mapping[str, Split]
) -> Catalog | None:
    """The catalog with helpers; None if they cannot be read."""
    more = [
        SqlText(one.helper, f"the helper of {name}", (f"{name}{SUFFIX}",), f"{name}{SUFFIX}")
        for name, one in splits.items()
    ]
    try:
        found = read_sql([*texts, *more], declarations, instead={n: one.rest for n, one in splits.items()})
        from selfmaint.api.programs import catalog_of_sql  # noqa: PLC0415 - it asks for helpers

        made = catalog_of_sql(found)
    except (ProgramError, InputError):
        return None
    return replace(made, helpers={f"{name}{SUFFIX}": name for name in splits})


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
        if not (isinstance(how, Keyed) and how.looks_up) and isinstance(additive(query, {name}), NotKeyed):
            return False
    return True


def _is_keyed(schema: Catalog, view: View) -> bool:
    """Whether keys lead to the base rows that a view depends on, whichever relation changes."""
    query = _query(schema, view)
    return query is not None and not any(
        isinstance(keyed(query, {name}), NotKeyed) for name in reads(schema, view)
    )


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
