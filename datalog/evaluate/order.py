"""The order in which a rule's body is evaluated: bind as early as possible, filter as soon as bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from datalog.model import (
    Atom,
    Comparison,
    Literal,
    Negation,
    NullTest,
    Operator,
    Row,
    Value,
    Variable,
    terms_of,
    value_kind,
    variables_of,
)

COMPARISONS: Mapping[Operator, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right or (is_nan(left) and is_nan(right)),
    "!=": lambda left, right: left != right and not (is_nan(left) and is_nan(right)),
    "<": lambda left, right: not is_nan(left) and (is_nan(right) or left < right),
    "<=": lambda left, right: is_nan(right) or (not is_nan(left) and left <= right),
    ">": lambda left, right: not is_nan(right) and (is_nan(left) or left > right),
    ">=": lambda left, right: is_nan(left) or (not is_nan(right) and left >= right),
}
"""What each operator is between values of one family, none of them null: NaN is itself, and above all numbers."""


def is_nan(value: Value) -> bool:
    """Whether a value is no number, though of a number's type."""
    return isinstance(value, float) and math.isnan(value)


def one_nan(value: Value) -> Value:
    """A value; of NaN, which Python's sets and `==` find again only as the same object, always one object.

    >>> one_nan(float("nan")) is one_nan(float("nan"))
    True
    """
    return math.nan if is_nan(value) else value


def with_one_nan(rows: Iterable[Row]) -> frozenset[Row]:
    """Rows in which NaN is itself, wherever they come from."""
    return frozenset(tuple(map(one_nan, row)) for row in rows)


def nan_last(value: Any) -> tuple[bool, Any]:
    """What values are sorted by that are not null."""
    return is_nan(value), value


def binding_order(body: Sequence[Literal], bound: frozenset[Variable]) -> tuple[Literal, ...]:
    """The body's literals reordered so that filters stand right behind what binds them.

    Raises:
        ValueError: a comparison or negation can never be evaluated (an unsafe rule).
    """
    return tuple(body[place] for place in _places(tuple(body), bound))


def independent_parts(body: Sequence[Literal], bound: frozenset[Variable]) -> tuple[tuple[Literal, ...], ...]:
    """The body's literals in parts that have no variables in common but those that are bound before.

    What is no part's own variable stands inside one negation alone.
    """
    return tuple(tuple(body[place] for place in part) for part in _parts(tuple(body), bound))


@lru_cache(maxsize=10_000)
def _parts(body: tuple[Literal, ...], bound: frozenset[Variable]) -> tuple[tuple[int, ...], ...]:
    shared = _shared_variables(body) - bound
    parts: list[tuple[frozenset[Variable], tuple[int, ...]]] = []
    for place, literal in enumerate(body):
        variables = shared.intersection(variables_of([literal]))
        joined = [part for part in parts if not variables.isdisjoint(part[0])]
        parts = [part for part in parts if part not in joined]
        places = sorted((place, *(other for _, others in joined for other in others)))
        parts.append((variables.union(*(its for its, _ in joined)), tuple(places)))
    return tuple(sorted(places for _, places in parts))


@lru_cache(maxsize=10_000)
def _places(body: tuple[Literal, ...], bound: frozenset[Variable]) -> tuple[int, ...]:
    """The order as places in the body: rules are evaluated again and again, on other facts."""
    waiting = list(enumerate(body))
    shared = _shared_variables(body)
    known = set(bound)
    order: list[int] = []
    while waiting:
        literal = _next([its for _, its in waiting], known, shared)
        at = next(i for i, (_, its) in enumerate(waiting) if its is literal)
        order.append(waiting.pop(at)[0])
        if not isinstance(literal, Negation):
            known.update(variables_of([literal]))
    return tuple(order)


def _shared_variables(body: Sequence[Literal]) -> frozenset[Variable]:
    """Variables that something outside a negation can bind."""
    return frozenset(variables_of([literal for literal in body if isinstance(literal, Atom | Comparison)]))


def _next(waiting: Sequence[Literal], known: set[Variable], shared: frozenset[Variable]) -> Literal:
    for literal in waiting:
        if is_ready(literal, known, shared):
            return literal
    atoms = [literal for literal in waiting if isinstance(literal, Atom)]
    if not atoms:
        raise ValueError("unsafe rule: a filter's variables are never bound")
    return max(atoms, key=lambda atom: sum(not _is_open(t, known) for t in atom.terms))


def _is_open(term: object, known: Container[Variable]) -> bool:
    return isinstance(term, Variable) and term not in known


def is_ready(literal: Literal, known: Container[Variable], shared: frozenset[Variable]) -> bool:
    """Whether a literal is a filter all of whose variables are known; `shared` are those that atoms can bind."""
    match literal:
        case Atom():
            return False
        case Comparison(operator="="):
            return not (_is_open(literal.left, known) and _is_open(literal.right, known))
        case Comparison() | NullTest():
            return not any(_is_open(term, known) for term in terms_of(literal))
        case Negation():
            return all(v in known or v not in shared for v in variables_of([literal]))


def unbound(equality: Comparison, known: Container[Variable]) -> Variable | None:
    """The variable that an equality binds, if it does."""
    return next(
        (t for t in (equality.left, equality.right) if isinstance(t, Variable) and t not in known), None
    )


def compares(sign: Operator, left: Value, right: Value) -> bool:
    """Whether a comparison holds; not if a side is null, and values of two families are just different."""
    if left is None or right is None:
        return False
    if value_kind(left) != value_kind(right):
        return sign == "!="
    return COMPARISONS[sign](left, right)
