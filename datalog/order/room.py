"""Points for a least solution: open limits of dense domains get distinct points between their neighbours.

Points are multiples of the greatest power of 1/2 that leaves enough of them, so whole numbers where there is room.
Each is behind those of the classes before it, so that every arc is respected.
"""

from __future__ import annotations

import math
from fractions import Fraction

from datalog.model import Term
from datalog.order.domains import Edge, Limit, Lower
from datalog.order.graph import LeastSolution
from datalog.order.points import Number, Point


def place(solution: LeastSolution) -> dict[Term, Point]:
    """A point for each term."""
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
