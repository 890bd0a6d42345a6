"""Which family each term's values belong to.

An order comparison or an equality holds only between values of one family, so the terms that such comparisons
connect form classes of one family each. Where no type and no constant tells a class's family it may be any. Then
it is taken as numbers: a dense order without end points, which no constant bounds, satisfies whatever any other
order does. Only terms that must be of *different* families (`apart`) need a search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from datalog.model import ANY, ColumnType, Comparison, Constant, Term, Variable, value_kind

Types: TypeAlias = Mapping[Variable, ColumnType]
"""The types of variables; one that is not mentioned is `any`."""

Pair: TypeAlias = tuple[Term, Term]

FAMILIES = ("number", "string", "date", "timestamp", "timestamp_ntz", "boolean")


def family_of(term: Term, types: Types) -> str | None:
    """The family of a term's values, or None if it may be any.

    >>> from datalog.model import TypeName
    >>> family_of(Variable("X"), {Variable("X"): ColumnType(TypeName.INT)}), family_of(Variable("Y"), {})
    ('number', None)
    """
    if isinstance(term, Constant):
        return value_kind(term.value)
    family = types.get(term, ANY).family
    return None if family == "any" else family


def families(
    terms: Sequence[Term], comparisons: Sequence[Comparison], types: Types, apart: Sequence[Pair]
) -> Iterator[dict[Term, str]]:
    """Every choice of families that may matter.

    Args:
        terms: the terms, those of `comparisons` and `apart` among them.
        comparisons: without constants that are null.
        types: the variables' types.
        apart: pairs of terms whose values are of different families.

    Returns:
        A family for each term, in which every comparison but `!=` is between values of one family. Without
        `apart` it is one choice at most, and none if there is a contradiction.
    """
    classes = _classes(terms, comparisons)
    known: dict[Term, str] = {}
    for term, root in classes.items():
        family = family_of(term, types)
        if family is not None and known.setdefault(root, family) != family:
            return
    pairs = [(classes[left], classes[right]) for left, right in apart]
    open_ones = list(dict.fromkeys(root for pair in pairs for root in pair if root not in known))
    for choice in product(FAMILIES, repeat=len(open_ones)):
        chosen = {**known, **dict(zip(open_ones, choice, strict=True))}
        if all(chosen[left] != chosen[right] for left, right in pairs):
            yield {term: chosen.get(root, "number") for term, root in classes.items()}


def _classes(terms: Sequence[Term], comparisons: Sequence[Comparison]) -> dict[Term, Term]:
    """A representative of each term's class."""
    parent: dict[Term, Term] = {term: term for term in terms}

    def root(term: Term) -> Term:
        while parent[term] != term:
            parent[term] = parent[parent[term]]
            term = parent[term]
        return term

    for comparison in comparisons:
        if comparison.operator != "!=":
            parent[root(comparison.left)] = root(comparison.right)
    return {term: root(term) for term in terms}
