"""Helpers: views that are kept beside others for these to be computed from; see `datalog.sql.views.split.splitting`.

A view that cannot be followed by what it shows (a quotient of sums, an average alone, HAVING, the largest of all sums,
the first groups by an order) is read as a query over helpers, which are views like any other: all its groups, or
queries inside it (`datalog.sql.views.nested.inner_queries`). They are called like the view with `__sums`,
`__sums_2`, ...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, lru_cache, partial
from typing import TypeAlias

from msgspec import Struct, field

from datalog.analysis.expression_types import expression_type
from datalog.copies import replace
from datalog.diagnostics import ProgramError
from datalog.model import ANY, ColumnType, Declaration, OpaqueView, ViewDefinition
from datalog.rewrite.numbered import as_written
from datalog.sql.duckdb import UnlikeSparkError
from datalog.sql.duckdb.plans import query_of_plan
from datalog.sql.views import SqlText, SqlViews, read_sql
from datalog.sql.views.moments import around, columns_of_moments, moments_written_out
from datalog.sql.views.nested.inner_queries import Asked, Helpers, replaced, split_look_up, whole
from datalog.sql.views.split.outer_rows import split_dated, split_outer, tables_if_parsed, tables_in
from datalog.sql.views.split.row_helpers import split_rows
from datalog.sql.views.split.splitting import split, split_first_groups
from datalog.sql.views.split.written_parts import Split
from datalog.sql.views.written_out.levels import split_levels
from datalog.sql.views.written_out.named_windows import windows_written_out
from selfmaint.api.following.how_followed import is_added_up, is_cheap, is_followed, is_keyed, query_of
from selfmaint.errors import InputError
from selfmaint.fallback.recompute import reads
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog, GroupedView, View

SUFFIX = "__sums"
"""What a helper's name ends in."""


Read: TypeAlias = Callable[[Sequence[SqlText], Mapping[str, str]], SqlViews]
"""Reads a program with more texts, and by view with other queries in place of its own."""


ROWS = "__rows"
"""What the name of a helper ends in that has the rows of every date."""


def with_helpers(schema: Catalog, read: Read, unfolded: Sequence[SqlText] = ()) -> Catalog:
    """The catalog of a program in which views that gain by it have helpers.

    `unfolded` are its queries that are no views of the warehouse.
    """
    given = _Given(schema, tuple(unfolded))
    made, splits = _with_sums(given, read)
    rows = {
        view.name: found
        for view in made.views
        if not any(one.name.casefold() == f"{view.name}{ROWS}".casefold() for one in made.views)
        and (found := _split_dated(given, view)) is not None
    }
    while rows:
        queries = {name: replace(one, in_place=False) for name, one in rows.items()}
        beside, over = (_read(schema, read, {**splits, **those}) for those in (queries, rows))
        if beside is None or over is None:
            return made
        unlike = {n for n in rows if beside.view(n).is_counted and over.view(n).grouping is None}
        if not unlike:
            helpers, near = {**made.helpers, **beside.helpers}, made.near
            return replace(
                beside, helpers=helpers, near=near, over_rows=replace(over, helpers=helpers, near=near)
            )
        rows = {name: one for name, one in rows.items() if name not in unlike}
    return made


def _split_dated(given: _Given, view: View) -> Helpers | None:
    """The rows of every date of a view that reads the current one, and the view over these."""
    text = view.definition.text if isinstance(view.definition, ViewDefinition | OpaqueView) else None
    name = f"{view.name}{ROWS}"
    found = None if text is None else _if_alone(given, split_dated(text, partial(_columns, given)))
    return None if found is None else Helpers({name: found.helper}, found.over(name))


def _with_sums(given: _Given, read: Read) -> tuple[Catalog, Mapping[str, Helpers]]:
    """The catalog with helpers of counts, sums and rows, and these."""
    schema = given.schema
    names = {view.name.casefold() for view in schema.views} | {name.casefold() for name in schema.relations}
    splits = {
        view.name: found
        for view in schema.views
        if view.name not in schema.outer
        and not (view.alone is None if isinstance(view, GroupedView) else view.is_decided)
        and not any(name.startswith(f"{view.name}{SUFFIX}".casefold()) for name in names)
        and (found := _split(given, view)) is not None
    }
    while splits:
        made = _read(schema, read, splits)
        if made is None:  # one that cannot be read leaves the others theirs
            known = {n: one for n, one in splits.items() if _read(schema, read, {n: one}) is not None}
            if len(known) == len(splits):
                return schema, {}
            splits = known
            continue
        useless = {v for v, one in splits.items() if not _gains(schema, made, v, one)}
        if not useless:
            return made, splits
        splits = {name: one for name, one in splits.items() if name not in useless}
    return schema, {}


class _Given(Struct, frozen=True, dict=True):
    """What a query is read with: the base relations, and queries that are unfolded.

    Attributes:
        made: by query the catalog that was read of it.
    """

    schema: Catalog
    unfolded: tuple[SqlText, ...]
    made: dict[str, Catalog | None] = field(default_factory=dict)

    @cached_property
    def bases(self) -> tuple[Declaration, ...]:
        """The base relations. A `*` in a part of a query that does without columns that are not read asks for none."""
        every = self.schema.program.declarations
        given = (replace(one, unread=()) for one in every if one.name in self.schema.relations)
        return tuple(map(as_written, given))

    def reached(self, text: str) -> list[SqlText]:
        """The unfolded queries that one reads, and those that these read, in order; all, if that is not known."""
        waiting, found = [text], set[int]()
        while waiting:
            names = tables_if_parsed(waiting.pop())
            if names is None:
                return list(self.unfolded)
            more = {i for i, one in enumerate(self.unfolded) if _name(one) in names} - found
            found |= more
            waiting += (self.unfolded[i].text for i in more)
        return [self.unfolded[i] for i in sorted(found)]


def _name(one: SqlText) -> str:
    """What a query calls another one that is unfolded, in lower case and without its database."""
    return (one.parts[0] if one.parts else one.relation or "").casefold()


def _gains(schema: Catalog, made: Catalog, name: str, found: Helpers) -> bool:
    """Whether the helpers of a view are followed, and leave it no relation to read that references others of its."""
    left = set(reads(made, made.view(name))) & set(schema.relations)
    return _may_be_left(schema, schema.view(name), left) and all(
        is_followed(made, made.view(helper)) for helper in found.queries
    )


def _may_be_left(schema: Catalog, view: View, left: AbstractSet[str]) -> bool:
    """Whether relations that are left for a view to read are fewer, and reference no others of its."""
    before = set(reads(schema, view)) & set(schema.relations)
    return left < before and all(r.target not in before for n in left for r in schema.relations[n].references)


def _are_described(schema: Catalog, view: View, left: AbstractSet[str]) -> bool:
    """Whether relations that are left for a view to read are few that others of its reference, as of customers."""
    before = [schema.relations[name] for name in reads(schema, view) if name in schema.relations]
    return _may_be_left(schema, view, left) and left <= {r.target for one in before for r in one.references}


def _split(given: _Given, view: View) -> Helpers | None:
    text = view.definition.text if isinstance(view.definition, ViewDefinition | OpaqueView) else None
    if text is None or (isinstance(view.definition, OpaqueView) and view.definition.refused is not None):
        return None
    name, text = f"{view.name}{SUFFIX}", _written_out(given, windows_written_out(text))
    sums = split(text)
    helper = None if sums is None else _alone(given, sums.helper)
    if is_cheap(given.schema, view, is_summed=helper is not None and helper.is_decided):
        return None
    found = _if_alone(given, split_first_groups(text)) if helper is None else sums
    found = found or _if_alone(given, split_levels(text, partial(_types, given)))
    if found is None and is_keyed(given.schema, view):
        return None
    found = found or _if_alone(given, _rows(given, text))
    if found is not None:
        return Helpers({name: found.helper}, found.over(name))
    inside = _split_inside(given, text, name)
    if inside is not None and _are_described(given.schema, view, _tables_of(given, inside.rest)):
        return inside
    return _split_outside(given, text, name) or inside


def _written_out(given: _Given, text: str) -> str:
    """A query with variances and standard deviations as what counts and sums come to."""

    def kind(value: str) -> ColumnType | None:
        types = _types(given, around(text, value))
        return types[0] if types else None

    return moments_written_out(text, kind)


def _tables_of(given: _Given, text: str) -> set[str]:
    """The base relations that a query's text names; all where it names a query that is unfolded."""
    names = {name.casefold(): name for name in given.schema.relations}
    if tables_in(text) & {(one.relation or one.parts[0]).casefold() for one in given.unfolded}:
        return set(given.schema.relations)
    return {names[name] for name in tables_in(text) if name in names}


def _split_outside(given: _Given, text: str, name: str) -> Helpers | None:
    """The queries inside a query, and the rows around them."""

    def looked_up(inner: str, asked: Asked) -> Split | None:
        return _if_alone(given, split_look_up(inner, asked))

    inside = replaced(text, partial(_kept, given), partial(_numbered, name), looked_up)
    if not inside.queries:
        return None
    outer = _numbered(name, len(inside.queries) + 1)
    found = _if_alone(given, split_outer(inside.rest, inside.placed, partial(_columns, given)))
    if found is None:
        return None
    return Helpers({**inside.queries, outer: found.helper}, found.over(outer))


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}_{number}"


def _columns(given: _Given, text: str) -> Sequence[str] | None:
    """The names of a query's columns; None where they are not known."""
    made = _catalog(given, text)
    if made is None:
        return None
    (view,) = made.views
    return view.columns[:-1] if view.is_counted else view.columns


def _split_inside(given: _Given, text: str, name: str) -> Helpers | None:
    """The queries inside a query that are followed by themselves, or by the counts and sums of their groups."""
    found = replaced(text, partial(_kept, given), partial(_numbered, name))
    return found if found.queries else None


def _kept(given: _Given, inner: str) -> Split | None:
    """What is kept of a query inside another."""
    inner = _written_out(given, inner)
    alone = _alone(given, inner)
    if alone is not None and is_added_up(given.schema, alone):
        return whole(inner)
    sums = _if_alone(given, split(inner))
    if sums is not None or alone is not None:
        return sums or whole(inner)
    rows = _if_alone(given, _rows(given, inner))
    return rows or _if_alone(given, split_levels(inner, partial(_types, given)))


def _rows(given: _Given, text: str) -> Split | None:
    """A query that looks at all rows as a helper and the query over it."""
    names = Counter(name.casefold() for name in given.schema.relations)
    hidden = {one.relation or one.parts[0] for one in given.unfolded}
    return split_rows(
        text,
        {
            name.casefold(): one.columns[: one.given]
            for name, one in given.schema.relations.items()
            if names[name.casefold()] == 1 and name not in hidden
        },
    )


def _if_alone(given: _Given, found: Split | None) -> Split | None:
    """A query in two, if the helper is a view that is followed."""
    return None if found is None or _alone(given, found.helper) is None else found


def _types(given: _Given, text: str) -> Sequence[ColumnType] | None:
    """The types of a query's columns; None where they are not known."""
    made = _catalog(given, text)
    definition = None if made is None else made.views[0].definition
    if isinstance(definition, ViewDefinition):
        return _types_of(given.schema, definition)
    query = None if made is None else query_of(made, made.views[0])
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
    return view if is_read and is_followed(made, view) else None


def _catalog(given: _Given, text: str) -> Catalog | None:
    """The catalog of one query over the base relations; None if it cannot be read."""
    if text not in given.made:
        given.made[text] = _read_alone(given.bases, tuple(given.reached(text)), text)
    return given.made[text]


@lru_cache(512)  # of definitions at several moments most parts are the same
def _read_alone(bases: tuple[Declaration, ...], unfolded: tuple[SqlText, ...], text: str) -> Catalog | None:
    texts = [*unfolded, SqlText(text, "a query inside", ("inner_query",))]
    names = [one.relation or one.parts[0] for one in unfolded]
    try:
        from selfmaint.api.file.programs import catalog_of_sql  # noqa: PLC0415 - it asks for helpers

        return catalog_of_sql(read_sql(texts, bases, unfolded=names))
    except (ProgramError, InputError):
        return None


def _read(schema: Catalog, read: Read, splits: Mapping[str, Helpers]) -> Catalog | None:
    """The catalog with helpers; None if they cannot be read."""
    written = {view.name: view.definition.text or "" for view in schema.views if view.definition is not None}
    more = [
        SqlText(query, f"the helper of {name}", (helper,), helper, kept=True)
        for name, one in splits.items()
        for helper, query in one.queries.items()
    ]
    try:
        from selfmaint.api.file.programs import catalog_of_sql  # noqa: PLC0415 - it asks for helpers

        instead = {name: one.rest for name, one in splits.items() if one.in_place}
        made = catalog_of_sql(read(more, instead))
    except (ProgramError, InputError):
        return None
    near = {name: columns for name in splits if (columns := columns_of_moments(written.get(name, "")))}
    helpers = {helper: name for name, one in splits.items() for helper in one.queries}
    return replace(made, helpers=helpers, near=near)
