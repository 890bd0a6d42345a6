"""Put the body of a predicate that one rule defines in place of its atoms, inside negations too.

Before: `d(Z) :- v2(Y, Z), not t(Z).   t(C) :- v1(A, B, C), not s(A).`
After:  `d(Z) :- v2(Y, Z), not (v1(A', B', Z), not s(A')).`

Exact for stored-value semantics (null equals null): an atom's terms are unified with the rule's head by a
substitution where one of the two variables is local to the body, else by a comparison with a constant or a
null test. What neither can say (a head that repeats a variable, matched with two variables of an enclosing
body) stays an atom. Predicates with several rules stay atoms; those without a satisfiable rule are empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Rule,
    Substitution,
    Term,
    Variable,
    apply_atom,
    apply_literal,
    apply_rule,
    apply_term,
    variables_of,
)
from datalog.rewrite.reachable import predicates_of
from datalog.sql.errors import EmissionError
from datalog.sql.normal import UnsatisfiableError, normal_rule


def inline(program: Program, goal: Predicate) -> dict[Predicate, tuple[Rule, ...]]:
    """The rules in normal form of the goal and of the predicates that it is left to use, the goal's last.

    Args:
        program: safe, non-recursive rules.
        goal: a predicate with rules.

    Raises:
        EmissionError: the program is recursive.
    """
    inliner = _Inliner(program)
    inliner.define(goal, ())
    needed = {goal}
    for predicate in reversed(inliner.definitions):
        if predicate in needed:
            needed.update(p for rule in inliner.definitions[predicate] for p in predicates_of(rule.body))
    return {p: rules for p, rules in inliner.definitions.items() if p in needed}


class _Inliner:
    """The definitions found so far: each predicate behind those that it uses."""

    def __init__(self, program: Program) -> None:
        self.definitions: dict[Predicate, tuple[Rule, ...]] = {}
        self._numbers = count(1)
        self._rules: dict[Predicate, list[Rule]] = {}
        for rule in program.rules:
            self._rules.setdefault(rule.head.predicate, []).append(rule)

    def define(self, predicate: Predicate, users: tuple[Predicate, ...]) -> None:
        """Bring the rules of a predicate, and of those that it uses, into normal form."""
        if predicate in users:
            raise EmissionError(f"predicate `{predicate}` is recursive")
        if predicate in self.definitions or predicate not in self._rules:
            return
        for used in dict.fromkeys(p for rule in self._rules[predicate] for p in predicates_of(rule.body)):
            self.define(used, (*users, predicate))
        expanded = (self._expanded(rule) for rule in self._rules[predicate])
        normal = (normal_rule(rule) for rule in expanded if rule is not None)
        self.definitions[predicate] = tuple(dict.fromkeys(rule for rule in normal if rule is not None))

    def _expanded(self, rule: Rule) -> Rule | None:
        rule = self._renamed(rule)
        body = _Body(frozenset())
        try:
            literals = self._expand(rule.body, body)
        except UnsatisfiableError:
            return None
        return replace(rule, head=apply_atom(body.substitution(), rule.head), body=literals)

    def _expand(self, literals: Iterable[Literal], body: _Body) -> tuple[Literal, ...]:
        result: list[Literal] = []
        for literal in literals:
            result.extend(self._unfolded(literal, body) if isinstance(literal, Atom) else (literal,))
        substitution = body.substitution()
        result = [apply_literal(substitution, literal) for literal in result]
        bound = body.frozen | frozenset(variables_of(li for li in result if not isinstance(li, Negation)))
        return tuple(self._negation(li, bound) if isinstance(li, Negation) else li for li in result)

    def _negation(self, negation: Negation, bound: frozenset[Variable]) -> Negation:
        try:
            return replace(negation, body=self._expand(negation.body, _Body(bound)))
        except UnsatisfiableError:
            return replace(negation, body=(NullTest(Constant(None)),))

    def _unfolded(self, atom: Atom, body: _Body) -> tuple[Literal, ...]:
        rules = self.definitions.get(atom.predicate)
        if rules is None or len(rules) > 1:
            return (atom,)
        if not rules:
            raise UnsatisfiableError
        rule = self._renamed(rules[0])
        if rule.head.arity != atom.arity:
            raise EmissionError(f"predicate `{atom.predicate}` has arity {rule.head.arity}, not {atom.arity}")
        conditions = body.unify(rule.head.terms, atom.terms)
        return (atom,) if conditions is None else (*rule.body, *conditions)

    def _renamed(self, rule: Rule) -> Rule:
        """The rule with fresh variables, different ones in each scope."""
        everywhere = [literal for literal in rule.body if not isinstance(literal, Negation)]
        outer = self._fresh(variables_of([rule.head, *everywhere]))
        renamed = apply_rule(outer, rule)
        return replace(renamed, body=self._renamed_scopes(renamed.body, frozenset(outer.values())))

    def _renamed_scopes(self, body: tuple[Literal, ...], bound: frozenset[Term]) -> tuple[Literal, ...]:
        result: list[Literal] = []
        for literal in body:
            if not isinstance(literal, Negation):
                result.append(literal)
                continue
            here = [inner for inner in literal.body if not isinstance(inner, Negation)]
            local = self._fresh(v for v in variables_of(here) if v not in bound)
            inner_body = tuple(apply_literal(local, inner) for inner in literal.body)
            scopes = self._renamed_scopes(inner_body, bound | frozenset(local.values()))
            result.append(replace(literal, body=scopes))
        return tuple(result)

    def _fresh(self, variables: Iterable[Variable]) -> dict[Variable, Term]:
        return {v: Variable(f"{v.name.partition('#')[0]}#{next(self._numbers)}") for v in variables}


@dataclass(slots=True)
class _Body:
    """One scope while atoms are unified in it; `frozen` variables belong to an enclosing scope."""

    frozen: frozenset[Variable]
    _bindings: dict[Variable, Term] = field(default_factory=dict)

    def substitution(self) -> Substitution:
        """What the unifications so far replace."""
        return {variable: self._walk(variable) for variable in self._bindings}

    def unify(self, formals: Iterable[Term], actuals: Iterable[Term]) -> tuple[Literal, ...] | None:
        """Make the terms equal; conditions that remain, or None if conditions cannot say it."""
        before = dict(self._bindings)
        conditions: list[Literal] = []
        for formal, actual in zip(formals, actuals, strict=True):
            left, right = self._walk(formal), self._walk(actual)
            if left == right:
                continue
            free = next((t for t in (left, right) if isinstance(t, Variable) and t not in self.frozen), None)
            if free is not None:
                self._bindings[free] = right if free == left else left
            elif isinstance(left, Constant) and isinstance(right, Constant):
                raise UnsatisfiableError
            elif isinstance(left, Constant) or isinstance(right, Constant):
                conditions.append(_is_constant(left, right))
            else:
                self._bindings = before
                return None
        return tuple(conditions)

    def _walk(self, term: Term) -> Term:
        bindings: Mapping[Variable, Term] = self._bindings
        while (after := apply_term(bindings, term)) != term:
            term = after
        return term


def _is_constant(left: Term, right: Term) -> Literal:
    value, variable = (left, right) if isinstance(left, Constant) else (right, left)
    if isinstance(value, Constant) and value.value is None:
        return NullTest(variable, negated=False)
    return Comparison("=", variable, value)
