"""Bring nested negations into a shape that Spark's subqueries allow. Meaning stays.

`distribute`: no disjunction that holds a subquery inside a subquery (Spark 4.3 fails on one that also has an
outer column: INTERNAL_ERROR_ATTRIBUTE_NOT_FOUND).
Before: `not (r(X), not (X = Y, not s(X)))`
After:  `not (r(X), not X = Y), not (r(X), s(X))`

`localise`: a correlated column is one of the query directly outside; Spark finds none further out.
Before: `p(X) :- r(X, Z), not (s(Y), not t(X, Y)).`
After:  `p(X) :- r(X, Z), not (s(Y), r(X, Z'), not t(X, Y)).`
Sound because the atom repeated holds outside already, with the same `X`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from datalog.copies import replace
from datalog.model import Atom, Literal, Negation, Term, Variable, variables_of
from datalog.rewrite.normal_form import has_atom, has_deep_atom


def spark_shaped(body: tuple[Literal, ...]) -> tuple[Literal, ...]:
    """The body of a rule, in normal form, with its negations distributed and localised."""
    numbers = count(1)
    return _localise(_distribute_all(body), numbers)


def _distribute_all(body: Iterable[Literal]) -> tuple[Literal, ...]:
    result: list[Literal] = []
    for literal in body:
        result.extend(_distribute(literal) if isinstance(literal, Negation) else (literal,))
    return tuple(dict.fromkeys(result))


def _distribute(negation: Negation) -> Iterator[Negation]:
    """Negations that hold together where this one holds."""
    body = _distribute_all(negation.body)
    negation = replace(negation, body=body)
    choice = next((li for li in body if _is_choice(li)), None) if has_atom(body) else None
    if not isinstance(choice, Negation):
        yield negation
        return
    rest = tuple(literal for literal in body if literal is not choice)
    plain = tuple(literal for literal in choice.body if not has_deep_atom((literal,)))
    if plain:
        yield from _distribute(replace(negation, body=(*rest, replace(choice, body=plain))))
    for literal in choice.body:
        if isinstance(literal, Negation) and has_deep_atom(literal.body):
            yield from _distribute(replace(negation, body=tuple(dict.fromkeys((*rest, *literal.body)))))


def _is_choice(literal: Literal) -> bool:
    """A negation without atoms of its own around negations with atoms: a disjunction with a subquery."""
    return (
        isinstance(literal, Negation)
        and len(literal.body) > 1  # of one alternative it is EXISTS
        and not has_atom(literal.body)
        and has_deep_atom(literal.body)
    )


def _localise(body: tuple[Literal, ...], numbers: Iterator[int]) -> tuple[Literal, ...]:
    atoms = [literal for literal in body if isinstance(literal, Atom)]
    return tuple(_localised(li, atoms, numbers) if isinstance(li, Negation) else li for li in body)


def _localised(negation: Negation, outer: Sequence[Atom], numbers: Iterator[int]) -> Negation:
    if not has_atom(negation.body):
        inner = (_localised(li, outer, numbers) if isinstance(li, Negation) else li for li in negation.body)
        return replace(negation, body=tuple(inner))
    own = set(variables_of(literal for literal in negation.body if isinstance(literal, Atom)))
    bound = set(variables_of(outer))
    needed = [v for v in variables_of(_subqueries(negation.body)) if v in bound and v not in own]
    copies = _copies(needed, outer, own, numbers)
    return replace(negation, body=_localise((*negation.body, *copies), numbers))


def _subqueries(body: Iterable[Literal]) -> Iterator[Negation]:
    """The negations that become subqueries of this body."""
    for literal in body:
        if isinstance(literal, Negation):
            if has_atom(literal.body):
                yield literal
            else:
                yield from _subqueries(literal.body)


def _copies(
    needed: Sequence[Variable], outer: Sequence[Atom], own: set[Variable], numbers: Iterator[int]
) -> tuple[Atom, ...]:
    """Few atoms of the enclosing body that bind the variables; the terms that join nothing are made fresh."""
    missing = list(dict.fromkeys(needed))
    chosen: list[Atom] = []
    while missing:
        best = max(outer, key=lambda a: (len(set(missing) & set(a.terms)), len(own & set(a.terms))))
        chosen.append(best)
        missing = [v for v in missing if v not in best.terms]
    shared = {t for i, a in enumerate(chosen) for b in chosen[:i] for t in set(a.terms) & set(b.terms)}
    keep: set[Term] = {*needed, *own, *shared}
    return tuple(replace(a, terms=tuple(_kept(term, keep, numbers) for term in a.terms)) for a in chosen)


def _kept(term: Term, keep: set[Term], numbers: Iterator[int]) -> Term:
    if not isinstance(term, Variable) or term in keep:
        return term
    return Variable(f"{term.name}'{next(numbers)}")
