"""The independent parts of a body: what shares no variable is met in every combination, so each part is found alone.

    p(X, Y) :- new(X), r(X), s(Y, Z), t(Z).
    part 1: p(X) :- new(X), r(X).            part 2: p(Y) :- s(Y, Z), t(Z).

`p` has a row if and only if every part has one, and its rows are the product of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from datalog.graphs import components
from datalog.model import Atom, Literal, Rule, Variable, variables_of


def independent_parts(rule: Rule) -> tuple[Rule, ...]:
    """The parts of a rule, each with a subgoal, and with those variables of the head that it binds; in body order.

    Args:
        rule: a safe rule. What has no variable goes with the first part.

    Example:
        >>> from datalog.syntax import parse_rule, show
        >>> for part in independent_parts(parse_rule("p(X, Y, 1) :- r(X), s(Y, Z), X < 3, not (t(Z))")):
        ...     print(show(part))
        p(X) :- r(X), X < 3.
        p(Y) :- s(Y, Z), not t(Z).
    """
    every = [variables_of([literal]) for literal in rule.body]
    edges = [(its[0], other) for its in every for other in its[1:]]
    part_of = {v: i for i, its in enumerate(components(variables_of(rule.body), edges)) for v in its}
    found: dict[int, list[Literal]] = {}
    for literal, its in zip(rule.body, every, strict=True):
        found.setdefault(part_of[its[0]] if its else 0, []).append(literal)
    if len(found) == 1 or not all(any(isinstance(li, Atom) for li in body) for body in found.values()):
        return (rule,)
    return tuple(_part(rule, body) for body in found.values())


def _part(rule: Rule, body: Sequence[Literal]) -> Rule:
    own = set(variables_of(body))
    terms = dict.fromkeys(t for t in rule.head.terms if isinstance(t, Variable) and t in own)
    return replace(rule, head=Atom(rule.head.predicate, tuple(terms)), body=tuple(body))
