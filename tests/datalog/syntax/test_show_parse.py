"""Oracle: the value itself. What `show` prints of any program, `parse_program` reads as an equal program,
whatever its names, strings and numbers are; spans are outside of equality.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from functools import cache, partial
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from datalog.diagnostics import ProgramError, render
from datalog.model import (
    FUNCTIONS,
    Aggregate,
    AggregateFunction,
    AllOf,
    AnyOf,
    Arithmetic,
    Atom,
    Call,
    Case,
    Cast,
    Column,
    ColumnType,
    Compared,
    Comparison,
    Constant,
    Declaration,
    Expression,
    ForeignKey,
    Holds,
    IsNull,
    Literal,
    Minus,
    Negation,
    NullTest,
    Operator,
    Predicate,
    Program,
    Rule,
    Semantics,
    Term,
    TypeName,
    Value,
    Variable,
    Version,
    ViewDefinition,
    aggregates_of,
    block,
    implied_groups,
)
from datalog.syntax import parse_program, parse_rule, show

# The strategies for expressions hold each other, and describing them in full would take long: nobody reads it.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

HOSTILE = (
    *("", "_", "_1", "_2", "X", "x", "not", "null", "NULL", "true", "is", "key", "date", "select", ".decl"),
    *("`", "``", "'", '"', "\\", "\\n", "\n", "\r\n", "\0", "'; drop table r; --", "% no comment", "// no"),
    *(
        "a b",
        "r@known",
        "r(X) :- s(X).",
        "é",
        "注文",
        "\u2028",
        "\ud800",
        "\U0001f600",
        "1",
        "-1",
        "a.",
        "?`x`",
    ),
)
text = st.sampled_from(HOSTILE) | st.text(max_size=6) | st.text("aXx_1'`\"\\\n%. ", max_size=6)
names = st.sampled_from(["r", "s", "o_orderkey"]) | text

zones = st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=-3, minutes=-30))]) | st.none()
values: st.SearchStrategy[Value] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.decimals(allow_nan=False),
    st.floats(allow_nan=False),
    text,
    st.dates(),
    # `fold` is outside of equality, and no part of a timestamp here.
    st.datetimes(timezones=zones).map(lambda moment: moment.replace(fold=0)),
)
variables = st.builds(Variable, st.sampled_from(["X", "Y", "_1", "_2", "_3", "_4", "_x"]) | text)
terms: st.SearchStrategy[Term] = st.one_of(variables, st.builds(Constant, values))
predicates = st.builds(
    Predicate,
    names,
    st.just(Version.STORED) | st.sampled_from(Version),
    st.just(()) | st.lists(st.integers(0, 20), max_size=3).map(tuple),
)
atoms = st.builds(Atom, predicates, st.lists(terms, max_size=4).map(tuple))
flat: st.SearchStrategy[Literal] = st.one_of(
    atoms,
    st.builds(Comparison, st.sampled_from(get_args(Operator)), terms, terms),
    st.builds(NullTest, terms, st.booleans()),
)
literals: st.SearchStrategy[Literal] = st.recursive(
    flat, lambda inner: st.builds(Negation, st.lists(inner, max_size=3).map(tuple)), max_leaves=5
)
rules = st.builds(Rule, atoms, st.lists(literals, max_size=4).map(tuple))

name_lists = st.lists(names, max_size=3).map(tuple)
decimals = st.tuples(st.integers(1, 38), st.none() | st.integers(0, 38)).filter(lambda t: (t[1] or 0) <= t[0])
column_types = st.builds(ColumnType, st.sampled_from(TypeName)) | decimals.map(
    lambda sizes: ColumnType(TypeName.DECIMAL, *sizes)
)
declarations = st.builds(
    Declaration,
    names,
    st.lists(st.builds(Column, names, column_types, st.booleans()), max_size=3).map(tuple),
    st.none() | name_lists,
    st.lists(name_lists, max_size=2).map(tuple),
    st.lists(st.builds(ForeignKey, name_lists, names, name_lists), max_size=2).map(tuple),
)
leaves: st.SearchStrategy[Expression] = variables | st.builds(Constant, values)


def calls(inner: st.SearchStrategy[Expression], function: str) -> st.SearchStrategy[Expression]:
    """Calls with as many arguments as the function takes: others are not read."""
    least, most = FUNCTIONS[function]
    arguments = st.lists(inner, min_size=least, max_size=min(most, least + 2))
    return st.builds(Call, st.just(function), arguments.map(tuple))


def computed(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    conditions = st.recursive(
        st.one_of(
            st.builds(Compared, st.sampled_from(get_args(Operator)), inner, inner),
            st.builds(IsNull, inner, st.booleans()),
            st.builds(Holds, inner, st.booleans()),
        ),
        lambda some: (
            st.lists(some, max_size=3)
            .map(tuple)
            .flatmap(lambda many: st.sampled_from([AllOf(many), AnyOf(many)]))
        ),
        max_leaves=3,
    )
    branches = st.lists(st.tuples(conditions, inner), min_size=1, max_size=2).map(tuple)
    return st.one_of(
        st.builds(Arithmetic, st.sampled_from("+-*/"), inner, inner),
        st.builds(Minus, inner),
        st.builds(Cast, inner, column_types),
        st.sampled_from(sorted(FUNCTIONS)).flatmap(partial(calls, inner)),
        st.builds(Case, branches, inner),
    )


expressions = st.recursive(leaves, computed, max_leaves=4)
aggregates = st.builds(Aggregate, st.sampled_from(AggregateFunction), expressions, st.booleans()) | st.just(
    Aggregate(AggregateFunction.COUNT)
)
filters = st.lists(st.builds(Compared, st.just("<"), expressions, expressions), max_size=2)


# What is drawn from is made once: hypothesis looks through each new strategy, and these are deep.
grouped = expressions | aggregates
some_groups = st.none() | st.lists(expressions, max_size=2)
havings = st.lists(st.builds(IsNull, grouped), max_size=1)
bodies = st.lists(literals, max_size=2)
some_rules = st.lists(rules, max_size=3)
some_declarations = st.lists(declarations, max_size=2)


@cache
def outputs_of(width: int, *, is_grouped: bool) -> st.SearchStrategy[list[Expression]]:
    return st.lists(grouped if is_grouped else expressions, min_size=width, max_size=width)


@st.composite
def views(draw: st.DrawFn, name: str, width: int) -> ViewDefinition:
    blocks = []
    for number in range(draw(st.integers(1, 2))):
        groups = draw(some_groups)
        outputs = draw(outputs_of(width, is_grouped=groups is not None))
        if aggregates_of(outputs) and draw(st.booleans()):
            groups = list(implied_groups(outputs))
        body = draw(bodies)
        having = draw(havings) if groups is not None else []
        blocks.append(block(name, number, body, outputs, filters=draw(filters), groups=groups, having=having))
    columns = draw(st.lists(names, min_size=width, max_size=width))
    return ViewDefinition(name, tuple(columns), tuple(blocks), draw(st.sampled_from(Semantics)))


@st.composite
def programs_with_views(draw: st.DrawFn) -> Program:
    """Views have names of their own: rules of one name are one view."""
    made = [draw(views(f"view {n}", draw(st.integers(0, 3)))) for n in range(draw(st.integers(0, 2)))]
    some = draw(some_rules)
    return Program(tuple(some), tuple(draw(some_declarations)), tuple(made))


programs = programs_with_views()


@given(programs)
def test_parse_of_show_is_the_identity(program: Program) -> None:
    assert parse_program(show(program)) == program


@given(rules)
def test_parse_of_show_is_the_identity_on_a_rule(rule: Rule) -> None:
    assert parse_rule(show(rule)) == rule


@given(programs)
def test_show_of_parse_is_the_identity_on_shown_text(program: Program) -> None:
    shown = show(program)
    assert show(parse_program(shown)) == shown


@given(values)
@example(Decimal("-0.0"))
@example(Decimal("0E+5"))
@example(Decimal("0E-100"))
@example(-0.0)
@example(5e-324)
@example(math.inf)
def test_constants_keep_their_type_and_digits(value: Value) -> None:
    (read,) = parse_rule(show(Rule(Atom(Predicate("r"), (Constant(value),))))).head.terms
    assert isinstance(read, Constant)
    assert repr(read.value) == repr(value)


@given(st.text("rsXY_(),.:-<=!&'\"`\\%@ \n19eandot", max_size=40) | st.text(max_size=20))
@example("r('a\\")
@example("v :- \0.")
def test_any_text_is_read_or_refused_with_diagnostics_that_render(source: str) -> None:
    """Oracle: no other exception; each diagnostic points into the text, or just behind one of its lines."""
    try:
        program = parse_program(source, "p")
    except ProgramError as error:
        lines = source.split("\n")
        for diagnostic in error.diagnostics:
            assert diagnostic.span is not None
            assert 1 <= diagnostic.span.line <= len(lines)
            assert 1 <= diagnostic.span.column <= len(lines[diagnostic.span.line - 1]) + 1
            assert "p:" in render(diagnostic, {"p": source})
    else:
        assert parse_program(show(program)) == program
