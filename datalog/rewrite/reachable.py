"""Drop the rules that a goal does not need.

Before: `v(X) :- r(X).  w(X) :- s(X).`  (goal `v`)
After:  `v(X) :- r(X).`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from datalog.model import Atom, Literal, Negation, Predicate, Program, Rule


def drop_unreachable(program: Program, goals: Iterable[Predicate]) -> Program:
    """The rules of the goals and of everything that they use."""
    by_head: dict[Predicate, list[Rule]] = {}
    for rule in program.rules:
        by_head.setdefault(rule.head.predicate, []).append(rule)
    waiting = list(goals)
    reached: set[Predicate] = set()
    looked_at: set[int] = set()  # literals that many rules share
    while waiting:
        predicate = waiting.pop()
        if predicate not in reached:
            reached.add(predicate)
            for rule in by_head.get(predicate, ()):
                new = [literal for literal in rule.body if id(literal) not in looked_at]
                looked_at.update(map(id, new))
                waiting.extend(predicates_of(new))
    return replace(program, rules=tuple(rule for rule in program.rules if rule.head.predicate in reached))


def predicates_of(body: Iterable[Literal]) -> Iterator[Predicate]:
    """The predicates of a body, inside negations too."""
    for literal in body:
        if isinstance(literal, Atom):
            yield literal.predicate
        elif isinstance(literal, Negation):
            yield from predicates_of(literal.body)
