"""What known facts must match once some of a view's subgoals meet new facts: its residue.

Foreign keys make residues smaller. Where `S` is in no other place,

    sale(T, S), store(S, C)     with C in no other place either, needs only     sale(T, S)
    store(S, C)                 needs only a row of `store` with that key, known or proved by a reference

Conditions of soundness and completeness:

1. A subgoal may be left out if a remaining one references its row, and nothing else is asked of that row.
2. A subgoal of whose row only some columns matter is met by any row that certainly exists with these columns; its
   other columns hold values that nothing known tells, so that nothing but such a subgoal meets them.
3. A column that may be null and must not be matters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from datalog.model import Atom, Constant, Predicate, Term, Variable, Version
from selfmaint.canonical.references import referenced_columns
from selfmaint.warehouse.catalog import Catalog


def residue(
    catalog: Catalog,
    atoms: Sequence[Atom],
    met: Sequence[bool],
    not_null: frozenset[Variable],
    compared: frozenset[Variable] = frozenset(),
) -> tuple[Atom, ...]:
    """The atoms over known facts that must hold besides the subgoals that meet new facts.

    Args:
        catalog: the warehouse's schema.
        atoms: the subgoals of a view.
        met: for each subgoal, whether a new fact meets it.
        not_null: variables that must not be null.
        compared: variables that the view compares.

    Returns:
        Atoms in the versions `KNOWN` and `EXISTS`.
    """
    remaining = dict(enumerate(atoms))
    while (implied := _implied(catalog, remaining, met, not_null, compared)) is not None:
        del remaining[implied]
    counts = _counts(remaining, compared)
    return tuple(_weakest(catalog, atom, counts, not_null) for i, atom in remaining.items() if not met[i])


def _implied(
    catalog: Catalog,
    remaining: Mapping[int, Atom],
    met: Sequence[bool],
    not_null: frozenset[Variable],
    compared: frozenset[Variable],
) -> int | None:
    """Condition 1: the index of a subgoal that a remaining one implies."""
    counts = _counts(remaining, compared)
    for i, atom in remaining.items():
        if met[i]:
            continue
        for j, other in remaining.items():
            if i == j:
                continue
            for reference in catalog.relations[other.predicate.name].references:
                key = reference.key_of(other)
                if reference.target != atom.predicate.name or key != reference.key_in(atom):
                    continue
                if Constant(None) in key:  # references nothing
                    continue
                rest = (k for k in range(atom.arity) if k not in reference.target_columns)
                if all(_does_not_matter(catalog, atom, k, counts, not_null) for k in rest):
                    return i
    return None


def _counts(remaining: Mapping[int, Atom], compared: frozenset[Variable]) -> Counter[Term]:
    """How often each term is looked at; a comparison counts for one time."""
    return Counter([*(t for atom in remaining.values() for t in atom.terms), *compared])


def _does_not_matter(
    catalog: Catalog, atom: Atom, column: int, counts: Mapping[Term, int], not_null: frozenset[Variable]
) -> bool:
    """Whether any value will do in a column (condition 3)."""
    term = atom.terms[column]
    if isinstance(term, Constant) or counts[term] > 1:
        return False
    return term not in not_null or column not in catalog.relations[atom.predicate.name].nullable


def _weakest(catalog: Catalog, atom: Atom, counts: Mapping[Term, int], not_null: frozenset[Variable]) -> Atom:
    """Condition 2."""
    relation = catalog.relations[atom.predicate.name]
    columns = tuple(k for k in range(atom.arity) if not _does_not_matter(catalog, atom, k, counts, not_null))
    if len(columns) < atom.arity and columns in referenced_columns(catalog, relation):
        terms = tuple(atom.terms[k] for k in columns)
        return Atom(Predicate(relation.name, Version.EXISTS, columns), terms)
    return Atom(atom.predicate.of(Version.KNOWN), atom.terms)
