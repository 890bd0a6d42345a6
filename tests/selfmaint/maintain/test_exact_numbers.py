"""Sums and averages that are followed lose nothing: held against fractions, near the limits of every type of sum.

The expressions are evaluated with the types that Spark gives them, and its rounding.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from datalog.errors import EvaluationError
from datalog.evaluate.scalars import Scalars
from datalog.model import ColumnType, Condition, Expression, TypeName, Variable
from selfmaint.maintain.exact_numbers import (
    adds_up,
    average,
    changed,
    counts_exactly,
    divides,
    from_average,
    multiplies,
)

OLD, GAINED, LOST, NUMBER = (Variable(name) for name in ("Old", "Gained", "Lost", "Number"))
BIGINT = ColumnType(TypeName.BIGINT)
WHOLE = ColumnType(TypeName.DECIMAL, 20, 0)
SCALES = {
    1: (0, 1),
    9: (0, 2, 9),
    26: (0, 6, 18, 26),
    27: (0, 27),
    28: (0, 7, 10, 28),
    38: (0, 6, 18, 37, 38),
}
OPERANDS = [ColumnType(TypeName.DECIMAL, p, s) for p, scales in SCALES.items() for s in scales]
"""What is added up: sums of these have ten digits more, or 38."""
TRIALS = 120


def sum_type(operand: ColumnType) -> ColumnType:
    assert operand.precision is not None
    return ColumnType(TypeName.DECIMAL, min(38, operand.precision + 10), operand.scale)


def average_type(operand: ColumnType) -> ColumnType:
    assert operand.precision is not None
    assert operand.scale is not None
    return ColumnType(TypeName.DECIMAL, min(38, operand.precision + 4), min(38, operand.scale + 4))


def some(random: Random, kind: ColumnType) -> Decimal:
    """A value of a type: few digits or nearly all, the last ones odd."""
    assert kind.precision is not None
    digits = random.choice([1, kind.precision // 2, kind.precision - 2, kind.precision - 1, kind.precision])
    top = 10 ** max(1, digits)
    number = random.choice([0, 1, top // 2, top // 2 + 1, top - 1, top // 3, random.randrange(top)])
    return Decimal(random.choice([-1, 1]) * number).scaleb(-(kind.scale or 0))


def evaluated(
    expression: Expression, row: dict[Variable, Decimal | int], types: dict[Variable, ColumnType]
) -> Fraction | None:
    """Its value, or None where the type of the result does not hold it."""
    try:
        found = Scalars(types, row).value(expression)
    except EvaluationError:
        return None
    assert isinstance(found, Decimal | int)
    return Fraction(found)


def holds(
    condition: Condition, row: dict[Variable, Decimal | int], types: dict[Variable, ColumnType]
) -> bool:
    return Scalars(types, row).truth(condition) is True


@pytest.mark.parametrize("operand", OPERANDS, ids=str)
def test_a_sum_of_decimals_is_exact_where_it_is_followed(operand: ColumnType) -> None:
    kind, random, followed = sum_type(operand), Random(str(operand)), 0
    types, parts = dict.fromkeys((OLD, GAINED, LOST), kind), (OLD, GAINED, LOST)
    for _ in range(TRIALS):
        row: dict[Variable, Decimal | int] = {part: some(random, kind) for part in parts}
        if not holds(adds_up(parts, kind), row, types):
            continue
        followed += 1
        total = Fraction(row[OLD]) + Fraction(row[GAINED]) - Fraction(row[LOST])
        found = evaluated(changed(OLD, GAINED, LOST, kind), row, types)
        fits = abs(total) * 10 ** (kind.scale or 0) < 10 ** (kind.precision or 0)
        assert found == total if fits else found is None or found == total, row
    assert followed >= TRIALS // 20 or (kind.scale or 0) > 35


def test_a_sum_of_whole_numbers_passes_the_limits_only_in_between() -> None:
    types, most = {OLD: BIGINT, GAINED: WHOLE, LOST: WHOLE}, 2**63 - 1
    for row, total in (
        ({OLD: most, GAINED: Decimal(most), LOST: Decimal(most)}, most),
        ({OLD: -most - 1, GAINED: Decimal(-5), LOST: Decimal(-5)}, -most - 1),
        ({OLD: most, GAINED: Decimal(1), LOST: Decimal(0)}, None),
    ):
        assert evaluated(changed(OLD, GAINED, LOST, BIGINT), row, types) == total


def nearly_half(number: int, kind: ColumnType, result: ColumnType) -> Decimal:
    """A sum whose average lies below the half of two values by as little as can be: rounded twice, it goes up."""
    more = pow(10, (result.scale or 0) - (kind.scale or 0), number)
    return Decimal(number // 2 * pow(more, -1, number) % number).scaleb(-(kind.scale or 0))


@pytest.mark.parametrize("operand", OPERANDS, ids=str)
def test_an_average_of_decimals_is_rounded_once_where_it_is_followed(operand: ColumnType) -> None:
    kind, result, random, followed = sum_type(operand), average_type(operand), Random(str(operand)), 0
    types = {OLD: kind, NUMBER: BIGINT}
    for trial in range(TRIALS):
        number = random.choice([1, 2, 3, 7, 999, 10**6, 10**9 + 7, 10**14, 2**62])
        total = some(random, kind)
        if trial % 2:
            number = 10 ** random.randrange(1, 19) + 1
            total = nearly_half(number, kind, result)
        row: dict[Variable, Decimal | int] = {OLD: total, NUMBER: number}
        if not holds(divides(OLD, NUMBER, kind), row, types):
            continue
        followed += 1
        exact = Fraction(row[OLD]) / number * 10 ** (result.scale or 0)
        rounded = int(abs(exact) + Fraction(1, 2)) * (-1 if exact < 0 else 1)  # halves go away from zero
        found = evaluated(average(OLD, NUMBER, kind, result), row, types)
        fits = abs(rounded) < 10 ** (result.precision or 0)
        assert found == Fraction(rounded, 10 ** (result.scale or 0)) if fits else found is None, row
    assert followed >= TRIALS // 20 or (kind.scale or 0) > 12


@pytest.mark.parametrize(("name", "bits"), [("tinyint", 7), ("smallint", 15), ("int", 31)])
def test_so_many_whole_numbers_are_added_as_doubles_without_loss(name: str, bits: int) -> None:
    """One more than so many of the largest values give a sum of which no double has all digits."""
    condition, most = counts_exactly(NUMBER, ColumnType(TypeName(name))), 2 ** (53 - bits)
    for number in (1, most, most + 1):
        assert holds(condition, {NUMBER: number}, {NUMBER: BIGINT}) == (number <= most)
    assert float(most * -(2**bits)) == most * -(2**bits)
    assert any(int(float(total)) != total for total in (most * 2**bits + 1, (most + 1) * 2**bits - 1))


@pytest.mark.parametrize("operand", OPERANDS, ids=str)
def test_an_average_of_decimals_tells_its_sum_where_it_is_said_to(operand: ColumnType) -> None:
    """Rounded up or down: also where the sum was as far from it as can be."""
    kind, result, random = sum_type(operand), average_type(operand), Random(str(operand))
    when, what = from_average(OLD, NUMBER, operand, kind, result)
    types, told = {OLD: result, NUMBER: BIGINT}, 0
    for _ in range(TRIALS):
        number = random.choice([1, 2, 3, 7, 997, 3001, 4999, 5000, 10**6])
        total = Fraction(some(random, operand)) * min(number, 1000)
        digits = total / number * 10 ** (result.scale or 0) // 1 + random.choice([0, 1])
        row: dict[Variable, Decimal | int] = {OLD: Decimal(f"{digits}E-{result.scale}"), NUMBER: number}
        if holds(when, row, types):
            told += 1
            assert evaluated(what, row, types) == total, row
    precision = (operand.precision or 0) + 4
    assert (told > 0) == (precision + 5 <= 38)


@pytest.mark.parametrize(("name", "bits"), [("tinyint", 7), ("smallint", 15), ("int", 31)])
def test_an_average_of_whole_numbers_tells_its_sum_where_it_is_said_to(name: str, bits: int) -> None:
    random, most = Random(name), 2 ** (50 - bits)
    when, what = from_average(OLD, NUMBER, ColumnType(TypeName(name)), BIGINT, None)
    types = {OLD: ColumnType(TypeName.DOUBLE), NUMBER: BIGINT}
    for trial in range(TRIALS):
        number = most - trial if trial % 2 else random.randrange(1, most + 1)
        total = number * 2**bits * random.choice([-1, 1]) + random.randrange(number + 1)
        average = total / number
        for one in (math.nextafter(average, -math.inf), average, math.nextafter(average, math.inf)):
            row: dict[Variable, Any] = {OLD: one, NUMBER: number}
            assert holds(when, row, types)
            assert evaluated(what, row, types) == total or one != average, row
    assert not holds(when, {NUMBER: most + 1}, {NUMBER: BIGINT})


@pytest.mark.parametrize("operand", OPERANDS, ids=str)
def test_a_product_with_a_number_of_copies_keeps_its_digits(operand: ColumnType) -> None:
    """As Spark sizes it: the digits of both and one more; of more than 38, those behind the point go down to six."""
    precision, scale = (operand.precision or 0) + 21, operand.scale or 0
    kept = scale if precision <= 38 else max(38 - (precision - scale), min(scale, 6))
    assert not multiplies(operand) or kept == scale
