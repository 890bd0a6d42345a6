"""Drop rules whose answers another rule of the same predicate has anyway.

Before: `p(X) :- r(X, Y), s(Y).  p(X) :- r(X, Y).`
After:  `p(X) :- r(X, Y).`
"""

from __future__ import annotations

from dataclasses import replace

from datalog.containment import contained_in
from datalog.model import Program, Rule


def drop_subsumed(program: Program) -> Program:
    """The program without rules that are contained in a sibling (of two equivalent ones the first stays)."""
    kept: list[Rule] = []
    for rule in program.rules:
        siblings = [r for r in kept if r.head.predicate == rule.head.predicate]
        if any(contained_in(rule, sibling) for sibling in siblings):
            continue
        kept = [r for r in kept if r not in siblings or not contained_in(r, rule)]
        kept.append(rule)
    return replace(program, rules=tuple(kept))
