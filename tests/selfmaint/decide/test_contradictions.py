"""Ways in which new facts contradict the views: found from the rules alone, small views with known answers."""

from __future__ import annotations

from datalog.model import Constant, Rule, Variable
from datalog.syntax import parse_program, parse_rule, show
from selfmaint.decide.inconsistency import Contradiction, contradictions, drop_implied, implies
from selfmaint.decide.instances import Instance, instances, plain_instance
from selfmaint.decide.surviving import surviving
from selfmaint.warehouse.catalog import Catalog, catalog

JOIN = "v1(X, Y, Z) :- r(X, Y), s(Y, Z), t(Z)."
COPY = "v2(B, C) :- s(B, C)."
"""Huyn, Example 1.1: v1 joins three relations, v2 copies one of them."""
PAIR = "(a: any not null, b: any not null)"
NOT_NULL = f".decl r{PAIR}. .decl s{PAIR}. .decl t(a: any not null)."
NULLABLE = ".decl r(a: any, b: any). .decl s(a: any, b: any). .decl t(a: any)."


def of(text: str) -> Catalog:
    return catalog(parse_program(text))


def found(schema: Catalog, view: str, other: str, *, limit: int = 1000) -> list[Contradiction]:
    """Every way in which new facts for subgoals of `view` contradict `other`."""
    k = schema.view(view)
    every = (1 << len(k.body)) - 1
    made = contradictions(k.body, every, k.not_null | k.certain, schema.view(other), schema, limit)
    assert made is not None
    return made


def shown(contradiction: Contradiction) -> tuple[int, str]:
    """The new facts as a bit mask, and what known facts must match."""
    tests = (*contradiction.residue, *contradiction.conditions)
    return contradiction.facts, show(Rule(parse_rule("contradicts.").head, tests))


def expected(*rules: tuple[int, str]) -> list[tuple[int, str]]:
    return [
        (facts, show(parse_rule(f"contradicts :- {body}." if body else "contradicts.")))
        for facts, body in rules
    ]


def constants(instance: Instance) -> dict[str, object]:
    """The variables that an instance gives a constant."""
    return {v.name: c.value for v, c in instance.substitution.items() if isinstance(c, Constant)}


def survivors(schema: Catalog, view: str) -> list[set[str]]:
    """The relations of every J that the rules leave alive."""
    return [
        {new.instance.body[j].predicate.name for j in new.subgoals}
        for new in surviving(schema, schema.view(view))
    ]


# ------------------------------------------------------------------------------------------- one view alone


def test_a_copy_rules_out_every_new_fact_of_its_relation() -> None:
    (only,) = found(of(NOT_NULL + JOIN + COPY), "v1", "v2")
    assert only.facts == 0b010
    assert only.is_unconditional


def test_a_view_contradicts_new_facts_of_its_own_body_unless_all_join_with_known_ones() -> None:
    ways = found(of(NOT_NULL + JOIN), "v1", "v1")
    assert [shown(way) for way in ways] == expected(
        (0b111, ""),
        (0b011, "t@known(Z)"),
        (0b101, "s@known(Y, Z)"),
        (0b110, "r@known(X_o, Y)"),
        (0b001, "s@known(Y, Z_o), t@known(Z_o)"),
        (0b010, "r@known(X_o, Y), t@known(Z)"),
        (0b100, "r@known(X_o, Y_o), s@known(Y_o, Z)"),
    )


def test_huyn_section_4_a_copy_kills_every_set_with_its_relation() -> None:
    schema = of(NOT_NULL + JOIN + COPY)
    assert survivors(schema, "v1") == [{"r"}, {"t"}, {"r", "t"}]
    assert survivors(schema, "v2") == []


def test_facts_are_told_by_predicates() -> None:
    assert found(of("v(X) :- r(X), s(X). w(X) :- t(X)."), "v", "w") == []


# ------------------------------------------------------------------------------------- constants and joins


def test_a_constant_of_the_other_view_becomes_a_condition() -> None:
    (way,) = found(of("v(X, Y) :- r(X), s(X, Y). w(A) :- s('a', A)."), "v", "w")
    assert shown(way) == expected((0b10, "X = 'a'"))[0]
    assert way.bound == {Variable("X")}
    assert not way.is_unconditional


def test_a_fresh_value_never_meets_a_constant() -> None:
    (way,) = found(of("v(X, Y) :- r(X), s(X, Y). w(A) :- s('a', A)."), "v", "w")
    assert way.applies(0b10, frozenset({Variable("Y")}))
    assert not way.applies(0b10, frozenset({Variable("X"), Variable("Y")}))
    assert not way.applies(0b01, frozenset())


def test_equal_constants_meet_and_different_ones_do_not() -> None:
    schema = of("v(X) :- r(X), s('a', X). w(A) :- s('a', A). u(A) :- s('b', A).")
    assert [way.is_unconditional for way in found(schema, "v", "w")] == [True]
    assert found(schema, "v", "u") == []


def test_a_constant_of_the_new_fact_binds_the_other_view() -> None:
    (way,) = found(of("v(X) :- r(X), s('a', X). w(A, B, C) :- s(A, B), t(A, C)."), "v", "w")
    assert shown(way) == expected((0b10, "t@known('a', C_o)"))[0]


def test_a_variable_met_twice_becomes_an_equality() -> None:
    ways = found(of(NOT_NULL + "v(X, Y) :- s(X, Y), t(X). w(A) :- s(A, A)."), "v", "w")
    assert [shown(way) for way in ways] == expected((0b01, "X = Y"))


def test_two_new_facts_may_meet_one_view_together() -> None:
    """The second subgoal of w meets s only where the first has bound its variable."""
    ways = found(of(NOT_NULL + "v(X, Y, Z) :- r(X, Y), s(Y, Z). w(A, B, C) :- r(A, B), s(B, C)."), "v", "w")
    assert expected((0b11, ""))[0] in [shown(way) for way in ways]
    crossed = of(NOT_NULL + "v(X, Y, Z, W) :- r(X, Y), s(Z, W), t(Y). w(A, B, C) :- r(A, B), s(B, C).")
    assert expected((0b011, "Y = Z"))[0] in [shown(way) for way in found(crossed, "v", "w")]


def test_several_subgoals_of_a_view_may_meet_one_new_fact() -> None:
    ways = found(of(NOT_NULL + "v(X, Y) :- s(X, Y), t(X). w(A, B, C) :- s(A, B), s(B, C)."), "v", "w")
    assert {shown(way)[1] for way in ways} == {
        body for _, body in expected((1, "s@known(Y, C_o)"), (1, "s@known(A_o, X)"), (1, "X = Y"))
    }


# ---------------------------------------------------------------------------------------------------- null


def test_a_joined_variable_of_the_other_view_is_not_null() -> None:
    """v's X stands once in w's facts, but w joins on it."""
    schema = of(NULLABLE + "v(X, Y) :- t(X), s(Y, Y). w(A) :- t(A), t(A).")
    (way,) = found(schema, "v", "w")
    assert way.not_null == {Variable("X")}
    assert not way.is_unconditional
    assert survivors(schema, "v") == [{"s"}, {"t"}]  # of t with X null: a fresh X would give w a row


def test_no_test_of_null_where_a_column_or_a_join_promises_it() -> None:
    declared = of(NOT_NULL + "v(X, Y) :- t(X), s(Y, Y). w(A) :- t(A), t(A).")
    assert [way.is_unconditional for way in found(declared, "v", "w")] == [True]
    joined = of(NULLABLE + "v(X, Y) :- t(X), s(X, Y). w(A) :- t(A), t(A).")
    assert [way.is_unconditional for way in found(joined, "v", "w")] == [True]


def test_a_constant_null_never_meets_a_join() -> None:
    schema = of(NULLABLE + "v(X) :- r(X, null), t(X). w(A, B) :- r(B, A), t(A). u(A, B) :- r(B, A).")
    assert all(not way.facts & 0b01 for way in found(schema, "v", "w"))
    assert [way.is_unconditional for way in found(schema, "v", "u")] == [True]


def test_a_constant_null_of_the_other_view_is_met_by_null() -> None:
    (way,) = found(of(NULLABLE + "v(X, Y) :- r(X, Y), t(X). w(A) :- r(A, null)."), "v", "w")
    assert shown(way) == expected((0b01, "Y is null"))[0]


def test_null_is_tried_where_a_fresh_value_would_meet_a_join() -> None:
    schema = of(NULLABLE + "v(X, Y) :- t(X), s(Y, Y). w(A) :- t(A), t(A).")
    tried = [
        {v.name: c.value for v, c in i.substitution.items() if isinstance(c, Constant)}
        for i in instances(schema, schema.view("v"))
    ]
    assert tried == [{}, {"X": None}]
    plain = of(NULLABLE + "v(X, Y) :- t(X), s(Y, Y). w(A, B) :- t(A), r(A, B), r(B, A).")
    assert len(instances(plain, plain.view("v"))) == 2
    alone = of(NULLABLE + "v(X, Y) :- t(X), s(Y, Y).")
    assert len(instances(alone, alone.view("v"))) == 1


def test_two_values_are_tried_where_a_type_has_no_more() -> None:
    schema = of(".decl r(a: boolean not null). .decl s(a: int, b: boolean). v(X, Y, Z) :- r(X), s(Y, Z).")
    tried = [
        {v.name: c.value for v, c in i.substitution.items() if isinstance(c, Constant)}
        for i in instances(schema, schema.view("v"))
    ]
    assert {"X": True} in tried
    assert {"X": False, "Z": None} in tried
    assert {"Y": None} not in tried
    assert len(tried) == 3 * 4


# --------------------------------------------------------------------------------------------- implication


def test_a_shorter_way_makes_longer_ones_needless() -> None:
    """w says nothing that the copy does not: wherever s is new, the copy contradicts it."""
    schema = of(NOT_NULL + "v(X, Y) :- t(X), s(X, Y). u(A, B) :- s(A, B). w(A, B) :- s(A, B), t(B).")
    ways = [*found(schema, "v", "u"), *found(schema, "v", "w")]
    kept = drop_implied(ways)
    assert [(way.view.name, way.facts) for way in kept] == [("u", 0b10), ("w", 0b01)]


def test_implication_needs_the_facts_the_conditions_and_a_mapping_of_what_must_match() -> None:
    schema = of(
        NOT_NULL + "v(X, Y) :- s(X, Y), t(Y). w(A, B, C) :- s(A, B), r(B, C)."
        " u(A, B) :- s(A, B), r(B, B). z(A, B) :- s(A, 'a'), r(A, B)."
    )
    (any_r,), (loop,), (at_a,) = (found(schema, "v", other) for other in "wuz")
    assert implies(any_r, loop)
    assert not implies(loop, any_r)
    assert not implies(at_a, any_r)
    assert not implies(any_r, at_a)
    assert implies(any_r, any_r)


def test_the_plain_instance_has_each_way_once() -> None:
    schema = of(NOT_NULL + JOIN + COPY + "v3(B, C) :- s(B, C), s(B, C).")
    dead = plain_instance(schema, schema.view("v1")).dead
    assert [c.facts for c in dead if c.facts == 0b010] == [0b010]


def test_a_view_over_the_limit_is_left_out() -> None:
    schema = of(NOT_NULL + JOIN)
    view = schema.view("v1")
    assert contradictions(view.body, 0b111, frozenset(), view, schema, 7) is None
    assert contradictions(view.body, 0b111, frozenset(), view, schema, 8) is not None


def test_only_facts_that_may_be_new_are_met() -> None:
    schema = of(NOT_NULL + JOIN)
    view = schema.view("v1")
    ways = contradictions(view.body, 0b001, view.certain, view, schema, 100)
    assert ways is not None
    assert {way.facts for way in ways} == {0b001}


def test_variables_are_kept_apart() -> None:
    schema = of(NOT_NULL + "v(X, X_o) :- s(X, X_o), t(X). w(X, Y) :- s(Y, X), t(Y), r(X, Y).")
    assert [shown(way) for way in found(schema, "v", "w")] == expected(
        (0b11, "r@known(X_o, X)"),
        (0b01, "t@known(X), r@known(X_o, X)"),
        (0b10, "s@known(X, X_oo), r@known(X_oo, X)"),
    )


# ------------------------------------------------------------------------------- subgoals that are one fact


def test_unified_subgoals_differ_by_what_must_be_new_and_by_what_is_compared() -> None:
    """Both `X = Y` and `Y = 5` leave `s(X), s(5)`; once the one was taken for the other, and a "no" was a "yes"."""
    bodies = ["s(X), s(Y), s(5)", "s(5), s(Y)", "s(X), s(5)"]
    plain = of(".decl s(a: int) key(a). v(X, Y) :- s(X), s(Y), s(5).")
    merged = ["s(X), s(5)", "s(5)"]
    assert sorted(map(shown_body, instances(plain, plain.view("v")))) == sorted([*bodies, *merged])
    ordered = of(".decl s(a: int) key(a). v(X, Y) :- s(X), s(Y), s(5), X < Y.")
    assert sorted(map(shown_body, instances(ordered, ordered.view("v")))) == sorted(bodies)


def shown_body(instance: Instance) -> str:
    return ", ".join(show(atom) for atom in instance.body)


def test_a_view_that_joins_a_relation_six_times_is_not_left_out() -> None:
    """Of 117,648 partial mappings of it into itself few ask nothing of fresh values."""
    joined = ", ".join(f"r(X{i}, X{i + 1})" for i in range(6))
    schema = of(f"{NOT_NULL} v({', '.join(f'X{i}' for i in range(7))}) :- {joined}.")
    instance = plain_instance(schema, schema.view("v"))
    assert not instance.skipped
    assert instance.contradictions
