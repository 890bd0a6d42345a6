"""Replace variables that must equal a constant or another variable.

Before: `v(X, Y) :- r(X, Y), X = 'a'.`
After:  `v('a', Y) :- r('a', Y).`

A comparison is false on null, so the variable that stays is guarded: `X = Y` leaves `Y is not null`.
Sound for positive literals only; equalities inside a negation stay.
"""

from __future__ import annotations

from dataclasses import replace

from datalog.model import Comparison, Constant, NullTest, Rule, Term, Variable, apply_rule


def propagate_equalities(rule: Rule) -> Rule:
    """The rule without equalities that a substitution expresses. Idempotent."""
    while (found := _first_equality(rule)) is not None:
        comparison, variable, term = found
        body = tuple(literal for literal in rule.body if literal is not comparison)
        if isinstance(term, Variable):
            body = (*body, NullTest(term))
        rule = apply_rule({variable: term}, replace(rule, body=tuple(dict.fromkeys(body))))
        rule = replace(rule, body=tuple(dict.fromkeys(rule.body)))
    return rule


def _first_equality(rule: Rule) -> tuple[Comparison, Variable, Term] | None:
    for literal in rule.body:
        if isinstance(literal, Comparison) and literal.operator == "=" and literal.left != literal.right:
            for variable, term in ((literal.left, literal.right), (literal.right, literal.left)):
                if isinstance(variable, Variable) and not (isinstance(term, Constant) and term.value is None):
                    return literal, variable, term
    return None
