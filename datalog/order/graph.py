"""The order graph: terms as nodes, `<=` and `<` as edges, and its least solution.

There is no arithmetic, so a cycle of `<=` makes its terms equal and a cycle with a `<` is a contradiction. What is
left is acyclic, and one pass in its order gives every term its least limit: exact, whatever mixture of domains
(`datalog.order.domains`), since a conjunction of order comparisons that has solutions has a least one, but for
open limits in dense domains, where there is always room for as many values as needed.

Complexity: linear in terms and comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from datalog.model import Constant, Term
from datalog.order.domains import Domain, Edge, Limit, Lower, Single, common, least
from datalog.order.points import Point, precedes


class Arc(Struct, frozen=True):
    """`low <= high`, or with `strict` `low < high`."""

    low: Term
    high: Term
    strict: bool


class LeastSolution(Struct, frozen=True):
    """The classes of equal terms, in an order that respects all arcs, with their limits."""

    classes: tuple[tuple[Term, ...], ...]
    limits: tuple[Limit, ...]
    class_of: Mapping[Term, int]
    domains: tuple[Domain, ...]


def least_solution(domains: Mapping[Term, Domain], arcs: Sequence[Arc]) -> LeastSolution | None:
    """The least values that some terms of one family can have, or None if they can have none."""
    arcs = (*arcs, *_arcs_of_infinities(domains))
    classes = _components(domains, arcs)
    class_of = {term: number for number, members in enumerate(classes) for term in members}
    incoming: list[list[tuple[int, bool]]] = [[] for _ in classes]
    for arc in arcs:
        low, high = class_of[arc.low], class_of[arc.high]
        if low != high:
            incoming[high].append((low, arc.strict))
        elif arc.strict:
            return None
    limits: list[Limit] = []
    shared: list[Domain] = []
    for number, members in enumerate(classes):
        domain: Domain | None = domains[members[0]]
        for member in members[1:]:
            domain = None if domain is None else common(domain, domains[member])
        if domain is None:
            return None
        limit = least(domain, _highest((limits[low], strict) for low, strict in incoming[number]))
        if limit is Edge.TOP:
            return None
        limits.append(limit)
        shared.append(domain)
    return LeastSolution(tuple(classes), tuple(limits), class_of, tuple(shared))


def _highest(incoming: Iterable[tuple[Limit, bool]]) -> Limit:
    highest: Lower | None = None
    for limit, strict in incoming:
        if isinstance(limit, Edge):
            continue
        candidate = Lower(limit.point, limit.above or strict)
        if highest is None or _is_lower(highest, candidate):
            highest = candidate
    return Edge.BOTTOM if highest is None else highest


def _is_lower(left: Lower, right: Lower) -> bool:
    return precedes(left.point, right.point) or (left.point == right.point and right.above)


def _arcs_of_infinities(domains: Mapping[Term, Domain]) -> Iterable[Arc]:
    """Where a constant is infinite nothing is beyond it."""
    for term, domain in domains.items():
        if isinstance(term, Constant) and isinstance(domain, Single) and _is_infinite(domain.point):
            for other in domains:
                if other != term:
                    above = not precedes(domain.point, 0)
                    yield Arc(other, term, strict=False) if above else Arc(term, other, strict=False)


def _is_infinite(point: Point) -> bool:
    return isinstance(point, float) and math.isinf(point)


def _components(terms: Iterable[Term], arcs: Iterable[Arc]) -> list[tuple[Term, ...]]:
    """The strongly connected components, each behind those from which arcs lead to it (Tarjan 1972)."""
    below: dict[Term, list[Term]] = {term: [] for term in terms}
    for arc in arcs:
        below[arc.high].append(arc.low)
    found: list[tuple[Term, ...]] = []
    number: dict[Term, int] = {}
    link: dict[Term, int] = {}
    path: list[Term] = []
    on_path: set[Term] = set()
    for start in tuple(below):
        if start in number:
            continue
        work = [(start, iter(below[start]))]
        number[start] = link[start] = len(number)
        path.append(start)
        on_path.add(start)
        while work:
            term, rest = work[-1]
            for other in rest:
                if other not in number:
                    number[other] = link[other] = len(number)
                    path.append(other)
                    on_path.add(other)
                    work.append((other, iter(below[other])))
                    break
                if other in on_path:
                    link[term] = min(link[term], number[other])
            else:
                work.pop()
                if work:
                    link[work[-1][0]] = min(link[work[-1][0]], link[term])
                if link[term] == number[term]:
                    at = path.index(term)
                    found.append(tuple(path[at:]))
                    on_path.difference_update(path[at:])
                    del path[at:]
    return found
