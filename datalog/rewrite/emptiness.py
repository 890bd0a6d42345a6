"""Drop what can have no rows, given that some predicates are empty.

Before: `a(X) :- r@known(X), not r@deleted(X).  a(X) :- r@inserted(X).`  (with `r@inserted` and `r@deleted` empty)
After:  `a(X) :- r@known(X).`
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from datalog.model import Atom, Literal, Negation, Predicate, Program, Rule


def drop_empty(program: Program, empty: Iterable[Predicate]) -> Program:
    """The program on databases in which the predicates of `empty` have no rows."""
    gone = set(empty)
    rules = list(program.rules)
    while True:
        kept = [new for rule in rules if (new := _without(rule, gone)) is not None]
        newly = {r.head.predicate for r in rules} - {r.head.predicate for r in kept}
        rules = kept
        if not newly - gone:
            return replace(program, rules=tuple(rules))
        gone |= newly


def _without(rule: Rule, empty: set[Predicate]) -> Rule | None:
    body = _body(rule.body, empty)
    return None if body is None else replace(rule, body=body)


def _body(body: Iterable[Literal], empty: set[Predicate]) -> tuple[Literal, ...] | None:
    """The body without what is empty; None if it cannot be satisfied."""
    kept: list[Literal] = []
    for literal in body:
        if isinstance(literal, Atom) and literal.predicate in empty:
            return None
        if isinstance(literal, Negation):
            inner = _body(literal.body, empty)
            if inner is None:
                continue
            if not inner:
                return None
            kept.append(replace(literal, body=inner))
        else:
            kept.append(literal)
    return tuple(kept)
