"""Containment mappings, containment and minimisation, on small queries whose answers are known."""

from __future__ import annotations

import pytest

from datalog.containment import (
    contained_in,
    contained_in_union,
    containment_mapping,
    mappings,
    minimise,
    union_contained_in,
)
from datalog.model import ColumnType, Literal, Predicate, Rule, TypeName, Variable
from datalog.syntax import parse_rule, show

X, Y, Z = (Variable(name) for name in "XYZ")


def body(text: str) -> tuple[Literal, ...]:
    return parse_rule(f"v :- {text}.").body


def contained(query: str, other: str) -> bool:
    return contained_in(parse_rule(query), parse_rule(other))


def same(rule: Rule, text: str) -> bool:
    return rule == parse_rule(text)


# ------------------------------------------------------------------------------------------------ mappings


def test_every_mapping_is_found() -> None:
    found = list(mappings(body("e(X, Y)"), body("e(1, 2), e(2, 3), f(4, 5)")))
    assert [{str(v): str(t) for v, t in mapping.items()} for mapping in found] == [
        {"X": "1", "Y": "2"},
        {"X": "2", "Y": "3"},
    ]


def test_a_path_maps_onto_a_loop_but_not_back() -> None:
    path, loop = body("e(X, Y), e(Y, Z)"), body("e(X, X)")
    assert containment_mapping(path, loop) == {X: X, Y: X, Z: X}
    assert containment_mapping(loop, path) is None


def test_what_is_fixed_stays() -> None:
    source, target = body("e(X, Y)"), body("e(X, Y), e(Y, Z)")
    assert containment_mapping(source, target, {X: Y}) == {X: Y, Y: Z}
    assert containment_mapping(source, target, {X: Z}) is None


def test_constants_map_to_themselves_alone() -> None:
    assert containment_mapping(body("e(1)"), body("e(X)")) is None
    assert containment_mapping(body("e(X)"), body("e(1)")) is not None
    assert containment_mapping(body("e(null)"), body("e(null)")) == {}
    for one, other in (("1", "'1'"), ("1", "true"), ("null", "0")):
        assert containment_mapping(body(f"e({one})"), body(f"e({other})")) is None


def test_predicates_and_arities_must_agree() -> None:
    assert containment_mapping(body("e(X)"), body("e@known(X)")) is None
    assert containment_mapping(body("e(X)"), body("e(X, Y)")) is None


def test_filters_are_matched_as_written() -> None:
    target = body("e(Y), Y > 3, Y is not null")
    assert containment_mapping(body("e(X), X > 3"), target) == {X: Y}
    assert containment_mapping(body("e(X), X is not null"), target) == {X: Y}
    assert containment_mapping(body("e(X), X > 2"), target) is None
    assert containment_mapping(body("e(X), X is null"), target) is None


def test_filters_on_constants_are_decided() -> None:
    assert containment_mapping(body("e(X), X is not null"), body("e(1)")) is not None
    assert containment_mapping(body("e(X), X is not null"), body("e(null)")) is None
    assert containment_mapping(body("e(X), X is null"), body("e(null)")) is not None
    assert containment_mapping(body("e(X), X = 1"), body("e(1)")) is not None
    assert containment_mapping(body("e(X), X = null"), body("e(null)")) is None


# --------------------------------------------------------------------------------------------- containment


@pytest.mark.parametrize(
    ("query", "other"),
    [
        ("q(X) :- e(X, X).", "p(X) :- e(X, Y)."),
        ("q(X) :- e(X, Y), e(Y, X).", "p(X) :- e(X, Y), e(Z, W)."),
        ("q(X) :- e(X, 1).", "p(X) :- e(X, Y)."),
        ("q(X, X) :- e(X, X).", "p(X, Y) :- e(X, Y)."),
        ("q(1, Y) :- e(1, Y).", "p(X, Y) :- e(X, Y)."),
        ("q(X) :- r(X), r(X), s(X).", "p(X) :- r(X)."),
        ("q :- e(X, Y), e(Y, Z), e(Z, X).", "p :- e(X, Y), e(Y, Z), e(Z, W)."),
        ("q(X) :- r(X), X > 2.", "p(X) :- r(X), X > 1."),
        ("q(X) :- r(X), X > 2, X < 1.", "p(X) :- r(X)."),
        ("q(X, Y) :- e(X, Y), X <= Y, Y <= X.", "p(X, X) :- e(X, X)."),
        ("q(X) :- e(X, Y), X = 3, X < Y.", "p(X) :- e(X, Y), Y > 3."),
        ("q :- e(X, Y), e(Y, Z), X is null, Z is not null.", "p :- e(X, Y), X is null, Y is not null."),
    ],
)
def test_strictly_contained(query: str, other: str) -> None:
    assert contained(query, other)
    assert not contained(other, query)


@pytest.mark.parametrize(
    ("query", "other"),
    [
        ("q(X, Y) :- e(X, Y).", "p(Y, X) :- e(X, Y)."),
        ("q(X) :- e(X, 1).", "p(X) :- e(X, 2)."),
        ("q(X, 1) :- r(X).", "p(X, 2) :- r(X)."),
        ("q(1) :- r(1).", "p('1') :- r('1')."),
        ("q :- e(X, Y), e(Y, X).", "p :- e(X, Y), e(Y, Z), e(Z, X)."),
        ("q(X) :- r(X), X > 1.", "p(X) :- r(X), X < 2."),
        ("q(X) :- r(X), not s(X).", "p(X) :- r(X), not t(X)."),
    ],
)
def test_not_comparable(query: str, other: str) -> None:
    assert not contained(query, other)
    assert not contained(other, query)


def test_the_names_of_variables_and_heads_do_not_matter() -> None:
    one, other = parse_rule("q(X, Y) :- e(X, Y), e(Y, Z)."), parse_rule("p(Y, Z) :- e(Y, Z), e(Z, X).")
    assert contained_in(one, other)
    assert contained_in(other, one)


def test_a_cycle_of_odd_and_even_length() -> None:
    """Twice round a triangle is a closed walk of six steps; three steps round a cycle of six are none."""
    triangle = "q :- e(A, B), e(B, C), e(C, A)."
    six = "p :- e(A, B), e(B, C), e(C, D), e(D, E), e(E, F), e(F, A)."
    assert contained(triangle, six)
    assert not contained(six, triangle)


def test_a_stored_null_joins_so_a_guard_makes_a_query_smaller() -> None:
    guarded, plain = "q(X) :- r(X), s(X), X is not null.", "p(X) :- r(X), s(X)."
    assert contained(guarded, plain)
    assert not contained(plain, guarded)


def test_a_query_with_a_negation_of_its_own_is_contained_in_itself() -> None:
    rule = parse_rule("q(X) :- r(X), not (s(X, Y), not t(Y, Z)).")
    assert contained_in(rule, rule)


def test_an_existential_variable_of_a_negation_is_not_captured() -> None:
    """`not s(X, Y)` says of every Y in the one query, and of the bound one in the other."""
    every, bound = "q(X) :- r(X), not s(X, Y).", "p(X) :- r(X), t(Y), not s(X, Y)."
    assert not contained(bound, every)
    assert not contained("p(Y) :- r(Y), not s(Y, Y).", every)
    assert not contained("p(X) :- r(X), t(?`Y'`), not s(X, ?`Y'`).", every)


def test_unions() -> None:
    small = [parse_rule("q(X) :- r(X, 1)."), parse_rule("q(X) :- s(X), t(X).")]
    large = [parse_rule("p(X) :- r(X, Y)."), parse_rule("p(X) :- s(X).")]
    assert union_contained_in(small, large)
    assert not union_contained_in(large, small)
    assert union_contained_in([], large)
    assert not union_contained_in(small, [])


# -------------------------------------------------------------------------------------------- minimisation


@pytest.mark.parametrize(
    ("rule", "smallest"),
    [
        ("q(X) :- e(X, Y), e(X, Z).", "q(X) :- e(X, Z)."),
        ("q(X, Y) :- e(X, Y), e(X, Z).", "q(X, Y) :- e(X, Y)."),
        ("q(X) :- e(X, X), e(X, Y), e(Y, Z).", "q(X) :- e(X, X)."),
        ("q(X) :- r(X), r(X).", "q(X) :- r(X)."),
        ("q(X) :- e(X, Y), e(X, 1).", "q(X) :- e(X, 1)."),
        ("q(X) :- e(X, Y), e(Y, X).", "q(X) :- e(X, Y), e(Y, X)."),
        ("q(X, Z) :- e(X, Y), e(Y, Z), e(X, W).", "q(X, Z) :- e(X, Y), e(Y, Z)."),
    ],
)
def test_minimise(rule: str, smallest: str) -> None:
    assert show(minimise(parse_rule(rule))) == show(parse_rule(smallest))


def test_a_filter_keeps_its_atom() -> None:
    assert same(minimise(parse_rule("q(X) :- e(X, Y), e(X, Z), Y > 3.")), "q(X) :- e(X, Y), Y > 3.")
    both = "q(X) :- e(X, Y), e(X, Z), Y > 3, Z > 4."
    assert same(minimise(parse_rule(both)), both)


@pytest.mark.parametrize(
    ("rule", "smallest"),
    [
        ("q(X) :- e(X, Y), e(X, Z), Y > 3, Z > 3.", "q(X) :- e(X, Z), Z > 3."),
        ("q(X) :- e(X, Y), e(X, Z), Y is null, Z is null.", "q(X) :- e(X, Z), Z is null."),
        ("q(X) :- e(X, Y), e(X, Z), not s(Y), not s(Z).", "q(X) :- e(X, Z), not s(Z)."),
        ("q(X) :- e(X, Y), e(X, Z), not s(Y, W), not s(Z, W).", "q(X) :- e(X, Z), not s(Z, W)."),
    ],
)
def test_filters_go_with_the_atom_that_bound_them(rule: str, smallest: str) -> None:
    """Left behind, `not s(Y)` would mean that there is no row in s at all."""
    assert same(minimise(parse_rule(rule)), smallest)


# ------------------------------------------------------------------------------ orders that need several mappings


def test_every_order_is_answered_by_another_mapping() -> None:
    """Neither mapping answers alone: of two numbers, one is at most the other. Of a number and a string none is."""
    query, other = parse_rule("q :- e(X, Y), e(Y, X), X < 9, Y < 9."), parse_rule("p :- e(X, Y), X <= Y.")
    assert contained_in(query, other)
    assert not contained_in(parse_rule("q :- e(X, Y), e(Y, X)."), other)
    assert not contained_in(parse_rule("q :- e(X, Y), e(Y, X), X is not null, Y is not null."), other)


def test_types_decide_what_lies_between() -> None:
    query, other = parse_rule("q(X) :- r(X), X > 2, X < 4."), parse_rule("p(3) :- r(3).")
    assert not contained_in(query, other)
    assert contained_in(query, other, {Predicate("r"): (ColumnType(TypeName.INT),)})


def test_a_union_contains_what_no_member_does() -> None:
    query = parse_rule("q(X) :- r(X), X > 0.")
    members = [parse_rule("p(X) :- r(X), X < 5."), parse_rule("p(X) :- r(X), X >= 5.")]
    assert union_contained_in([query], members)
    assert not any(contained_in(query, member) for member in members)
    assert not union_contained_in([parse_rule("q(X) :- r(X).")], members)


def test_beyond_the_budget_nothing_is_claimed() -> None:
    query, other = parse_rule("q :- e(X, Y), e(Y, X), X < 9, Y < 9."), parse_rule("p :- e(X, Y), X <= Y.")
    assert contained_in_union(query, [other])
    assert not contained_in_union(query, [other], budget=1)


def test_negations_are_carried_over_as_written() -> None:
    query = "q(X) :- r(X), not s(X), X > 2."
    assert contained(query, "p(X) :- r(X), not s(X), X > 1.")
    assert not contained(query, "p(X) :- r(X), not t(X), X > 1.")
    assert not contained("q(X) :- r(X), X > 2.", "p(X) :- r(X), not s(X), X > 1.")


def test_what_an_equality_binds_is_no_atom() -> None:
    assert contained("q(X) :- r(X), X = 3.", "p(Y) :- r(X), Y = 3.")
    assert contained("q(Y) :- r(X), Y = X.", "p(X) :- r(X), X is not null.")
    assert not contained("q(X) :- r(X).", "p(Y) :- r(X), Y = X.")
