"""The normal form of a conjunction of comparisons: contradictions, equalities, no redundancy.

Exact: a contradiction is found iff there is one; every variable that must equal a constant or another variable is
replaced; no comparison that is left follows from the others. What a dropped comparison said about null stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from datalog.model import ANY, ColumnType, Comparison, Constant, Term, TypeName, Variable, apply_comparison
from datalog.order.families import Types
from datalog.order.implication import constants_compare, implies
from datalog.order.points import is_writable, point_of, value_of
from datalog.order.solve import Solution, solve


@dataclass(frozen=True, slots=True)
class NormalForm:
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

    Args:
        comparisons: any; of redundant ones the first stays.
        types: the variables' types; one that is not mentioned is `any`.

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
