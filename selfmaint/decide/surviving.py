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
   only then does it matter that this may be the value of another variable, and that is asked on data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count, groupby

from datalog.budget import check
from datalog.model import Comparison, Constant, Literal, NullTest, variables_of
from selfmaint.decide.arrangements import arranged
from selfmaint.decide.group_evidence import demands, with_groups
from selfmaint.decide.instances import Instance, instances
from selfmaint.decide.new_facts import NewFacts
from selfmaint.decide.positions import resolved
from selfmaint.decide.supports import supports
from selfmaint.warehouse.catalog import Catalog, View


def surviving(catalog: Catalog, view: View) -> tuple[NewFacts, ...]:
    """Every J of every instance that the rules alone do not rule out, smallest first within an instance.

    None for a view whose rows are always the same: no new facts give it a row.
    """
    return tuple(placed(catalog, candidates(catalog, view)))


def candidates(catalog: Catalog, view: View) -> Iterator[NewFacts]:
    """Every J of every instance, with each way of satisfying its foreign keys: not yet in groups or in an order."""
    if view.unchanging:
        return
    for instance in instances(catalog, view):
        for facts in sorted(_alive(instance), key=lambda m: (m.bit_count(), m)):
            if instance.needed & ~facts == 0:
                for way in supports(instance, facts):
                    made = _settled(
                        catalog, NewFacts(instance, way.facts, way.links, way.conditions, is_cut=way.is_cut)
                    )
                    if made is not None:
                        yield made


def placed(catalog: Catalog, found: Iterable[NewFacts]) -> Iterator[NewFacts]:
    """The candidates with each choice of the groups that they are in, and each arrangement, numbered.

    Args:
        catalog: the warehouse's schema.
        found: candidates, those of one instance together.
    """
    numbers = count()
    for _, together in groupby(found, key=lambda candidate: id(candidate.instance)):
        asked = None
        for candidate in together:
            asked = demands(catalog, candidate.instance) if asked is None else asked
            for grouped in with_groups(catalog, candidate, asked):
                yield from _alive_arrangements(catalog, grouped, numbers)


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
    single = sum(mask for mask in dead if mask.bit_count() == 1)
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
            if term in fresh and relation.types[i].is_finite:
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
    """Condition 2: whether a companion instead of each link that alone binds a variable is as good.

    Args:
        catalog: the warehouse's schema.
        candidate: a surviving set.
        impossible: relations that have no new facts in the situation.
    """
    if (
        candidate.instance.compares
        or _is_rigid(catalog, candidate)
        or candidate.instance.chased.opaque
        or candidate.instance.contradicts_companions
    ):
        return False
    return any(link.predicate.name not in impossible for link in candidate.free_links)
