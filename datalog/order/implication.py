"""Conjunctions of comparisons: satisfiability, implication, and the normal form.

Exact over the domains of `datalog.order.domains`, of which the dense one stands in for doubles: what is said to be
implied, or to be unsatisfiable, is so for doubles too.

A comparison that holds says that its terms are not null. So a conclusion can only be implied if each of its
variables occurs in a premise; the premise `X = X` says no more than that `X` is not null.

Source: A. Klug, On Conjunctive Queries Containing Inequalities, 1988; D. Rosenkrantz, H. Hunt, Processing
Conjunctive Predicates and Queries, 1980 (`!=` over discrete domains).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import combinations

from msgspec import Struct

from datalog.copies import replace
from datalog.model import (
    ANY,
    OPPOSITE,
    ColumnType,
    Comparison,
    Constant,
    Operator,
    Term,
    TypeName,
    Value,
    Variable,
    apply_comparison,
    value_kind,
)
from datalog.order.domains import Pair, Types
from datalog.order.points import is_writable, point_of, precedes, value_of
from datalog.order.solve import Solution, solve


class NormalForm(Struct, frozen=True):
    """What a conjunction of comparisons says.

    Attributes:
        equal: what replaces a variable: a constant, or a variable that is not replaced.
        comparisons: what holds of the remaining ones, none of it redundant, without `=`.
        not_null: variables that are not null and of which `comparisons` says nothing.
    """

    equal: Mapping[Variable, Term]
    comparisons: tuple[Comparison, ...]
    not_null: tuple[Variable, ...]


def normalise(comparisons: Sequence[Comparison], types: Types) -> NormalForm | None:
    """The normal form, or None if the comparisons contradict each other.

    Exact: a contradiction is found iff there is one; every variable that must equal a constant or another variable is
    replaced; no comparison that is left follows from the others. What a dropped comparison said about null stays.

    Of redundant comparisons the first stays; a variable of no given type is `any`.

    Complexity: quadratic in terms and comparisons, times the cost of `solve`.

    >>> from datalog.model import ColumnType
    >>> x, y = Variable("X"), Variable("Y")
    >>> low = [Comparison(">", x, Constant(2)), Comparison("<", x, Constant(4)), Comparison("<=", x, y)]
    >>> form = normalise(low, {x: ColumnType(TypeName.INT)})
    >>> str(form.equal[x]), [c.operator + str(c.right) for c in form.comparisons]
    ('3', ['<=Y'])
    """
    solution = solve(comparisons, types)
    if solution is None:
        return None
    equal = dict(_equalities(comparisons, types, solution))
    rest = [apply_comparison(equal, comparison) for comparison in comparisons]
    variables = {t for c in rest for t in (c.left, c.right) if isinstance(t, Variable)}
    left_types = {**types, **_narrowed(equal, types)}
    kept = _irredundant(
        tuple(dict.fromkeys(c for c in rest if not _is_trivial(c))), left_types, sorted(variables, key=str)
    )
    said = {t for c in kept for t in (c.left, c.right)}
    return NormalForm(equal, kept, tuple(v for v in sorted(variables, key=str) if v not in said))


def _equalities(
    comparisons: Sequence[Comparison], types: Types, solution: Solution
) -> Iterator[tuple[Variable, Term]]:
    """What variables must equal: candidates are the values of one solution, and terms that share one."""
    terms = sorted(solution, key=lambda term: isinstance(term, Variable))  # constants first
    kept: list[Term] = []
    for term in terms:
        if isinstance(term, Constant):
            kept.append(term)
            continue
        same = [other for other in kept if solution[other] == solution[term]]
        family, point = solution[term]
        if not any(isinstance(other, Constant) for other in same) and is_writable(point, family):
            same.append(Constant(value_of(point, family, types.get(term, ANY))))
        found = next((o for o in same if implies(comparisons, Comparison("=", term, o), types)), None)
        if found is None:
            kept.append(term)
        else:
            yield term, _typed(found, types.get(term, ANY))


def _typed(term: Term, column_type: ColumnType) -> Term:
    """A constant as a column of the type holds it."""
    if not isinstance(term, Constant) or column_type.family != "number":
        return term
    typed = Constant(value_of(point_of(term.value), "number", column_type))
    return typed if typed == term else term


def _narrowed(equal: Mapping[Variable, Term], types: Types) -> Types:
    """A variable that replaces others has the first type of theirs that says more than `any`."""
    narrowed = {}
    for variable, term in equal.items():
        if isinstance(term, Variable) and types.get(term, ANY).name is TypeName.ANY and variable in types:
            narrowed[term] = types[variable]
    return narrowed


def _is_trivial(comparison: Comparison) -> bool:
    match comparison:
        case Comparison(operator, Constant() as left, Constant() as right):
            return constants_compare(operator, left, right)
        case _:
            return comparison.left == comparison.right


def _irredundant(
    comparisons: Sequence[Comparison], types: Types, variables: Sequence[Variable]
) -> tuple[Comparison, ...]:
    """The comparisons without those that follow from the others, from the last to the first."""
    not_null = [Comparison("=", variable, variable) for variable in variables]
    kept = list(comparisons)
    for comparison in reversed(comparisons):
        rest = [other for other in kept if other is not comparison]
        if implies([*rest, *not_null], replace(comparison, span=None), types):
            kept = rest
    return tuple(kept)


def satisfiable(comparisons: Sequence[Comparison], types: Types, apart: Sequence[Pair] = ()) -> bool:
    """Whether there are values, none of them null, for which all comparisons hold.

    The values of the pairs in `apart` are to be of different families.

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
    unmentioned = [term for term in (left, right) if term not in mentioned]
    if any(isinstance(term, Variable) or term.value is None for term in unmentioned):
        return False
    opposite = Comparison(OPPOSITE[conclusion.operator], left, right)
    if satisfiable([*premises, opposite], types):
        return False
    return conclusion.operator in {"=", "!="} or not satisfiable(premises, types, [(left, right)])


def closure(comparisons: Sequence[Comparison], types: Types) -> tuple[Comparison, ...]:
    """All that comparisons say of the terms that they mention: the strongest one for each pair.

    Of comparisons that contradict each other everything follows: the result is what the first test says.

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


def _as_compared(left: Value, right: Value) -> tuple[Value, Value]:
    if isinstance(left, float) and isinstance(right, int | Decimal):
        return left, float(right)
    if isinstance(right, float) and isinstance(left, int | Decimal):
        return float(left), right
    return left, right


def constants_compare(operator: Operator, left: Constant, right: Constant) -> bool:
    """Whether a comparison of two constants holds; a double and another number compare as doubles.

    >>> constants_compare("<", Constant(1), Constant(2)), constants_compare("!=", Constant(1), Constant("a"))
    (True, True)
    >>> constants_compare("=", Constant(0.1), Constant(Decimal("0.1")))
    True
    """
    if left.value is None or right.value is None:
        return False
    if value_kind(left.value) != value_kind(right.value):
        return operator == "!="
    first, second = (point_of(value) for value in _as_compared(left.value, right.value))
    match operator:
        case "=" | "!=":
            return (first == second) == (operator == "=")
        case "<" | ">=":
            return precedes(first, second) == (operator == "<")
        case ">" | "<=":
            return precedes(second, first) == (operator == ">")
