"""Minimisation: the smallest equivalent conjunctive query (its core)."""

from __future__ import annotations

from dataclasses import replace

from datalog.containment.mapping import containment_mapping
from datalog.model import Atom, Rule, Term, Variable, apply_literal, variables_of


def minimise(rule: Rule) -> Rule:
    """The rule without redundant atoms.

    Before: `q(X) :- e(X, Y), e(X, Z).`  After: `q(X) :- e(X, Z).`

    >>> from datalog.model import Predicate
    >>> x, y, z = Variable("X"), Variable("Y"), Variable("Z")
    >>> e = Predicate("e")
    >>> len(minimise(Rule(Atom(Predicate("q"), (x,)), (Atom(e, (x, y)), Atom(e, (x, z))))).body)
    1
    """
    fixed: dict[Variable, Term] = {v: v for v in variables_of([rule.head])}
    body = list(dict.fromkeys(rule.body))
    for literal in tuple(body):
        if not isinstance(literal, Atom):
            continue
        rest = [other for other in body if other is not literal]
        found = containment_mapping(body, rest, fixed)
        if found is not None:
            images = {apply_literal(found, other) for other in body}
            body = [other for other in rest if other in images]  # filters that nothing binds any more go too
    return replace(rule, body=tuple(body))
