"""Declared constraints as the decision uses them, and what keys say about a body of subgoals.

A key or unique constraint makes two subgoals that agree on it one fact (the chase with equality-generating
dependencies); where one of the agreeing values is null a unique constraint says nothing. A foreign key whose values are
not null gives exactly one row, for it references a key: a subgoal that only asks for that row says nothing.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from datalog.model import Atom, Constant, Substitution, Term, Variable, apply_atom, variables_of


class Reference(Struct, frozen=True):
    """A foreign key: the values of `columns`, where none is null, occur in `target`'s `target_columns`.

    Attributes:
        columns: 0-based positions in the referencing relation.
        target_columns: 0-based positions in `target`, one for each of `columns`.
    """

    columns: tuple[int, ...]
    target: str
    target_columns: tuple[int, ...]

    def key_of(self, atom: Atom) -> tuple[Term, ...]:
        """The referencing terms of an atom of the referencing relation."""
        return tuple(atom.terms[i] for i in self.columns)

    def key_in(self, atom: Atom) -> tuple[Term, ...]:
        """The referenced terms of an atom of the target."""
        return tuple(atom.terms[i] for i in self.target_columns)


class HasUnique(Protocol):
    """Whatever has keys."""

    @property
    def unique(self) -> tuple[tuple[int, ...], ...]:
        """Sets of columns, each of which identifies a row."""
        ...


class HasReferences(Protocol):
    """Whatever has foreign keys."""

    @property
    def references(self) -> tuple[Reference, ...]:
        """The foreign keys."""
        ...


def merged_by_keys(
    atoms: Sequence[Atom], relations: Mapping[str, HasUnique], not_null: frozenset[Variable]
) -> dict[Variable, Term] | None:
    """The substitution that makes subgoals with one key one subgoal; None if they can have no rows together."""
    substitution: dict[Variable, Term] = {}
    current = list(dict.fromkeys(atoms))
    while (pair := _agreeing(current, relations, not_null)) is not None:
        more = unifier(*pair)
        if more is None:
            return None
        substitution = compose(substitution, more)
        not_null = frozenset(t for v in not_null if isinstance(t := more.get(v, v), Variable))
        current = list(dict.fromkeys(apply_atom(more, atom) for atom in current))
    return substitution


def _agreeing(
    atoms: Sequence[Atom], relations: Mapping[str, HasUnique], not_null: frozenset[Variable]
) -> tuple[Atom, Atom] | None:
    for i, left in enumerate(atoms):
        for right in atoms[i + 1 :]:
            if left.predicate == right.predicate and left.predicate.name in relations:
                for key in relations[left.predicate.name].unique:
                    if _agree(left, right, key, not_null):
                        return left, right
    return None


def _agree(left: Atom, right: Atom, key: Sequence[int], not_null: frozenset[Variable]) -> bool:
    return all(left.terms[i] == right.terms[i] and never_null(left.terms[i], not_null) for i in key)


def given_subgoal(
    body: Sequence[Atom],
    used: Container[Term],
    relations: Mapping[str, HasReferences],
    not_null: frozenset[Variable],
) -> Atom | None:
    """A subgoal that has exactly one row by a foreign key of another one, and nothing used of it besides; or None.

    The `used` terms are used besides: in the head, in tests.
    """
    return next((atom for atom in body if _is_given(atom, body, used, relations, not_null)), None)


def _is_given(
    atom: Atom,
    body: Sequence[Atom],
    used: Container[Term],
    relations: Mapping[str, HasReferences],
    not_null: frozenset[Variable],
) -> bool:
    others = [other for other in body if other is not atom]
    elsewhere = set(variables_of(others))
    for other in others:
        for reference in relations[other.predicate.name].references:
            key = reference.key_of(other)
            rest = [t for i, t in enumerate(atom.terms) if i not in reference.target_columns]
            if (
                reference.target == atom.predicate.name
                and key == reference.key_in(atom)
                and all(never_null(term, not_null) for term in key)
                and all(isinstance(t, Variable) and t not in elsewhere and t not in used for t in rest)
                and len(set(rest)) == len(rest)
            ):
                return True
    return False


def never_null(term: Term, not_null: frozenset[Variable]) -> bool:
    """Whether a term is known not to be null."""
    return term.value is not None if isinstance(term, Constant) else term in not_null


def unifier(left: Atom, right: Atom) -> dict[Variable, Term] | None:
    """The most general substitution that makes two atoms of one predicate equal, or None."""
    substitution: dict[Variable, Term] = {}
    for one, other in zip(left.terms, right.terms, strict=True):
        a, b = (substitution.get(t, t) if isinstance(t, Variable) else t for t in (one, other))
        if a == b:
            continue
        if isinstance(b, Variable):
            substitution = compose(substitution, {b: a})
        elif isinstance(a, Variable):
            substitution = compose(substitution, {a: b})
        else:
            return None
    return substitution


def compose(first: Substitution, then: Substitution) -> dict[Variable, Term]:
    """The substitution that does `first`, then `then`."""
    moved = {v: then.get(t, t) if isinstance(t, Variable) else t for v, t in first.items()}
    return {**then, **moved}
