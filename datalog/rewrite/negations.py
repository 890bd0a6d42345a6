"""Rewrites of negations: drop those that another implies, and restrict them to the bindings that matter.

`drop_implied_negations`
Before: `d(X) :- c(X), not p(X), not (p(X), q(X, Y)).`
After:  `d(X) :- c(X), not p(X).`

`restrict_negations` (the magic-set idea: a semi-join with the candidates)
Before: `d(X) :- c(X, Z), not (p(X, Y), q(Y)).`
After:  `d(X) :- c(X, Z), not (c(X, Z'), p(X, Y), q(Y)).`
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


def restrict_negations(rule: Rule, candidate: Atom) -> Rule:
    """The rule with `candidate` repeated inside each negation that joins, its other variables existential.

    Args:
        rule: a rule whose body contains `candidate`.
        candidate: a positive atom of the rule, over distinct variables.

    The meaning is the same: the shared variables are bound to a row of the candidate outside already.
    """
    taken = {v.name for v in variables_of([rule.head, *rule.body])}
    body = tuple(
        replace(literal, body=_restricted(literal.body, candidate, taken))
        if isinstance(literal, Negation)
        else literal
        for literal in rule.body
    )
    return replace(rule, body=body)


def _restricted(body: Sequence[Literal], candidate: Atom, taken: set[str]) -> tuple[Literal, ...]:
    used = frozenset(variables_of(body))
    if not any(isinstance(literal, Atom) for literal in body) or not used.intersection(candidate.terms):
        return tuple(body)
    terms = tuple(
        Variable(_unused(term.name, taken)) if isinstance(term, Variable) and term not in used else term
        for term in candidate.terms
    )
    return (replace(candidate, terms=terms), *body)


def _unused(name: str, taken: set[str]) -> str:
    name = f"{name}_any"
    while name in taken:
        name += "_"
    return name
