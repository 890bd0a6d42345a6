"""Whether equal values that a view computes with are one value: written alike, and of one type where that matters.

A view may be computed from what other rows tell of a value, and that may stand there in another type: 1.0 is equal to
1.00, and its text is not; a quotient of an INT has other digits than one of a BIGINT.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TypeAlias

from datalog.analysis.expression_types import expression_type
from datalog.analysis.types import constant_type
from datalog.graphs import components
from datalog.model import (
    MAX_PRECISION,
    Aggregate,
    AggregateFunction,
    Arithmetic,
    Atom,
    Call,
    Cast,
    ColumnType,
    Constant,
    Minus,
    Rule,
    Term,
    TypeName,
    Variable,
    ViewDefinition,
    expression_variables,
    walk,
)
from selfmaint.warehouse.base_relations import BaseRelation, variable_types
from selfmaint.warehouse.views import View

ADDING = (AggregateFunction.SUM, AggregateFunction.AVG)
"""What adds up."""

Met: TypeAlias = Mapping[tuple[str, int], frozenset[ColumnType]]
"""For each column of a base relation the types of those that its values may come from."""


def types_met(bodies: Iterable[Iterable[Atom]], relations: Mapping[str, BaseRelation]) -> Met:
    """The types of the columns that joins and foreign keys equate, through each other, with each column.

    What a view tells of a column may be what stands in a column that the view joins it with.
    """
    same: list[tuple[tuple[str, int], tuple[str, int]]] = []
    for body in bodies:
        first: dict[Term, tuple[str, int]] = {}
        for atom in (atom for atom in body if atom.predicate.name in relations):
            for i, term in enumerate(atom.terms):
                place = (atom.predicate.name, i)
                same.append((place, place if isinstance(term, Constant) else first.setdefault(term, place)))
    for relation in relations.values():
        for reference in relation.references:
            pairs = zip(reference.columns, reference.target_columns, strict=True)
            same += (((relation.name, i), (reference.target, j)) for i, j in pairs)
    found = {}
    for component in components((), same):
        kinds = frozenset(relations[name].types[i] for name, i in component)
        found.update(dict.fromkeys(component, kinds))
    return found


def unlike(
    definition: ViewDefinition, written: Rule, core: View, relations: Mapping[str, BaseRelation], met: Met
) -> str | None:
    """What is computed with although what is known has, of values that are equal but written otherwise, any one."""
    terms = dict(zip(written.head.terms, core.head.terms, strict=True))
    added, sized = _arithmetic_with(definition, variable_types(written.atoms, relations))
    for variable in _computed_with(definition):
        term = terms[variable]
        if isinstance(term, Constant):
            kinds = _columns_of(variable, written.atoms, relations)
            if variable in added and {*kinds} != {constant_type(term.value)}:
                return _OF_TYPE.format(variable.name)
            if variable in sized and isinstance(
                term.value, int
            ):  # one that is written out has its own digits
                return _OF_TYPE.format(variable.name)
            is_alike = bool(kinds) and all(_is_written(term, kind) for kind in kinds)
        else:
            kinds = _columns_of(term, core.body, relations)
            others = {kind for place in _places_of(term, core.body) for kind in met.get(place, ())}
            if variable in sized and len({*kinds, *others}) > 1:
                return _OF_TYPE.format(variable.name)
            is_alike = len({*map(_written, [*kinds, *others])}) <= 1 and (
                len(kinds) <= 1 or not kinds[0].name.is_floating
            )
        if not is_alike:
            return (
                f"computes with `{variable.name}`, equal values of which may be written otherwise, as 1.0 and 1.00, "
                "or 0.0 and -0.0: compare it to what is of its type, and no doubles"
            )
    return None


def _computed_with(definition: ViewDefinition) -> tuple[Variable, ...]:
    """The variables of whose values it matters what type they are of, and how they are written."""
    (block,) = definition.blocks
    computing = [
        part
        for value in (*block.outputs, *(block.groups or ()), *block.filters, *block.having)
        for part in walk(value)
        if isinstance(part, Arithmetic | Minus | Cast | Call)
        or (isinstance(part, Aggregate) and part.function in ADDING)
    ]
    return expression_variables(computing)


_OF_TYPE = (
    "computes with `{}`, which is equal to a number of another type: how many digits there are depends on it; "
    "declare both with one type, or compute from a column that is compared to nothing"
)


def _arithmetic_with(
    definition: ViewDefinition, types: Mapping[Variable, ColumnType]
) -> tuple[frozenset[Variable], frozenset[Variable]]:
    """The variables in arithmetic, and those of them in that of decimals, which have as many digits as types say."""
    (block,) = definition.blocks
    values = (*block.outputs, *(block.groups or ()), *block.filters, *block.having)
    parts = [part for value in values for part in walk(value) if isinstance(part, Arithmetic)]
    kinds = ((part, expression_type(part, types)) for part in parts)
    decimal = [part for part, kind in kinds if kind is not None and kind.name is TypeName.DECIMAL]
    return frozenset(expression_variables(parts)), frozenset(expression_variables(decimal))


def _columns_of(term: Term, atoms: Iterable[Atom], relations: Mapping[str, BaseRelation]) -> list[ColumnType]:
    """The types of the columns of base relations that a term stands in."""
    return [
        relations[atom.predicate.name].types[i]
        for atom in atoms
        if atom.predicate.name in relations
        for i, its in enumerate(atom.terms)
        if its == term
    ]


def _places_of(term: Term, atoms: Iterable[Atom]) -> Iterator[tuple[str, int]]:
    """The columns that a term stands in."""
    return ((atom.predicate.name, i) for atom in atoms for i, its in enumerate(atom.terms) if its == term)


def _is_written(constant: Constant, kind: ColumnType) -> bool:
    """Whether a constant is written as the values of a type that equal it are."""
    value = constant.value
    if isinstance(value, Decimal):
        return kind.name is TypeName.DECIMAL and kind.scale == -int(value.as_tuple().exponent)
    return not isinstance(value, float) and not kind.name.is_floating and kind.name is not TypeName.DECIMAL


def _written(kind: ColumnType) -> ColumnType:
    """A type of which equal values are written as those of another one."""
    if kind.name is TypeName.DECIMAL and kind.precision is not None:
        return ColumnType(TypeName.DECIMAL, MAX_PRECISION, kind.scale)
    return ColumnType(TypeName.BIGINT) if kind.name.is_integer else kind
