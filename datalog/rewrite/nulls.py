"""Drop the rules that ask for null where none is stored.

Before: `bad(X, Y) :- r(X, Y), not (X is not null, Y is not null).`  (no column of `r` holds null)
After:  nothing.

Condition of soundness: a variable that an atom of the body binds in a column without null is not null.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from datalog.model import Atom, Literal, Negation, NullTest, Predicate, Program, Rule, Term


def drop_null_tests(program: Program, never_null: Mapping[Predicate, Collection[int]]) -> Program:
    """The rules but for those that no row satisfies, given each predicate's columns without null (0-based)."""
    kept = tuple(rule for rule in program.rules if not _asks_for_null(rule, never_null))
    return replace(program, rules=kept)


def _asks_for_null(rule: Rule, never_null: Mapping[Predicate, Collection[int]]) -> bool:
    present: set[Term] = {
        literal.terms[i]
        for literal in rule.body
        if isinstance(literal, Atom)
        for i in never_null.get(literal.predicate, ())
    }
    return any(_fails(literal, present) for literal in rule.body)


def _fails(literal: Literal, present: Collection[Term]) -> bool:
    match literal:
        case NullTest(term=term, negated=False):
            return term in present
        case Negation(body=body):
            return all(isinstance(li, NullTest) and li.negated and li.term in present for li in body)
        case _:
            return False
