"""Facts that cannot exist since a column does not hold the value that it is joined with.

    v(I, J) :- a(I, D), b(J, D).        a(id: int, d: decimal(6,2)), b(id: int, k: int)
    a@inserted(9, -3.25)                no row of `b` has -3.25: what the test finds is none of its databases

Tests know nothing of what values a type has, so a witness is a proof only where its facts fit their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from datalog.model import Constant, Variable
from selfmaint.decide.new_facts import NewFacts
from selfmaint.decide.verdict import Witness
from selfmaint.possible.value_classes import fits
from selfmaint.warehouse.catalog import Catalog

MISFIT = "a value is joined with a column of a type that may not hold it"
"""Why a test that has rows is no proof."""


def may_misfit(
    catalog: Catalog, failing: Sequence[NewFacts], witnesses: Callable[[], Iterable[Witness]]
) -> tuple[str, ...]:
    """Why none of some tests that have rows is a proof; nothing if one of them, or some witness, is."""
    is_proof = any(not _joins_types(catalog, one) for one in failing)
    return () if is_proof or any(_exists(catalog, one) for one in witnesses()) else (MISFIT,)


def _joins_types(catalog: Catalog, new_facts: NewFacts) -> bool:
    """Whether a new fact has a variable in a column of one type that stands in one of another type, too."""
    atoms = [*new_facts.instance.atoms, *new_facts.links, *new_facts.patterns]
    columns = [
        (term, catalog.relations[atom.predicate.name].types[i])
        for atom in atoms
        if atom.predicate.name in catalog.relations and not atom.predicate.columns
        for i, term in enumerate(atom.terms)
        if isinstance(term, Variable)
    ]
    kinds = dict(columns)
    return any(kinds[term] != kind for term, kind in columns)


def _exists(catalog: Catalog, witness: Witness) -> bool:
    return all(
        fits(term.value, kind)
        for atom in witness.unknown
        for term, kind in zip(atom.terms, catalog.relations[atom.predicate.name].types, strict=True)
        if isinstance(term, Constant) and term.value is not None
    )
