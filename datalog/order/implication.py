"""Satisfiability and implication of comparisons.

Exact over the domains of `datalog.order.domains`, of which the dense one stands in for doubles: what is said to be
implied, or to be unsatisfiable, is so for doubles too.

A comparison that holds says that its terms are not null. So a conclusion can only be implied if each of its
variables occurs in a premise; the premise `X = X` says no more than that `X` is not null.

Source: A. Klug, On Conjunctive Queries Containing Inequalities, 1988; D. Rosenkrantz, H. Hunt, Processing
Conjunctive Predicates and Queries, 1980 (`!=` over discrete domains).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from datalog.model import OPPOSITE, Comparison, Constant, Operator, Term, Variable, value_kind
from datalog.order.families import Pair, Types, family_of
from datalog.order.points import point_of, precedes
from datalog.order.solve import solve


def satisfiable(comparisons: Sequence[Comparison], types: Types, apart: Sequence[Pair] = ()) -> bool:
    """Whether there are values, none of them null, for which all comparisons hold.

    Args:
        comparisons: between variables and constants.
        types: the variables' types; one that is not mentioned is `any`.
        apart: pairs of terms whose values are to be of different families.

    Complexity: see `datalog.order.solve`.

    >>> from datalog.model import ColumnType, TypeName
    >>> x, two, three = Variable("X"), Constant(2), Constant(3)
    >>> between = [Comparison("<", two, x), Comparison("<", x, three)]
    >>> satisfiable(between, {}), satisfiable(between, {x: ColumnType(TypeName.INT)})
    (True, False)
    """
    return solve(comparisons, types, apart) is not None


def implies(premises: Sequence[Comparison], conclusion: Comparison, types: Types) -> bool:
    """Whether a comparison holds wherever the premises hold.

    Args:
        premises: what is known to hold.
        conclusion: what may follow.
        types: the variables' types; one that is not mentioned is `any`.

    Semantics:
        Values of different families are unequal and not ordered; null makes a comparison false.

    >>> from datalog.model import ColumnType, TypeName
    >>> x, y = Variable("X"), Variable("Y")
    >>> implies([Comparison("<", x, y)], Comparison("!=", y, x), {})
    True
    """
    left, right = conclusion.left, conclusion.right
    mentioned = {term for premise in premises for term in (premise.left, premise.right)}
    if not satisfiable(premises, types):
        return True
    if any(_may_be_null(term) and term not in mentioned for term in (left, right)):
        return False
    opposite = Comparison(OPPOSITE[conclusion.operator], left, right)
    if satisfiable([*premises, opposite], types):
        return False
    return conclusion.operator in {"=", "!="} or not satisfiable(premises, types, [(left, right)])


def _may_be_null(term: Term) -> bool:
    return isinstance(term, Variable) or term.value is None


def closure(comparisons: Sequence[Comparison], types: Types) -> tuple[Comparison, ...]:
    """All that comparisons say of the terms that they mention: the strongest one for each pair.

    Args:
        comparisons: satisfiable ones; of others everything follows, and the result is what the first test says.
        types: the variables' types; one that is not mentioned is `any`.

    Returns:
        For each pair of terms, not both constants, at most one of `=`, `<`, `<=`, `!=`, with the lesser term on
        the left.

    Complexity: quadratic in the terms, times the cost of `implies`.

    >>> from datalog.syntax import show
    >>> x, y, z = map(Variable, "XYZ")
    >>> [str(c.left) + c.operator + str(c.right)
    ...  for c in closure([Comparison("<=", x, y), Comparison("<", y, z)], {})]
    ['X<=Y', 'X<Z', 'Y<Z']
    """
    terms = list(dict.fromkeys(t for c in comparisons for t in (c.left, c.right)))
    found = (
        strongest(comparisons, left, right, types)
        for left, right in combinations(terms, 2)
        if not (isinstance(left, Constant) and isinstance(right, Constant))
    )
    return tuple(comparison for comparison in found if comparison is not None)


def strongest(comparisons: Sequence[Comparison], left: Term, right: Term, types: Types) -> Comparison | None:
    """The strongest comparison between two terms that follows, or None."""
    for candidate in (
        Comparison("=", left, right),
        Comparison("<", left, right),
        Comparison("<", right, left),
        Comparison("<=", left, right),
        Comparison("<=", right, left),
        Comparison("!=", left, right),
    ):
        if implies(comparisons, candidate, types):
            return candidate
    return None


def constants_compare(operator: Operator, left: Constant, right: Constant) -> bool:
    """Whether a comparison of two constants holds.

    >>> constants_compare("<", Constant(1), Constant(2)), constants_compare("!=", Constant(1), Constant("a"))
    (True, True)
    """
    if left.value is None or right.value is None:
        return False
    if value_kind(left.value) != value_kind(right.value):
        return operator == "!="
    first, second = point_of(left.value), point_of(right.value)
    match operator:
        case "=" | "!=":
            return (first == second) == (operator == "=")
        case "<" | ">=":
            return precedes(first, second) == (operator == "<")
        case ">" | "<=":
            return precedes(second, first) == (operator == ">")


def never_compares(comparison: Comparison, types: Types) -> bool:
    """Whether the sides are of families that are known and differ, so that only `!=` can hold."""
    left, right = family_of(comparison.left, types), family_of(comparison.right, types)
    return left is not None and right is not None and left != right
