r"""Which points a column of some type can hold, and the one operation that deciding needs: the least point above.

- `Grid`: whole numbers, decimals (multiples of a power of ten), booleans, dates, timestamps: equal steps between
  two bounds. Dates and timestamps are those that engines hold, far more than can be written here.
- `Dense`: `double`, `float`, decimals without a size, and numbers of undeclared columns: a dense order without end
  points. Finite doubles are in truth discrete, with steps so small that only data could ask for them. What is
  unsatisfiable over the dense order is so over doubles; the converse fails only between neighbouring doubles.
- `Strings`: the empty string is the least, and every string has a successor: itself and a character NUL. So
  `('a', 'a\0')` is empty, while between `'a'` and `'b'` there are infinitely many. There is no greatest string, and
  only a string that ends in NUL has a predecessor.
- `Floats`: doubles or floats as they are; only `assign` asks for these.
- `Single`: a constant.

The least point of a set `{p : p >= b}` or `{p : p > b}` exists in all of them but `Dense`, whose open sets have a
limit instead: a `Lower` that is `above` its point. Infinities are points only where a constant names them;
not-a-number never is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, unique
from fractions import Fraction
from itertools import product
from typing import TypeAlias, assert_never

from msgspec import Struct

from datalog.model import ANY, ColumnType, Comparison, Constant, Term, TypeName, Variable, value_kind
from datalog.order.points import Number, Point, least_float, precedes

_UNIX_DAY = 719_163
_UNIX_MICROSECOND = (_UNIX_DAY - 1) * 86_400_000_000
"""1970-01-01, from which engines count days in 32 bits and microseconds in 64."""
Types: TypeAlias = Mapping[Variable, ColumnType]
"""The types of variables; one that is not mentioned is `any`."""

Pair: TypeAlias = tuple[Term, Term]

_FAMILIES = ("number", "string", "date", "timestamp", "timestamp_ntz", "boolean")


class Lower(Struct, frozen=True):
    """A lower limit: the point itself, or with `above` everything strictly above it."""

    point: Point
    above: bool = False


@unique
class Edge(Enum):
    """A lower limit that is no point."""

    BOTTOM = "no limit"
    TOP = "nothing is that high"


Limit: TypeAlias = Lower | Edge


class Grid(Struct, frozen=True):
    """The multiples of `step` from `low` to `high`, both of them multiples."""

    low: Number
    high: Number
    step: Fraction = Fraction(1)


class Dense(Struct, frozen=True):
    """All numbers."""


class Strings(Struct, frozen=True):
    """All strings."""


class Floats(Struct, frozen=True):
    """The finite floating point numbers of 32 or 64 bits, within a grid if there is one."""

    bits: int
    within: Grid | None = None


class Single(Struct, frozen=True):
    """One point."""

    point: Point


Domain: TypeAlias = Grid | Dense | Strings | Floats | Single


def domain_of(column_type: ColumnType, family: str) -> Domain:
    """The points of a type; of `any` those of the family that is meant.

    >>> domain_of(ColumnType(TypeName.TINYINT), "number")
    Grid(low=-128, high=127, step=Fraction(1, 1))
    """
    match family:
        case "boolean":
            return Grid(0, 1)
        case "date":
            return Grid(_UNIX_DAY - (1 << 31), _UNIX_DAY + (1 << 31) - 1)
        case "timestamp" | "timestamp_ntz":
            return Grid(_UNIX_MICROSECOND - (1 << 63), _UNIX_MICROSECOND + (1 << 63) - 1)
        case "string":
            return Strings()
        case _:
            return _numbers(column_type)


def _numbers(column_type: ColumnType) -> Domain:
    if column_type.name.bits is not None:
        half = 1 << (column_type.name.bits - 1)
        return Grid(-half, half - 1)
    if column_type.name is TypeName.DECIMAL and column_type.precision is not None:
        step = Fraction(1, 10 ** (column_type.scale or 0))
        most = (10**column_type.precision - 1) * step
        return Grid(-most, most, step)
    return Dense()


def least(domain: Domain, limit: Limit) -> Limit:
    r"""The limit that the points of a domain have if they must respect another one.

    >>> least(Grid(0, 9), Lower(Fraction(5, 2))), least(Strings(), Lower("a", above=True))
    (Lower(point=3, above=False), Lower(point='a\x00', above=False))
    >>> least(Dense(), Lower(3, above=True)), least(Grid(0, 9), Lower(9, above=True))
    (Lower(point=3, above=True), <Edge.TOP: 'nothing is that high'>)
    """
    if limit is Edge.TOP:
        return Edge.TOP
    match domain:
        case Dense():
            return limit
        case Single(point):
            return Lower(point) if _admits(limit, point) else Edge.TOP
        case Strings():
            if isinstance(limit, Edge):
                return Lower("")
            assert isinstance(limit.point, str)
            return Lower(limit.point + "\0" if limit.above else limit.point)
        case Grid():
            return _least_multiple(domain, limit)
        case Floats():
            return _least_float(domain, limit)
        case _:
            assert_never(domain)


def _contains(domain: Domain, point: Point) -> bool:
    """Whether a point of the family lies in the domain."""
    return least(domain, Lower(point)) == Lower(point)


def common(left: Domain, right: Domain) -> Domain | None:
    """The points that two domains of one family share; None if there are none for sure.

    Grids of powers of ten are nested, so what they share is the coarser one.
    """
    match left, right:
        case (Single(point), other) | (other, Single(point)):
            return Single(point) if _contains(other, point) else None
        case (Dense(), other) | (other, Dense()):
            return other
        case Grid(), Grid():
            return _common_grid(left, right)
        case (Floats() as floats, Grid() as grid) | (Grid() as grid, Floats() as floats):
            # A multiple of 1/10^s that is a fraction of a power of two is a multiple of 1/2^s.
            coarse = _within(grid, Fraction(1, 2 ** _scale(grid)))
            within = (
                coarse if floats.within is None or coarse is None else _common_grid(floats.within, coarse)
            )
            return None if within is None else Floats(floats.bits, within)
        case Floats(), Floats():
            bits = min(left.bits, right.bits)
            if left.within is None or right.within is None:
                return Floats(bits, left.within or right.within)
            both = _common_grid(left.within, right.within)
            return None if both is None else Floats(bits, both)
        case _:
            return left


def _admits(limit: Limit, point: Point) -> bool:
    if isinstance(limit, Edge):
        return limit is Edge.BOTTOM
    return precedes(limit.point, point) or (limit.point == point and not limit.above)


def _least_multiple(grid: Grid, limit: Limit) -> Limit:
    if isinstance(limit, Edge) or precedes(limit.point, grid.low):
        return Lower(grid.low)
    point = limit.point
    assert not isinstance(point, str)
    if isinstance(point, float):  # an infinity; the negative one is below every grid
        return Edge.TOP
    if grid.step == 1:
        found: Number = math.ceil(point)
        found += limit.above and found == point
    else:
        steps = point / grid.step
        count = math.ceil(steps)
        found = (count + (limit.above and count == steps)) * grid.step
    return Lower(found) if found <= grid.high else Edge.TOP


def _least_float(floats: Floats, limit: Limit) -> Limit:
    while (
        True
    ):  # ends: within the precision of the floats every multiple is one, and beyond it they are multiples
        if floats.within is not None:
            limit = _least_multiple(floats.within, limit)
        if limit is Edge.TOP:
            return Edge.TOP
        point, above = (None, False) if isinstance(limit, Edge) else (limit.point, limit.above)
        assert not isinstance(point, str)
        found = least_float(point, above=above, bits=floats.bits)
        if found is None:
            return Edge.TOP
        if floats.within is None or _contains(floats.within, found):
            return Lower(found)
        limit = Lower(found)


def _common_grid(left: Grid, right: Grid) -> Grid | None:
    coarse, fine = (left, right) if left.step >= right.step else (right, left)
    assert (coarse.step / fine.step).denominator == 1
    return _within(Grid(max(left.low, right.low), min(left.high, right.high), coarse.step), coarse.step)


def _within(grid: Grid, step: Fraction) -> Grid | None:
    """The multiples of another step between the bounds of a grid."""
    low, high = math.ceil(grid.low / step) * step, math.floor(grid.high / step) * step
    return Grid(low, high, step) if low <= high else None


def _scale(grid: Grid) -> int:
    scale = 0
    while (grid.step * 10**scale).denominator != 1:
        scale += 1
    return scale


def family_of(term: Term, types: Types) -> str | None:
    """The family of a term's values, or None if it may be any.

    >>> from datalog.model import TypeName
    >>> family_of(Variable("X"), {Variable("X"): ColumnType(TypeName.INT)}), family_of(Variable("Y"), {})
    ('number', None)
    """
    if isinstance(term, Constant):
        return value_kind(term.value)
    family = types.get(term, ANY).family
    return None if family == "any" else family


def families(
    terms: Sequence[Term], comparisons: Sequence[Comparison], types: Types, apart: Sequence[Pair]
) -> Iterator[dict[Term, str]]:
    """Every choice of families that may matter.

    An order comparison or an equality holds only between values of one family, so the terms that such comparisons
    connect form classes of one family each. Where no type and no constant tells a class's family it may be any. Then
    it is taken as numbers: a dense order without end points, which no constant bounds, satisfies whatever any other
    order does. Only terms that must be of *different* families (`apart`) need a search.

    Args:
        terms: the terms, those of `comparisons` and `apart` among them.
        comparisons: without constants that are null.
        types: the variables' types.
        apart: pairs of terms whose values are of different families.

    Returns:
        A family for each term, in which every comparison but `!=` is between values of one family. Without
        `apart` it is one choice at most, and none if there is a contradiction.
    """
    classes = _classes(terms, comparisons)
    known: dict[Term, str] = {}
    for term, root in classes.items():
        family = family_of(term, types)
        if family is not None and known.setdefault(root, family) != family:
            return
    pairs = [(classes[left], classes[right]) for left, right in apart]
    open_ones = list(dict.fromkeys(root for pair in pairs for root in pair if root not in known))
    for choice in product(_FAMILIES, repeat=len(open_ones)):
        chosen = {**known, **dict(zip(open_ones, choice, strict=True))}
        if all(chosen[left] != chosen[right] for left, right in pairs):
            yield {term: chosen.get(root, "number") for term, root in classes.items()}


def _classes(terms: Sequence[Term], comparisons: Sequence[Comparison]) -> dict[Term, Term]:
    """A representative of each term's class."""
    parent: dict[Term, Term] = {term: term for term in terms}

    def root(term: Term) -> Term:
        while parent[term] != term:
            parent[term] = parent[parent[term]]
            term = parent[term]
        return term

    for comparison in comparisons:
        if comparison.operator != "!=":
            parent[root(comparison.left)] = root(comparison.right)
    return {term: root(term) for term in terms}
