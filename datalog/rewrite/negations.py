"""Rewrites of negations: drop those that another implies, and what the literals around them say anyway.

`drop_implied_negations`
Before: `d(X) :- c(X), not p(X), not (p(X), q(X, Y)).`
After:  `d(X) :- c(X), not p(X).`

`without_given`
Before: `d(X) :- p(X, Y), not (p(X, Y), q(Y)).   e(X) :- p(X, Y), not p(X, Z).`
After:  `d(X) :- p(X, Y), not q(Y).`
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from datalog.containment import containment_mapping
from datalog.copies import replace
from datalog.model import Atom, Literal, Negation, Predicate, Rule, Term, Variable, variables_of

_KEPT = 1 << 16
"""How many answers about negations are kept."""


def drop_implied_negations(rule: Rule) -> Rule:
    """The rule without a negation whose body can hold only where another negation's body holds."""
    outer = _outer(rule)
    kept: list[_Asked] = []
    for negation in dict.fromkeys(literal for literal in rule.body if isinstance(literal, Negation)):
        asked = _asked(negation, outer)
        if any(_implies(other, asked) for other in kept):
            continue
        kept = [other for other in kept if not _implies(asked, other)]
        kept.append(asked)
    left = [negation for negation, _ in kept]
    return replace(
        rule, body=tuple(li for li in rule.body if not isinstance(li, Negation) or _take(left, li))
    )


def _take(kept: list[Negation], literal: Negation) -> bool:
    if literal in kept:
        kept.remove(literal)
        return True
    return False


def _outer(rule: Rule) -> frozenset[Variable]:
    positive = [literal for literal in rule.body if not isinstance(literal, Negation)]
    return frozenset(variables_of([rule.head, *positive]))


_Asked = tuple[Negation, frozenset[Variable]]
"""A negation, and which of its variables the rule around it binds."""


def _asked(negation: Negation, outer: frozenset[Variable]) -> _Asked:
    return negation, outer.intersection(_variables(negation))


def _implies(stronger: _Asked, weaker: _Asked) -> bool:
    """Whether `not stronger` implies `not weaker`: then weaker's body always contains stronger's."""
    if not _predicates(stronger[0]) <= _predicates(weaker[0]):
        return False
    return _maps(stronger[0], weaker[0], stronger[1])


# The rules of one test say much the same: the same few questions are asked for each of thousands of rules.


@lru_cache(_KEPT)
def _variables(negation: Negation) -> tuple[Variable, ...]:
    return variables_of(negation.body)


@lru_cache(_KEPT)
def _predicates(negation: Negation) -> frozenset[Predicate]:
    return frozenset(literal.predicate for literal in negation.body if isinstance(literal, Atom))


@lru_cache(_KEPT)
def _maps(stronger: Negation, weaker: Negation, bound: frozenset[Variable]) -> bool:
    fixed: dict[Variable, Term] = {v: v for v in bound}
    return containment_mapping(stronger.body, weaker.body, fixed) is not None


def without_given(rule: Rule) -> Rule | None:
    """The rule whose negations ask nothing that its positive literals say; None if these say what one denies.

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
            if inner is not None and _follows(literal, here):
                return None
            if inner is not None:
                result.append(literal if inner == literal.body else replace(literal, body=inner))
        elif literal not in given:
            result.append(literal)
    return tuple(result)


def _follows(denied: Negation, given: frozenset[Literal]) -> bool:
    """Whether what is denied holds wherever some literals do."""
    if not _predicates(denied) <= {literal.predicate for literal in given if isinstance(literal, Atom)}:
        return False
    fixed: dict[Variable, Term] = {v: v for v in variables_of(given)}
    return containment_mapping(denied.body, [*given], fixed) is not None
