"""Where a free variable lies in the order of the values that it is compared with.

A fresh value differs from everything, but in an order it must lie somewhere. Its *position* is relative to a
landmark: a constant of the rules, or a value of the data that a variable stands for.

- `At`: it is the landmark's value, and no longer fresh.
- `Above`: fresh, just above the landmark: no value at hand lies between.
- `Below`: fresh, below every value at hand.

Several variables just above one landmark, or below all, are ordered by `rank`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, assert_never

from msgspec import Struct

from datalog.model import (
    MIRRORED,
    Comparison,
    Constant,
    Literal,
    NullTest,
    Operator,
    Term,
    Variable,
    apply_comparison,
)
from datalog.order import constants_compare


class At(Struct, frozen=True):
    """The landmark's value."""

    landmark: Term


class Above(Struct, frozen=True):
    """Just above the landmark's value."""

    landmark: Term
    rank: int = 0


class Below(Struct, frozen=True):
    """Below every value at hand."""

    rank: int = 0


Position: TypeAlias = At | Above | Below
Positions: TypeAlias = Mapping[Variable, Position]


def gap_of(position: Position) -> Term | None:
    """The landmark that a variable lies just above; None if it is none."""
    return position.landmark if isinstance(position, Above) else None


def rank_of(position: Position) -> int:
    """The place among the variables of one gap."""
    return 0 if isinstance(position, At) else position.rank


def in_one_gap(positions: Positions) -> Iterator[Comparison]:
    """The order of the variables of each gap."""
    inside = [(v, p) for v, p in positions.items() if not isinstance(p, At)]
    for variable, position in inside:
        for other, its in inside:
            if gap_of(position) == gap_of(its) and rank_of(position) < rank_of(its):
                yield Comparison("<", variable, other)


def substitution(positions: Positions) -> dict[Variable, Term]:
    """What the variables that are not fresh stand for."""
    return {v: p.landmark for v, p in positions.items() if isinstance(p, At)}


def resolved(
    comparison: Comparison, positions: Positions, chosen: Mapping[Variable, Term] | None = None
) -> tuple[Literal, ...] | None:
    """What a comparison demands of the variables that have no position: a conjunction; None if it is false.

    Where two variables lie above different landmarks, the landmarks differ. `chosen` is their substitution, where it is
    at hand.

    >>> x, y = Variable("X"), Variable("Y")
    >>> resolved(Comparison("<=", x, y), {x: Above(Constant(3))})
    (Comparison(operator='<', left=Constant(value=3), right=Variable(name='Y')),)
    >>> resolved(Comparison("<", x, y), {x: Above(Constant(3), 1), y: Above(Constant(3), 0)}) is None
    True
    """
    moved = apply_comparison(substitution(positions) if chosen is None else chosen, comparison)
    left, right = _fresh(moved.left, positions), _fresh(moved.right, positions)
    if left is not None and moved.left == moved.right:
        return () if moved.operator in ("=", "<=", ">=") else None
    match left, right:
        case None, None:
            return _plain(moved)
        case None, (Above() | Below()) as position:
            return _against(position, MIRRORED[moved.operator], moved.left)
        case (Above() | Below()) as position, None:
            return _against(position, moved.operator, moved.right)
        case (Above() | Below()) as one, (Above() | Below()) as other:
            return _between(one, moved.operator, other)
        case _:
            raise AssertionError("a position is at a landmark or fresh")


def _fresh(term: Term, positions: Positions) -> Above | Below | None:
    position = positions.get(term) if isinstance(term, Variable) else None
    return None if isinstance(position, At) else position


def _plain(comparison: Comparison) -> tuple[Literal, ...] | None:
    left, right = comparison.left, comparison.right
    if isinstance(left, Constant) and isinstance(right, Constant):
        return () if constants_compare(comparison.operator, left, right) else None
    if left == right:
        return (NullTest(left),) if comparison.operator in ("=", "<=", ">=") else None
    return (comparison,)


def _against(position: Above | Below, operator: Operator, term: Term) -> tuple[Literal, ...] | None:
    """A fresh value compared with one at hand."""
    match operator:
        case "=":
            return None
        case "!=":
            return _not_null(term)
        case "<" | "<=":
            if isinstance(position, Below):
                return _not_null(term)
            return _plain(Comparison("<", position.landmark, term))
        case ">" | ">=":
            return None if isinstance(position, Below) else _plain(Comparison(">=", position.landmark, term))
        case _:
            assert_never(operator)


def _not_null(term: Term) -> tuple[Literal, ...] | None:
    if isinstance(term, Constant):
        return None if term.value is None else ()
    return (NullTest(term),)


def _between(one: Above | Below, operator: Operator, other: Above | Below) -> tuple[Literal, ...] | None:
    """Two fresh values, which differ."""
    if operator in ("=", "!="):
        return () if operator == "!=" else None
    match one, other:
        case Below(), Below():
            less = one.rank < other.rank
        case Below(), Above():
            less = True
        case Above(), Below():
            less = False
        case Above(), Above() if one.landmark == other.landmark:
            less = one.rank < other.rank
        case Above(), Above():
            return _plain(Comparison("<" if operator in ("<", "<=") else ">", one.landmark, other.landmark))
        case _:
            raise AssertionError("closed union")
    return () if less == (operator in ("<", "<=")) else None
