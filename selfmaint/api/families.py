"""Do the types of stored views and of an update agree where no declaration says what they are?

A base column that is not declared has the type of the view columns that come from it, of the constants that rules
compare it with, and of the update's rows. An engine that meets two types converts one of them. So refused are

1. values of different families, which are never equal;
2. numbers of different kinds (whole numbers, decimals with as many digits behind the point, floats, doubles) where
   no declaration says what holds both;
3. stored columns that cannot hold what is computed for them;
4. sums of undeclared columns whose files say that they are of doubles, or of decimals that do not add up without loss.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal

from msgspec import Struct, field

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.model import (
    ANY,
    MAX_PRECISION,
    Aggregate,
    AggregateFunction,
    ColumnType,
    Constant,
    Row,
    Term,
    TypeName,
    Value,
    Variable,
    value_kind,
)
from selfmaint.engine.column_types import casts_exactly, number_kind
from selfmaint.errors import Code
from selfmaint.maintain.exact_numbers import adds_up_undeclared
from selfmaint.warehouse.base_relations import BaseRelation
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.cores import output_types

_OPEN = ("any", "null")


class _Seen(Struct, frozen=True):
    """What somebody said of a column: a family, and which numbers if that is told."""

    family: str
    kind: str | None
    where: str


class Families(Struct):
    """What is known of each base column's type, and who said it first."""

    catalog: Catalog
    _differing: list[Diagnostic] = field(default_factory=list)
    _seen: dict[tuple[str, int], _Seen] = field(default_factory=dict)
    _types: dict[tuple[str, int], ColumnType] = field(default_factory=dict)
    _stored: dict[str, Sequence[ColumnType]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for relation in self.catalog.relations.values():
            for position, column_type in enumerate(relation.types):
                self._see(relation.name, position, _Seen(column_type.family, None, "its declaration"))
        for view in self.catalog.views:
            for name, position, value in _constants(view):
                self._see(name, position, _Seen(value_kind(value.value), None, f"the rule of `{view.name}`"))

    @property
    def problems(self) -> list[Diagnostic]:
        """Columns of which two types were seen; if there are none, columns that cannot hold what is computed."""
        return self._differing or self._found(self._computed)

    @property
    def sums(self) -> list[Diagnostic]:
        """Sums that depend on the order of adding, or lose digits."""
        return self._found(self._lossy)

    def _found(
        self, look: Callable[[GroupedView, Sequence[ColumnType]], Iterator[tuple[str, str]]]
    ) -> list[Diagnostic]:
        return [
            Diagnostic(Code.COLUMNS_DIFFER, message, hint=hint)
            for view in self.catalog.grouped_views
            if view.name in self._stored
            for message, hint in look(view, self._stored[view.name])
        ]

    def add_view(self, name: str, types: Sequence[ColumnType]) -> None:
        """The types of a view's stored columns."""
        view = self.catalog.view(name)
        body, of_term = view.body, dict(zip(view.head.terms, types, strict=False))
        if isinstance(view, GroupedView):
            body, of_term = view.core.body, dict(_as_in_the_core(view, types))
            self._stored[name] = types
        elif view.is_more_than_rules:
            return
        for atom in body:
            if atom.predicate.name not in self.catalog.relations:
                continue  # a view of several rules, which is not unfolded
            for position, term in enumerate(atom.terms):
                if term in of_term and not isinstance(term, Constant):
                    self._add(atom.predicate.name, position, of_term[term], f"the view `{name}`")

    def add_rows(self, relation: str, types: Sequence[ColumnType], where: str) -> None:
        """The types of rows of a base relation."""
        for position, column_type in enumerate(types):
            self._add(relation, position, column_type, where)

    def _add(self, relation: str, position: int, found: ColumnType, where: str) -> None:
        is_declared = not self.catalog.relations[relation].types[position].is_open
        self._see(relation, position, _Seen(found.family, None if is_declared else number_kind(found), where))
        if not is_declared and not found.is_open:
            known = self._types.setdefault((relation, position), found)
            if found.name.is_floating or casts_exactly(known, found):
                self._types[relation, position] = found

    def _see(self, relation: str, position: int, seen: _Seen) -> None:
        if seen.family in _OPEN:
            return
        place = (relation, position)
        first = self._seen.setdefault(place, seen)
        if first.kind is None and seen.kind is not None:
            self._seen[place] = seen
        is_one_kind = None in (first.kind, seen.kind) or first.kind == seen.kind
        if first.family == seen.family and is_one_kind:
            return
        one, other, note = first.family, seen.family, "values of different families are never equal"
        if one == other:
            one, other = str(first.kind), str(seen.kind)
            note = "one would be converted to the other, and digits be lost"
        column = self.catalog.relations[relation].columns[position]
        self._differing.append(
            Diagnostic(
                Code.COLUMNS_DIFFER,
                f"column `{column}` of `{relation}` is a {one} in {first.where} and a {other} in {seen.where}",
                note=note,
                hint=f"declare `{relation}` with its types, and store the rows accordingly",
            )
        )

    def _computed(self, view: GroupedView, stored: Sequence[ColumnType]) -> Iterator[tuple[str, str]]:
        """What is wrong with stored columns that are computed, and what to do."""
        yield from self._lossy(view, stored)
        known = self._observed()
        for i, (column, kind, found) in enumerate(
            zip(view.columns, output_types(view, known), stored, strict=False)
        ):
            if kind is None or casts_exactly(kind, found):
                continue
            if all(not casts_exactly(other, found) for other in _joined_types(view, i, known)):
                yield (
                    f"column `{column}` of `{view.name}` is `{found}`, and what is computed for it `{kind}`",
                    f"store it as `{kind}`, or declare the types of the base columns if that is not right",
                )

    def _lossy(self, view: GroupedView, stored: Sequence[ColumnType]) -> Iterator[tuple[str, str]]:
        """What is wrong with sums of what is not declared, and what to do."""
        declared = output_types(view, self.catalog.relations)
        made = output_types(view, self._observed())
        for i, (column, kind, found) in enumerate(zip(view.columns, made, stored, strict=False)):
            its, known = declared[i], [one for one in (kind, found) if one is not None and not one.is_open]
            if not (_is_sum(view, i) and its is not None and its.is_open):
                continue
            said = f"column `{column}` of `{view.name}` adds up"
            if i not in view.grouped.inexact and any(one.name.is_floating for one in known):
                yield (
                    f"{said} doubles, whose sum depends on their order",
                    "declare a decimal type for what it adds up, and store that, or allow `inexact_sums`",
                )
            elif not all(one.name.is_floating or adds_up_undeclared(one) for one in known):
                yield f"{said} decimals that are not declared", "declare the type of what it adds up"

    def _observed(self) -> Mapping[str, BaseRelation]:
        """The base relations with the types that were seen where none are declared."""
        return {
            name: replace(r, types=tuple(self._types.get((name, i), t) for i, t in enumerate(r.types)))
            for name, r in self.catalog.relations.items()
        }


def _as_in_the_core(view: GroupedView, types: Sequence[ColumnType]) -> Iterator[tuple[Term, ColumnType]]:
    """The types of the core's terms of which a view that groups stores values: its groups, extrema."""
    yield from ((term, types[i]) for i, term in view.grouped.group_terms.items())
    for measure in view.grouped.measures:
        term = view.grouped.operand(measure)
        if term is not None and measure.aggregate.function in (AggregateFunction.MIN, AggregateFunction.MAX):
            yield term, types[measure.column]


def _is_sum(view: GroupedView, column: int) -> bool:
    output = view.grouped.block.outputs[column]
    return isinstance(output, Aggregate) and output.function is AggregateFunction.SUM


def _joined_types(
    view: GroupedView, column: int, relations: Mapping[str, BaseRelation]
) -> Iterator[ColumnType]:
    """The types of the base columns that are joined in a column: the view holds values of one of them."""
    output = view.grouped.block.outputs[column]
    if isinstance(output, Aggregate) and output.function in (AggregateFunction.MIN, AggregateFunction.MAX):
        output = output.operand or output
    term = view.grouped.terms[output] if isinstance(output, Variable) else None
    for atom in view.core.body:
        if atom.predicate.name in relations:
            types = relations[atom.predicate.name].types
            yield from (kind for kind, one in zip(types, atom.terms, strict=True) if one == term)


def _constants(view: View) -> Iterator[tuple[str, int, Constant]]:
    for atom in view.body:
        for position, term in enumerate(atom.terms):
            if isinstance(term, Constant):
                yield atom.predicate.name, position, term


def value_types(rows: Collection[Row], width: int) -> tuple[ColumnType, ...]:
    """The types of the numbers in each column of rows at hand; the widest of several, `any` of other values."""
    return tuple(map(_type_of, zip(*rows, strict=True))) if rows else (ANY,) * width


def _type_of(values: Collection[Value]) -> ColumnType:
    if any(isinstance(value, float) for value in values):
        return ColumnType(TypeName.DOUBLE)
    digits = [-int(value.as_tuple().exponent) for value in values if isinstance(value, Decimal)]
    return ColumnType(TypeName.DECIMAL, MAX_PRECISION, max(0, *digits)) if digits else ANY


def of_views(catalog: Catalog, views: Mapping[str, Sequence[ColumnType]]) -> Families:
    """What the stored views tell, given the types of their columns."""
    found = Families(catalog)
    for name, types in views.items():
        found.add_view(name, types)
    return found
