"""The normal form of a rule whose body becomes one query: each scope with variables of its own, no equality left.

Before: `p(X, Y) :- r(X), Y = 3, X = Z, s(Z), not (Y = 4, t(X)), not (X is null).`
After:  `p(X, 3) :- r(X), s(X), X is not null.`

Sound for stored-value semantics: a comparison is false on null, so `X = Y` becomes one variable and a guard;
a constant replaces a variable only where no atom binds that variable, so that the query compares a column with it.
What follows from comparisons together, and from the types of columns, is simplified before (`comparisons.py`); what is
equal there is substituted into atoms too, and inside negations nothing is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from datalog.copies import replace
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    Rule,
    Term,
    Variable,
    apply_atom,
    apply_literal,
    apply_rule,
    variables_of,
)
from datalog.order import constants_compare


class UnsatisfiableError(Exception):
    """A body that no binding satisfies."""


def normal_rule(rule: Rule) -> Rule | None:
    """The rule in normal form, with variables of its own in each scope; None if it derives nothing."""
    rule = _apart(rule)
    substitution: dict[Variable, Term] = {}
    try:
        body = _body(rule.body, frozenset(), substitution)
    except UnsatisfiableError:
        return None
    return replace(rule, head=apply_atom(substitution, rule.head), body=body)


def _apart(rule: Rule) -> Rule:
    """The rule with variables of its own in each scope."""
    numbers = count(1)
    taken = frozenset(variables_of([rule.head, *rule.body]))

    def fresh(variables: Iterable[Variable]) -> dict[Variable, Term]:
        """New variables, and none that already stands in a scope that is not renamed yet."""
        return {
            v: next(w for n in numbers if (w := Variable(f"{v.name}#{n}")) not in taken) for v in variables
        }

    def scopes(body: Iterable[Literal], bound: frozenset[Term]) -> Iterator[Literal]:
        for literal in body:
            if isinstance(literal, Negation):
                here = variables_of(li for li in literal.body if not isinstance(li, Negation))
                local = fresh(v for v in here if v not in bound)
                inner = (apply_literal(local, li) for li in literal.body)
                yield replace(literal, body=tuple(scopes(inner, bound | frozenset(local.values()))))
            else:
                yield literal

    outer = fresh(variables_of([rule.head, *(li for li in rule.body if not isinstance(li, Negation))]))
    renamed = apply_rule(outer, rule)
    return replace(renamed, body=tuple(scopes(renamed.body, frozenset(outer.values()))))


def has_atom(body: Iterable[Literal]) -> bool:
    """Whether a positive subgoal is in the body itself."""
    return any(isinstance(literal, Atom) for literal in body)


def has_deep_atom(body: Iterable[Literal]) -> bool:
    """Whether an atom is in the body or in a negation in it."""
    return any(isinstance(li, Atom) or (isinstance(li, Negation) and has_deep_atom(li.body)) for li in body)


def _body(
    body: tuple[Literal, ...], frozen: frozenset[Variable], substitution: dict[Variable, Term]
) -> tuple[Literal, ...]:
    """The body in normal form; `frozen` variables belong to an enclosing body."""
    body = _folded(body)
    while (found := _equality(body, frozen)) is not None:
        comparison, variable, term = found
        rest = [literal for literal in body if literal != comparison]
        if isinstance(term, Variable):
            rest.append(NullTest(term))
        step: dict[Variable, Term] = {variable: term}
        for old, new in substitution.items():
            substitution[old] = term if new == variable else new
        substitution[variable] = term
        body = _folded(apply_literal(step, literal) for literal in rest)
    return _negations(body, frozen)


def _negations(body: tuple[Literal, ...], frozen: frozenset[Variable]) -> tuple[Literal, ...]:
    bound = frozen | frozenset(variables_of(li for li in body if not isinstance(li, Negation)))
    result: list[Literal] = []
    for literal in body:
        if not isinstance(literal, Negation):
            result.append(literal)
            continue
        try:
            inner = _body(literal.body, bound, {})
        except UnsatisfiableError:
            continue
        match inner:
            case ():
                raise UnsatisfiableError
            case (NullTest() as test,):
                result.append(replace(test, negated=not test.negated))
            case (Negation(positive),) if not has_deep_atom(positive):
                result.extend(positive)
            case _:
                result.append(replace(literal, body=inner))
    return _without_implied_guards(dict.fromkeys(result))


def _without_implied_guards(body: Iterable[Literal]) -> tuple[Literal, ...]:
    body = tuple(body)
    compared = {
        t for literal in body if isinstance(literal, Comparison) for t in (literal.left, literal.right)
    }
    return tuple(li for li in body if not (isinstance(li, NullTest) and li.negated and li.term in compared))


def _equality(
    body: tuple[Literal, ...], frozen: frozenset[Variable]
) -> tuple[Comparison, Variable, Term] | None:
    """An equality that a substitution can express, what to replace and by what."""
    stored = frozenset(variables_of(literal for literal in body if isinstance(literal, Atom)))
    for literal in body:
        if not isinstance(literal, Comparison) or literal.operator != "=":
            continue
        for variable, term in ((literal.right, literal.left), (literal.left, literal.right)):
            if not isinstance(variable, Variable) or variable in frozen:
                continue
            if isinstance(term, Variable) or variable not in stored:
                return literal, variable, term
    return None


def _folded(body: Iterable[Literal]) -> tuple[Literal, ...]:
    """The body without literals whose truth is known."""
    result: list[Literal] = []
    for literal in dict.fromkeys(body):
        truth = _truth(literal)
        if truth is False:
            raise UnsatisfiableError
        if truth is None:
            result.append(_reflexive(literal))
    return tuple(dict.fromkeys(result))


def _truth(literal: Literal) -> bool | None:
    match literal:
        case Comparison(_, Constant(None), _) | Comparison(_, _, Constant(None)):
            return False
        case Comparison(operator, Constant() as left, Constant() as right):
            return constants_compare(operator, left, right)
        case Comparison("!=" | "<" | ">", left_term, right_term) if left_term == right_term:
            return False
        case NullTest(Constant(value), negated):
            return (value is None) != negated
        case _:
            return None


def _reflexive(literal: Literal) -> Literal:
    """`X = X`, `X <= X` and `X >= X` say that X is not null."""
    if isinstance(literal, Comparison) and literal.left == literal.right:
        return NullTest(literal.left)
    return literal
