"""Partial mappings of a view's subgoals to new facts: each is met by one, or left for known facts to match.

Conditions of soundness and completeness:

1. Subgoal and fact unify: a constant of either side, or a variable met twice, becomes an equality of k's terms.
2. A variable all of whose subgoals are new is fresh, and not all subgoals are new. So a mapping is idle that uses them
   all, or that asks for an equality of such a variable or for a known row with it. That is so where no foreign key,
   column that may be null, group or comparison gives a fresh variable another value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TypeAlias

from msgspec import Struct, field

from datalog.budget import check
from datalog.copies import replace
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    NullTest,
    Predicate,
    Term,
    Variable,
    Version,
    variables_of,
)
from selfmaint.canonical.references import referenced_columns
from selfmaint.warehouse.catalog import Catalog

_MOST = 50
"""Where condition 2 holds, a search is begun though there may be so many times as many mappings as the limit."""


class Partial(Struct):
    """A partial mapping under construction.

    Attributes:
        images: what variables of the view are mapped to.
        conditions: equalities and null tests that the subgoals met ask for.
        facts: the subgoals of k whose facts are used, as a bit mask.
        known: the view's subgoals that known facts must match.
    """

    images: dict[Variable, Term] = field(default_factory=dict)
    conditions: tuple[Literal, ...] = ()
    facts: int = 0
    known: tuple[Atom, ...] = ()


_Found: TypeAlias = tuple[Partial, tuple[int | None, ...]]
"""A partial mapping, and for each subgoal the fact that it meets, or None."""


def partial_mappings(
    atoms: Sequence[Atom],
    options: Sequence[Sequence[int]],
    body: Sequence[Atom],
    limit: int,
    *,
    leaves_fresh: bool,
) -> list[_Found] | None:
    """Every partial mapping, that of no subgoal too; None if finding them takes too many steps.

    Args:
        atoms: the view's subgoals, their variables none of k's.
        options: for each, the subgoals of k whose new facts it may meet.
        body: the subgoals of k.
        limit: the search may take twice as many steps.
        leaves_fresh: whether condition 2 holds.
    """
    occurrences = {
        v: sum(1 << j for j, atom in enumerate(body) if v in atom.terms)
        for v in (variables_of(body) if leaves_fresh else ())
    }
    if prod(len(choice) + 1 for choice in options) > (limit * _MOST if occurrences else limit):
        return None
    search = _Search(atoms, options, body, occurrences, 2 * limit)
    found = list(search.mappings(0, Partial()))
    return None if search.steps > search.limit else found


class _Search(Struct):
    """The search for partial mappings; after its last step it ends, whatever was found."""

    atoms: Sequence[Atom]
    options: Sequence[Sequence[int]]
    body: Sequence[Atom]
    occurrences: Mapping[Variable, int]
    limit: int
    steps: int = 0

    def mappings(self, at: int, partial: Partial) -> Iterator[_Found]:
        """The mappings of the subgoals from one on that extend a mapping of those before it."""
        check()
        if at == len(self.atoms):
            yield partial, ()
            return
        known = replace(partial, known=(*partial.known, self.atoms[at]))
        for rest, mapping in self._further(at, known):
            yield rest, (None, *mapping)
        for j in self.options[at]:
            met = _meet(self.atoms[at], self.body[j], partial)
            if met is not None:
                met.facts |= 1 << j
                for rest, mapping in self._further(at, met):
                    yield rest, (j, *mapping)

    def _further(self, at: int, partial: Partial) -> Iterator[_Found]:
        self.steps += 1
        if self.steps <= self.limit and self._may_be(partial):
            yield from self.mappings(at + 1, partial)

    def _may_be(self, partial: Partial) -> bool:
        """Condition 2."""
        if not self.occurrences:
            return True
        asked = {partial.images.get(v) for v in variables_of(partial.known)}
        fresh = {v for v, places in self.occurrences.items() if not places & ~partial.facts}
        return (
            partial.facts != (1 << len(self.body)) - 1
            and fresh.isdisjoint(asked)
            and fresh.isdisjoint(variables_of(partial.conditions))
        )


def _meet(atom: Atom, fact: Atom, partial: Partial) -> Partial | None:
    """Condition 1: the partial mapping extended by one subgoal that meets one new fact."""
    images = dict(partial.images)
    conditions = list(partial.conditions)
    for term, value in zip(atom.terms, fact.terms, strict=True):
        wanted = term if isinstance(term, Constant) else images.setdefault(term, value)
        if wanted == value:
            continue
        if isinstance(wanted, Constant) and isinstance(value, Constant):
            return None
        conditions.append(_equality(wanted, value))
    return Partial(images, tuple(dict.fromkeys(conditions)), partial.facts, partial.known)


def _equality(left: Term, right: Term) -> Literal:
    """Equality as a view's rule means it: a constant null is met by null, a join never is."""
    if isinstance(left, Constant):
        left, right = right, left
    if isinstance(right, Constant) and right.value is None:
        return NullTest(left, negated=False)
    if isinstance(right, Variable) and str(right) < str(left):
        left, right = right, left
    return Comparison("=", left, right)


def residue(
    catalog: Catalog,
    atoms: Sequence[Atom],
    met: Sequence[bool],
    not_null: frozenset[Variable],
    compared: frozenset[Variable] = frozenset(),
) -> tuple[Atom, ...]:
    """The atoms over known facts that must hold besides the subgoals that meet new facts.

    Foreign keys make residues smaller. Where `S` is in no other place,

        sale(T, S), store(S, C)     with C in no other place either, needs only     sale(T, S)
        store(S, C)                 needs only a row of `store` with that key, known or proved by a reference

    Conditions of soundness and completeness:

    1. A subgoal may be left out if a remaining one references its row, and nothing else is asked of that row.
    2. A subgoal of whose row only some columns matter is met by any row that certainly exists with these columns; its
       other columns hold values that nothing known tells, so that nothing but such a subgoal meets them.
    3. A column that may be null and must not be matters.

    `met` tells of each subgoal whether a new fact meets it; `compared` are the variables that the view compares.

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
    """Condition 1 of `residue`: the index of a subgoal that a remaining one implies."""
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
    """Whether any value will do in a column (condition 3 of `residue`)."""
    term = atom.terms[column]
    if isinstance(term, Constant) or counts[term] > 1:
        return False
    return term not in not_null or column not in catalog.relations[atom.predicate.name].nullable


def _weakest(catalog: Catalog, atom: Atom, counts: Mapping[Term, int], not_null: frozenset[Variable]) -> Atom:
    """Condition 2 of `residue`."""
    relation = catalog.relations[atom.predicate.name]
    columns = tuple(k for k in range(atom.arity) if not _does_not_matter(catalog, atom, k, counts, not_null))
    if len(columns) < atom.arity and columns in referenced_columns(catalog, relation):
        terms = tuple(atom.terms[k] for k in columns)
        return Atom(Predicate(relation.name, Version.EXISTS, columns), terms)
    return atom.of(Version.KNOWN)
