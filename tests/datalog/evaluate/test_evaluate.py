"""The reference evaluator: what bodies, nulls, families of values and negations mean."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest

from datalog.budget import limit
from datalog.evaluate import Evaluator, evaluate
from datalog.evaluate.order import binding_order, independent_parts
from datalog.model import Atom, Constant, Predicate, Program, Row, Rule, Value, Variable, Version
from datalog.syntax import parse_program, parse_rule

V = Predicate("v")


def facts(**relations: set[Row]) -> dict[Predicate, frozenset[Row]]:
    return {Predicate(name): frozenset(rows) for name, rows in relations.items()}


def rows(program: str, **relations: set[Row]) -> frozenset[Row]:
    return evaluate(parse_program(program), V, facts(**relations))


# ------------------------------------------------------------------------------------------------ the basics


def test_join_constant_and_repeated_variable() -> None:
    found = rows(
        "v(X, 1) :- r(X, Y), s(Y, Y), t('c').", r={("a", 2), ("b", 3)}, s={(2, 2), (3, 4)}, t={("c",)}
    )
    assert found == {("a", 1)}


def test_several_rules_are_a_union_and_predicates_build_on_each_other() -> None:
    program = "p(X) :- r(X). p(X) :- s(X). v(X, Y) :- p(X), p(Y), X < Y."
    assert rows(program, r={(1,), (2,)}, s={(3,)}) == {(1, 2), (1, 3), (2, 3)}


def test_a_fact_and_a_cross_product_without_variables() -> None:
    assert rows("v(1, 'a').") == {(1, "a")}
    assert rows("v :- r(X), s(Y).", r={(1,)}, s={(2,)}) == {()}
    assert rows("v :- r(X), s(Y).", r={(1,)}) == frozenset()


def test_what_is_not_given_is_empty() -> None:
    assert rows("v(X) :- r(X).") == frozenset()
    assert evaluate(Program(), V, {}) == frozenset()


def test_a_predicate_with_rules_is_not_looked_up() -> None:
    assert rows("v(X) :- r(X).", v={(9,)}, r={(1,)}) == {(1,)}


def test_versions_are_relations_of_their_own() -> None:
    after = parse_program(
        "v(X) :- r@after(X). r@after(X) :- r@known(X), not r@deleted(X). r@after(X) :- r@inserted(X)."
    )
    known, deleted, inserted = (
        Predicate("r", version) for version in (Version.KNOWN, Version.DELETED, Version.INSERTED)
    )
    given: dict[Predicate, frozenset[Row]] = {
        known: frozenset({(1,), (2,)}),
        deleted: frozenset({(2,)}),
        inserted: frozenset({(3,)}),
        Predicate("r"): frozenset({(4,)}),
    }
    assert evaluate(after, V, given) == {(1,), (3,)}


def test_an_equality_binds_wherever_it_stands() -> None:
    assert rows("v(X, Y) :- Y = X, X = 3.") == {(3, 3)}
    assert rows("v(X) :- X = Y, r(Y).", r={("a",), (None,)}) == {("a",)}


def test_the_first_row_is_a_row_or_nothing() -> None:
    program = parse_program("v(X) :- r(X), X > 1.")
    assert Evaluator(program, facts(r={(1,), (2,)})).first(V) == (2,)
    assert Evaluator(program, facts(r={(1,)})).first(V) is None
    assert Evaluator(program, facts(r={(7,)})).first(Predicate("r")) == (7,)


def test_an_atom_as_long_as_its_rows_only() -> None:
    with pytest.raises(ValueError, match="a row of 2 values where there are 1"):
        rows("v(X) :- r(X).", r={(1, 2)})


# ---------------------------------------------------------------------------------------------------- null


def test_null_matches_null_across_atoms() -> None:
    assert rows("v(X) :- r(X), s(X).", r={(None,), (1,)}, s={(None,)}) == {(None,)}


def test_null_matches_null_within_an_atom() -> None:
    assert rows("v(X) :- r(X, X).", r={(None, None), (None, 1)}) == {(None,)}


def test_the_constant_null_matches_null() -> None:
    assert rows("v(X) :- r(X, null).", r={(1, None), (2, 3)}) == {(1,)}


def test_a_negated_atom_is_met_by_null_too() -> None:
    assert rows("v(X) :- r(X), not s(X).", r={(None,), (1,)}, s={(None,)}) == {(1,)}


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_a_comparison_is_false_on_null(operator: str) -> None:
    assert rows(f"v(X) :- r(X, Y), X {operator} Y.", r={(None, 1), (1, None), (None, None)}) == frozenset()
    assert rows(f"v(X) :- r(X), X {operator} null.", r={(None,), (1,)}) == frozenset()
    assert rows(f"v(X) :- r(X), X {operator} X.", r={(None,)}) == frozenset()


@pytest.mark.parametrize(
    ("operator", "expected"),
    [("=", {1}), ("!=", {2, 3}), ("<", {3}), ("<=", {1, 3}), (">", {2}), (">=", {1, 2})],
)
def test_nan_is_itself_and_above_all_numbers(operator: str, expected: set[int]) -> None:
    pairs = {(1, float("nan"), math.nan), (2, math.nan, math.inf), (3, Decimal("0.5"), math.nan)}
    assert rows(f"v(I) :- r(I, X, Y), X {operator} Y.", r=pairs) == {(number,) for number in expected}


def test_equality_with_null_never_holds_and_binds_nothing() -> None:
    assert rows("v(X) :- X = null.") == frozenset()
    assert rows("v(X) :- r(X), not (X = null).", r={(None,), (1,)}) == {(None,), (1,)}


def test_null_tests() -> None:
    assert rows("v(X) :- r(X), X is null.", r={(None,), (1,)}) == {(None,)}
    assert rows("v(X) :- r(X), X is not null.", r={(None,), (1,)}) == {(1,)}
    assert rows("v :- null is null.") == {()}
    assert rows("v :- 1 is null.") == frozenset()


# ------------------------------------------------------------------------------------- families of values


@pytest.mark.parametrize(("boolean", "number"), [(True, 1), (False, 0), (True, 1.0), (False, Decimal("0.0"))])
def test_a_boolean_is_not_a_number(boolean: bool, number: Value) -> None:
    assert rows("v(X) :- r(X), s(X).", r={(boolean,)}, s={(number,)}) == frozenset()
    assert rows("v(X) :- r(X, X).", r={(boolean, number)}) == frozenset()
    assert rows("v(X) :- r(X, Y), X = Y.", r={(boolean, number)}) == frozenset()
    assert rows("v(X, Y) :- r(X, Y), X != Y.", r={(boolean, number)}) == {(boolean, number)}
    assert rows("v(X) :- r(X), not s(X).", r={(boolean,)}, s={(number,)}) == {(boolean,)}
    only = Rule(Atom(V, ()), (Atom(Predicate("r"), (Constant(boolean),)),))
    assert evaluate(Program((only,)), V, facts(r={(number,)})) == frozenset()


def test_numbers_are_equal_by_value() -> None:
    found = rows("v(X) :- r(X), s(X).", r={(1,), (2,)}, s={(1.0,), (Decimal("2.00"),)})
    assert found == {(1,), (2,)}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, "1"),
        (True, 2),
        (dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)),
        ("2024-01-01", dt.date(2024, 1, 1)),
    ],
)
def test_values_of_different_families_are_different_and_in_no_order(left: Value, right: Value) -> None:
    for operator in ("=", "<", "<=", ">", ">="):
        assert rows(f"v :- r(X, Y), X {operator} Y.", r={(left, right)}) == frozenset()
    assert rows("v :- r(X, Y), X != Y.", r={(left, right)}) == {()}


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1, Decimal("1.5")),
        ("a", "b"),
        (False, True),
        (dt.date(2024, 1, 1), dt.date(2024, 1, 2)),
        (dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 1)),
    ],
)
def test_values_of_one_family_are_ordered(low: Value, high: Value) -> None:
    def holds(operator: str, left: Value, right: Value) -> bool:
        return bool(rows(f"v :- r(X, Y), X {operator} Y.", r={(left, right)}))

    assert holds("<", low, high)
    assert holds("<=", low, low)
    assert holds(">", high, low)
    assert holds(">=", high, high)
    assert holds("!=", low, high)
    assert holds("=", low, low)
    assert not holds("<", high, low)
    assert not holds("<", low, low)
    assert not holds("!=", low, low)


# ------------------------------------------------------------------------------------------------ negation


def test_a_variable_of_a_negation_alone_is_existential() -> None:
    assert rows("v(X) :- r(X), not s(X, Y).", r={(1,), (2,)}, s={(1, 7)}) == {(2,)}


def test_two_negations_share_no_existential_variable() -> None:
    found = rows("v(X) :- r(X), not s(X, Y), not t(Y).", r={(1,)}, s={(2, 5)}, t=set())
    assert found == {(1,)}
    found = rows("v(X) :- r(X), not s(X, Y), not t(Y).", r={(1,)}, s={(2, 5)}, t={(6,)})
    assert found == frozenset()


def test_a_negation_may_stand_before_what_binds_its_variables() -> None:
    assert rows("v(X) :- not s(X), not t(Y), r(X, Y).", r={(1, 2), (3, 4)}, s={(3,)}, t={(5,)}) == {(1,)}


def test_nested_negation_is_for_all() -> None:
    """Suppliers of every part."""
    program = "v(S) :- supplies(S, _), not (part(P), not supplies(S, P))."
    found = rows(program, supplies={("a", 1), ("a", 2), ("b", 1)}, part={(1,), (2,)})
    assert found == {("a",)}


def test_three_levels_of_negation() -> None:
    program = "v(X) :- r(X), not (s(X, Y), not (t(Y), not u(Y)))."
    assert rows(program, r={(1,), (2,), (3,)}, s={(1, 5), (2, 6)}, t={(5,), (6,)}, u={(6,)}) == {(1,), (3,)}


def test_a_double_negation_binds_nothing_but_tests() -> None:
    assert rows("v(X) :- r(X), not (not s(X)).", r={(1,), (2,), (None,)}, s={(2,), (None,)}) == {
        (2,),
        (None,),
    }


def test_an_equality_inside_a_negation_binds_there() -> None:
    program = "v(X) :- r(X), not (Y = X, s(Y))."
    assert rows(program, r={(1,), (2,), (None,)}, s={(1,), (None,)}) == {(2,), (None,)}


def test_an_empty_negation_never_holds() -> None:
    assert rows("v(X) :- r(X), not ().", r={(1,)}) == frozenset()


# --------------------------------------------------------------------------------------------- order, safety


def test_filters_stand_right_behind_what_binds_them() -> None:
    rule = parse_rule("v(X) :- r(X, Y), s(Z), not t(X), Y > 1, X = Z.")
    kinds = [type(literal).__name__ for literal in binding_order(rule.body, frozenset())]
    assert kinds == ["Atom", "Negation", "Comparison", "Comparison", "Atom"]


@pytest.mark.parametrize(
    "program",
    [
        "v(X) :- r(X), Y > 1.",
        "v(X) :- r(X), X < Y.",
        "v(X) :- r(X), Y = Z.",
        "v :- X is null.",
        "v(X) :- r(X), not (s(X), Y > 2).",
        "v(X) :- r(X), not (not (Y is null)).",
    ],
)
def test_an_unsafe_filter_is_refused(program: str) -> None:
    with pytest.raises(ValueError, match="unsafe rule"):
        rows(program, r={(1,)}, s={(1,)})


def test_an_unsafe_head_is_refused() -> None:
    with pytest.raises(ValueError, match="unsafe rule"):
        rows("v(X, Y) :- r(X).", r={(1,)})
    with pytest.raises(ValueError, match="unsafe rule"):
        evaluate(Program((Rule(Atom(V, (Variable("X"),))),)), V, {})


def test_values_that_nothing_uses_are_not_gone_through() -> None:
    """Six atoms of a hundred rows each, one value in the column that counts: few steps, not a hundred to the sixth."""
    atoms = ", ".join(f"r{i}(X, Y{i})" for i in range(6))
    program = parse_program(f"p(X) :- {atoms}, not (r0(X, Z), r1(X, W), r2(X, V), r3(X, U), Z < U, U < Z).")
    rows = frozenset((1, i) for i in range(100))
    with limit(5, "six atoms"):
        found = evaluate(program, Predicate("p"), {Predicate(f"r{i}"): rows for i in range(6)})
    assert found == {(1,)}


def test_equal_values_within_an_atom_count_though_nothing_uses_them() -> None:
    program = parse_program("p(X) :- r(X, Y, Y), s(Z, Z).")
    rows = {Predicate("r"): frozenset({(1, 2, 2), (2, 2, 3)}), Predicate("s"): frozenset({(5, 5)})}
    assert evaluate(program, Predicate("p"), rows) == {(1,)}
    assert evaluate(program, Predicate("p"), {**rows, Predicate("s"): frozenset({(5, 6)})}) == frozenset()


def test_parts_share_no_variable_but_those_that_are_bound_before() -> None:
    rule = parse_rule("v(X) :- r(X, Y), s(Z), t(W), u(1), not (t(Z), t(L)), not (t(L)), Y < V, V = W.")
    shown = [[str(literal) for literal in part] for part in independent_parts(rule.body, frozenset())]
    assert [len(part) for part in shown] == [4, 2, 1, 1], shown
    apart = independent_parts(rule.body, frozenset({Variable("V"), Variable("Z")}))
    assert [len(part) for part in apart] == [2, 1, 2, 1, 1, 1]
    assert [literal for part in apart for literal in part if literal not in rule.body] == []


def test_what_shares_no_variable_is_not_combined_where_a_part_has_no_rows() -> None:
    """A hundred rows to the fourth in the body, and in the negation, of which one part has no row."""
    program = parse_program(
        "p(X, Y, Z) :- r(X), r(Y), r(Z), r(W), not (r(W)). q(X) :- r(X), not (r(A), r(B), r(C), r(D), s(D))."
    )
    rows = {Predicate("r"): frozenset((i,) for i in range(100)), Predicate("s"): frozenset({(-1,)})}
    with limit(2, "four parts"):
        assert evaluate(program, Predicate("p"), rows) == frozenset()
        assert evaluate(program, Predicate("q"), rows) == rows[Predicate("r")]


def test_what_is_combined_is_what_the_head_names() -> None:
    program = parse_program("p(X, Y) :- r(X), s(Y, Z), t(W), Z > 1. q(1) :- r(X), t(Y).")
    given = facts(r={(1,), (None,)}, s={("a", 2), ("b", 1), ("c", 3)}, t={(5,), (6,)})
    assert evaluate(program, Predicate("p"), given) == {(x, y) for x in (1, None) for y in ("a", "c")}
    assert evaluate(program, Predicate("q"), given) == {(1,)}
    assert evaluate(program, Predicate("q"), {**given, Predicate("t"): frozenset()}) == frozenset()
