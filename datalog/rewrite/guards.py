"""Make SQL's join semantics explicit: a variable that joins never matches null.

Before: `v(X, Y) :- r(X, Y), s(Y).`
After:  `v(X, Y) :- r(X, Y), s(Y), Y is not null.`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from datalog.copies import replace
from datalog.model import Atom, Literal, NullTest, Rule, Variable


def guarded_variables(body: Iterable[Literal]) -> tuple[Variable, ...]:
    """The variables that occur at two or more places of the positive atoms, in order of appearance."""
    counts = Counter(
        t for literal in body if isinstance(literal, Atom) for t in literal.terms if isinstance(t, Variable)
    )
    return tuple(variable for variable, times in counts.items() if times > 1)


def guard_joins(rule: Rule) -> Rule:
    """The rule with an `is not null` guard for every variable that joins. Idempotent."""
    guards = (NullTest(variable) for variable in guarded_variables(rule.body))
    return replace(rule, body=(*rule.body, *(g for g in guards if g not in rule.body)))
