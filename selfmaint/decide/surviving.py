"""The sets J of subgoals whose facts could be new (theory of the test: Huyn 1997, section 4, made constructive).

A view fails the test iff for some set J of its subgoals, not empty and not all, the other subgoals are in the
after-image of the canonical database and the facts of J are *new*: unknown so far, and without contradiction.
Which J can matter at all is settled here, from the rules alone; where facts of J have foreign keys or are compared,
with each way of satisfying them.

Conditions of soundness and completeness:

1. A set that contains the facts of an unconditional contradiction is dead, and so is every larger one.
2. A foreign key of a new fact is satisfied by another new fact, by a known row (a *link*), or by a companion.
   A link that alone binds a variable matters only if some contradiction could rule out a companion: else the fresh
   companion is the more general choice.
3. A companion whose key another subgoal outside J has is impossible: that row is known, or inserted.
4. That a new fact is the row that another one references, by giving its fresh variables values, need not be tried: a
   companion that has the same values where it may, and fresh ones where it must differ, is more general. It must
   differ in each key. Where a further key has no column that is free for that (all reference other rows, or have
   few values), or groups or comparisons restrict what is fresh, the one row for both is taken as possible.
5. A variable that is fresh at first may be given a value at hand by a group that it must be in, or by comparisons:
   only then does it matter that this may be the value of another variable, and that is asked on data. Where two are
   to be one value, and only one of them is given it, the other one has it, too.
6. Where foreign keys can be satisfied in too many ways, those that the view does not join by are taken as satisfied.
   More facts are then taken as possible than are: that makes no "yes", and such facts make no "no" (`is_cut`).
7. A test starts at a changed fact of a subgoal outside J. Where one subgoal alone is over a relation that changes, that
   is the one: no J with it is asked for, and no contradiction that uses a new fact for it happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, groupby, zip_longest
from typing import TypeVar

from msgspec import Struct, field

from datalog.budget import check
from datalog.containment import containment_mapping
from datalog.copies import replace
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    NullTest,
    Term,
    Variable,
    Version,
    apply_comparison,
    variables_of,
)
from selfmaint.decide.arrangements import arranged
from selfmaint.decide.group_evidence import demands, with_groups
from selfmaint.decide.inconsistency import Contradiction
from selfmaint.decide.instances import Instance, instances, places, plain_instance
from selfmaint.decide.new_facts import NewFacts
from selfmaint.decide.positions import At, resolved, substitution
from selfmaint.decide.supports import has_many_supports, supports
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.constraints import Reference
from selfmaint.warehouse.few_values import has_few_values
from selfmaint.warehouse.situation import Situation

T = TypeVar("T")


def surviving(catalog: Catalog, view: View, anchor: str | None = None) -> Iterator[NewFacts]:
    """Every J of every instance that the rules alone do not rule out, smallest first within an instance.

    Where views group, those first that are in none of the groups that they need not be in: these are met most often.

    None for a view whose rows are always the same: no new facts give it a row.

    Args:
        catalog: the warehouse's schema.
        view: the view.
        anchor: a relation: no J with a subgoal over it is asked for (condition 7).
    """
    return placed(catalog, candidates(catalog, view, anchor))


def candidates(catalog: Catalog, view: View, anchor: str | None = None) -> Iterator[NewFacts]:
    """Every J of every instance, with each way of satisfying its foreign keys: not yet in groups or in an order."""
    if view.unchanging:
        return
    plain = plain_instance(catalog, view, anchor)
    is_cut = has_many_supports(plain)
    if is_cut:
        catalog = _with_own_references(catalog, view)
    for instance in instances(catalog, view, anchor, None if is_cut else plain):
        for facts in sorted(_alive(instance), key=lambda m: (m.bit_count(), m)):
            if instance.needed & ~facts == 0:
                for way in supports(instance, facts):
                    cut = is_cut or way.is_cut
                    new = NewFacts(instance, way.facts, way.links, way.conditions, is_cut=cut)
                    made = _settled(catalog, new)
                    if made is not None:
                        yield made


def _with_own_references(catalog: Catalog, view: View) -> Catalog:
    """The catalog with no other foreign keys than those that a view joins by (condition 6)."""
    relations = {
        name: replace(one, references=tuple(r for r in one.references if _joins_by(view, name, r)))
        for name, one in catalog.relations.items()
    }
    return replace(catalog, relations=relations)


def _joins_by(view: View, name: str, reference: Reference) -> bool:
    keys = [reference.key_in(atom) for atom in view.body if atom.predicate.name == reference.target]
    return any(reference.key_of(atom) in keys for atom in view.body if atom.predicate.name == name)


def placed(catalog: Catalog, found: Iterable[NewFacts]) -> Iterator[NewFacts]:
    """The candidates with each choice of the groups that they are in, and each arrangement, numbered."""
    numbers, others = count(), list[Iterator[NewFacts]]()
    for _, together in groupby(found, key=lambda candidate: id(candidate.instance)):
        its = list(together)
        asked = demands(catalog, its[0].instance, {candidate.facts for candidate in its})
        for candidate in _from_both_ends(its) if asked else its:
            ways = with_groups(catalog, candidate, asked)
            yield from _alive_arrangements(catalog, next(ways), numbers)
            others.append(ways)
    for grouped in chain.from_iterable(others):
        yield from _alive_arrangements(catalog, grouped, numbers)


def _from_both_ends(its: Sequence[T]) -> Iterator[T]:
    """The last, the first, the last but one, ...: sets of most new facts and sets of fewest fail most often."""
    half = len(its) // 2
    for last, first in zip_longest(reversed(its[half:]), its[:half]):
        yield last
        if first is not None:
            yield first


def _alive_arrangements(catalog: Catalog, candidate: NewFacts, numbers: Iterator[int]) -> Iterator[NewFacts]:
    for found in arranged(catalog, candidate):
        check()
        arrangement = _with_given(found)
        if arrangement is not None and not arrangement.is_impossible:
            vague = arrangement.is_cut or _has_twins(catalog, arrangement)
            yield replace(arrangement, number=next(numbers), is_cut=vague)


def _alive(instance: Instance) -> Iterator[int]:
    """Condition 1: the proper, non-empty sets of subgoals that contain no dead set."""
    size = len(instance.body)
    dead = sorted({c.facts for c in instance.dead}, key=int.bit_count)
    single = sum(mask for mask in dead if mask.bit_count() == 1) | instance.old
    several = [mask for mask in dead if mask.bit_count() > 1 and not mask & single]
    open_bits = [1 << j for j in range(size) if not single >> j & 1]
    holding = [[mask for mask in several if mask & bit] for bit in open_bits]
    full = (1 << size) - 1

    def extend(at: int, chosen: int) -> Iterator[int]:
        check()
        if at == len(open_bits):
            if chosen not in (0, full):
                yield chosen
            return
        yield from extend(at + 1, chosen)
        more = chosen | open_bits[at]
        if not any(mask & ~more == 0 for mask in holding[at]):
            yield from extend(at + 1, more)

    return extend(0, 0)


def _settled(catalog: Catalog, candidate: NewFacts) -> NewFacts | None:
    """The candidate with what its fresh variables decide; None if it cannot be, or another one stands for it."""
    fresh = candidate.fresh
    for j in candidate.subgoals:
        relation = catalog.relations[candidate.instance.body[j].predicate.name]
        for i, term in enumerate(candidate.instance.body[j].terms):
            if term in fresh and has_few_values(catalog, relation.name, i):
                return None
    kept: list[Literal] = []
    rigid = False
    for condition in candidate.conditions:
        assert isinstance(condition, NullTest | Comparison)
        if not fresh.intersection(variables_of([condition])):
            kept.append(condition)
        elif isinstance(condition, Comparison):
            if _may_need_one_row(catalog, candidate):
                rigid = True  # one row for two references: taken as possible
            elif _may_be_given(catalog, candidate):
                kept.append(condition)
            else:
                return None
        elif not condition.negated:
            return None
    return replace(candidate, conditions=tuple(kept), is_cut=candidate.is_cut or rigid)


def _may_be_given(catalog: Catalog, candidate: NewFacts) -> bool:
    """Whether fresh variables may be given values at hand (condition 5)."""
    return bool(catalog.grouped_views) or candidate.instance.compares


def _with_given(candidate: NewFacts) -> NewFacts | None:
    """The candidate with its conditions on variables that were given values; None if a variable is still fresh."""
    candidate = _with_equal(candidate)
    positions = dict(candidate.positions)
    kept: list[Literal] = []
    for condition in candidate.conditions:
        demanded: tuple[Literal, ...] | None = (condition,)
        if isinstance(condition, Comparison):
            demanded = resolved(condition, positions)
        if demanded is None or not candidate.fresh.isdisjoint(variables_of(demanded)):
            return None
        kept.extend(demanded)
    return replace(candidate, conditions=tuple(dict.fromkeys(kept)))


def _with_equal(candidate: NewFacts) -> NewFacts:
    """The candidate where what is fresh, and is to equal what is not, is at that value (condition 5).

    What groups demand of it then is not asked: that takes more facts as possible than are.
    """
    equal = [c for c in candidate.conditions if isinstance(c, Comparison) and c.operator == "="]
    while True:
        placed = dict(candidate.positions)
        moved = [apply_comparison(substitution(placed), c) for c in equal]
        sides = [pair for c in moved for pair in ((c.left, c.right), (c.right, c.left))]
        fresh = candidate.fresh - placed.keys()
        found = next(((v, t) for v, t in sides if v in fresh and t not in candidate.fresh), None)
        if found is None:
            return candidate
        variable, value = found
        assert isinstance(variable, Variable)
        candidate = replace(candidate, positions=(*candidate.positions, (variable, At(value))), is_cut=True)


def _is_rigid(catalog: Catalog, candidate: NewFacts) -> bool:
    """Whether a referenced relation has several keys."""
    return any(
        len(catalog.relations[atom.predicate.name].unique) > 1
        for atom in candidate.instance.atoms
        if catalog.referenced_by[atom.predicate.name]
    )


def _may_need_one_row(catalog: Catalog, candidate: NewFacts) -> bool:
    """Whether a new fact may have to be the row that another one references, instead of a companion (condition 4)."""
    if catalog.grouped_views or candidate.instance.compares:
        return _is_rigid(catalog, candidate)
    return any(
        not catalog.relations[obligation.reference.target].can_differ(obligation.reference.target_columns)
        for obligations in candidate.instance.chased.obligations
        for obligation in obligations
    )


def _has_twins(catalog: Catalog, candidate: NewFacts) -> bool:
    """Whether two new facts have one key and yet differ in other terms: they would have to be made one."""
    atoms = candidate.atoms
    return any(
        one.predicate == other.predicate
        and all(one.terms[i] == other.terms[i] != Constant(None) for i in key)
        for at, one in enumerate(atoms)
        for other in atoms[at + 1 :]
        for key in catalog.relations[one.predicate.name].unique
    )


def has_better_links(catalog: Catalog, candidate: NewFacts, impossible: frozenset[str]) -> bool:
    """Condition 2: whether a companion instead of each link that alone binds a variable is as good."""
    if (
        candidate.instance.compares
        or _is_rigid(catalog, candidate)
        or candidate.instance.chased.opaque
        or candidate.instance.contradicts_companions
    ):
        return False
    return any(link.predicate.name not in impossible for link in candidate.free_links)


class Dominance(Struct):
    """Which tests of some surviving sets are needless.

    Take a witness of J, and let g be a subgoal outside J whose fact is known. If new facts for J and g are possible
    whenever those for J alone are, then the witness is one of J with g as well, and J need not be tested. Where the
    fact of g is inserted, the test of J that is anchored at g sees the witness.

    Conditions of soundness:

    1. g holds a variable that J with g alone binds: a fresh value there makes the fact new. Its relation has no key
       whose values could be known, and is not fully known anywhere.
    2. Every contradiction that J with g adds happens only where one of J happens, given that the fact of g is known.
    3. The anchor is another subgoal than g.
    4. Nothing else comes along: no companions, links or positions.

    Attributes:
        survivors: the surviving sets of one view.
    """

    catalog: Catalog
    survivors: Sequence[NewFacts]
    _plain: dict[tuple[int, int], NewFacts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._plain = {(id(n.instance), n.facts): n for n in self.survivors if _is_plain(n)}

    def needed(self, new_facts: NewFacts, anchors: Iterable[int], situation: Situation) -> list[int]:
        """The anchors at which J must be tested."""
        settled = {r.name for r in situation.regions} | situation.readable
        left = list(anchors)
        if (id(new_facts.instance), new_facts.facts) not in self._plain:
            return left
        for g in new_facts.outside:
            matters = new_facts.instance.body[g].predicate.name not in settled and left not in ([], [g])
            if matters and self._is_smaller(new_facts, g):
                left = [anchor for anchor in left if anchor == g]
        return left

    def _is_smaller(self, new_facts: NewFacts, g: int) -> bool:
        """Whether J with g fails wherever J fails with the fact of g known."""
        larger = self._plain.get((id(new_facts.instance), new_facts.facts | 1 << g))
        if larger is None:
            return False
        key, found = (new_facts.facts, g), new_facts.instance.dominated
        if key not in found:
            found[key] = self._dominates(new_facts, larger, g)
        return found[key]

    def _dominates(self, smaller: NewFacts, larger: NewFacts, g: int) -> bool:
        instance = smaller.instance
        atom = instance.body[g]
        relation = self.catalog.relations[atom.predicate.name]
        if relation.unique or relation.references or larger.fresh.isdisjoint(atom.terms):
            return False
        added = instance.applicable(larger.facts, larger.fresh) & instance.uses[g]
        before = instance.applicable(smaller.facts, smaller.fresh)
        largest_first = reversed([*places(added)])  # what needs most is covered least often
        return all(_is_covered(instance, new, g, before) for new in largest_first)


def _is_covered(instance: Instance, new: int, g: int, before: int) -> bool:
    """Condition 2 of `Dominance`: whether one of some contradictions happens where one that J with g adds does."""
    if (new, g) not in instance.covered:
        instance.covered[new, g] = (0, ~_candidates(instance, new, g))
    happen, asked = instance.covered[new, g]
    if happen & before:
        return True
    added = instance.contradictions[new]
    rest = added.facts & ~(1 << g)
    waiting = [(at, instance.contradictions[at]) for at in places(before & ~asked)]
    waiting.sort(
        key=lambda old: (old[1].facts != rest, old[1].view is not added.view)
    )  # it usually lacks only g
    for at, old in waiting:
        asked |= 1 << at
        if _follows(old, _premises(instance, added, g), instance.occurrences):
            happen |= 1 << at
            break
    instance.covered[new, g] = (happen, asked)
    return bool(happen & before)


def _candidates(instance: Instance, new: int, g: int) -> int:
    """The contradictions without g that one with g may imply, as a bit set."""
    added = instance.contradictions[new]
    given = {li.predicate for li in _premises(instance, added, g) if isinstance(li, Atom)}
    found = instance.applicable(added.facts & ~(1 << g))
    for predicate, needing in instance.needs.items():
        if predicate not in given:
            found &= ~needing
    for at in places(found & instance.conditional):
        old = instance.contradictions[at]
        if not (set(old.conditions) <= set(added.conditions) and old.not_null <= added.not_null):
            found &= ~(1 << at)
    return found


def _premises(instance: Instance, new: Contradiction, g: int) -> tuple[Literal, ...]:
    """What holds where a contradiction with g happens and the fact of g is known."""
    known = instance.body[g]
    return (*new.demanded, known.of(Version.KNOWN))


def _follows(old: Contradiction, premises: Sequence[Literal], own: Mapping[Variable, int]) -> bool:
    mine = (*old.residue, *old.comparisons)
    if frozenset(mine).issubset(premises):
        return True
    fixed: dict[Variable, Term] = {v: v for v in variables_of(mine) if v in own}
    return containment_mapping(mine, premises, fixed) is not None


def _is_plain(new_facts: NewFacts) -> bool:
    """Condition 4 of `Dominance`."""
    return not (
        new_facts.links
        or new_facts.positions
        or new_facts.conditions
        or new_facts.is_vague
        or new_facts.facts >> len(new_facts.instance.body)
        or any(new_facts.instance.chased.obligations)
        or new_facts.instance.comparisons
    )
