"""Tests that others imply: where views group there are many, and some only ask for more than others."""

from __future__ import annotations

from collections.abc import Sequence

from datalog.budget import check
from datalog.containment import containment_mapping
from datalog.model import Atom, Literal, Predicate
from selfmaint.decide.selftest import DependsRules


def without_implied(tests: Sequence[DependsRules], exact: Sequence[bool]) -> tuple[DependsRules, ...]:
    """The tests without those that others imply, in order.

    Where views group, a J has a test for each choice of what known facts say of its groups, and of what its foreign
    keys reference. Many of them only ask for more than others.

    Conditions of soundness:

    1. Each rule of a test maps from a rule of the other one: the whole body, negations as written. Where it has a
       row, the other has one.
    2. A test whose rows prove a "no" is left out only for another such test.

    The decision itself asks them all: groups may have no room for the rows of the one, and for those of the other.
    """
    places = sorted(range(len(tests)), key=lambda i: (_size(tests[i]), i))
    kept: list[int] = []
    for i in places:
        if not any(exact[k] >= exact[i] and _implies(tests[i], tests[k]) for k in kept):
            kept.append(i)
    return tuple(tests[i] for i in sorted(kept))


def _size(test: DependsRules) -> tuple[int, int]:
    """What asks for less comes first."""
    return min(map(len, test.positive)), len(test.negative)


def _implies(test: DependsRules, other: DependsRules) -> bool:
    """Condition 1."""
    return all(any(_maps(mine, test, its, other) for its in other.positive) for mine in test.positive)


def _maps(mine: Sequence[Literal], test: DependsRules, its: Sequence[Literal], other: DependsRules) -> bool:
    check()
    if mine[0].predicate != its[0].predicate or not _predicates(its) <= _predicates(mine):  # type: ignore[union-attr]
        return False
    return containment_mapping((*its, *other.negative), (*mine, *test.negative)) is not None


def _predicates(body: Sequence[Literal]) -> frozenset[Predicate]:
    return frozenset(literal.predicate for literal in body if isinstance(literal, Atom))
