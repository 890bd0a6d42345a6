"""Companions: what new facts drag along by foreign keys (a chase of the new facts).

A new fact of `sale` with store S needs a row of `store` with that key: one that is known, or one that is new as
well, with nothing known of its other columns. The second kind is a *companion*. It may need companions itself.

Conditions of soundness:

1. A companion's columns apart from the key are null where they may be, since null meets no join, and fresh elsewhere.
2. Where that is not the weakest assumption (a view looks at a constant null, or at one of few values) the companion
   is *opaque*: nothing is concluded from its columns, and a failing test that uses it proves nothing.
3. Foreign keys that lead back to a relation end at an opaque companion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from datalog.model import Atom, Constant, Predicate, Term, Variable, variables_of
from selfmaint.warehouse.catalog import BaseRelation, Catalog
from selfmaint.warehouse.constraints import Reference
from selfmaint.warehouse.few_values import has_few_values


class Obligation(Struct, frozen=True):
    """A foreign key of a fact that may be new.

    Attributes:
        nullable: variables of `key` that may be null; the foreign key then demands nothing.
        target_arity: the number of columns of the referenced relation.
        companion: index of the companion that would satisfy it, or None where the chase ends.
    """

    reference: Reference
    key: tuple[Term, ...]
    nullable: tuple[Variable, ...]
    target_arity: int
    companion: int | None


class Chased(Struct, frozen=True):
    """The subgoals of a body, then their companions.

    Attributes:
        atoms: the subgoals first, then one companion for each relation and key.
        subgoals: how many of them are subgoals.
        obligations: for each atom, its foreign keys.
        opaque: bit mask of the opaque companions.
    """

    atoms: tuple[Atom, ...]
    subgoals: int
    obligations: tuple[tuple[Obligation, ...], ...]
    opaque: int

    @property
    def companions(self) -> int:
        """Bit mask of the companions."""
        return (1 << len(self.atoms)) - (1 << self.subgoals)


def chase(catalog: Catalog, body: Sequence[Atom], not_null: frozenset[Variable]) -> Chased:
    """The companions that facts for some subgoals may need."""
    atoms = list(body)
    depth: dict[int, tuple[str, ...]] = {i: (a.predicate.name,) for i, a in enumerate(atoms)}
    index: dict[tuple[str, tuple[int, ...], tuple[Term, ...]], int] = {}
    obligations: list[tuple[Obligation, ...]] = []
    opaque = 0
    prefix = unused_prefix("N", body)
    at = 0
    while at < len(atoms):
        atom, found = atoms[at], []
        relation = catalog.relations[atom.predicate.name]
        for reference in relation.references:
            key = reference.key_of(atom)
            if any(isinstance(t, Constant) and t.value is None for t in key):
                continue
            target = catalog.relations[reference.target]
            place = (target.name, reference.target_columns, key)
            if place not in index and target.name not in depth[at]:
                index[place] = len(atoms)
                depth[len(atoms)] = (*depth[at], target.name)
                if is_opaque(catalog, target, reference.target_columns):
                    opaque |= 1 << len(atoms)
                atoms.append(_companion(target, reference, key, f"{prefix}{len(atoms)}_"))
            nullable = tuple(
                t
                for i, t in zip(reference.columns, key, strict=True)
                if isinstance(t, Variable) and i in relation.nullable and t not in not_null
            )
            found.append(Obligation(reference, key, nullable, target.arity, index.get(place)))
        obligations.append(tuple(found))
        at += 1
    return Chased(tuple(atoms), len(body), tuple(obligations), opaque)


def unused_prefix(letter: str, body: Sequence[Atom]) -> str:
    """What no variable of the atoms starts with."""
    prefix = letter
    while any(v.name.startswith(prefix) for v in variables_of(body)):
        prefix += letter
    return prefix


def _companion(target: BaseRelation, reference: Reference, key: tuple[Term, ...], prefix: str) -> Atom:
    """Condition 1."""
    at = dict(zip(reference.target_columns, key, strict=True))
    terms = tuple(
        at[i] if i in at else Constant(None) if i in target.nullable else Variable(f"{prefix}{i}")
        for i in range(target.arity)
    )
    return Atom(Predicate(target.name), terms)


def is_opaque(catalog: Catalog, target: BaseRelation, key: Sequence[int]) -> bool:
    """Condition 2: whether a view tells apart values of a column outside the key that cannot be chosen fresh."""
    place = f"opaque beside {tuple(key)} of {target.name}"
    return catalog.once(place, None, lambda: _is_opaque(catalog, target, key))


def _is_opaque(catalog: Catalog, target: BaseRelation, key: Sequence[int]) -> bool:
    for column in range(target.arity):
        if column in key:
            continue
        nullable = column in target.nullable
        if not nullable and not has_few_values(catalog, target.name, column):
            continue
        for view in catalog.views:
            counts = Counter(t for atom in view.body for t in atom.terms)
            for atom in view.body:
                if atom.predicate.name == target.name:
                    term = atom.terms[column]
                    null = isinstance(term, Constant) and term.value is None
                    looked_at = isinstance(term, Constant) or counts[term] > 1
                    if null or (looked_at and not nullable):
                        return True
    return False
