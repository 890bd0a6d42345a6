"""Columns of types with few values, as far as it matters which value a row has there.

    ward(id, hospital, is_icu boolean)      v(Id, H) :- ward(Id, H, _)

No view tells the wards of `is_icu` true from the others, so a value of its own stands for both, as it does in a column
of any other type. Else each choice is tried for each subgoal, 2 to the number of these columns.

Condition of soundness: there are more databases then, never fewer, so what all agree on, those with the two values do.
Of two that differ each value of its own can be either truth value: the column is in no key or reference, no view looks
at it (the rows that are counted for groups differ in keys), and no rows differ there alone, as the relation has a key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from datalog.analysis import atoms_of
from datalog.model import (
    Atom,
    Literal,
    OpaqueView,
    Term,
    Variable,
    ViewDefinition,
    expression_variables,
    variables_of,
)
from selfmaint.warehouse.catalog import Catalog, View


def has_few_values(catalog: Catalog, relation: str, column: int) -> bool:
    """Whether a column has few values, and it matters which of them."""
    its = catalog.relations[relation]
    if not its.types[column].is_finite:
        return False
    in_keys = {i for key in its.unique for i in key}
    referencing = {i for reference in its.references for i in reference.columns}
    referenced = {i for _, reference in catalog.referenced_by[relation] for i in reference.target_columns}
    if not its.keys or column in in_keys | referencing | referenced:
        return True
    return (relation, column) in catalog.once("columns looked at", None, lambda: _looked_at(catalog))


def _looked_at(catalog: Catalog) -> frozenset[tuple[str, int]]:
    """The columns whose values some view tells apart."""
    every = [*catalog.views, *(part for its in catalog.unions.values() for part in its.values())]
    for sums in (catalog.summands, catalog.grouped_summands):
        every += [part for its in sums.values() for part in its]
    return frozenset(place for view in every for place in _of_view(view))


def _of_view(view: View) -> Iterator[tuple[str, int]]:
    tested = view.not_null - view.certain
    yield from _of_literals(view.body, (*view.head.terms, *tested, *variables_of(view.comparisons)))
    yield from _of_literals(view.rule.body, view.rule.head.terms)
    for definition in _definitions(view):
        for block in definition.blocks:
            above = expression_variables(
                (*block.outputs, *block.filters, *(block.groups or ()), *block.having)
            )
            yield from _of_literals(block.core.body, (*block.core.head.terms, *above))


def _definitions(view: View) -> Iterator[ViewDefinition]:
    if view.grouping is not None:
        yield view.grouping
    match view.definition:
        case ViewDefinition() as one:
            yield one
        case OpaqueView(anti=anti, parts=parts):
            yield from parts
            if anti is not None:
                yield from (anti.kept, anti.barred)


def _of_literals(body: Iterable[Literal], above: Iterable[Term]) -> Iterator[tuple[str, int]]:
    """The places of constants, and of variables that stand in another place, too."""
    literals = list(body)
    atoms = [atom for literal in literals for atom in atoms_of(literal)]
    times = Counter(term for atom in atoms for term in atom.terms)
    times.update(above)
    times.update(v for literal in literals if not isinstance(literal, Atom) for v in variables_of([literal]))
    for atom in atoms:
        for i, term in enumerate(atom.terms):
            if not isinstance(term, Variable) or times[term] > 1:
                yield atom.predicate.name, i
