"""The theory of order comparisons at its corners, each with the answer that the definition gives."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import combinations, pairwise

import pytest

from datalog.model import ColumnType, Comparison, Constant, TypeName, Value, Variable
from datalog.order import assign, closure, implies, normalise, satisfiable
from datalog.syntax import parse_rule, show

X, Y, Z, U = map(Variable, "XYZU")


def of(text: str) -> list[Comparison]:
    return [literal for literal in parse_rule(f"v :- {text}.").body if isinstance(literal, Comparison)]


def typed(**names: str) -> dict[Variable, ColumnType]:
    """`typed(X="decimal 5 2")`."""
    types = {}
    for name, text in names.items():
        kind, *size = text.split()
        types[Variable(name)] = ColumnType(TypeName(kind), *map(int, size))
    return types


# ---------------------------------------------------------------------------------------------- satisfiable


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        ("X > 127", {"X": "tinyint"}, False),
        ("X >= 127", {"X": "tinyint"}, True),
        ("X > 9223372036854775807", {"X": "bigint"}, False),
        ("X > 9223372036854775807", {"X": "any"}, True),
        ("X > 0.01, X < 0.02", {"X": "decimal 5 2"}, False),
        ("X > 0.01, X < 0.02", {"X": "decimal 5 3"}, True),
        ("X > 999.99", {"X": "decimal 5 2"}, False),
        ("X > 9999999999", {"X": "decimal 10 0"}, False),
        # Of a decimal without a size the stored type is taken, whatever it is.
        ("X > 9999999999, X < 9999999999.5", {"X": "decimal"}, True),
        ("X = 2.5", {"X": "int"}, False),
        ("X > 2, X < 3", {"X": "double"}, True),
        ("X < Y, Y < Z, X >= 1, Z <= 3, Y != 2", {"X": "int", "Y": "int", "Z": "int"}, False),
        ("X < Y, Y < Z, X >= 1, Z <= 3, Y != 2", {"X": "int", "Y": "double", "Z": "int"}, True),
        ("X < Y, Y < Z", {"X": "boolean", "Y": "boolean", "Z": "boolean"}, False),
        ("X != Y, Y != Z, X != Z", {"X": "boolean", "Y": "boolean", "Z": "boolean"}, False),
        ("X > date '9999-12-31'", {"X": "date"}, True),
        (
            "X > timestamp '2024-01-01 00:00:00', X < timestamp '2024-01-01 00:00:00.000001'",
            {"X": "timestamp"},
            False,
        ),
        (
            "X > timestamp '2024-01-01 00:00:00', X < timestamp '2024-01-01 00:00:00.000002'",
            {"X": "timestamp"},
            True,
        ),
        ("X < ''", {"X": "string"}, False),
        ("X <= '', X != ''", {"X": "string"}, False),
        ("X > 'a', X < 'b', X != 'aa', Y > X, Y < 'b'", {"X": "string"}, True),
        ("X < 3, X > 'a'", {}, False),
        ("X != 3, X > 'a'", {}, True),
        ("X < Y, Y < 'a', X > 1", {}, False),
        ("X > double 'inf'", {"X": "double"}, False),
        ("X >= double 'inf', Y >= double 'inf', X != Y", {"X": "double", "Y": "double"}, False),
        ("X < double '-inf'", {}, False),
        ("X <= double '-inf', X != double '-inf'", {}, False),
        ("X < double 'inf', X > 1e308", {}, True),
        ("X = null", {}, False),
        ("1 < 2, 'a' != 1", {}, True),
        ("2 < 1", {}, False),
    ],
)
def test_satisfiable(text: str, types: dict[str, str], expected: bool) -> None:
    assert satisfiable(of(text), typed(**types)) == expected


def test_nothing_lies_between_a_string_and_its_successor() -> None:
    def between(low: str, high: str) -> bool:
        return satisfiable(
            [Comparison("<", Constant(low), X), Comparison("<", X, Constant(high))], typed(X="string")
        )

    assert not between("a", "a\0")
    assert between("a", "a\0\0")
    assert between("a", "a\1")
    assert not between("", "\0")


def test_values_of_a_short_range_run_out() -> None:
    """Colouring: so many different values as the range holds, and not one more."""
    names = [Variable(f"X{n}") for n in range(5)]
    types = dict.fromkeys(names, ColumnType(TypeName.INT))

    def different(most: int) -> list[Comparison]:
        bounds = [Comparison(op, v, Constant(c)) for v in names for op, c in ((">=", 1), ("<=", most))]  # type: ignore[arg-type]
        return [*bounds, *(Comparison("!=", a, b) for a, b in combinations(names, 2))]

    assert satisfiable(different(5), types)
    assert not satisfiable(different(4), types)
    assert satisfiable(different(4), {})


def test_many_terms_are_no_problem() -> None:
    """A long chain, with every `!=` on top: no choice is taken back over dense orders."""
    names = [Variable(f"X{n}") for n in range(40)]
    chain = [Comparison("<=", a, b) for a, b in pairwise(names)]
    apart = [Comparison("!=", a, b) for a, b in pairwise(names)]
    ends = [Comparison(">=", names[0], Constant(0)), Comparison("<=", names[-1], Constant(1))]
    assert satisfiable([*chain, *apart, *ends], {})
    assert not satisfiable([*chain, *apart, *ends], dict.fromkeys(names, ColumnType(TypeName.INT)))


# ------------------------------------------------------------------------------------- implied, normal form


def test_implied_comparisons_need_values_that_are_not_null() -> None:
    assert implies(of("X = X"), of("X <= 127")[0], typed(X="tinyint"))
    assert not implies([], of("X <= 127")[0], typed(X="tinyint"))
    assert not implies([], of("X = X")[0], {})
    assert implies(of("X < 1, X > 2"), of("Y < Z")[0], {})


def test_undeclared_values_may_be_of_different_families() -> None:
    both = of("X = X, Y = Y, X >= Y")
    assert implies(both, of("Y <= X")[0], {})
    assert not implies(of("X = X, Y = Y, X != Y, Z = Z"), of("X < Y")[0], {})
    assert implies(of("X > 1"), of("X != 'a'")[0], {})
    assert not implies(of("X != 1"), of("X = X, X != 2")[1], {})


def test_closure() -> None:
    found = closure(of("X <= Y, Y < Z, Z <= 3"), {})
    assert {show(c) for c in found} == {"X <= Y", "X < Z", "X < 3", "Y < Z", "Y < 3", "Z <= 3"}


def test_normal_form_of_types_and_gaps() -> None:
    form = normalise(of("X != Y, Y != Z, X <= X"), typed(X="boolean", Y="boolean", Z="boolean"))
    assert form is not None
    assert form.equal == {Z: X}
    form = normalise(of("X > 1.2, X < 1.4"), typed(X="decimal 3 1"))
    assert form is not None
    assert form.equal == {X: Constant(Decimal("1.3"))}
    assert normalise(of("X > 1, X < 2"), typed(X="smallint")) is None


# --------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        ("X > 3", {"X": "int"}, 4),
        ("X > 0.5, X < 0.75", {"X": "decimal 3 2"}, Decimal("0.51")),
        ("X > 1, X < 2", {"X": "double"}, 1.5),
        ("X > 1, X < 2", {}, Decimal("1.5")),
        ("X > 'a', X < 'b'", {"X": "string"}, "a\0"),
        ("X > date '2024-02-28'", {"X": "date"}, dt.date(2024, 2, 29)),
        ("X < true", {"X": "boolean"}, False),
        ("X >= double 'inf'", {"X": "double"}, math.inf),
    ],
)
def test_assigned_values_have_the_columns_type(text: str, types: dict[str, str], expected: Value) -> None:
    values = assign([X], of(text), {}, typed(**types))
    assert values == {X: expected}
    assert type(values[X]) is type(expected)


def test_doubles_and_floats_are_assigned_as_the_discrete_numbers_that_they_are() -> None:
    low = 1.0
    high = math.nextafter(low, 2)
    inside = of("X > Y, X < Z")
    assert assign([X], inside, {Y: low, Z: high}, typed(X="double")) is None
    assert assign([X], of("X > Y, X <= Z"), {Y: low, Z: high}, typed(X="double")) == {X: high}
    beyond = math.nextafter(high, 2)
    assert assign([X], inside, {Y: low, Z: beyond}, typed(X="double")) == {X: high}
    assert assign([X], inside, {Y: low, Z: beyond}, typed(X="float")) is None
    assert assign([X], inside, {Y: 2**24, Z: 2**24 + 2}, typed(X="float")) is None
    assert assign([X], inside, {Y: 2**24, Z: 2**24 + 2}, typed(X="double")) == {X: 2.0**24 + 1}
    same = [*of("X = U, X > Y"), Comparison("<", X, Constant(Decimal("0.4")))]
    assert assign([X, U], same, {Y: 0.1}, typed(X="double", U="decimal 9 2")) == {X: 0.25, U: Decimal("0.25")}


@pytest.mark.parametrize("known", [None, "a"])
def test_nothing_is_assigned_that_compares_with_null_or_another_family(known: Value) -> None:
    assert assign([X], of("X > Y"), {Y: known}, typed(X="int")) is None


def test_distinct_values_of_one_gap() -> None:
    names: Sequence[Variable] = (X, Y, Z)
    values = assign(names, of("X != Y, Y != Z, X != Z, X > 0, X < 1, Y > 0, Y < 1, Z > 0, Z < 1"), {}, {})
    assert values is not None
    assert len(set(values.values())) == 3
