"""Decimals of more digits than Python's own context keeps."""

from __future__ import annotations

from decimal import Decimal

from datalog.evaluate.scalars import Scalars
from datalog.model import Call, Cast, ColumnType, Constant, Minus, TypeName
from datalog.sql.views import read_sql

LONG = Decimal("12345678901234567890.123456789012345678")
KIND = ColumnType(TypeName.DECIMAL, 38, 18)


def test_nothing_rounds_to_the_context() -> None:
    scalars = Scalars({}, {})
    assert scalars.value(Cast(Constant(LONG), KIND)) == LONG
    assert scalars.value(Minus(Constant(LONG))) == LONG.copy_negate()
    assert scalars.value(Call("abs", (Constant(LONG.copy_negate()),))) == LONG


def test_a_negative_literal_keeps_its_digits() -> None:
    text = f"create table r (k int primary key, x decimal(38,18)); create view v as select k from r where x > -{LONG}"
    (view,) = read_sql(text).views
    assert f"-{LONG}" in repr(view)
