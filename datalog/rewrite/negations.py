"""Rewrites of negations: drop those that another implies, and what the literals around them say anyway.

`drop_implied_negations`
Before: `d(X) :- c(X), not p(X), not (p(X), q(X, Y)).`
After:  `d(X) :- c(X), not p(X).`

`without_given`
Before: `d(X) :- p(X, Y), not (p(X, Y), q(Y)).   e(X) :- p(X), not p(X).`
After:  `d(X) :- p(X, Y), not q(Y).`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from datalog.containment import containment_mapping
from datalog.model import Atom, Literal, Negation, Predicate, Rule, Term, Variable, variables_of


def drop_implied_negations(rule: Rule) -> Rule:
    """The rule without a negation whose body can hold only where another negation's body holds."""
    outer = _outer(rule)
    kept: list[Negation] = []
    for negation in dict.fromkeys(literal for literal in rule.body if isinstance(literal, Negation)):
        if any(_implies(other, negation, outer) for other in kept):
            continue
        kept = [other for other in kept if not _implies(negation, other, outer)]
        kept.append(negation)
    return replace(
        rule, body=tuple(li for li in rule.body if not isinstance(li, Negation) or _take(kept, li))
    )


def _take(kept: list[Negation], literal: Negation) -> bool:
    if literal in kept:
        kept.remove(literal)
        return True
    return False


def _outer(rule: Rule) -> frozenset[Variable]:
    positive = [literal for literal in rule.body if not isinstance(literal, Negation)]
    return frozenset(variables_of([rule.head, *positive]))


def _predicates(negation: Negation) -> set[Predicate]:
    return {literal.predicate for literal in negation.body if isinstance(literal, Atom)}


def _implies(stronger: Negation, weaker: Negation, outer: frozenset[Variable]) -> bool:
    """Whether `not stronger` implies `not weaker`: then weaker's body always contains stronger's."""
    if not _predicates(stronger) <= _predicates(weaker):
        return False
    fixed: dict[Variable, Term] = {v: v for v in variables_of(stronger.body) if v in outer}
    return containment_mapping(stronger.body, weaker.body, fixed) is not None


def without_given(rule: Rule) -> Rule | None:
    """The rule whose negations ask nothing that its positive literals say; None if it can have no rows.

    A variable that stands in a positive literal is bound inside negations, so an equal literal there is one that holds.
    """
    body = _unsaid(rule.body, frozenset())
    return None if body is None else rule if body == rule.body else replace(rule, body=body)


def _unsaid(body: Sequence[Literal], given: frozenset[Literal]) -> tuple[Literal, ...] | None:
    """What is left of a body where some literals hold; None if it never holds."""
    here = given.union(literal for literal in body if not isinstance(literal, Negation))
    result: list[Literal] = []
    for literal in body:
        if isinstance(literal, Negation):
            inner = _unsaid(literal.body, here)
            if inner == ():
                return None
            if inner is not None:
                result.append(literal if inner == literal.body else replace(literal, body=inner))
        elif literal not in given:
            result.append(literal)
    return tuple(result)
