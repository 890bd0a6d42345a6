"""A quick proof that values of a short range run out: terms of a grid that all differ need as many steps.

Of `m` terms that differ from each other pairwise, the greatest is at least `m - 1` steps above the least possible
value of all. If none of them can be that high there is no solution. It only says no where that is proved; without it
the search of `datalog.order.solve` would try all permutations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datalog.model import ColumnType, Constant, Term, TypeName
from datalog.order.domains import Domain, Grid, Lower, Single
from datalog.order.graph import Arc, LeastSolution, least_solution
from datalog.order.points import value_of

_SMALLEST = 3  # of two terms that differ the search itself is as quick
_NUMBER = ColumnType(TypeName.ANY)


def runs_out(
    domains: Mapping[Term, Domain],
    arcs: Sequence[Arc],
    unequal: Sequence[tuple[Term, Term]],
    least: LeastSolution,
) -> bool:
    """Whether some terms that all differ are proved to have too few values.

    Args:
        domains: the terms and what they range over.
        arcs: the order comparisons.
        unequal: pairs of terms that differ.
        least: the least solution of the arcs.
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
