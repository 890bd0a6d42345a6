"""Arithmetic on wide decimals and rounding as trees for DuckDB: the values are those that Spark 4 gives."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot

from datalog.analysis.expression_types import expression_type
from datalog.evaluate.scalars import call
from datalog.model import (
    Arithmetic,
    ArithmeticOperator,
    Call,
    ColumnType,
    Constant,
    Expression,
    TypeName,
    Variable,
)
from datalog.sql.duckdb.functions import called, computed

DOUBLE, INT = ColumnType(TypeName.DOUBLE), ColumnType(TypeName.INT)
X, Y = Variable("X"), Variable("Y")


def decimal(precision: int, scale: int) -> ColumnType:
    return ColumnType(TypeName.DECIMAL, precision, scale)


def tree(value: str, kind: ColumnType) -> sqlglot.Expression:
    return sqlglot.parse_one(f"cast('{value}' as {kind})", read="duckdb")


def value(made: sqlglot.Expression) -> object:
    return duckdb.sql(f"select {made.sql('duckdb')}").fetchall()[0][0]


@pytest.mark.parametrize(
    ("operator", "left", "right", "found"),
    [
        ("*", ("123.12345678901234565", decimal(38, 17)), ("3", INT), "369.370370"),
        ("*", ("0.123456", decimal(9, 6)), ("12345.67", decimal(38, 2)), "1524.147036"),
        ("*", ("-0.000005", decimal(9, 6)), ("1.10", decimal(38, 2)), "-0.000006"),
        ("+", ("99999999.99", decimal(38, 2)), ("0.123456789", decimal(30, 20)), "100000000.113457"),
    ],
)
def test_decimals_of_which_spark_cuts_digits(
    operator: ArithmeticOperator, left: tuple[str, ColumnType], right: tuple[str, ColumnType], found: str
) -> None:
    kind = expression_type(Arithmetic(operator, X, Y), {X: left[1], Y: right[1]})
    assert kind == decimal(38, 6)
    assert str(value(computed(operator, (tree(*left), left[1]), (tree(*right), right[1]), kind))) == found


@pytest.mark.parametrize(
    ("number", "places", "found"),
    [
        ("1.005", 2, 1.01),
        ("2.675", 2, 2.68),
        ("-2.5", 0, -3.0),
        ("-0.001", 2, 0.0),
        ("123456789012.345", 1, 123456789012.3),
    ],
)
def test_halves_of_doubles_are_rounded_as_they_are_written(number: str, places: int, found: float) -> None:
    arguments = [(tree(number, DOUBLE), DOUBLE), (sqlglot.exp.Literal.number(places), INT)]
    assert value(called("round", arguments, DOUBLE)) == found == call("round", [float(number), places])


def test_a_rounded_decimal_may_have_one_more_digit() -> None:
    rounded = Call("round", (X, Constant(1)))
    assert expression_type(rounded, {X: decimal(7, 2)}) == decimal(7, 1)
    made = called(
        "round",
        [(tree("99999.95", decimal(7, 2)), decimal(7, 2)), (sqlglot.exp.Literal.number(1), INT)],
        DOUBLE,
    )
    assert str(value(made)) == "100000.0"


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        (X, Constant(2_147_483_647), TypeName.INT),
        (X, Constant(3_000_000_000), TypeName.BIGINT),
        (Constant(-3_000_000_000), Constant(1), TypeName.BIGINT),
        (X, Arithmetic("*", Y, Constant(1)), TypeName.BIGINT),
    ],
)
def test_a_large_whole_constant_makes_a_bigint(left: Expression, right: Expression, kind: TypeName) -> None:
    types = {X: INT, Y: ColumnType(TypeName.BIGINT)}
    assert expression_type(Arithmetic("+", left, right), types) == ColumnType(kind)
