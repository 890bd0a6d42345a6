"""Values as numbers for the solver, and what is computed from them while a program is ground."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm

from datalog.evaluate import EvaluationError
from datalog.evaluate.order import compares
from datalog.evaluate.scalars import Scalars
from datalog.model import ColumnType, Condition, Expression, Operator, Row, Value, Variable
from selfmaint.cross_examine.question import identity

NULL = 0
"""The number of null."""

MOST = 2**31 - 1
"""The solver's numbers are no larger."""


@dataclass
class Symbols:
    """The numbers of values, and functions of them.

    Attributes:
        failures: what could not be computed, in words.
    """

    failures: list[str] = field(default_factory=list)
    _numbers: dict[tuple[str, Value], int] = field(default_factory=dict)
    _values: list[Value] = field(default_factory=lambda: [None])
    _expressions: list[tuple[Expression, tuple[Variable, ...], dict[Variable, ColumnType]]] = field(
        default_factory=list
    )
    _conditions: list[tuple[Condition, tuple[Variable, ...], dict[Variable, ColumnType]]] = field(
        default_factory=list
    )
    _units: list[Fraction] = field(default_factory=list)

    def of(self, value: Value) -> int:
        """The number of a value."""
        if value is None:
            return NULL
        found = self._numbers.setdefault(identity(value), len(self._values))
        if found == len(self._values):
            self._values.append(value)
        return found

    def of_row(self, row: Row) -> tuple[int, ...]:
        """The numbers of a row's values."""
        return tuple(map(self.of, row))

    def value(self, number: int) -> Value:
        """The value of a number."""
        return self._values[number]

    def compares(self, operator: Operator, left: int, right: int) -> bool:
        """Whether a comparison holds."""
        try:
            return compares(operator, self.value(left), self.value(right))
        except TypeError:
            self._fail("values of several kinds are compared in order")
            return False

    def expression(
        self, its: Expression, variables: tuple[Variable, ...], types: dict[Variable, ColumnType]
    ) -> int:
        """A name for an expression of some variables."""
        self._expressions.append((its, variables, types))
        return len(self._expressions) - 1

    def condition(
        self, its: Condition, variables: tuple[Variable, ...], types: dict[Variable, ColumnType]
    ) -> int:
        """A name for a condition on some variables."""
        self._conditions.append((its, variables, types))
        return len(self._conditions) - 1

    def computed(self, name: int, arguments: Sequence[int]) -> int | None:
        """The number of an expression's value; None if it has none."""
        its, variables, types = self._expressions[name]
        binding = dict(zip(variables, map(self.value, arguments), strict=True))
        try:
            return self.of(Scalars(types, binding).value(its))
        except (EvaluationError, TypeError, ArithmeticError) as error:
            self._fail(f"an expression has no value: {error}")
            return None

    def holds(self, name: int, arguments: Sequence[int]) -> bool:
        """Whether a condition is true."""
        its, variables, types = self._conditions[name]
        binding = dict(zip(variables, map(self.value, arguments), strict=True))
        try:
            return Scalars(types, binding).truth(its) is True
        except (EvaluationError, TypeError, ArithmeticError) as error:
            self._fail(f"a condition has no value: {error}")
            return False

    def unit(self, values: Sequence[Value], *, exact: bool) -> int | None:
        """A name for a unit of which some numbers are multiples; None if the solver cannot add them up.

        Args:
            values: the numbers, and nulls.
            exact: whether no others are added up.
        """
        if not all(v is None or isinstance(v, int | Decimal) for v in values):
            return None
        fractions = [Fraction(v) for v in values if isinstance(v, int | Decimal)]
        common = lcm(*(f.denominator for f in fractions)) if fractions else 1
        wholes = [int(f * common) for f in fractions]
        step = gcd(*wholes) if exact else 1
        if sum(map(abs, wholes)) > MOST * max(step, 1):
            return None
        self._units.append(Fraction(max(step, 1), common))
        return len(self._units) - 1

    def weight(self, unit: int, number: int) -> int:
        """A number's value in a unit."""
        value = self.value(number)
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            self._fail("something is added up that is no whole number or decimal")
            return 0
        found = Fraction(value) / self._units[unit]
        if found.denominator != 1 or abs(found) > MOST:
            self._fail("a sum has more digits than the solver adds up")
            return 0
        return int(found)

    def _fail(self, reason: str) -> None:
        if reason not in self.failures:
            self.failures.append(reason)
