"""The columns that stored rows must have: their names and types, from declarations where there are any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from datalog.analysis import column_types
from datalog.copies import replace
from datalog.model import (
    ANY,
    Aggregate,
    AggregateFunction,
    ColumnType,
    Constant,
    Declaration,
    OpaqueView,
    Semantics,
    Span,
    TypeName,
    Value,
    Variable,
    ViewDefinition,
    value_kind,
)
from selfmaint.store.formats import Format
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.cores import output_types


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a view's or base relation's rows.

    Attributes:
        name: whose rows they are.
        names: column names, in order; made up where nothing is declared.
        types: column types, in order.
        declared: whether the names are declared: then stored columns are matched by name.
        naming: how a declaration would name the columns of a view that names none, such as `.decl {}.`.
        place: the declaration, or else the view's rule.
        open: whether nothing is known of the columns: those stored are taken as they are.
        as_text: whether values without a type stay text where they are stored as text: what inferring types loses
            would be written back. They tell nothing of other views (`stored_types.py`).
        computed: of a view that groups, the types of what is computed: what text is read as where `types` is open.
        of_query: of a view that is known by its text, finds the types that its query gives, `any` if not known.
        wide: positions of columns that are computed: they may be stored as wider decimals.
        twins: whether a base relation may hold a row twice.
        unread: columns of its table that are none of the relation: contents may have them.
    """

    name: str
    names: tuple[str, ...]
    types: tuple[ColumnType, ...]
    declared: bool
    naming: str | None = None
    place: Span | None = None
    open: bool = False
    as_text: bool = False
    computed: tuple[ColumnType, ...] = ()
    wide: frozenset[int] = frozenset()
    twins: bool = False
    unread: frozenset[str] = frozenset()
    of_query: Callable[[], tuple[ColumnType, ...]] | None = field(default=None, compare=False)

    def types_in(self, format_: Format) -> tuple[ColumnType, ...]:
        """The types that values are read as from files of a format, `any` for those that are stored or inferred."""
        if format_ not in (Format.CSV, Format.JSON_LINES):
            return self.types
        types = self.types
        for read_as in (self.computed, () if self.of_query is None else self.of_query()):
            if len(read_as) == len(types):
                types = tuple(other if t == ANY else t for t, other in zip(types, read_as, strict=True))
        is_text = self.as_text and format_ is Format.CSV
        return tuple(ColumnType(TypeName.STRING) if t == ANY and is_text else t for t in types)


def is_stored_as(stored: ColumnType, kind: ColumnType) -> bool:
    """Whether values of a stored type are those of another: exact numbers of one scale are."""
    scale = _scale(kind)
    return stored == kind or (scale is not None and _scale(stored) == scale)


def _scale(kind: ColumnType) -> int | None:
    """The digits behind the point of an exact number."""
    if kind.name is TypeName.DECIMAL:
        return kind.decimal_size[1]
    return 0 if kind.name.is_integer else None


def columns_of(schema: Catalog) -> Mapping[str, Columns]:
    """The columns of every view and base relation of a catalog.

    A view's column has the declared type of the base column that it comes from; a column that a constant
    fills has the constant's family, for any width of number may be stored.
    """
    bases = tuple(d for d in schema.program.declarations if d.name in schema.relations)
    inferred = column_types(replace(schema.program, declarations=bases))
    found: dict[str, Columns] = {}
    for relation in schema.relations.values():
        given = schema.program.declaration(relation.name)
        place = None if given is None else given.span
        names, types = relation.columns[: relation.given], relation.types[: relation.given]
        unread = frozenset(column.name for column in (() if given is None else given.unread))
        found[relation.name] = Columns(
            relation.name,
            names,
            types,
            given is not None,
            place=place,
            twins=relation.is_numbered,
            unread=unread,
        )
    for view in schema.views:
        declaration = schema.program.declaration(view.name)
        terms = view.head.terms[: len(view.stored_columns)]
        computed, own = _computed(view, schema, len(terms))
        types = own or inferred.get(view.predicate, (ANY,) * len(terms))
        if declaration is None:
            types = tuple(
                _type_of(term.value) if isinstance(term, Constant) else column_type
                for term, column_type in zip(terms, types, strict=True)
            )
        place = view.rule.span if declaration is None else declaration.span
        found[view.name] = Columns(
            view.name,
            view.stored_columns,
            _types(declaration, types),
            declaration is not None,
            naming=_naming(view.definition) if declaration is None else None,
            place=place,
            open=not view.columns and isinstance(view.definition, OpaqueView),
            as_text=isinstance(view.definition, OpaqueView),
            of_query=partial(_of_query, schema, view) if isinstance(view.definition, OpaqueView) else None,
            computed=computed,
            wide=frozenset(
                i for i in range(len(computed)) if isinstance(view, GroupedView) and not _is_own(view, i)
            ),
        )
    return found


def _of_query(schema: Catalog, view: View) -> tuple[ColumnType, ...]:
    """The types that a view's text gives, by the order of its stored columns."""
    from selfmaint.api.following.over_views import tables_known  # noqa: PLC0415 - where text files hold such views

    found = tables_known(schema).get(view.name)
    if found is None or [*map(str.casefold, found.columns)] != [*map(str.casefold, view.stored_columns)]:
        return ()
    return found.types


def _computed(
    view: View, schema: Catalog, width: int
) -> tuple[tuple[ColumnType, ...], tuple[ColumnType, ...]]:
    """The types of the first columns of a view that groups, as far as they are known; then without what is computed."""
    if not isinstance(view, GroupedView):
        return (), ()
    computed = tuple(t or ANY for t in output_types(view, schema.relations)[:width])
    return computed, tuple(t if _is_own(view, i) else ANY for i, t in enumerate(computed))


def _is_own(view: GroupedView, column: int) -> bool:
    """Whether a column of a view that groups holds values of a base column, as they are stored there."""
    output = view.grouped.block.outputs[column]
    own = (AggregateFunction.MIN, AggregateFunction.MAX)
    if isinstance(output, Aggregate) and output.function in own:
        output = output.operand or output
    return isinstance(output, Variable)


def _naming(definition: ViewDefinition | OpaqueView | None) -> str:
    """A view that is more than rules names its columns in a heading: a declaration would be passed over."""
    if not isinstance(definition, ViewDefinition):
        return ".decl {}."
    return ".view {} bag." if definition.semantics is Semantics.BAG else ".view {}."


def _type_of(value: Value) -> ColumnType:
    """The type of all values of the same family, if it has one."""
    kind = value_kind(value)
    return ANY if kind in ("number", "null") else ColumnType(TypeName(kind))


def _types(declaration: Declaration | None, inferred: tuple[ColumnType, ...]) -> tuple[ColumnType, ...]:
    """The declared types; an undeclared type is the inferred one."""
    if declaration is None:
        return inferred
    return tuple(
        other if column.type == ANY else column.type
        for column, other in zip(declaration.columns, inferred, strict=True)
    )
