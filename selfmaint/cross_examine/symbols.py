"""Values as numbers for the solver, and what is computed from them while a program is ground."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import gcd, isfinite, lcm

from msgspec import Struct, field

from datalog.copies import replace
from datalog.evaluate import EvaluationError
from datalog.evaluate.order import compares
from datalog.evaluate.scalars import Scalars, expression_key
from datalog.evaluate.views import aggregate
from datalog.model import (
    ANY,
    Aggregate,
    ColumnType,
    Condition,
    Expression,
    Operator,
    Row,
    TypeName,
    Value,
    Variable,
)
from selfmaint.cross_examine.question import identity

BEFORE, AFTER = "b", "a"
"""How the predicates of the two times begin."""

NULL = 0
"""The number of null."""

MOST = 2**31 - 1
"""The solver's numbers are no larger."""


_FEW = 500
"""Averages are of at most so many numbers."""

DIGITS = 12
"""To so many digits doubles are added up."""


def rounded(value: Value) -> Value:
    """A value; of a double without its last digits, which depend on the order in which a sum is made."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def exact_of(value: Value) -> Fraction | None:
    """A number, of a double the decimal that it is written as; None of other values."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | float) or not isfinite(value):
        return None
    return Fraction(f"{value:.{DIGITS}g}") if isinstance(value, float) else Fraction(value)


def _kind(values: Sequence[Value]) -> TypeName:
    """Of numbers of no declared type that of their sum."""
    if any(isinstance(v, float) for v in values):
        return TypeName.DOUBLE
    return TypeName.DECIMAL if any(isinstance(v, Decimal) for v in values) else TypeName.BIGINT


class _Named(Struct, frozen=True):
    """An expression or a condition, and what it is over."""

    what: Expression | Condition
    inputs: tuple[Expression, ...]
    types: Mapping[Variable, ColumnType]
    of_group: bool

    def scalars(self, values: Sequence[Value]) -> Scalars:
        """Where it is evaluated."""
        given = dict(zip(self.inputs, values, strict=True))
        if self.of_group:
            return Scalars(self.types, {}, {expression_key(one): value for one, value in given.items()})
        return Scalars(self.types, {v: value for v, value in given.items() if isinstance(v, Variable)})


class Symbols(Struct):
    """The numbers of values, and functions of them.

    Where an expression or a condition has no value, there is no row: the definition refuses such a database.

    Attributes:
        failures: what could not be computed, in words.
    """

    failures: list[str] = field(default_factory=list)
    _numbers: dict[tuple[str, Value], int] = field(default_factory=dict)
    _values: list[Value] = field(default_factory=lambda: [None])
    _expressions: list[_Named] = field(default_factory=list)
    _averages: list[tuple[Aggregate, ColumnType | None]] = field(default_factory=list)
    _units: list[tuple[Fraction, TypeName]] = field(default_factory=list)

    def of(self, value: Value) -> int:
        """The number of a value."""
        if value is None:
            return NULL
        found = self._numbers.setdefault(identity(value), len(self._values))
        if found == len(self._values):
            self._values.append(value)
        return found

    def of_row(self, row: Row, inexact: Collection[int] = ()) -> tuple[int, ...]:
        """The numbers of a row's values; of those in some columns as `of_rounded` has them."""
        return tuple(self.of_rounded(v) if i in inexact else self.of(v) for i, v in enumerate(row))

    def value(self, number: int) -> Value:
        """The value of a number."""
        return self._values[number]

    def compares(self, operator: Operator, left: int, right: int) -> bool:
        """Whether a comparison holds."""
        try:
            return compares(operator, self.value(left), self.value(right))
        except TypeError:
            return False

    def of_rounded(self, value: Value) -> int:
        """The number of a value; of a double that was added up, without its last digits."""
        return self.of(rounded(value))

    def named(
        self,
        its: Expression | Condition,
        inputs: Sequence[Expression],
        types: Mapping[Variable, ColumnType],
        *,
        of_group: bool = False,
    ) -> int:
        """A name for an expression or condition over variables, or over what a group is by and its aggregates."""
        self._expressions.append(_Named(its, tuple(inputs), types, of_group))
        return len(self._expressions) - 1

    def average(self, one: Aggregate, its: ColumnType | None) -> int:
        """A name for an average of values of a type."""
        self._averages.append((one, its))
        return len(self._averages) - 1

    def computed(self, name: int, arguments: Sequence[int]) -> int | None:
        """The number of an expression's value; None if it has none."""
        its = self._expressions[name]
        assert not isinstance(its.what, Condition)
        try:
            return self.of(its.scalars([*map(self.value, arguments)]).value(its.what))
        except (EvaluationError, TypeError, ArithmeticError):
            return None

    def holds(self, name: int, arguments: Sequence[int]) -> bool:
        """Whether a condition is true."""
        its = self._expressions[name]
        assert isinstance(its.what, Condition)
        try:
            return its.scalars([*map(self.value, arguments)]).truth(its.what) is True
        except (EvaluationError, TypeError, ArithmeticError):
            return False

    def unit(self, values: Sequence[Value], its: ColumnType, *, exact: bool) -> int | None:
        """A name for a unit of which some numbers are multiples; None if the solver cannot add them up.

        Args:
            values: the numbers, and nulls.
            its: their type.
            exact: whether no others are added up.
        """
        exactly = [exact_of(v) for v in values if v is not None]
        fractions = [f for f in exactly if f is not None]
        if len(fractions) < len(exactly):
            return None
        scale = 0 if exact or its.scale is None else its.scale
        common = lcm(10**scale, *(f.denominator for f in fractions))
        wholes = [int(f * common) for f in fractions]
        step = gcd(*wholes) if exact else 1
        if sum(map(abs, wholes)) > MOST * max(step, 1):
            return None
        self._units.append((Fraction(max(step, 1), common), _kind(values) if its == ANY else its.name))
        return len(self._units) - 1

    def total(self, unit: int, number: int) -> Value:
        """The value of so many units."""
        its, kind = self._units[unit]
        found = its * number
        if kind.is_floating:
            return float(found)
        if kind.is_integer and found.denominator == 1:
            return int(found)
        return Decimal(found.numerator) / Decimal(found.denominator)

    def average_of(self, name: int, unit: int, total: int, number: int) -> Value:
        """The average of so many values that are so many units together."""
        one, its = self._averages[name]
        if number < 1:  # what the solver asks beforehand
            return None
        whole = self.total(unit, total)
        return aggregate(replace(one, distinct=False), [(whole, 1), (0, number - 1)], its)

    def beyond(self, unit: int, average: int, number: int) -> int:
        """By how much a number is beyond an average, times that one's denominator: such add up to nothing.

        An average is taken for the fraction with the least denominator that it can be: of so few numbers it is one.
        """
        value, middle = exact_of(self.value(number)), exact_of(self.value(average))
        if value is None or middle is None:
            self._fail("something is added up that is no number")
            return 0
        its = self._units[unit][0]
        parts = (middle / its).limit_denominator(_FEW)
        return self._small((value / its - parts) * parts.denominator)

    def weight(self, unit: int, number: int) -> int:
        """A number's value in a unit."""
        value = exact_of(self.value(number))
        if value is None:
            self._fail("something is added up that is no number")
            return 0
        return self._small(value / self._units[unit][0])

    def _small(self, found: Fraction) -> int:
        if found.denominator != 1 or abs(found) > MOST:
            self._fail("a sum has more digits than the solver adds up")
            return 0
        return int(found)

    def _fail(self, reason: str) -> None:
        if reason not in self.failures:
            self.failures.append(reason)
