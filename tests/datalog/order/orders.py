"""Random comparisons over typed variables, and their solutions by enumeration.

The values tried are enough: the constants are few and small, so bounded types are enumerated whole or far beyond the
constants, between two neighbouring values of a dense order stand as many as there are variables, and strings are
followed by as many successors. Nothing here comes from `datalog.order`.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from datalog.model import ANY, ColumnType, Comparison, Constant, Term, TypeName, Value, Variable, WallClock

OPERATORS: Mapping[str, Any] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
NAMES = tuple(map(Variable, "XYZ"))
INT = ColumnType(TypeName.INT)
DOUBLE = ColumnType(TypeName.DOUBLE)
DIGIT = ColumnType(TypeName.DECIMAL, 1, 0)
HALF_DIGIT = ColumnType(TypeName.DECIMAL, 1, 1)
STRING = ColumnType(TypeName.STRING)
BOOLEAN = ColumnType(TypeName.BOOLEAN)
DATE = ColumnType(TypeName.DATE)
INSTANT = ColumnType(TypeName.TIMESTAMP)
WALL_CLOCK = ColumnType(TypeName.TIMESTAMP_NTZ)

THEMES: Sequence[tuple[Sequence[ColumnType], Sequence[Value]]] = (
    ((INT,), (0, 1, 2, 4)),
    ((DIGIT,), (-9, -8, 7, 8, 9)),
    ((HALF_DIGIT, INT), (Decimal("0.8"), Decimal("-0.9"), 0, 1)),
    ((DOUBLE,), (0, 1, 2)),
    ((INT, DIGIT, DOUBLE), (0, 1, 2, 0.5, 9)),
    ((STRING,), ("", "a", "a\0", "a\0\0", "b")),
    ((STRING, ANY), ("", "a", "a\0", "b\0")),
    ((BOOLEAN,), (True, False)),
    ((DATE,), (dt.date(9999, 12, 31), dt.date(9999, 12, 29), dt.date(9999, 12, 30))),
    ((DATE,), (dt.date(1, 1, 1), dt.date(1, 1, 3))),
    ((INSTANT,), (dt.datetime(1, 1, 1), dt.datetime(1, 1, 1, microsecond=1))),
    (
        (WALL_CLOCK,),
        (WallClock(9999, 12, 31, 23, 59, 59, 999_999), WallClock(9999, 12, 31, 23, 59, 59, 999_998)),
    ),
    ((ANY,), (0, 1, 2)),
    ((ANY, INT, STRING), (0, 1, "a")),
    ((ANY,), (1, "a", True)),
)


@dataclass(frozen=True, order=True)
class Tick:
    """A day or a microsecond of a family, by its distance from the start of year 1: engines have more than Python."""

    at: int
    family: str


def tick(value: Value) -> Tick:
    match value:
        case dt.datetime():
            return Tick((value - dt.datetime(1, 1, 1)) // dt.timedelta(microseconds=1), type(value).__name__)
        case dt.date():
            return Tick(value.toordinal(), "date")
        case _:
            raise ValueError(value)


def kind(value: Any) -> str:
    match value:
        case Tick():
            return value.family
        case bool():
            return "boolean"
        case int() | float() | Decimal() | Fraction():
            return "number"
        case None:
            return "null"
        case _:
            return type(value).__name__


def compares(comparison: Comparison, values: Mapping[Variable, Value]) -> bool:
    left, right = (
        term.value if isinstance(term, Constant) else values[term]
        for term in (comparison.left, comparison.right)
    )
    if left is None or right is None:
        return False
    if kind(left) != kind(right):
        return comparison.operator == "!="
    left, right = (tick(v) if isinstance(v, dt.date) else v for v in (left, right))
    if Decimal in (type(left), type(right)) and Fraction in (type(left), type(right)):
        left, right = Fraction(left), Fraction(right)  # type: ignore[arg-type]
    return bool(OPERATORS[comparison.operator](left, right))


def numbers(reach: int, per_unit: int) -> list[Any]:
    return [Fraction(n, per_unit) for n in range(-reach * per_unit, reach * per_unit + 1)]


def pool(column_type: ColumnType, count: int, constants: Sequence[Value]) -> list[Any]:
    """Enough values of a type for so many variables."""
    match column_type.name:
        case TypeName.INT:
            return list(range(-4, 8)) if 9 not in constants else list(range(-12, 13))
        case TypeName.DECIMAL:
            return [Decimal(n).scaleb(-(column_type.scale or 0)) for n in range(-9, 10)]
        case TypeName.DOUBLE:
            some = numbers(11 if 9 in constants else 4, count + 1)
            return [*some, *(c for c in constants if type(c) in (int, float) and c not in some)]
        case TypeName.BOOLEAN:
            return [False, True]
        case TypeName.DATE | TypeName.TIMESTAMP | TypeName.TIMESTAMP_NTZ:
            ticks = [tick(c) for c in constants if isinstance(c, dt.date)]
            span = range(min(t.at for t in ticks) - count - 1, max(t.at for t in ticks) + count + 2)
            return [Tick(at, ticks[0].family) for at in span]
        case TypeName.STRING:
            bases = ["", "\1", *(c + more for c in constants if isinstance(c, str) for more in ("", "\1"))]
            return sorted({base + "\0" * n for base in bases for n in range(count + 2)})
        case _:
            some = numbers(3, count + 1)
            some += [c for c in constants if type(c) in (int, float) and c not in some]
            some = [*some, "x", "x\0", False, True, dt.date(2020, 1, 1)]
            if any(isinstance(constant, str) for constant in constants):
                some += pool(STRING, count, constants)
            return some


def solutions(
    comparisons: Sequence[Comparison], pools: Mapping[Variable, Sequence[Value]]
) -> Iterator[dict[Variable, Value]]:
    """All assignments of pooled values that satisfy all comparisons."""
    variables = list(pools)

    def extend(at: int, values: dict[Variable, Value]) -> Iterator[dict[Variable, Value]]:
        if at == len(variables):
            yield values
            return
        bound = set(variables[: at + 1])
        own = [
            c
            for c in comparisons
            if variables[at] in (c.left, c.right)
            and all(isinstance(t, Constant) or t in bound for t in (c.left, c.right))
        ]
        for value in pools[variables[at]]:
            extended = {**values, variables[at]: value}
            if all(compares(c, extended) for c in own):
                yield from extend(at + 1, extended)

    ground = [c for c in comparisons if isinstance(c.left, Constant) and isinstance(c.right, Constant)]
    if all(compares(c, {}) for c in ground):
        yield from extend(0, {})


@st.composite
def problems(
    draw: st.DrawFn, most: int = 5, null: bool = False
) -> tuple[list[Comparison], dict[Variable, ColumnType], list[Value]]:
    """Comparisons, the types of three variables, and the constants that may occur."""
    types, constants = draw(st.sampled_from(THEMES))
    chosen = {name: draw(st.sampled_from(types)) for name in NAMES}
    return draw(st.lists(comparisons(constants, null), max_size=most)), chosen, list(constants)


def comparisons(constants: Sequence[Value], null: bool = False) -> st.SearchStrategy[Comparison]:
    variables: st.SearchStrategy[Term] = st.sampled_from(NAMES)
    fixed: st.SearchStrategy[Term] = st.sampled_from(
        [*map(Constant, constants), *([Constant(None)] if null else [])]
    )
    sides = st.one_of(
        st.tuples(variables, variables), st.tuples(variables, fixed), st.tuples(fixed, variables)
    )
    operators = st.sampled_from(("=", "!=", "!=", "<", "<=", ">", ">="))
    return st.builds(lambda op, both: Comparison(op, *both), operators, sides)
