"""Evaluation order, safety, relations, types; the messages themselves are goldens."""

from __future__ import annotations

from decimal import Decimal

import pytest

from datalog.analysis import (
    bound_variables,
    column_types,
    common_type,
    constant_type,
    dependency_graph,
    diagnose,
    evaluation_order,
    validate,
)
from datalog.diagnostics import ProgramError, Severity
from datalog.model import ColumnType, Predicate, Value, Version
from datalog.syntax import parse_program, parse_rule

DECLARED = """
.decl r(a: int, b: string, d: date) key(a).
.decl s(a: bigint, t: timestamp) foreign(a) references r(a).
"""


def codes(text: str) -> tuple[str, ...]:
    return tuple(diagnostic.code.value for diagnostic in diagnose(parse_program(text)))


def order(text: str) -> list[str]:
    return [str(predicate) for predicate in evaluation_order(parse_program(text))]


def types(text: str) -> dict[str, list[str]]:
    found = column_types(parse_program(text))
    return {str(predicate): [str(t) for t in column] for predicate, column in found.items()}


# ------------------------------------------------------------------------------------- dependency and order


def test_order_puts_what_is_read_first() -> None:
    assert order("c(X) :- b(X), not a(X). b(X) :- a(X). a(X) :- r(X).") == ["a", "b", "c"]


def test_order_keeps_the_text_where_it_is_free() -> None:
    assert order("z :- r(1). a :- r(2). m :- r(3).") == ["z", "a", "m"]


def test_order_has_defined_relations_only_and_each_once() -> None:
    assert order("v(X) :- r(X). v(X) :- s(X), w(X). w(1).") == ["w", "v"]
    assert order("") == []


def test_versions_are_relations_of_their_own() -> None:
    assert order("r@after(X) :- r(X). r@after(X) :- r@inserted(X).") == ["r@after"]


def test_graph_sees_into_negations() -> None:
    graph = dependency_graph(parse_program("v :- r(1), not (s(1), not t(1))."))
    read = {str(predicate) for predicate, readers in graph.items() if Predicate("v") in readers}
    assert read == {"r", "s", "t"}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("p(X) :- p(X).", 1),
        ("p(X) :- r(X), not p(X).", 1),
        ("p(X) :- q(X). q(X) :- not (r(X), p(X)).", 1),
        ("p(X) :- q(X). q(X) :- p(X). a(X) :- b(X). b(X) :- a(X).", 2),
        (".decl p(a, b). p(X, count(*)) :- p(X, Y).", 1),
        ("p(X, count(*)) :- q(X, Y). q(X, Y) :- p(X, Y).", 1),
    ],
)
def test_recursion_is_refused(text: str, number: int) -> None:
    with pytest.raises(ProgramError) as caught:
        evaluation_order(parse_program(text))
    assert [d.code.value for d in caught.value.diagnostics] == ["DL301"] * number


def test_recursion_shows_a_shortest_cycle() -> None:
    (found,) = diagnose(
        parse_program("p(1) :- q(1). q(1) :- p(1). q(1) :- s(1). s(1) :- t(1). t(1) :- p(1).")
    )
    assert found.message.endswith("`p` -> `q` -> `p`")


# -------------------------------------------------------------------------------------------------- safety


@pytest.mark.parametrize(
    "text",
    [
        "v(X) :- r(X).",
        "v(X) :- X = 3.",
        "v(X) :- r(Y), X = Y.",
        "v(X) :- X = Y, Z = Y, r(Z).",
        "v(X) :- r(X), not s(X, Y).",
        "v(X) :- r(X), not (s(Y), Y < X).",
        "v(X) :- r(X), not (Y = X, s(Y), Y is null).",
        "v(X) :- r(X), not (not (X < 3)).",
        "v :- not r(X).",
        "v(1, 'a').",
        "v :- 1 < 2.",
    ],
)
def test_safe(text: str) -> None:
    assert codes(text) == ()
    validate(parse_program(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v(X) :- r(Y).", ("DL201",)),
        ("v(X, X, Z) :- r(Y).", ("DL201", "DL201")),
        ("v(X).", ("DL201",)),
        ("v(_) :- r(X).", ("DL201",)),
        ("v(X) :- not r(X).", ("DL201",)),
        ("v(X) :- r(Y), X != Y.", ("DL201", "DL202")),
        ("v(X) :- X = Y.", ("DL201", "DL202", "DL202")),
        ("v :- r(X), Y < X.", ("DL202",)),
        ("v :- r(X), Y is not null.", ("DL203",)),
        ("v :- r(X), not s(Y), Y < X.", ("DL202",)),
        ("v :- r(X), not (s(Y), Z < Y).", ("DL202",)),
        ("v :- r(X), not (s(Y), not (Z is null)).", ("DL203",)),
        ("v(X) :- r(X, Y). v(X) :- s(Y).", ("DL201",)),
    ],
)
def test_unsafe(text: str, expected: tuple[str, ...]) -> None:
    assert codes(text) == expected


def test_bound_variables_around_a_negation_count_inside() -> None:
    rule = parse_rule("v :- r(X), not (s(Y), Z = X)")
    outer = bound_variables(rule.body)
    inner = rule.body[1]
    assert {variable.name for variable in outer} == {"X"}
    assert {variable.name for variable in bound_variables(inner.body, outer)} == {"X", "Y", "Z"}  # type: ignore[union-attr]


def test_variable_shared_by_negations_is_a_warning() -> None:
    program = parse_program("v(X) :- r(X), not s(X, Y), not t(Y), not u(_), not u(_).")
    (found,) = diagnose(program)
    assert (found.code.value, found.severity) == ("DL204", Severity.WARNING)
    validate(program)


# ----------------------------------------------------------------------------------------------- relations


def test_unknown_relations_need_a_declaration_to_be_seen() -> None:
    assert codes("v(X) :- nowhere(X).") == ()
    assert codes(".decl r(a). v(X) :- r(X), nowhere(X).") == ("DL101",)
    assert codes(".decl r(a). v(X) :- r(X), not nowhere@inserted(X).") == ("DL101",)


def test_relations_that_rules_define_are_known_in_every_version() -> None:
    assert codes(".decl r(a). v(X) :- r(X). w(X) :- v@gained(X).") == ()


def test_misspelt_relation_gets_a_suggestion() -> None:
    (found,) = diagnose(parse_program(".decl orders(a). v(X) :- order(X)."))
    assert found.hint == "a relation `orders` exists"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v(X) :- r(X), r(X, X).", ("DL102",)),
        ("v(X) :- r(X), not (s(X), not s(X, _)).", ("DL102",)),
        ("v(X) :- r(X). v(X, X) :- r(X).", ("DL102",)),
        ("v(X) :- r(X), r@inserted(X, X).", ()),
        (DECLARED + "v(X) :- r(X, _, _), r@inserted(X, X, _).", ("DL111",)),
        (DECLARED + "v(X) :- r@deleted(X).", ("DL102",)),
        (DECLARED + "v(X) :- r@region_0(X), r@region_0_1(X, _), r@probe_1(_).", ()),
        (DECLARED + "v(X) :- r@region_0_1(X).", ("DL102",)),
        (DECLARED + "v(X) :- r@depends(X, _, _, _, _), r@step(X).", ()),
        (DECLARED + "v(X) :- r@depends(X), r@depends(X, X).", ("DL102",)),
    ],
)
def test_arity(text: str, expected: tuple[str, ...]) -> None:
    assert codes(text) == expected


# -------------------------------------------------------------------------------------------- declarations


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DECLARED, ()),
        (".decl r(a). .decl r(a).", ("DL103",)),
        (".decl r(a, a).", ("DL104",)),
        (".decl r(a) key(a, a).", ("DL104",)),
        (".decl r(a) key(b) unique(c).", ("DL105", "DL105")),
        (".decl r(a) foreign(a) references r(b).", ("DL105",)),
        (".decl r(a) foreign(a) references s(b).", ("DL106",)),
        (".decl r(a, b) foreign(a, b) references r(a).", ("DL107",)),
        (".decl r(a: int, b: string) unique(b) foreign(a) references r(b).", ("DL108",)),
        (".decl r(a: int, b: int) foreign(a) references r(b).", ("DL109",)),
        (".decl r(a: int, b: int) key(a, b) foreign(a) references r(a).", ("DL109",)),
        (".decl r(a: int, b: double, c) key(a) unique(b) foreign(a) references r(b).", ()),
        (".decl r(a: int, b: double, c) key(a) foreign(c) references r(a).", ()),
    ],
)
def test_declarations(text: str, expected: tuple[str, ...]) -> None:
    assert codes(text) == expected


# --------------------------------------------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("r(1, 'a', date '2026-01-31')", ()),
        ("r(1.5, null, null)", ()),
        ("r('1', _, _)", ("DL110",)),
        ("r(true, 1, '2026-01-31')", ("DL110", "DL110", "DL110")),
        ("not r('1', _, _)", ("DL110",)),
        ("r(X, _, _), s(X, _)", ()),
        ("r(_, X, _), s(X, _)", ("DL111",)),
        ("r(X, _, _), not r(_, X, _)", ("DL111",)),
        ("r(X, _, _), not (s(X, _), not r(_, X, _))", ("DL111",)),
        ("r(_, _, D), s(_, D)", ("DL111",)),
        ("r@inserted(X, X, _)", ("DL111",)),
        ("r(X, Y, _), X = Y", ("DL112",)),
        ("r(X, Y, _), X < 3, Y < 'b', X != 3.5", ()),
        ("r(X, _, _), Y = X, Y < 'b'", ("DL112",)),
        ("r(_, _, D), D < '2026-01-31'", ("DL112",)),
        ("r(_, _, D), not (s(_, T), T < D)", ("DL112",)),
        ("r(X, _, _), X = null", ("DL114",)),
    ],
)
def test_types_in_a_body(body: str, expected: tuple[str, ...]) -> None:
    assert codes(f"{DECLARED}v :- {body}.") == expected


def test_a_variable_of_two_negations_may_have_two_types() -> None:
    found = codes(DECLARED + "v :- not r(X, _, _), not r(_, X, _).")
    assert found == ("DL204",)


def test_nothing_is_known_of_undeclared_columns() -> None:
    assert codes("v(X) :- r(X), X < 3, s(X). v(X) :- r(X), X < 'a', s(X).") == ()
    assert codes("v(X) :- r(X), X < 3, X < 'a', s(X).") == ("DL115",)
    assert codes(".decl r(a). .decl s(a: int). v(X) :- r(X), s(X), r('a').") == ()


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("v(X) :- r(X, _, _). v(X) :- s(X, _).", ()),
        ("v(X) :- r(X, _, _). v(X) :- r(_, X, _). v(X) :- r(_, X, _).", ("DL113",)),
        ("v(X) :- r(X, _, _). v('a').", ("DL113",)),
        ("v(1). v('a').", ()),
        ("v(X) :- r(X, _, _). v(null).", ()),
        ("v(X) :- r(X, _, _). w :- v('a').", ("DL110",)),
        ("v(X) :- r(X, _, _). w(Y) :- v(Y), r(_, Y, _).", ("DL111",)),
        ("r('a', 'b', null).", ("DL110",)),
        ("r(X, X, null) :- s(X, _).", ("DL111",)),
    ],
)
def test_types_across_rules(rules: str, expected: tuple[str, ...]) -> None:
    assert codes(DECLARED + rules) == expected


def test_column_types_of_declared_relations() -> None:
    found = types(
        DECLARED + "v :- r(X, _, _), r@deleted(X, _, _), r@region_2_0(_, X), r@depends(X), s(X, _)."
    )
    assert found["r"] == found["r@deleted"] == ["int", "string", "date"]
    assert found["r@region_2_0"] == ["date", "int"]
    assert found["r@depends"] == ["any"]
    assert found["s"] == ["bigint", "timestamp"]
    assert found["v"] == []


def test_column_types_are_inferred_through_rules_in_any_order() -> None:
    text = "w(Y, Z, 'k') :- v(Y), Z = Y, not r(Z, _, _). v(X) :- s(X, _). v(X) :- r(X, _, _)."
    assert types(DECLARED + text)["w"] == ["bigint", "bigint", "string"]


def test_column_types_follow_chains_of_equalities() -> None:
    assert types(DECLARED + "v(Z, U) :- U = Z, Z = Y, Y = X, r(X, _, _).")["v"] == ["int", "int"]


def test_column_types_where_nothing_or_too_much_is_known() -> None:
    text = "v(X, Y, null) :- q(X), r(_, Y, _). v(X, Y, 1) :- r(X, _, Y). p(X) :- p(X). u(X) :- r(Y, _, _)."
    found = types(DECLARED + text)
    assert found["v"] == ["any", "any", "int"]
    assert found["q"] == found["p"] == found["u"] == ["any"]


def test_column_types_do_not_fail_on_wrong_arities() -> None:
    assert types(DECLARED + "v(X) :- r(X). v(X, Y) :- r(X, Y, _, _).")["v"] == ["int"]


def test_column_types_of_versions_differ_from_those_of_own_columns() -> None:
    program = parse_program(DECLARED + "r@depends('a', 1).")
    assert [str(t) for t in column_types(program)[Predicate("r", Version.DEPENDS)]] == ["string", "int"]


# ------------------------------------------------------------------------------------------- common types


def of(text: str) -> ColumnType:
    return parse_program(f".decl r(a: {text}).").declarations[0].columns[0].type


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("int", "int", "int"),
        ("tinyint", "bigint", "bigint"),
        ("int", "decimal(5,2)", "decimal(12,2)"),
        ("decimal(5,2)", "decimal(10,4)", "decimal(10,4)"),
        ("decimal(38,0)", "decimal(38,38)", "decimal(38,0)"),
        ("decimal", "tinyint", "decimal"),
        ("float", "int", "double"),
        ("float", "double", "double"),
        ("double", "decimal(5,2)", "double"),
        ("string", "any", "any"),
        ("string", "int", None),
        ("date", "timestamp", None),
        ("boolean", "int", None),
    ],
)
def test_common_type(left: str, right: str, expected: str | None) -> None:
    for found in (common_type(of(left), of(right)), common_type(of(right), of(left))):
        assert (None if found is None else str(found)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "None"),
        (True, "boolean"),
        (2**31 - 1, "int"),
        (-(2**31) - 1, "bigint"),
        (2**63, "decimal(38,0)"),
        (1.5, "double"),
        (Decimal("0.05"), "decimal(2,2)"),
        (Decimal("12.50"), "decimal(4,2)"),
        (Decimal("1E+3"), "decimal(4,0)"),
        (Decimal("1E-50"), "decimal(38,38)"),
        (Decimal("Infinity"), "double"),
        ("a", "string"),
    ],
)
def test_constant_type(value: Value, expected: str) -> None:
    assert str(constant_type(value)) == expected


# ---------------------------------------------------------------------------------------------- validation


def test_validate_collects_everything_in_text_order() -> None:
    text = "v(X) :- r(X, Y). p(1) :- p(1).\nw(X) :- v(Y), s('a', _), q(Y).\n" + DECLARED
    with pytest.raises(ProgramError) as caught:
        validate(parse_program(text))
    found = [(d.code.value, d.span.line if d.span else 0) for d in caught.value.diagnostics]
    assert found == [("DL102", 1), ("DL301", 1), ("DL201", 2), ("DL110", 2), ("DL101", 2)]


def test_validate_passes_warnings() -> None:
    validate(parse_program("v(X) :- r(X), X = null."))


@pytest.mark.parametrize(
    "rule",
    [
        "v(X) :- s(X, T), T > timestamp '2026-01-31 23:59:00+00:00'.",
        "v(X) :- s(X, timestamp '2026-01-31 23:59:00Z').",
        "v(X) :- s(X, T), T < timestamp '2026-01-31 23:59:00', T > timestamp '2026-01-31 23:59:00+01:00'.",
    ],
)
def test_a_timestamp_that_names_its_zone_is_refused(rule: str) -> None:
    assert "DL110" in codes(DECLARED + rule)
