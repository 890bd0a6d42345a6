"""Solving comparisons: values for all terms, or the proof that there are none.

Exact for every mixture of the domains of `datalog.order.domains`:

1. order comparisons alone have a least solution (`datalog.order.graph`);
2. if it breaks a `!=`, one of the two sides must be less: both ways are tried, the decided ones first. A `!=` between
   two open limits of dense domains is never broken: there is room.

Complexity: polynomial without `!=`, and over dense domains with it (a `!=` that can hold at all can hold together
with all others there, so no choice is ever taken back). Exponential at worst in the `!=` between values of short
ranges, such as five different variables in 1..4: that is graph colouring.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import TypeAlias

from datalog.budget import check
from datalog.model import (
    ANY,
    ColumnType,
    Comparison,
    Constant,
    Term,
    TypeName,
    Value,
    Variable,
    apply_comparison,
)
from datalog.order.domains import (
    Domain,
    Edge,
    Floats,
    Grid,
    Limit,
    Lower,
    Pair,
    Single,
    Types,
    domain_of,
    families,
)
from datalog.order.graph import Arc, LeastSolution, least_solution
from datalog.order.points import LAST_DAY, LAST_MICROSECOND, Number, Point, is_float, point_of, value_of

_SMALLEST = 3  # of two terms that differ the search itself is as quick
_NUMBER = ColumnType(TypeName.ANY)
_BITS = {TypeName.FLOAT: 32, TypeName.DOUBLE: 64}


def _runs_out(
    domains: Mapping[Term, Domain],
    arcs: Sequence[Arc],
    unequal: Sequence[tuple[Term, Term]],
    least: LeastSolution,
) -> bool:
    """Whether some terms that all differ are proved to have too few values.

    Of `m` terms that differ from each other pairwise, the greatest is at least `m - 1` steps above the least
    possible value of all. If none of them can be that high there is no solution. It only says no where that is
    proved; without it the search of `datalog.order.solve` would try all permutations.
    """
    members = _all_different(domains, unequal)
    if len(members) < _SMALLEST:
        return False
    steps = [domain.step for term in members if isinstance(domain := domains[term], Grid)]
    limits = [least.limits[least.class_of[term]] for term in members]
    points = [
        limit.point for limit in limits if isinstance(limit, Lower) and not isinstance(limit.point, str)
    ]
    height = min(points) + (len(members) - 1) * min(steps)
    mark = Constant(value_of(height, "number", _NUMBER))
    marked = {**domains, mark: Single(height)}
    return all(least_solution(marked, [*arcs, Arc(mark, term, strict=False)]) is None for term in members)


def _all_different(domains: Mapping[Term, Domain], unequal: Sequence[tuple[Term, Term]]) -> list[Term]:
    """Terms of grids that are pairwise different, found greedily."""
    others: dict[Term, set[Term]] = {}
    for left, right in unequal:
        if left != right and isinstance(domains[left], Grid) and isinstance(domains[right], Grid):
            others.setdefault(left, set()).add(right)
            others.setdefault(right, set()).add(left)
    members: list[Term] = []
    for term in sorted(others, key=lambda one: -len(others[one])):
        if others[term].issuperset(members):
            members.append(term)
    return members


Solution: TypeAlias = dict[Term, tuple[str, Point]]
"""The family and the point of each term."""

_DomainOf: TypeAlias = Callable[[ColumnType, str], Domain]


def solve(
    comparisons: Sequence[Comparison], types: Types, apart: Sequence[Pair] = (), domain: _DomainOf = domain_of
) -> Solution | None:
    """Values that satisfy comparisons, or None if no values do.

    The values of the pairs in `apart` are to be of different families; `domain` gives the points of a type in a family.

    Returns:
        A family and a point for each variable and constant that occurs. Where types are dense the points are
        rationals that the type need not have (see `datalog.order.domains`).
    """
    pairs = [(comparison.left, comparison.right) for comparison in comparisons]
    terms = tuple(dict.fromkeys(chain.from_iterable((*pairs, *apart))))
    if any(isinstance(term, Constant) and term.value is None for term in terms):
        return None
    for family in families(terms, comparisons, types, apart):
        solution = _solve_families(terms, comparisons, family, types, domain)
        if solution is not None:
            return solution
    return None


def _solve_families(
    terms: Sequence[Term],
    comparisons: Sequence[Comparison],
    family: Mapping[Term, str],
    types: Types,
    domain: _DomainOf,
) -> Solution | None:
    """The families have nothing to do with each other: one after the other."""
    solution: Solution = {}
    for name in dict.fromkeys(family[term] for term in terms):
        domains = {term: _domain(term, name, types, domain) for term in terms if family[term] == name}
        own = [c for c in comparisons if family[c.left] == name == family[c.right]]
        unequal = [(c.left, c.right) for c in own if c.operator == "!="]
        found = _search(domains, list(_arcs(own)), unequal)
        if found is None:
            return None
        solution |= {term: (name, point) for term, point in place(found).items()}
    return solution


def _domain(term: Term, family: str, types: Types, domain: _DomainOf) -> Domain:
    if isinstance(term, Constant):
        return Single(point_of(term.value))
    return domain(types.get(term, ANY), family)


def _arcs(comparisons: Sequence[Comparison]) -> Iterator[Arc]:
    for comparison in comparisons:
        match comparison.operator:
            case "<" | "<=":
                yield Arc(comparison.left, comparison.right, comparison.operator == "<")
            case ">" | ">=":
                yield Arc(comparison.right, comparison.left, comparison.operator == ">")
            case "=":
                yield Arc(comparison.left, comparison.right, strict=False)
                yield Arc(comparison.right, comparison.left, strict=False)
            case "!=":
                pass


def _search(domains: Mapping[Term, Domain], arcs: list[Arc], unequal: Sequence[Pair]) -> LeastSolution | None:
    """A least solution of the arcs and of some more that decide every broken `!=`."""
    check()
    least = least_solution(domains, arcs)
    if least is None:
        return None
    broken = [pair for pair in unequal if _is_broken(pair, least)]
    if not broken:
        return least
    if _runs_out(domains, arcs, unequal, least):
        return None
    choices: list[list[Arc]] = []
    for left, right in broken:
        ways = [Arc(left, right, strict=True), Arc(right, left, strict=True)]
        choices.append([way for way in ways if least_solution(domains, [*arcs, way]) is not None])
        if not choices[-1]:
            return None
    decided = [ways[0] for ways in choices if len(ways) == 1]
    if decided:
        return _search(domains, [*arcs, *decided], unequal)
    for way in choices[0]:
        found = _search(domains, [*arcs, way], unequal)
        if found is not None:
            return found
    return None


def _is_broken(pair: Pair, solution: LeastSolution) -> bool:
    left, right = (solution.class_of[term] for term in pair)
    if left == right:
        return True
    first, second = solution.limits[left], solution.limits[right]
    if isinstance(first, Edge) or isinstance(second, Edge):
        return False
    return not (first.above or second.above) and first.point == second.point


def place(solution: LeastSolution) -> dict[Term, Point]:
    """A point for each term.

    Points are multiples of the greatest power of 1/2 that leaves enough of them, so whole numbers where there is room.
    Each is behind those of the classes before it, so that every arc is respected.
    """
    standing = [
        limit.point
        for limit in solution.limits
        if isinstance(limit, Lower) and not limit.above and not isinstance(limit.point, str)
    ]
    groups: dict[Limit, list[int]] = {}
    points: dict[int, Point] = {}
    for number, limit in enumerate(solution.limits):
        if isinstance(limit, Lower) and not limit.above:
            points[number] = limit.point
        else:
            groups.setdefault(limit, []).append(number)
    for limit, members in groups.items():
        low = None if isinstance(limit, Edge) else limit.point
        assert not isinstance(low, str)
        high = min((point for point in standing if low is None or point > low), default=None)
        points.update(zip(members, _between(low, high, len(members)), strict=True))
    return {term: points[number] for term, number in solution.class_of.items()}


def _between(low: Number | None, high: Number | None, count: int) -> list[Fraction]:
    """So many numbers strictly between two, in order; None or an infinity is no bound."""
    low = None if isinstance(low, float) else low
    high = None if isinstance(high, float) else high
    if low is None and high is not None:
        top = math.ceil(high) - 1
        return [Fraction(top - count + 1 + at) for at in range(count)]
    first = 0 if low is None else low
    step = Fraction(1)
    while True:
        start = math.floor(first / step) + 1
        if high is None or (start + count - 1) * step < high:
            return [(start + at) * step for at in range(count)]
        step /= 2


def assign(
    variables: Iterable[Variable],
    comparisons: Sequence[Comparison],
    known: Mapping[Variable, Value],
    types: Types,
) -> dict[Variable, Value] | None:
    """Values of free variables that satisfy comparisons, given those of the other variables.

    Exact: None is returned only if there are no values that can be written (`points.is_writable`). Doubles and
    floats are taken as the discrete numbers that they are; whole numbers, halves, and so on are preferred where
    there is room.

    Args:
        variables: the free variables; one that no comparison mentions gets a value of its type too.
        comparisons: what is to hold, of free and known variables and constants.
        known: the other variables' values, null among them perhaps.
        types: the variables' types; one that is not mentioned is `any`, and gets an int, a Decimal, or a value of
            the family that it is compared with.

    Returns:
        A value a free variable, none of them null; or None if there are none. Of dates and timestamps there may be
        some all the same, before the year 1 or after 9999.

    Complexity: see `datalog.order.solve`.

    >>> x, y = Variable("X"), Variable("Y")
    >>> assign([y], [Comparison("<", x, y), Comparison("<", y, Constant(4))], {x: 3}, {})
    {Variable(name='Y'): Decimal('3.5')}
    """
    free = tuple(dict.fromkeys(variables))
    values: dict[Variable, Term] = {variable: Constant(value) for variable, value in known.items()}
    fixed = [apply_comparison(values, comparison) for comparison in comparisons]
    fixed += [Comparison("=", variable, variable) for variable in free]
    solution = solve(fixed, types, domain=_writable)
    if solution is None:
        return None
    if not all(_is_exact(variable, solution, types) for variable in free):
        solution = solve(fixed, types, domain=_as_stored)
        if solution is None:
            return None
    return {v: value_of(solution[v][1], solution[v][0], types.get(v, ANY)) for v in free}


def _is_exact(variable: Variable, solution: Solution, types: Types) -> bool:
    bits = _BITS.get(types.get(variable, ANY).name)
    point = solution[variable][1]
    return bits is None or isinstance(point, float) or (not isinstance(point, str) and is_float(point, bits))


def _as_stored(column_type: ColumnType, family: str) -> Domain:
    if family == "number" and column_type.name in _BITS:
        return Floats(_BITS[column_type.name])
    return _writable(column_type, family)


def _writable(column_type: ColumnType, family: str) -> Domain:
    match family:
        case "date":
            return Grid(1, LAST_DAY)
        case "timestamp" | "timestamp_ntz":
            return Grid(0, LAST_MICROSECOND)
        case _:
            return domain_of(column_type, family)
