"""Substitutions: replacing variables by terms, and looking at a literal's variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar, assert_never

from datalog.copies import replace
from datalog.model.literals import Atom, Comparison, Literal, Negation, NullTest
from datalog.model.rules import Rule
from datalog.model.terms import Term, Variable

Substitution: TypeAlias = Mapping[Variable, Term]

LiteralT = TypeVar("LiteralT", Atom, Comparison, NullTest, Negation)


def apply_term(substitution: Substitution, term: Term) -> Term:
    """The term under the substitution."""
    return substitution.get(term, term) if isinstance(term, Variable) else term


def apply_atom(substitution: Substitution, atom: Atom) -> Atom:
    """The atom under the substitution."""
    if substitution.keys().isdisjoint(atom.terms):  # constants are no keys
        return atom
    return Atom(atom.predicate, tuple(apply_term(substitution, t) for t in atom.terms), atom.span)


def apply_comparison(substitution: Substitution, comparison: Comparison) -> Comparison:
    """The comparison under the substitution."""
    if substitution.keys().isdisjoint((comparison.left, comparison.right)):
        return comparison
    left, right = apply_term(substitution, comparison.left), apply_term(substitution, comparison.right)
    return Comparison(comparison.operator, left, right, comparison.span)


def apply_literal(substitution: Substitution, literal: Literal) -> Literal:
    """The literal under the substitution, inside negations too."""
    if not substitution:
        return literal
    match literal:
        case Atom():
            return apply_atom(substitution, literal)
        case Comparison():
            return apply_comparison(substitution, literal)
        case NullTest():
            return NullTest(apply_term(substitution, literal.term), literal.negated, literal.span)
        case Negation():
            return replace(literal, body=tuple(apply_literal(substitution, inner) for inner in literal.body))
        case _:
            assert_never(literal)


def apply_rule(substitution: Substitution, rule: Rule) -> Rule:
    """The rule under the substitution."""
    return replace(
        rule,
        head=apply_atom(substitution, rule.head),
        body=tuple(apply_literal(substitution, literal) for literal in rule.body),
    )


def terms_of(literal: Literal) -> Iterator[Term]:
    """Every term of a literal, in order, inside negations too."""
    match literal:
        case Atom():
            yield from literal.terms
        case Comparison():
            yield literal.left
            yield literal.right
        case NullTest():
            yield literal.term
        case Negation():
            for inner in literal.body:
                yield from terms_of(inner)
        case _:
            assert_never(literal)


def variables_of(literals: Iterable[Literal]) -> tuple[Variable, ...]:
    """The distinct variables of some literals, in order of first appearance."""
    found: dict[Variable, None] = {}
    _add_variables(literals, found)
    return tuple(found)


def _add_variables(literals: Iterable[Literal], found: dict[Variable, None]) -> None:
    """Adds what is not there yet: plain loops, for programs have hundreds of thousands of literals."""
    for literal in literals:
        if isinstance(literal, Negation):
            _add_variables(literal.body, found)
        else:
            for term in literal.terms if isinstance(literal, Atom) else terms_of(literal):
                if isinstance(term, Variable):
                    found[term] = None
