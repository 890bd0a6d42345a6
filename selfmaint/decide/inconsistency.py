"""Ways in which new facts contradict the views: the symbolic side of INCON (Huyn 1997, section 4).

A witness against view k assumes *new facts*: images of some subgoals of k. They contradict view i if the body of i
matches a database with these facts, using at least one of them. One such way is a partial mapping from the
subgoals of i to subgoals of k: what is mapped meets new facts, the rest must be met by known facts.

Conditions of soundness and completeness:

1. Subgoal and fact unify: a constant of either side, or a variable of i met twice, becomes an equality of k's terms.
2. A variable that only new facts bind is fresh: it differs from every known value and every other variable, so a way
   whose equalities or known facts mention it is impossible.
3. A variable of i that joins cannot be null: its image is required not to be null.
4. What known facts must match is made smaller by foreign keys (see `residue`).
5. A way that another way implies, whatever the new facts, need not be tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from datalog.budget import check
from datalog.containment import containment_mapping
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    Term,
    Variable,
    apply_atom,
    apply_comparison,
    variables_of,
)
from datalog.order import constants_compare
from selfmaint.decide.partial_mappings import Partial, partial_mappings, residue
from selfmaint.warehouse.catalog import BaseRelation, Catalog, View

COMPARED_LIMIT = 4_000
"""Contradictions of one pair of views are compared pairwise only up to so many."""


class Contradiction(Struct, frozen=True, dict=True):
    """One way in which new facts contradict a view.

    Attributes:
        view: the view that would gain a row it does not have.
        mapping: for each subgoal of `view`, the index of the subgoal of k whose new fact it meets, or None.
        facts: the subgoals of k used, as a bit mask.
        residue: what known facts must match for it, over k's variables and existential ones.
        conditions: equalities and null tests over k's variables alone.
        bound: k's variables in `residue` or `conditions`' equalities; none of them may be fresh.
        not_null: k's variables that must not be null, and are not known not to be.
        comparisons: what `view` compares, over k's variables and existential ones.
    """

    view: View
    mapping: tuple[int | None, ...]
    facts: int
    residue: tuple[Literal, ...]
    conditions: tuple[Literal, ...]
    bound: frozenset[Variable]
    not_null: frozenset[Variable]
    comparisons: tuple[Comparison, ...] = ()

    @classmethod
    def of_copy(cls, view: View, subgoal: int, fact: int) -> Contradiction:
        """That a new fact meets a subgoal of whose relation a view shows all rows."""
        mapping = (fact if i == subgoal else None for i in range(len(view.body)))
        return cls(view, tuple(mapping), 1 << fact, (), (), frozenset(), frozenset())

    @cached_property
    def demanded(self) -> tuple[Literal, ...]:
        """What it demands of known facts and k's variables, null tests left out."""
        return (*self.residue, *self.conditions, *self.comparisons)

    @cached_property
    def _denied(self) -> Negation:
        return Negation(self.demanded)

    def denied(self, not_null: frozenset[Variable]) -> Negation:
        """That it does not hold where some variables are not null."""
        if not not_null:
            return self._denied
        return Negation((*self.demanded, *sorted(map(NullTest, not_null), key=str)))

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """Everything that it demands something of."""
        return self.not_null.union(variables_of(self.demanded))

    @cached_property
    def plainly(self) -> tuple[Literal, ...]:
        """What it demands where all its variables are bound by known facts."""
        tests = (NullTest(v) for v in sorted(self.not_null, key=str))
        return tuple(dict.fromkeys((*self.residue, *self.conditions, *tests, *self.comparisons)))

    @property
    def is_unconditional(self) -> bool:
        """Whether new facts for these subgoals are impossible, whatever the data."""
        return not (self.residue or self.conditions or self.not_null or self.comparisons)

    def applies(self, facts: int, fresh: frozenset[Variable]) -> bool:
        """Whether it can happen when exactly `facts` are new and `fresh` variables are fresh."""
        return self.facts & ~facts == 0 and self.bound.isdisjoint(fresh)


class _Match(Struct, frozen=True):
    """A complete mapping, what it leaves for known facts to match, and the view's comparisons."""

    mapping: tuple[int | None, ...]
    partial: Partial
    unmet: tuple[Atom, ...]
    comparisons: tuple[Comparison, ...]


def contradictions(
    body: Sequence[Atom],
    may_be_new: int,
    certain: frozenset[Variable],
    view: View,
    catalog: Catalog,
    limit: int,
    *,
    leaves_fresh: bool = False,
) -> list[Contradiction] | None:
    """Every way in which new facts for subgoals of `body` contradict `view`.

    Args:
        body: the subgoals of view k (terms may be instantiated), and what comes along with them.
        may_be_new: bit mask of the subgoals whose fact may be new.
        certain: variables of `body` that are never null.
        view: view i.
        catalog: the base relations, for their nullable columns and foreign keys.
        limit: give up above about so many mappings.
        leaves_fresh: whether idle ones may be left out (`partial_mappings.py`, condition 2).

    Returns:
        The contradictions, those that others imply left out, or None above the limit.
    """
    found = matches(body, may_be_new, certain, view, catalog, limit, leaves_fresh=leaves_fresh)
    return None if found is None or len(found) > COMPARED_LIMIT else drop_implied(found)


def matches(  # noqa: PLR0913 - those of `contradictions`, and one more
    body: Sequence[Atom],
    may_be_new: int,
    certain: frozenset[Variable],
    view: View,
    catalog: Catalog,
    limit: int,
    kept: frozenset[Variable] = frozenset(),
    *,
    leaves_fresh: bool = False,
) -> list[Contradiction] | None:
    """Every way in which new facts for subgoals of `body` and known facts match the body of `view`.

    Args:
        body: see `contradictions`.
        may_be_new: see `contradictions`.
        certain: see `contradictions`.
        view: see `contradictions`.
        catalog: see `contradictions`.
        limit: see `contradictions`.
        kept: variables of the view whose values are wanted: what known facts must match names them.
        leaves_fresh: see `contradictions`.
    """
    options = [
        [j for j, fact in enumerate(body) if may_be_new >> j & 1 and _may_meet(atom, fact)]
        for atom in view.body
    ]
    if not any(options):
        return []
    renaming = apart(view.body, body)
    atoms = [apply_atom(renaming, atom) for atom in view.body]
    guarded = tuple(v for old, v in renaming.items() if old in view.not_null and isinstance(v, Variable))
    comparisons = tuple(apply_comparison(renaming, comparison) for comparison in view.comparisons)
    wanted = (renaming[v] for v in kept)
    compared = frozenset(variables_of(comparisons)).union(v for v in wanted if isinstance(v, Variable))
    left: dict[tuple[bool, ...], tuple[Atom, ...]] = {}
    found = []
    ways = partial_mappings(atoms, options, body, limit, leaves_fresh=leaves_fresh)
    for partial, mapping in ways or ():
        if partial.facts:
            met = tuple(image is not None for image in mapping)
            if met not in left:
                left[met] = residue(catalog, atoms, met, frozenset(guarded), compared)
            match = _Match(mapping, partial, left[met], comparisons)
            made = _finish(view, match, guarded, certain, catalog.relations)
            if made is not None:
                found.append(made)
    return None if ways is None else found


def _may_meet(atom: Atom, fact: Atom) -> bool:
    """Whether a fact is of a subgoal's relation, and no two constants tell them apart."""
    return atom.predicate == fact.predicate and not any(
        one != other and isinstance(one, Constant) and isinstance(other, Constant)
        for one, other in zip(atom.terms, fact.terms, strict=True)
    )


def apart(atoms: Sequence[Atom], others: Sequence[Atom]) -> dict[Variable, Term]:
    """New names for the variables of `atoms`, none of them a variable of `others`."""
    taken = {v.name for v in variables_of(others)}
    suffix = "_o"
    while any(v.name + suffix in taken for v in variables_of(atoms)):
        suffix += "o"
    return {v: Variable(v.name + suffix) for v in variables_of(atoms)}


def _finish(
    view: View,
    match: _Match,
    guarded: Sequence[Variable],
    certain: frozenset[Variable],
    relations: Mapping[str, BaseRelation],
) -> Contradiction | None:
    partial = match.partial
    comparisons = _compared(partial.images, match.comparisons)
    if comparisons is None:
        return None
    left = tuple(dict.fromkeys(apply_atom(partial.images, atom) for atom in match.unmet))
    not_null: set[Variable] = set()
    guards: list[Literal] = []
    tested = (*comparisons, *(c for c in partial.conditions if isinstance(c, Comparison)))
    compared = {t for c in tested for t in (c.left, c.right)}
    unbound = frozenset(variables_of(left))
    for variable in guarded:
        image = partial.images.get(variable, variable)
        if isinstance(image, Constant):
            if image.value is None:
                return None
        elif variable not in partial.images:
            if (
                variable in unbound
                and variable not in compared
                and not _never_null(variable, left, relations)
            ):
                guards.append(NullTest(variable))
        elif image not in certain and image not in compared:
            not_null.add(image)
    conditions = tuple(dict.fromkeys(partial.conditions))
    images = {t for t in partial.images.values() if isinstance(t, Variable)}
    bound = frozenset(variables_of(conditions)) | images & unbound
    return Contradiction(
        view,
        match.mapping,
        partial.facts,
        (*left, *guards),
        conditions,
        bound,
        frozenset(not_null),
        comparisons,
    )


def _compared(
    images: Mapping[Variable, Term], comparisons: Sequence[Comparison]
) -> tuple[Comparison, ...] | None:
    """The comparisons under a mapping, without those of constants; None if one is false."""
    found = []
    for comparison in comparisons:
        moved = apply_comparison(images, comparison)
        if isinstance(moved.left, Constant) and isinstance(moved.right, Constant):
            if not constants_compare(moved.operator, moved.left, moved.right):
                return None
        elif moved.left == moved.right:
            if moved.operator not in ("=", "<=", ">="):
                return None
        else:
            found.append(moved)
    return tuple(dict.fromkeys(found))


def _never_null(variable: Variable, residue: Sequence[Atom], relations: Mapping[str, BaseRelation]) -> bool:
    return any(
        term == variable and i not in relations[atom.predicate.name].nullable
        for atom in residue
        for i, term in zip(atom.predicate.columns or range(atom.arity), atom.terms, strict=True)
    )


def drop_implied(found: Sequence[Contradiction]) -> list[Contradiction]:
    """Condition 5: those that no other one implies; unconditional and short ones are kept first."""
    distinct = {_meaning(c): c for c in reversed(found)}
    kept: dict[int, list[Contradiction]] = {}
    for new in sorted(distinct.values(), key=_size):
        check()
        rivals = (old for facts, group in kept.items() if not facts & ~new.facts for old in group)
        if not any(implies(old, new) for old in rivals):
            kept.setdefault(new.facts, []).append(new)
    return sorted((c for group in kept.values() for c in group), key=_size)


def _meaning(contradiction: Contradiction) -> object:
    c = contradiction
    return c.facts, frozenset(c.residue), frozenset((*c.conditions, *c.comparisons)), c.not_null


def _size(contradiction: Contradiction) -> tuple[int, int]:
    c = contradiction
    return len(c.residue) + len(c.conditions) + len(c.comparisons) + len(c.not_null), c.facts.bit_count()


def implies(old: Contradiction, new: Contradiction) -> bool:
    """Whether `old` happens whenever `new` does, for every set of new facts and fresh variables."""
    if old.facts & ~new.facts or old.bound - new.bound or old.not_null - new.not_null:
        return False
    if not set(old.conditions) <= set(new.conditions):
        return False
    if not old.residue:
        return set(old.comparisons) <= set(new.comparisons)
    own = {v for v in variables_of(old.comparisons) if v not in variables_of(old.residue)}
    fixed: dict[Variable, Term] = {v: v for v in old.bound | own}
    return (
        containment_mapping(
            (*old.residue, *old.comparisons), (*new.residue, *new.comparisons, *new.conditions), fixed
        )
        is not None
    )
