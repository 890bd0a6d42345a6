"""The normal form of a rule: each scope has variables of its own, and means what it meant."""

from __future__ import annotations

from datalog.evaluate import evaluate
from datalog.model import Atom, Negation, Predicate, Program, Rule, Variable, variables_of
from datalog.rewrite.normal_form import normal_rule

P, Q, R = (Predicate(name) for name in "pqr")


def test_a_new_name_is_none_that_a_negation_has() -> None:
    """What a rewrite has named may stand in a negation, as a variable of its own."""
    c, x, own = Variable("C"), Variable("X"), Variable("X#2")
    rule = Rule(Atom(P, (c,)), (Atom(Q, (c, x)), Negation((Atom(R, (c, own)),))))
    found = normal_rule(rule)
    assert found is not None
    outside, (inside,) = found.body[0], (li for li in found.body if isinstance(li, Negation))
    assert set(variables_of([outside])) & set(variables_of([inside])) == set(variables_of([found.head]))
    facts = {Q: frozenset({(1, 5), (2, 5)}), R: frozenset({(1, 6)})}
    assert evaluate(Program((found,)), P, facts) == evaluate(Program((rule,)), P, facts) == {(2,)}
