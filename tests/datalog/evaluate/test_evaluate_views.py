"""The meaning of view definitions: SQL's nulls, bags, and the digits of decimals."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal

import pytest

from datalog.evaluate import EvaluationError, evaluate_view
from datalog.evaluate.scalars import call
from datalog.model import (
    Atom,
    ColumnType,
    Negation,
    NullTest,
    Predicate,
    Row,
    TypeName,
    Value,
    Variable,
    ViewDefinition,
    block,
)
from datalog.syntax import parse_program

R, S = Predicate("r"), Predicate("s")
ROWS: Counter[Row] = Counter({(1, "a"): 2, (2, "b"): 1, (None, "a"): 1, (3, None): 1})


def rows(rule: str, **relations: Counter[Row]) -> Counter[Row]:
    (view,) = parse_program(rule).views
    given = {Predicate(name): found for name, found in relations.items()} or {R: ROWS}
    return evaluate_view(view, given)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (".view v bag. v(Y) :- r(X, Y).", {("a",): 3, ("b",): 1, (None,): 1}),
        (".view v set. v(Y) :- r(X, Y).", {("a",): 1, ("b",): 1, (None,): 1}),
        (
            "v(Y, count(*), count(X), sum(X)) :- r(X, Y).",
            {("a", 3, 2, 2): 1, ("b", 1, 1, 2): 1, (None, 1, 1, 3): 1},
        ),
        ("v(count(*), sum(X), min(Y)) :- r(X, Y), X > 9.", {(0, None, None): 1}),
        ("v(Y, max(X)) :- r(X, Y), X > 9.", {}),
        ("v(avg(X), count(distinct X)) :- r(X, _).", {(1.75, 3): 1}),
        (".view v bag. v(X, Z) :- r(X, Y), r(Z, Y), X = 2.", {(2, 2): 1}),
        (".view v bag. v(Y) :- r(X, Y) where any(X = 1, Y is null).", {("a",): 2, (None,): 1}),
        (".view v bag. v(Y) :- r(X, Y) where all().", {("a",): 3, ("b",): 1, (None,): 1}),
        (".view v bag. v(Y) :- r(X, Y) where any().", {}),
        (".view v bag. v(1, 'x').", {(1, "x"): 1}),
        ("v(count(*)) :- r(_, Y) group Y having count(*) > 1.", {(3,): 1}),
        (".view v bag. v(1) :- r(_, Y) group Y.", {(1,): 3}),
        ("v(case when X > 1 then 'big' else 'small' end) :- r(X, _).", {("big",): 1, ("small",): 1}),
        ("v(X / 2, -(X)) :- r(X, 'b').", {(1.0, -2): 1}),
    ],
)
def test_rows(rule: str, expected: dict[Row, int]) -> None:
    assert rows(rule) == Counter(expected)


def test_not_all_of_some_tests() -> None:
    x, y = Variable("X"), Variable("Y")
    some = Negation((NullTest(x, negated=False), NullTest(y, negated=False)))
    selected = ViewDefinition("v", ("x", "y"), (block("v", 0, [Atom(R, (x, y)), some], [x, y]),))
    assert evaluate_view(selected, {R: ROWS + Counter({(None, None): 1})}) == ROWS


def test_a_variable_that_joins_is_never_null() -> None:
    one = Counter[Row]({(None,): 1, (1,): 2})
    assert rows(".view v bag. v(X) :- r(X), s(X).", r=one, s=one) == Counter({(1,): 4})


def test_nan_is_the_largest_number() -> None:
    some = Counter[Row]({(1, math.nan): 1, (1, 0.5): 1, (2, math.nan): 1})
    assert {row[:2] for row in rows("v(X, min(Y), max(Y)) :- r(X, Y).", r=some) if row[0] == 1} == {(1, 0.5)}
    for largest in ("max(Y)", "min(greatest(Y, 1.0))"):
        test = f"v(X, case when {largest} > 1e308 then 1 else 0 end) :- r(X, Y)."
        assert rows(test, r=some)[2, 1] == 1
    unknown = Counter[Row]({(None, math.nan): 1})
    assert rows(".view v bag. v(1) :- r(X, Y) where any(X > 9, Y > 0).", r=unknown) == Counter({(1,): 1})


def test_decimals_have_the_digits_of_their_types() -> None:
    price = ColumnType(TypeName.DECIMAL, 9, 2)
    (view,) = parse_program("v(avg(P), sum(P) / 3, sum(P * P)) :- r(P).").views
    found = evaluate_view(view, {R: Counter({(Decimal("1.00"),): 2, (Decimal("0.01"),): 1})}, {R: [price]})
    # avg: four digits more; a quotient by a small whole number: six; a product: both scales.
    assert [str(value) for value in next(iter(found))] == ["0.670000", "0.670000", "2.0001"]


def test_what_has_no_value_is_an_error() -> None:
    with pytest.raises(EvaluationError):
        rows("v(1 / (X - X)) :- r(X, 'b').")
    with pytest.raises(EvaluationError):
        rows("v(cast(Y as int)) :- r(_, Y).")
    with pytest.raises(EvaluationError):
        rows("v(-Y) :- r(_, Y).")
    with pytest.raises(ValueError, match="unsafe"):
        rows("v(X + Z) :- r(X, _), Z < 3.")


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("substring", ("abcdef", 2), "bcdef"),
        ("substring", ("abcdef", 0, 2), "ab"),
        ("substring", ("abc", -5, 3), "a"),
        ("like", ("a%c", "a\\%c"), True),
        ("like", ("abc", "a_c"), True),
        ("like", ("abc", "b%"), False),
        ("greatest", (1, None, 3), 3),
        ("least", (None, None), None),
        ("nullif", (1, 1), None),
        ("quarter", (dt.date(2024, 4, 1),), 2),
        ("concat", ("a", dt.date(2024, 4, 1), 1), "a2024-04-011"),
        ("upper", (None,), None),
    ],
)
def test_functions(function: str, arguments: tuple[Value, ...], expected: Value) -> None:
    assert call(function, arguments) == expected
