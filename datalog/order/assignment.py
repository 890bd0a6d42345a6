"""Concrete values for free variables.

Exact: None is returned only if there are no values that can be written (`points.is_writable`). Doubles and floats are
taken as the discrete numbers that they are; whole numbers, halves, and so on are preferred where there is room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
from datalog.order.domains import Domain, Floats, Grid, domain_of
from datalog.order.families import Types
from datalog.order.points import LAST_DAY, LAST_MICROSECOND, is_float, value_of
from datalog.order.solve import Solution, solve

_BITS = {TypeName.FLOAT: 32, TypeName.DOUBLE: 64}


def assign(
    variables: Iterable[Variable],
    comparisons: Sequence[Comparison],
    known: Mapping[Variable, Value],
    types: Types,
) -> dict[Variable, Value] | None:
    """Values of free variables that satisfy comparisons, given those of the other variables.

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
