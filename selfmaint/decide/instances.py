"""Instances of a view's body: the ways of choosing its variables that a fresh value does not stand for.

Conditions of soundness and completeness:

1. A variable that only new facts bind is fresh, the most general choice, unless its type has few values (and it
   matters which: `warehouse/few_values.py`) or it can be null. Then the values true and false, and null, are tried
   as well.
2. Null is tried for a variable that occurs once, where a fresh value would meet a join or a constant null would,
   or would reference a row by a foreign key.
3. Two new facts of a relation with a key may be one fact: each way of unifying such subgoals is tried. Whether the
   keys of facts that are not unified differ is asked on data.
4. A relation that a view copies has no new facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from datalog.budget import check
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Term,
    Variable,
    apply_atom,
    apply_comparison,
    apply_term,
    variables_of,
)
from datalog.order import constants_compare, satisfiable
from selfmaint.canonical import copied
from selfmaint.decide.companions import Chased, chase
from selfmaint.decide.inconsistency import Contradiction, contradictions, drop_implied
from selfmaint.warehouse.catalog import Catalog, View, certain_variables
from selfmaint.warehouse.constraints import compose, merged_by_keys, unifier
from selfmaint.warehouse.few_values import has_few_values

MAPPING_LIMIT = 20_000
"""After so many steps of the search for partial mappings of one view into another, the pair is left out.

Then less contradicts new facts: a "yes" is as sound as ever, and a "no" becomes undecided, the two views named.
"""


@dataclass(frozen=True)
class Instance:
    """A view's body under a substitution, and what contradicts new facts for it.

    Attributes:
        view: view k.
        substitution: what some of the view's variables stand for.
        chased: the subgoals under the substitution, and the companions that facts for them may need.
        needed: bit mask of the subgoals that must be new: they hold a chosen constant, or are two unified.
        not_null: variables of the subgoals that are never null in a row of the view.
        comparisons: what a row of the view satisfies besides, those of constants left out.
        contradictions: over all views, those that others imply left out.
        skipped: views that were left out because of their size.
        old: bit mask of the subgoals whose facts are taken to be known: no set of new facts with them is looked for.
    """

    view: View
    substitution: Mapping[Variable, Term]
    chased: Chased
    needed: int
    not_null: frozenset[Variable]
    comparisons: tuple[Comparison, ...]
    contradictions: tuple[Contradiction, ...]
    skipped: tuple[View, ...]
    old: int = 0
    demanded: dict[object, tuple[Negation, ...]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """What contradictions come to for new facts, by what that depends on (`new_facts.py`)."""

    dominated: dict[tuple[int, int], bool] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Whether a set of new facts fails wherever it fails with one fact less, by these (`Dominance`)."""

    covered: dict[tuple[int, int], tuple[int, int]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """For a contradiction and a known fact: what else happens then, and what was looked at (`Dominance`)."""

    @property
    def is_possible(self) -> bool:
        """Whether constants alone do not contradict the comparisons."""
        return satisfiable(self.comparisons, {})

    @property
    def body(self) -> tuple[Atom, ...]:
        """The subgoals."""
        return self.chased.atoms[: self.chased.subgoals]

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The subgoals, then their companions."""
        return self.chased.atoms

    @cached_property
    def variables(self) -> tuple[frozenset[Variable], ...]:
        """The variables of each atom."""
        return tuple(frozenset(variables_of([atom])) for atom in self.atoms)

    @cached_property
    def uses(self) -> tuple[int, ...]:
        """For each atom, the contradictions that use a new fact for it, as a bit set."""
        return tuple(bit_set(c.facts >> j & 1 for c in self.contradictions) for j in range(len(self.atoms)))

    @cached_property
    def binds(self) -> Mapping[Variable, int]:
        """For each variable, the contradictions that are impossible where it is fresh, as a bit set."""
        bound = frozenset[Variable]().union(*(c.bound for c in self.contradictions))
        return {v: bit_set(v in c.bound for c in self.contradictions) for v in bound}

    def applicable(self, facts: int, fresh: Iterable[Variable] = ()) -> int:
        """The contradictions that use only some new facts and that some fresh variables allow, as a bit set."""
        without = 0
        for j, mask in enumerate(self.uses):
            if not facts >> j & 1:
                without |= mask
        for variable in fresh:
            without |= self.binds.get(variable, 0)
        return (1 << len(self.contradictions)) - 1 & ~without

    @cached_property
    def needs(self) -> Mapping[Predicate, int]:
        """For each predicate, the contradictions for which known facts must match it, as a bit set."""
        wanted = [{li.predicate for li in c.residue if isinstance(li, Atom)} for c in self.contradictions]
        every = frozenset[Predicate]().union(*wanted)
        return {predicate: bit_set(predicate in its for its in wanted) for predicate in every}

    @cached_property
    def conditional(self) -> int:
        """The contradictions that ask something of the view's variables alone, as a bit set."""
        return bit_set(c.conditions or c.not_null for c in self.contradictions)

    @cached_property
    def bare(self) -> int:
        """The contradictions that need nothing but that some variables are not null, as a bit set."""
        return bit_set(not c.demanded for c in self.contradictions)

    @cached_property
    def contradicts_companions(self) -> bool:
        """Whether companions alone can be contradicted."""
        return any(not c.facts & ~self.chased.companions for c in self.contradictions)

    @cached_property
    def occurrences(self) -> dict[Variable, int]:
        """For each variable, the atoms that it occurs in, as a bit mask."""
        return {
            v: sum(1 << j for j, atom in enumerate(self.atoms) if v in atom.terms)
            for v in variables_of(self.atoms)
        }

    @cached_property
    def compares(self) -> bool:
        """Whether anything about new facts depends on an order."""
        return bool(self.comparisons) or any(c.comparisons for c in self.contradictions)

    @cached_property
    def dead(self) -> tuple[Contradiction, ...]:
        """The unconditional contradictions: each kills every set of new facts that contains its own."""
        return tuple(c for c in self.contradictions if c.is_unconditional)


def bit_set(members: Iterable[object]) -> int:
    """The places of what is true, as a bit set."""
    return sum(1 << place for place, is_member in enumerate(members) if is_member)


def places(bits: int) -> Iterator[int]:
    """The places in a bit set, in order."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def instances(
    catalog: Catalog, view: View, anchor: str | None = None, first: Instance | None = None
) -> tuple[Instance, ...]:
    """The instances of a view's body: as it is, with subgoals unified, and with variables replaced by constants.

    Views of a limited class contradict nothing here, which keeps every "yes" sound.

    Args:
        catalog: the warehouse's schema.
        view: the view.
        anchor: see `instance`.
        first: the instance of its body as it is, if that is at hand.
    """
    result: list[Instance] = []
    for unified, joined in _unifications(catalog, view):
        given = first if not unified else None
        plain = given or instance(catalog, view, unified, joined, anchor=anchor)
        choices: list[list[tuple[Variable, Constant] | None]] = []
        for variable in variables_of(plain.body):
            values = _values_to_try(catalog, variable, plain)
            if values:
                choices.append([None, *((variable, Constant(value)) for value in values)])
        if plain.is_possible:
            result.append(plain)
        for combination in product(*choices):
            check()
            fixed: dict[Variable, Term] = dict(choice for choice in combination if choice is not None)
            if fixed:
                made = instance(catalog, view, compose(unified, fixed), joined, frozenset(fixed), anchor)
                if made.is_possible:
                    result.append(made)
    return tuple(result)


def plain_instance(catalog: Catalog, view: View, anchor: str | None = None) -> Instance:
    """The instance of a view's body as it is; see `instance`."""
    return instance(catalog, view, {}, frozenset(), anchor=anchor)


def instance(
    catalog: Catalog,
    view: View,
    substitution: Mapping[Variable, Term],
    joined: frozenset[Atom],
    fixed: frozenset[Variable] = frozenset(),
    anchor: str | None = None,
) -> Instance:
    """A view's body under a substitution.

    Args:
        catalog: the warehouse's schema.
        view: the view.
        substitution: of some of its variables.
        joined: subgoals of the view each of which became one with another.
        fixed: variables that were given a constant: the subgoals that hold them must be new.
        anchor: a relation whose subgoals' facts are taken to be known.
    """
    body = tuple(dict.fromkeys(apply_atom(substitution, atom) for atom in view.body))
    images = {apply_term(substitution, v) for v in view.not_null}
    not_null = frozenset(t for t in images if isinstance(t, Variable))
    certain = not_null | certain_variables(body, catalog.relations)
    chased = chase(catalog, body, certain)
    old = sum(1 << j for j, atom in enumerate(body) if atom.predicate.name == anchor)
    found, skipped = _contradictions(catalog, chased, certain, old)
    chosen = {
        apply_atom(substitution, atom)
        for atom in view.body
        if atom in joined or _holds(atom, fixed, substitution)
    }
    needed = sum(1 << j for j, atom in enumerate(body) if atom in chosen)
    moved = tuple(apply_comparison(substitution, comparison) for comparison in view.comparisons)
    comparisons = tuple(c for c in dict.fromkeys(moved) if not _is_true(c))
    return Instance(view, substitution, chased, needed, not_null, comparisons, found, skipped, old)


def _is_true(comparison: Comparison) -> bool:
    left, right = comparison.left, comparison.right
    if isinstance(left, Constant) and isinstance(right, Constant):
        return constants_compare(comparison.operator, left, right)
    return left == right and comparison.operator in ("<=", ">=")  # its variable is not null anyway


def _holds(atom: Atom, fixed: frozenset[Variable], substitution: Mapping[Variable, Term]) -> bool:
    """Whether a subgoal holds a variable that was given a constant, perhaps after it was unified with another."""
    if not fixed:
        return False
    values = {substitution[v] for v in fixed if v in substitution}
    return any(
        isinstance(t, Variable) and t in substitution and (t in fixed or substitution[t] in values)
        for t in atom.terms
    )


def _contradictions(
    catalog: Catalog, chased: Chased, certain: frozenset[Variable], old: int
) -> tuple[tuple[Contradiction, ...], tuple[View, ...]]:
    found: list[Contradiction] = []
    skipped: list[View] = []
    certain |= certain_variables(chased.atoms, catalog.relations)
    copies = copied(catalog)
    for j, atom in enumerate(chased.atoms):
        its = copies.get(atom.predicate.name)
        if its is not None and not old >> j & 1:
            found.append(Contradiction.of_copy(its.view, its.subgoal, j))
    ruled_out = sum(c.facts for c in found)
    may_be_new = (1 << len(chased.atoms)) - 1 & ~chased.opaque & ~old & ~ruled_out
    # those of few subgoals first: what they rule out needs no more
    for other in sorted(catalog.views, key=lambda v: len(v.body)):
        if other.limitation is not None or other.unchanging:
            continue
        made = contradictions(
            chased.atoms,
            may_be_new,
            certain,
            other,
            catalog,
            MAPPING_LIMIT,
            leaves_fresh=catalog.leaves_fresh,
        )
        if made is None:
            skipped.append(other)
            continue
        found.extend(made)
        for contradiction in made:
            if contradiction.is_unconditional and contradiction.facts.bit_count() == 1:
                may_be_new &= ~contradiction.facts
    return tuple(drop_implied(found)), tuple(skipped)


def _unifications(catalog: Catalog, view: View) -> Iterator[tuple[dict[Variable, Term], frozenset[Atom]]]:
    """Condition 3: the substitutions that make subgoals of keyed relations one, none of them first.

    Two of them are the same only if they also leave the same subgoals to be new, and the same to be compared: with
    `s(X), s(Y), s(5), X < Y` both `X = Y` and `Y = 5` leave `s(X), s(5)`, and only the latter is possible.
    """
    seen: set[tuple[frozenset[Atom], frozenset[Atom], frozenset[Literal]]] = set()
    waiting: list[tuple[dict[Variable, Term], frozenset[Atom]]] = [({}, frozenset())]
    while waiting:
        check()
        substitution, joined = waiting.pop(0)
        body = {atom: apply_atom(substitution, atom) for atom in view.body}
        asked: tuple[Literal, ...] = (
            *(apply_comparison(substitution, comparison) for comparison in view.comparisons),
            *(NullTest(apply_term(substitution, v)) for v in view.not_null),
        )
        key = (frozenset(body.values()), frozenset(body[atom] for atom in joined), frozenset(asked))
        if key in seen:
            continue
        seen.add(key)
        yield substitution, joined
        for left, right in _pairs(catalog, list(dict.fromkeys(body.values()))):
            more = unifier(left, right)
            if more is None:
                continue
            together = compose(substitution, more)
            images = [apply_atom(together, atom) for atom in view.body]
            not_null = frozenset(t for v in view.not_null if isinstance(t := together.get(v, v), Variable))
            merged = merged_by_keys(
                images, catalog.relations, not_null | certain_variables(images, catalog.relations)
            )
            if merged is not None:
                both = frozenset(atom for atom, image in body.items() if image in (left, right))
                waiting.append((compose(together, merged), joined | both))


def _pairs(catalog: Catalog, atoms: Sequence[Atom]) -> Iterator[tuple[Atom, Atom]]:
    for i, left in enumerate(atoms):
        for right in atoms[i + 1 :]:
            if left.predicate == right.predicate and catalog.relations[left.predicate.name].unique:
                yield left, right


def _values_to_try(catalog: Catalog, variable: Variable, plain: Instance) -> list[bool | None]:
    """Conditions 1 and 2: the constants to try for a variable besides a fresh one; none where a known fact has it."""
    if any(plain.old >> j & 1 and variable in atom.terms for j, atom in enumerate(plain.body)):
        return []
    places = [
        (catalog.relations[atom.predicate.name], i)
        for atom in plain.body
        for i, term in enumerate(atom.terms)
        if term == variable
    ]
    finite = any(has_few_values(catalog, relation.name, i) for relation, i in places)
    values: list[bool | None] = [True, False] if finite else []
    can_be_null = variable not in plain.not_null and all(i in relation.nullable for relation, i in places)
    if can_be_null and (finite or _null_matters(variable, plain)):
        values.append(None)
    return values


def _null_matters(variable: Variable, plain: Instance) -> bool:
    """Whether null instead of a fresh value would escape some contradiction, or a foreign key."""
    return any(
        variable in c.not_null or variable in variables_of(c.comparisons) for c in plain.contradictions
    ) or any(variable in obligation.nullable for each in plain.chased.obligations for obligation in each)
