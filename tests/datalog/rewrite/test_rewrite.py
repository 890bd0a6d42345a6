"""Each rewrite on small programs: what it makes of them, and where it must leave them alone."""

from __future__ import annotations

import pytest

from datalog.evaluate import evaluate
from datalog.model import Atom, Predicate, Program, Row, Rule
from datalog.rewrite import (
    demand,
    drop_empty,
    drop_implied_negations,
    drop_subsumed,
    drop_unreachable,
    drop_unused_columns,
    guard_joins,
    guarded_variables,
    is_plain,
    propagate_equalities,
    simplify,
    simplify_comparisons,
    unfold,
    unfold_negation,
    unfold_single_rules,
    without_given,
)
from datalog.rewrite.reachable import asks_for_null
from datalog.syntax import parse_program, parse_rule, show

V = Predicate("v")


def lines(program: Program) -> list[str]:
    return [show(rule) for rule in program.rules]


def shown(*rules: str) -> list[str]:
    return [show(parse_rule(rule)) for rule in rules]


def rows(program: Program, **relations: set[Row]) -> frozenset[Row]:
    return evaluate(program, V, {Predicate(name): frozenset(found) for name, found in relations.items()})


def unfolded(text: str, *names: str) -> Program:
    program = parse_program(text)
    return unfold(program, {Predicate(n): program.rules_for(Predicate(n))[0] for n in names})


# -------------------------------------------------------------------------------------------------- unfold


def test_unfold_puts_the_body_in_place_of_the_atom() -> None:
    program = unfolded("v(X, Z) :- p(X, Y), s(Y, Z). p(A, B) :- r(B, A, C).", "p")
    assert lines(program) == shown("v(X, Z) :- r(Y, X, C_1), s(Y, Z).")


def test_unfold_inside_a_negation() -> None:
    program = unfolded("v(Z) :- t(Z), not known(Z). known(Z) :- v1(X, Y, Z).", "known")
    assert lines(program) == shown("v(Z) :- t(Z), not v1(X_1, Y_1, Z).")


def test_unfold_inside_nested_negations() -> None:
    program = unfolded("v(X) :- r(X), not (s(X, Y), not p(Y)). p(A) :- t(A, B), not u(B).", "p")
    assert lines(program) == shown("v(X) :- r(X), not (s(X, Y), not (t(Y, B_1), not u(B_1))).")


def test_unfold_uses_each_time_new_variables() -> None:
    program = unfolded("v(X, Y) :- p(X), p(Y). p(A) :- r(A, B).", "p")
    assert lines(program) == shown("v(X, Y) :- r(X, B_1), r(Y, B_2).")


def test_unfold_captures_no_variable() -> None:
    """The definition's own variables are called as those of the rule are, or would be."""
    program = unfolded("v(B, B_1) :- p(B), t(B_1). p(A) :- r(A, B), not s(B).", "p")
    assert lines(program) == shown("v(B, B_1) :- r(B, B_2), not s(B_2), t(B_1).")
    assert rows(program, r={(1, 2)}, t={(3,)}) == {(1, 3)}


def test_unfold_captures_no_variable_of_a_negation() -> None:
    program = unfolded("v(X) :- r(X), not (p(X), s(Y)). p(X) :- e(X, Y).", "p")
    assert lines(program) == shown("v(X) :- r(X), not (e(X, Y_1), s(Y)).")


def test_a_head_constant_goes_into_the_rule() -> None:
    program = unfolded("v(X, Y) :- p(X, Y), s(Y). p(A, 'c') :- r(A).", "p")
    assert lines(program) == shown("v(X, 'c') :- r(X), s('c').")


def test_a_head_constant_that_cannot_be_met_drops_the_rule() -> None:
    assert lines(unfolded("v(X) :- p(X, 'd'). v(X) :- q(X). p(A, 'c') :- r(A).", "p")) == shown(
        "v(X) :- q(X)."
    )


def test_a_head_constant_that_cannot_be_met_drops_the_negation() -> None:
    program = unfolded("v(X) :- q(X), not p(X, 'd'). p(A, 'c') :- r(A).", "p")
    assert lines(program) == shown("v(X) :- q(X).")


def test_a_head_constant_in_a_negation_is_compared_with_what_is_bound_outside() -> None:
    program = unfolded("v(X, Y) :- q(X, Y), not p(X, Y). p(A, 'c') :- r(A).", "p")
    assert lines(program) == shown("v(X, Y) :- q(X, Y), not (r(X), Y = 'c').")
    assert rows(program, q={(1, "c"), (1, None), (2, "c")}, r={(1,)}) == {(1, None), (2, "c")}


def test_a_head_constant_in_a_negation_replaces_what_is_bound_inside() -> None:
    program = unfolded("v(X) :- q(X), not (p(X, Y), s(Y)). p(A, 'c') :- r(A).", "p")
    assert lines(program) == shown("v(X) :- q(X), not (r(X), s('c')).")


def test_a_repeated_head_variable_makes_the_actual_ones_equal_null_too() -> None:
    program = unfolded("v(X, Y) :- p(X, Y), s(Y). p(A, A) :- r(A).", "p")
    assert lines(program) == shown("v(X, X) :- r(X), s(X).")
    assert rows(program, r={(None,), (1,)}, s={(None,)}) == {(None, None)}


def test_a_repeated_head_variable_meets_a_constant() -> None:
    program = unfolded("v(X) :- p(X, 1). p(A, A) :- r(A).", "p")
    assert lines(program) == shown("v(1) :- r(1).")
    assert lines(unfolded("v(X) :- q(X), not p(X, 1). p(A, A) :- r(A), A is not null.", "p")) == shown(
        "v(X) :- q(X), not (r(X), X is not null, X = 1)."
    )


@pytest.mark.parametrize(
    "definition", ["p(X, 'c', X) :- r(X).", "p('c', X, X) :- r(X).", "p(X, X, 'c') :- r(X)."]
)
@pytest.mark.parametrize("use", ["p(A, A, B)", "p(A, B, A)", "p(B, A, A)", "p(A, A, A)"])
def test_repeated_variables_and_constants_on_both_sides(definition: str, use: str) -> None:
    head = "v(A, B)" if "B" in use else "v(A)"
    before = parse_program(f"{head} :- {use}. {definition}")
    after = unfold(before, {Predicate("p"): before.rules[1]})
    assert after.rules_for(Predicate("p")) == ()
    for r in ({("c",)}, {("d",)}, {("c",), ("d",), (None,)}):
        assert rows(after, r=r) == rows(before, r=r)


@pytest.mark.parametrize("use", ["p(A, A, B)", "p(A, B, A)", "p(B, A, A)", "p(Q, A, B)", "p(A, Q, A)"])
def test_repeated_variables_and_constants_on_both_sides_of_a_negation(use: str) -> None:
    before = parse_program(f"v(Q) :- q(Q), not ({use}, t(A)). p(X, 'c', X) :- r(X), X is not null.")
    after = unfold(before, {Predicate("p"): before.rules[1]})
    assert after.rules_for(Predicate("p")) == ()
    q: set[Row] = {("c",), ("d",), (None,)}
    for r in ({("c",)}, {("d",)}, {(None,)}):
        for t in ({("c",)}, {("d",)}):
            assert rows(after, q=q, r=r, t=t) == rows(before, q=q, r=r, t=t)


def test_only_a_plain_rule_can_stand_anywhere() -> None:
    assert is_plain(parse_rule("p(X, 'c') :- r(X)."))
    assert is_plain(parse_rule("p(X, X) :- r(X), X is not null."))
    assert not is_plain(parse_rule("p(X, X) :- r(X)."))
    assert not is_plain(parse_rule("p(X, null) :- r(X)."))


def test_what_is_not_plain_stays() -> None:
    text = "v(X) :- q(X), not p(X, X). p(A, A) :- r(A)."
    program = unfold_single_rules(parse_program(text), [V])
    assert lines(program) == lines(parse_program(text))
    assert rows(program, q={(None,), (1,)}, r={(None,)}) == {(1,)}


def test_single_rules_are_unfolded_from_the_inside_out() -> None:
    program = unfold_single_rules(parse_program("v(X) :- p(X). p(X) :- q(X, Y). q(X, Y) :- r(Y, X)."), [V])
    assert lines(program) == shown("v(X) :- r(Y_1, X).")
    assert rows(program, r={(1, 2)}) == {(2,)}


def test_several_rules_and_goals_are_not_unfolded() -> None:
    text = "v(X) :- p(X), w(X). p(X) :- q(X). p(X) :- r(X). w(X) :- s(X)."
    program = unfold_single_rules(parse_program(text), [V, Predicate("w")])
    assert lines(program) == lines(parse_program(text))


def test_an_unfolded_fact_leaves_nothing_but_its_constants() -> None:
    assert lines(unfolded("v(X) :- p(X). p(1).", "p")) == shown("v(1).")
    program = unfolded("v(X) :- q(X), not p(1). p(1).", "p")
    assert rows(program, q={(1,)}) == frozenset()


def test_a_negation_apart_from_its_rule() -> None:
    rule = parse_rule("v(X, Y) :- q(X, Y), not p(X, Y).")
    negation = rule.body[1]
    definitions = {Predicate("p"): parse_rule("p(A, 'c') :- r(A, B).")}
    found = unfold_negation(negation, definitions, frozenset(rule.atoms[0].terms), "n")  # type: ignore[arg-type]
    assert found == parse_rule("v :- not (r(X, B_n1), Y = 'c').").body[0]
    never = parse_rule("v :- not p(X, 'd').").body[0]
    assert unfold_negation(never, definitions, frozenset(), "n") is None  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------- drop_empty


def test_drop_empty_drops_rules_and_negations() -> None:
    program = parse_program("a(X) :- r@known(X), not r@deleted(X). a(X) :- r@inserted(X).")
    gone = [rule.body[0].predicate for rule in program.rules[1:] if isinstance(rule.body[0], Atom)]
    deleted = parse_rule("a :- r@deleted(X).").atoms[0].predicate
    assert lines(drop_empty(program, [*gone, deleted])) == shown("a(X) :- r@known(X).")


def test_drop_empty_spreads_to_what_loses_all_its_rules() -> None:
    program = parse_program("p(X) :- e(X). q(X) :- p(X). q(X) :- r(X). v(X) :- q(X), not p(X).")
    assert lines(drop_empty(program, [Predicate("e")])) == shown("q(X) :- r(X).", "v(X) :- q(X).")


def test_drop_empty_in_nested_negations() -> None:
    empty = [Predicate("e")]
    nested = parse_program("v(X) :- r(X), not (s(X, Y), not e(Y)).")
    assert lines(drop_empty(nested, empty)) == shown("v(X) :- r(X), not s(X, Y).")
    assert lines(drop_empty(parse_program("v(X) :- r(X), not (not e(X))."), empty)) == []
    inner = parse_program("v(X) :- r(X), not (s(X), not (t(X), e(X))).")
    assert lines(drop_empty(inner, empty)) == shown("v(X) :- r(X), not s(X).")


# --------------------------------------------------------------------------------- unreachable and subsumed


def test_drop_unreachable_looks_into_negations() -> None:
    program = parse_program("v(X) :- r(X), not (s(X), not p(X)). p(X) :- q(X). q(X) :- t(X). w(X) :- p(X).")
    assert lines(drop_unreachable(program, [V])) == lines(program)[:3]


def test_drop_subsumed_keeps_the_larger_rule_wherever_it_stands() -> None:
    small, large = "p(X) :- r(X, Y), s(Y).", "p(X) :- r(X, Y)."
    assert lines(drop_subsumed(parse_program(small + large))) == shown(large)
    assert lines(drop_subsumed(parse_program(large + small))) == shown(large)


def test_drop_subsumed_keeps_the_first_of_two_equivalent_rules() -> None:
    first, second = "p(X) :- r(X, Y), r(X, Z).", "p(A) :- r(A, B)."
    assert lines(drop_subsumed(parse_program(first + second))) == shown(first)


def test_drop_subsumed_compares_rules_of_one_predicate_only() -> None:
    text = "p(X) :- r(X). q(X) :- r(X), s(X)."
    assert lines(drop_subsumed(parse_program(text))) == lines(parse_program(text))


def test_drop_subsumed_heeds_constants_guards_and_negations() -> None:
    for kept in (
        "p(X, 1) :- r(X). p(X, 2) :- r(X).",
        "p(X) :- r(X), X > 1. p(X) :- r(X), X < 2.",
        "p(X) :- r(X), not s(X). p(X) :- r(X), not t(X).",
        "p(X) :- r(X), not s(X, Y). p(X) :- r(X), t(Y), not s(X, Y).",
    ):
        assert lines(drop_subsumed(parse_program(kept))) == lines(parse_program(kept))
    guarded = "p(X) :- r(X), X is not null. p(X) :- r(X)."
    assert lines(drop_subsumed(parse_program(guarded))) == shown("p(X) :- r(X).")
    twice = "p(X) :- r(X), not s(X, Y). p(X) :- r(X), t(X), not s(X, Y)."
    assert lines(drop_subsumed(parse_program(twice))) == shown("p(X) :- r(X), not s(X, Y).")


# ----------------------------------------------------------------------------------------------- negations


@pytest.mark.parametrize(
    ("rule", "shorter"),
    [
        ("d(X) :- c(X), not p(X), not (p(X), q(X, Y)).", "d(X) :- c(X), not p(X)."),
        ("d(X) :- c(X), not (p(X), q(X, Y)), not p(X).", "d(X) :- c(X), not p(X)."),
        ("d(X) :- c(X), not p(X), not p(X).", "d(X) :- c(X), not p(X)."),
        ("d(X) :- c(X), not q(X, Y), not q(X, 1).", "d(X) :- c(X), not q(X, Y)."),
        ("d(X) :- c(X), not q(A, B), not q(X, X).", "d(X) :- c(X), not q(A, B)."),
        ("d(X) :- c(X), not q(X, A), not (q(X, B), B > 1).", "d(X) :- c(X), not q(X, A)."),
        ("d(X) :- c(X), not (), not p(X).", "d(X) :- c(X), not ()."),
    ],
)
def test_drop_implied_negations(rule: str, shorter: str) -> None:
    assert show(drop_implied_negations(parse_rule(rule))) == show(parse_rule(shorter))


@pytest.mark.parametrize(
    "rule",
    [
        "d(X) :- c(X, Y), not p(X), not p(Y).",
        "d(X) :- c(X, Y), not q(X, 1), not q(X, Y).",
        "d(X) :- c(X), not (q(X, B), B > 1), not (q(X, B), B > 2).",
        # The Z of the first belongs to its inner negation alone, in the second r binds it.
        "d(X) :- c(X), not (p(X, Y), not q(Y, Z)), not (p(X, Y), r(Z), not q(Y, Z)).",
        # X would become Z, which the inner negation of the first has for itself.
        "d(A) :- c(A), not (p(X), not q(X, Z)), not (p(Z), not q(Z, Z)).",
    ],
)
def test_negations_that_say_more_stay(rule: str) -> None:
    assert show(drop_implied_negations(parse_rule(rule))) == show(parse_rule(rule))


@pytest.mark.parametrize(
    ("rule", "shorter"),
    [
        ("d(X) :- p(X, Y), not (p(X, Y), q(Y)).", "d(X) :- p(X, Y), not q(Y)."),
        ("d(X) :- p(X, Y), X > 1, not (X > 1, q(Y, Z)).", "d(X) :- p(X, Y), X > 1, not q(Y, Z)."),
        ("d(X) :- p(X, Y), not (q(Y, Z), not (q(Y, Z), r(Z))).", "d(X) :- p(X, Y), not (q(Y, Z), not r(Z))."),
        ("d(X) :- p(X, Y), not (q(Y), not p(X, Y)).", "d(X) :- p(X, Y)."),
        ("d(X) :- p(X, Y), not (q(Y), not (q(Y), p(X, Y))).", "d(X) :- p(X, Y)."),
        ("d(X) :- p(X, Y), not (p(X, Z), q(Z)).", "d(X) :- p(X, Y), not (p(X, Z), q(Z))."),
    ],
)
def test_negations_do_not_say_again_what_holds(rule: str, shorter: str) -> None:
    found = without_given(parse_rule(rule))
    assert found is not None
    assert show(found) == show(parse_rule(shorter))


def test_a_rule_that_denies_itself_has_no_rows() -> None:
    assert without_given(parse_rule("d(X) :- p(X, Y), not p(X, Y).")) is None


# --------------------------------------------------------------------------------------- equalities, guards


@pytest.mark.parametrize(
    ("rule", "after"),
    [
        ("v(X, Y) :- r(X, Y), X = 'a'.", "v('a', Y) :- r('a', Y)."),
        ("v(X, Y) :- r(X, Y), 'a' = X.", "v('a', Y) :- r('a', Y)."),
        ("v(X, Y) :- r(X, Y), X = Y.", "v(Y, Y) :- r(Y, Y), Y is not null."),
        ("v(X) :- r(X, Y), s(Z), X = Y, Y = Z.", "v(Z) :- r(Z, Z), s(Z), Z is not null."),
        ("v(X) :- r(X, Y), X = Y, Y = 1.", "v(1) :- r(1, 1), 1 is not null."),
        ("v(X) :- r(X), Y = 2, not s(X, Y).", "v(X) :- r(X), not s(X, 2)."),
        ("v(X) :- X = 3.", "v(3)."),
    ],
)
def test_propagate_equalities(rule: str, after: str) -> None:
    found = propagate_equalities(parse_rule(rule))
    assert show(found) == show(parse_rule(after))
    assert propagate_equalities(found) == found


@pytest.mark.parametrize(
    "rule",
    [
        "v(X) :- r(X), X = null.",
        "v(X) :- r(X), null = X.",
        "v(X) :- r(X), X = X.",
        "v(X) :- r(X), not (s(Y), X = Y).",
        "v(X) :- r(X), 1 = 2.",
        "v(X) :- r(X, Y), X < Y.",
    ],
)
def test_equalities_that_stay(rule: str) -> None:
    assert propagate_equalities(parse_rule(rule)) == parse_rule(rule)


def test_an_equality_lets_no_null_through() -> None:
    before = parse_rule("v(X, Y) :- r(X, Y), X = Y.")
    for rule in (before, propagate_equalities(before)):
        assert rows(Program((rule,)), r={(None, None), (1, 1), (1, 2)}) == {(1, 1)}
    never = propagate_equalities(parse_rule("v(X, Y) :- r(X, Y), X = Y, Y = null."))
    assert rows(Program((never,)), r={(None, None), (1, 1)}) == frozenset()


def test_guard_joins_guards_what_stands_twice_in_positive_atoms() -> None:
    def guarded(rule: str) -> Rule:
        return guard_joins(parse_rule(rule))

    assert show(guarded("v(X, Y) :- r(X, Y), s(Y).")) == show(
        parse_rule("v(X, Y) :- r(X, Y), s(Y), Y is not null.")
    )
    assert show(guarded("v(X) :- r(X, X).")) == show(parse_rule("v(X) :- r(X, X), X is not null."))
    for alone in ("v(X, X) :- r(X).", "v(X) :- r(X), not s(X).", "v(X) :- r(X, Y), X < Y, X > 1."):
        assert guarded(alone) == parse_rule(alone)
    once = guarded("v(X) :- r(X), s(X), X is not null.")
    assert once == parse_rule("v(X) :- r(X), s(X), X is not null.")
    assert guard_joins(guarded("v(X) :- r(X), s(X), t(X).")) == guarded("v(X) :- r(X), s(X), t(X).")


def test_guarded_variables_come_in_order_of_appearance() -> None:
    body = parse_rule("v :- r(A, B, C), s(C, B), not t(A).").body
    assert [v.name for v in guarded_variables(body)] == ["B", "C"]


def test_a_guarded_join_matches_no_null() -> None:
    rule = parse_rule("v(X) :- r(X), s(X).")
    null: set[Row] = {(None,), (1,)}
    assert rows(Program((rule,)), r=null, s=null) == {(None,), (1,)}
    assert rows(Program((guard_joins(rule),)), r=null, s=null) == {(1,)}


# ------------------------------------------------------------------------------------------------ pipeline


def test_simplify_does_all_of_it() -> None:
    program = parse_program(
        """
        v(X) :- p(X, Y), Y = 'a', not q(X), not (q(X), s(X)).
        v(X) :- r(X, 'a', Z), u(Z), not q(X).
        p(X, Y) :- r(X, Y, Z).
        q(X) :- t(X).
        w(X) :- q(X).
        """
    )
    assert lines(simplify(program, [V])) == shown("v(X) :- r(X, 'a', Z_1), not t(X).")


# --------------------------------------------------------------------------------------------- comparisons


def simplified(text: str, *goals: str) -> list[str]:
    return lines(simplify_comparisons(parse_program(text), [Predicate(name) for name in goals]))


def test_comparisons_are_simplified_with_the_columns_types() -> None:
    text = "v(X, Y) :- r(X, Y), X > 2, X < 4, Y > 1, Y >= X, Y != 1."
    assert simplified(text) == shown("v(X, Y) :- r(X, Y), X > 2, X < 4, Y >= X.")
    assert simplified(".decl r(x: int, y: int)." + text) == shown("v(3, Y) :- r(3, Y), Y >= 3.")


def test_a_constant_is_put_in_as_the_column_holds_it() -> None:
    program = parse_program(".decl r(x: double). v(X) :- r(X), X <= 3, X >= 3.")
    assert lines(simplify_comparisons(program)) == ["v(3.0e0) :- r(3.0e0)."]


def test_what_a_dropped_comparison_said_of_null_stays() -> None:
    assert simplified("v(X) :- r(X, Y), X <= Y, Y <= X.") == shown("v(X) :- r(X, X), X is not null.")
    assert simplified(".decl r(x: tinyint). v(X) :- r(X), X < 200.") == shown("v(X) :- r(X), X is not null.")
    assert simplified("v(X) :- r(X), X is not null, X > 1.") == shown("v(X) :- r(X), X > 1.")


def test_rules_without_rows_are_dropped_and_so_is_what_needs_them() -> None:
    text = "p(X) :- r(X), X < 3, X > 5. v(X) :- r(X), not p(X). v(X) :- p(X)."
    assert simplified(text, "v") == shown("v(X) :- r(X).")
    assert simplified("v(X) :- r(X), X is null, X > 5. v(X) :- r(X).") == shown("v(X) :- r(X).")


def test_a_goal_keeps_its_last_rule() -> None:
    empty = "v(X) :- r(X), X < 3, X > 5."
    assert simplified(empty, "v") == shown(empty)
    assert simplified(empty + "v(X) :- r(X), X < 3, X > 6.", "v") == shown(empty)
    assert simplified(empty) == []


def test_negations_that_always_hold_are_dropped() -> None:
    assert simplified("v(X) :- r(X), not (s(X, Y), Y < 3, Y > 5).") == shown("v(X) :- r(X).")
    assert simplified(".decl s(y: boolean). v(X) :- r(X), not (s(Y), Y > true).") == shown("v(X) :- r(X).")
    kept = "v(X) :- r(X), not (s(X, Y), Y < 5, Y > 3)."
    assert simplified(kept) == shown(kept)
    twice = "v(X) :- r(X), not (s(X), not (t(X, Y), Y < 3, Y > 5))."
    assert simplified(twice) == shown("v(X) :- r(X), not s(X).")


def test_inferred_decimals_are_no_grid() -> None:
    """Their scale is cut where there are too many digits, which stored values need not heed."""
    text = ".decl r(x: decimal(38,0), y: decimal(38,38)). p(X) :- r(X, _). p(Y) :- r(_, Y). v(X) :- p(X), X > 1, X < 2."
    assert simplified(text)[-1:] == shown("v(X) :- p(X), X > 1, X < 2.")


# ----------------------------------------------------------------------------------------------- null tests


@pytest.mark.parametrize(
    ("rule", "is_kept"),
    [
        ("v(X) :- r(X, Y), X is null.", False),
        ("v(X) :- r(X, Y), not (X is not null).", False),
        ("v(X) :- r(X, Y), not (X is not null, Y is not null).", True),  # the other may be
        ("v(X) :- r(X, Y), s(Y), not (X is not null, Y is not null).", False),
        ("v(X) :- r(X, Y), not (X is not null, s(Y)).", True),
        ("v(X) :- r(X, Y), not (X is null).", True),
        ("v(X) :- r(X, Y), X is not null.", True),
        ("v(X) :- r(X, Y), Y is null.", True),
        ("v(X) :- t(X), not (r(X, Y), X is null).", True),
        ("v(X) :- t(X), not r(X, _), X is null.", True),  # a negated atom binds nothing
    ],
)
def test_tests_for_null_where_none_is_stored(rule: str, is_kept: bool) -> None:
    never_null = {Predicate("r"): {0}, Predicate("s"): {0}}
    assert asks_for_null(parse_rule(rule), never_null) is not is_kept


# -------------------------------------------------------------------------------------------------- demand


def demanded(
    text: str, goal: str, *small: str, by: tuple[int, ...] | None = None, all_few: bool = False
) -> list[str]:
    program, goals = parse_program(text), [Predicate(goal)]
    choose = (lambda _p, columns: columns) if by is None else (lambda _p, _columns: by)
    found = demand(program, goals, {Predicate(name) for name in small}, choose=choose, all_few=all_few)
    return lines(drop_unused_columns(found, goals))


def test_a_large_relation_is_read_for_the_keys_of_a_small_one() -> None:
    assert demanded("v(X, Z) :- a(Y, Z, U), new(X, Y).", "v", "new") == [
        "v(X, Z) :- new(X, Y), a@demanded_0(Y, Z).",
        "a@demanded_0(X0, X1) :- a@demand_0(X0), a(X0, X1, X2).",
        "a@demand_0(Y) :- new(X, Y).",
    ]


def test_joins_inside_a_negation_start_from_what_is_bound_around_it() -> None:
    assert demanded("v(X) :- new(X, Y), not (a(Y, Z), b(Z, X)).", "v", "new") == [
        "v(X) :- new(X, Y), not step@step_1(X, Y).",
        "step@step_1(X0, X1) :- step@step_0(X0, X1, X2), b@demanded_1(X2, X0).",
        "b@demanded_1(X0, X1) :- b@demand_1(X0, X1), b(X0, X1).",
        "b@demand_1(Z, X) :- step@step_0(X, Y, Z).",
        "step@step_0(X0, X1, X2) :- new(X0, X1), a@demanded_0(X1, X2).",
        "a@demanded_0(X0, X1) :- a@demand_0(X0), a(X0, X1).",
        "a@demand_0(Y) :- new(X, Y).",
    ]


def test_of_few_rows_a_negation_and_what_binds_it_come_before_what_adds_to_the_bindings() -> None:
    rule = "v(X, V) :- new(X), c(X, V), a(X, Y, Z, U), not b(Y, Z)."
    assert demanded(rule, "v", "new")[0] == "v(X, V) :- step@step_1(X, V, Y, Z), not b@demanded_2(Y, Z)."
    assert demanded(rule, "v", "new", all_few=True) == [
        "v(X, V) :- step@step_1(X), c@demanded_2(X, V).",
        "c@demanded_2(X0, X1) :- c@demand_2(X0), c(X0, X1).",
        "c@demand_2(X) :- step@step_1(X).",
        "step@step_1(X0) :- step@step_0(X0, X1, X2), not b@demanded_1(X1, X2).",
        "b@demanded_1(X0, X1) :- b@demand_1(X0, X1), b(X0, X1).",
        "b@demand_1(Y, Z) :- step@step_0(X, Y, Z).",
        "step@step_0(X0, X1, X2) :- new(X0), a@demanded_0(X0, X1, X2).",
        "a@demanded_0(X0, X1, X2) :- a@demand_0(X0), a(X0, X1, X2, X3).",
        "a@demand_0(X) :- new(X).",
    ]


def test_a_negation_that_shares_no_variable_comes_last() -> None:
    for all_few in (True, False):
        assert demanded("v(X) :- new(X), not b(_), a(X, Y), c(Y).", "v", "new", all_few=all_few)[0] == (
            "v(X) :- step@step_0(X, Y), c@demanded_1(Y), not b(_)."
        )


def test_demands_of_several_rules_are_one() -> None:
    program = parse_program("v(X) :- new(X, Y), a(Y, Z), b(Z). w(X) :- new(X, Y), not a(Y, _).")
    goals = [V, Predicate("w")]
    rules = lines(drop_unused_columns(demand(program, goals, {Predicate("new")}), goals))
    assert [rule for rule in rules if " a(" in rule] == ["a@demanded_0(X0, X1) :- a@demand_0(X0), a(X0, X1)."]
    assert "w(X) :- new(X, Y), not a@projected_0_0(Y)." in rules


def test_demands_apart_have_rows_of_their_own() -> None:
    program = parse_program("v(X) :- new(X), a(X). w(X) :- old(X), a(X). u(X) :- new(X), a(X), b(X).")
    goals = [Predicate("v"), Predicate("w"), Predicate("u")]
    found = demand(program, goals, {Predicate("new"), Predicate("old")}, together=False)
    assert [rule for rule in lines(found) if "a@demand_" in rule.partition(" :-")[0]] == [
        "a@demand_0(X) :- new(X).",
        "a@demand_1(X) :- old(X).",
    ]


def test_a_relation_met_again_by_its_own_rows_is_demanded_again() -> None:
    rules = demanded("v(Z) :- new(X), a(X, Y), a(Y, Z).", "v", "new")
    assert "a@demand_0(X) :- new(X)." in rules
    assert "a@demand_1(Y) :- step@step_0(Y)." in rules


def test_what_several_rules_define_is_demanded_rule_by_rule() -> None:
    rules = demanded(
        "v(X) :- new(X), known(X, 1). known(X, Y) :- a(X, Y). known(X, Y) :- b(Y, X).", "v", "new"
    )
    assert "known@demanded_0(X, Y) :- known@demand_0(X), a@demanded_1(X, Y)." in rules
    assert [rule for rule in rules if rule.startswith(("a@demand_", "b@demand_"))] == [
        "b@demand_2(X) :- known@demand_0(X).",
        "a@demand_1(X) :- known@demand_0(X).",
    ]


def test_rows_are_demanded_by_the_columns_that_are_chosen() -> None:
    assert demanded("v(X, Y) :- new(X, Y), a(X, Y).", "v", "new", by=(1,)) == [
        "v(X, Y) :- new(X, Y), a@demanded_0(X, Y).",
        "a@demanded_0(X0, X1) :- a@demand_0(X1), a(X0, X1).",
        "a@demand_0(Y) :- new(X, Y).",
    ]


def test_what_nothing_restricts_is_read_whole() -> None:
    assert demanded("v(Y) :- new(X), a(Y).", "v", "new") == ["v(Y) :- new(X), a(Y)."]


def test_an_unused_column_goes_and_a_variable_of_two_negations_is_no_use() -> None:
    text = "v(X) :- new(X), p(X, Y), not (p(X, Z), s(Z)), not t(Z). p(X, Y) :- r(X, Y, Z)."
    assert lines(drop_unused_columns(parse_program(text), [V])) == shown(
        "v(X) :- new(X), p(X, Y), not (p(X, Z), s(Z)), not t(Z).", "p(X, Y) :- r(X, Y, Z)."
    )
    assert lines(drop_unused_columns(parse_program("v(X) :- p(X, Y). p(X, Y) :- r(X, Y)."), [V])) == shown(
        "v(X) :- p(X).", "p(X) :- r(X, Y)."
    )
