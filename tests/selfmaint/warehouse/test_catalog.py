"""A warehouse's schema: views unfolded and guarded, base relations, columns, and what is out of the exact class."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datalog.diagnostics import ProgramError
from datalog.evaluate import evaluate
from datalog.model import ANY, Predicate, Program, Row, Rule, TypeName
from datalog.rewrite import guard_joins
from datalog.syntax import parse_program, parse_rule, show
from selfmaint.api.file.programs import catalog_of
from selfmaint.errors import Code, InputError
from selfmaint.warehouse.catalog import Catalog, GroupedView, Outside, Reference, View, catalog


def of(text: str) -> Catalog:
    return catalog(parse_program(text))


def seen(view: View) -> str:
    """The view as the decision sees it."""
    return show(Rule(view.head, (*view.body, *view.filters)))


def rule(text: str) -> str:
    return show(parse_rule(text))


# ------------------------------------------------------------------------------------------- base relations


def test_what_is_not_declared_has_made_up_columns_of_any_type() -> None:
    relation = of("v(X, Y) :- r(X, Y).").relations["r"]
    assert relation.columns == ("c0", "c1")
    assert relation.types == (ANY, ANY)
    assert relation.nullable == {0, 1}
    assert (relation.unique, relation.references) == ((), ())


def test_declared_columns_types_and_nulls() -> None:
    schema = of(".decl r(a: int, b: string not null, c: date) key(a). v(X, Y, Z) :- r(X, Y, Z).")
    relation = schema.relations["r"]
    assert relation.columns == ("a", "b", "c")
    assert [t.name for t in relation.types] == [TypeName.INT, TypeName.STRING, TypeName.DATE]
    assert relation.nullable == {2}
    assert relation.keys == ((0,),)
    assert schema.is_constrained


def test_a_declared_relation_that_no_view_reads_is_one_too() -> None:
    assert set(of(".decl r(a: int). .decl s(a: int). v(X) :- r(X).").relations) == {"r", "s"}


def test_keys_unique_and_foreign_keys_by_position() -> None:
    schema = of(
        ".decl r(a: int, b: int) key(a) unique(b) foreign(b) references s(a). .decl s(c: int, a: int) key(a)."
        " v(X, Y) :- r(X, Y), s(X, Y)."
    )
    relation = schema.relations["r"]
    assert relation.unique == ((0,), (1,))
    assert relation.keys == ((0,),)  # the other may be null
    assert relation.references == (Reference((1,), "s", (1,)),)
    assert schema.referenced_by["s"] == ((relation, relation.references[0]),)


def test_subgoals_with_one_key_are_one() -> None:
    schema = of(".decl r(a: int, b: int) key(a). v(X, Y, Z) :- r(X, Y), r(X, Z).")
    assert seen(schema.view("v")) == show(parse_rule("v(X, Y, Y) :- r(X, Y)."))


def test_a_key_may_rule_out_every_row() -> None:
    schema = of(".decl r(a: int, b: int) key(a). v(X) :- r(X, 1), r(X, 2).")
    assert schema.view("v").always_empty is not None


def test_a_key_may_make_null_what_must_not_be() -> None:
    (view,) = of(
        ".decl s(k: int not null, x: int) key(k). v(K, X) :- s(K, X), s(K, null), X is not null."
    ).views
    assert view.always_empty == "`v` can have no rows: a key or comparisons rule them out"


ORDERS = """
    .decl customer(k: int not null, name: string) key(k).
    .decl orders(k: int not null, customer: int, amount: int) key(k) foreign(customer) references customer(k).
    .decl line(k: int not null, item: int not null) key(k) foreign(item) references item(k).
    .decl item(k: int not null, price: int not null, paid: int not null) key(k).
"""


def test_a_row_that_a_foreign_key_promises_and_nothing_is_used_of_is_not_joined() -> None:
    """What is left may not project: then the view is decided exactly. The join's guard stays."""
    (view,) = of(f"{ORDERS} v(K, C, A) :- orders(K, C, A), customer(C, N).").views
    assert seen(view) == rule("v(K, C, A) :- orders(K, C, A), C is not null.")
    assert view.limitation is None
    (view,) = of(f"{ORDERS} v(A) :- orders(K, C, A), customer(C, N).").views
    assert view.limitation is not None
    assert str(view.limitation) == "`v` projects out `K`, `C`: shown, it would be decided exactly"
    (view,) = of(f"{ORDERS} v(C, count(*), sum(A)) :- orders(K, C, A), customer(C, N).").views
    assert isinstance(view, GroupedView)
    assert seen(view.core) == rule("v@core_0(K, C, A) :- orders(K, C, A), C is not null.")


@pytest.mark.parametrize(
    "text",
    [
        "v(K, N) :- orders(K, C, A), customer(C, N).",
        "v(K, C, A) :- orders(K, C, A), customer(C, N), N != 'a'.",
        "v(K, C, A) :- orders(K, C, A), customer(C, 'a').",
        "v(C, N) :- orders(K, C, A), customer(C, N).",
        "v(K, C) :- orders(K, C, A), customer(A, N).",
        "v(K, I) :- line(K, I), item(I, P, P).",
    ],
)
def test_a_row_that_matters_is_joined(text: str) -> None:
    (view,) = of(ORDERS + text).views
    assert len(view.body) == 2


def test_comparisons_are_in_normal_form() -> None:
    schema = of(".decl r(a: int, b: int). v(X, Y) :- r(X, Y), X < Y, X <= Y, 2 < X, X < 4.")
    assert seen(schema.view("v")) == show(parse_rule("v(3, Y) :- r(3, Y), 3 < Y."))


def test_declaring_a_view_names_its_columns() -> None:
    schema = of(".decl r(a: int, b: int). .decl v(left: int, right: int). v(X, Y) :- r(X, Y).")
    assert set(schema.relations) == {"r"}
    assert schema.view("v").columns == ("left", "right")


@pytest.mark.parametrize(
    ("head", "columns"),
    [
        ("v(X, LongName)", ("x", "longname")),
        ("v(X, LongName, X)", ("x_0", "longname", "x_2")),
        ("v('a', X, LongName)", ("c0", "x", "longname")),
    ],
)
def test_column_names_come_from_the_head(head: str, columns: tuple[str, ...]) -> None:
    assert of(f"{head} :- r(X, LongName).").view("v").columns == columns


# ------------------------------------------------------------------------------------------ null and guards


def test_a_join_is_guarded_unless_its_column_is_never_null() -> None:
    text = "v(X, Y) :- r(X, Y), s(Y)."
    assert seen(of(text).view("v")) == rule("v(X, Y) :- r(X, Y), s(Y), Y is not null.")
    declared = of(".decl r(a: int, b: int). .decl s(a: int not null)." + text)
    assert seen(declared.view("v")) == rule(text)
    assert (
        {v.name for v in declared.view("v").not_null} == {v.name for v in declared.view("v").certain} == {"Y"}
    )


def test_columns_of_a_view_that_are_never_null() -> None:
    schema = of(
        ".decl r(a: int not null, b: int). .decl s(a: int). .decl t(a: int)."
        " v(X, Y, Z, 1, null) :- r(X, Y), s(Z), t(Z)."
    )
    assert schema.not_null(schema.view("v")) == {0, 2, 3}
    single = of("v(X, Y) :- r(X, Y), Y is not null.")
    assert single.not_null(single.view("v")) == {1}


# ---------------------------------------------------------------------------- equalities and views over views


def test_an_equality_with_a_constant_goes_into_the_head() -> None:
    view = of("v(X, Y) :- r(X, Y), X = 'b'.").view("v")
    assert seen(view) == rule("v('b', Y) :- r('b', Y).")
    assert view.limitation is None
    assert view.columns == ("x", "y")


def test_an_equality_of_variables_is_a_join() -> None:
    assert seen(of("v(X, Y) :- r(X), s(Y), X = Y.").view("v")) == rule(
        "v(Y, Y) :- r(Y), s(Y), Y is not null."
    )


def test_subgoals_that_stand_twice_count_once_but_join() -> None:
    assert seen(of("v(X) :- r(X), r(X).").view("v")) == rule("v(X) :- r(X), X is not null.")


def test_a_view_over_views_is_over_base_relations() -> None:
    schema = of("v(X, Y, Z) :- w(X, Y), u(Y, Z). w(X, Y) :- r(X, Y), Y = 3. u(X, Y) :- w(Y, X), t(X).")
    assert set(schema.relations) == {"r", "t"}
    assert seen(schema.view("u")) == rule("u(3, Y) :- r(Y, 3), t(3).")
    assert seen(schema.view("v")) == rule("v(X, 3, Z) :- r(X, 3), r(Z, 3), t(3).")
    assert schema.limited_views == ()


def test_a_repeated_head_variable_that_does_not_join_may_be_null() -> None:
    schema = of("w(X, X) :- r(X). v(X, Y) :- w(X, Y).")
    assert seen(schema.view("v")) == rule("v(X, X) :- r(X).")
    assert schema.not_null(schema.view("w")) == frozenset()


def test_a_guard_of_the_lower_view_stays() -> None:
    assert seen(of("w(X, Y) :- r(X), s(X), t(Y). v(A, B) :- w(A, B).").view("v")) == rule(
        "v(A, B) :- r(A), s(A), t(B), A is not null."
    )


def test_a_join_with_a_null_of_a_lower_view_never_matches() -> None:
    """`w`'s second column is always null, and a join never matches null."""
    schema = of("w(X, null) :- r(X). v(X, Y) :- w(X, Y), s(Y).")
    assert schema.view("v").always_empty == "`v` can have no rows: it joins or tests a null constant"


def evaluate_view(view: View, relations: Mapping[str, set[Row]]) -> frozenset[Row]:
    if view.always_empty:
        return frozenset()
    facts = {Predicate(name): frozenset(rows) for name, rows in relations.items()}
    plain = Rule(view.head, (*view.body, *view.filters))
    return evaluate(Program((plain,)), view.predicate, facts)


@st.composite
def layered(draw: st.DrawFn) -> str:
    """A view over two views, with constants, equalities and repeated variables anywhere."""

    def text(*choices: str, least: int, most: int) -> str:
        return ", ".join(draw(st.lists(st.sampled_from(choices), min_size=least, max_size=most)))

    terms = ("X", "Y", "X", "Y", "1", "null")
    more = ("", "", ", X = Y", ", X = 1", ", Y = 2", ", X is not null")
    one = f"w({text(*terms, least=2, most=2)}) :- r(X, Y){draw(st.sampled_from(more))}."
    two = f"u({text(*terms, least=2, most=2)}) :- r(X, Y), s({text(*terms, least=1, most=1)})."
    atoms = [
        f"{draw(st.sampled_from(['w', 'u', 'r']))}({text(*terms, 'Z', least=2, most=2)})" for _ in range(2)
    ]
    body = ", ".join([*atoms, "r(X, Y)", "s(Z)"]) + draw(st.sampled_from(more))
    return f"{one} {two} v(X, Y, Z) :- {body}."


@given(layered(), st.randoms(use_true_random=False))
def test_unfolding_preserves_what_the_views_mean(text: str, random: Random) -> None:
    """Oracle: the rules as written, with SQL's joins, evaluated one on top of the other."""
    program = parse_program(text)
    written = Program(tuple(map(guard_joins, program.rules)))
    schema = catalog(program)
    values = (1, 2, None)
    relations: dict[str, set[Row]] = {
        "r": {(a, b) for a in values for b in values if random.random() < 0.7},
        "s": {(a,) for a in values if random.random() < 0.7},
    }
    facts = {Predicate(name): frozenset(rows) for name, rows in relations.items()}
    for view in schema.views:
        if view.limitation is None:
            assert evaluate_view(view, relations) == evaluate(written, Predicate(view.name), facts), text


# --------------------------------------------------------------------------------------- outside the class


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("v(X) :- r(X). v(X) :- s(X).", Outside.UNION, "`v` is a union of 2 rules"),
        (
            "v(X) :- r(X), X > 0.1, X < 0.10000000000000000001.",
            Outside.COMPARISON,
            "`v` compares with numbers that are one as doubles",
        ),
        (
            ".decl r(a: bigint, b: double). v(X, Y) :- r(X, Y), X <= Y.",
            Outside.COMPARISON,
            "`v` compares with numbers that are one as doubles",
        ),
        (
            ".decl r(a: bigint, b: double). v(X, Y) :- r(X, Y), X > Y, Y = 9007199254740992.",
            Outside.COMPARISON,
            "`v` compares with numbers that are one as doubles",
        ),
        (
            ".decl r(a: bigint, b: double). v(X, Y) :- r(X, Y), X = Y, Y = 9007199254740992.",
            Outside.COMPARISON,
            "`v` compares with numbers that are one as doubles",
        ),
        (
            "v(X) :- r(X, Y), s(Y).",
            Outside.PROJECTION,
            "`v` projects out `Y`: shown, it would be decided exactly",
        ),
        (
            "v(X) :- r(X, _), s(X, _), t(X).",
            Outside.PROJECTION,
            "`v` projects out columns of `r`, `s`: shown, it would be decided exactly",
        ),
        ("v(X) :- r(X), not s(X).", Outside.OTHER, "`v` has a negation or an `is null` test"),
        ("v(X, Y) :- r(X, Y), Y is null.", Outside.OTHER, "`v` has a negation or an `is null` test"),
    ],
)
def test_limitations(text: str, kind: Outside, words: str) -> None:
    limitation = of(text).view("v").limitation
    assert limitation is not None
    assert (limitation.kind, str(limitation)) == (kind, words)


def test_a_view_over_a_union_says_so() -> None:
    limitation = of("v(X) :- u(X). u(X) :- r(X). u(X) :- s(X).").view("v").limitation
    assert limitation is not None
    assert str(limitation) == "`v` reads the view `u`, a union"


def test_a_limit_of_a_lower_view_is_one_of_the_upper() -> None:
    schema = of("v(X, Z) :- w(X), t(Z). w(X) :- r(X, Y), s(Y).")
    assert {view.name: view.limitation.kind for view in schema.views if view.limitation} == {
        "v": Outside.PROJECTION,
        "w": Outside.PROJECTION,
    }


# ------------------------------------------------------------------------------------------- always empty


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("v(X) :- r(X), X = 3, X = 4.", "`3 = 4` is never true"),
        ("v(X) :- r(X), X = 'a', X = 'b'.", "`'a' = 'b'` is never true"),
        ("v(X) :- r(X), X = 3, X < 2.", "`3 < 2` is never true"),
        ("v(X, Y) :- r(X, Y), X = 3, Y = 4, X >= Y.", "`3 >= 4` is never true"),
        ("v(X) :- r(X), X < X.", "`X < X` is never true"),
        ("v(X) :- r(X), X = null.", "`X = null` is never true"),
        ("v(X) :- r(X), X != null.", "`X != null` is never true"),
        ("v(X) :- r(X), null is not null.", "it joins or tests a null constant"),
        ("v(X) :- r(X), X = 3, X is null.", "it tests whether `3` is null"),
        ("v(X) :- r(X), s(X), X is null.", "`X` is null and joined, compared or tested not to be"),
        ("v(X) :- r(X), X is null, X > 2.", "`X` is null and joined, compared or tested not to be"),
        ("v(X) :- w(X, 'b'). w(X, 'a') :- r(X).", "it reads the view `w`, of which no row fits"),
        ("v(X) :- w(X), s(X). w(X) :- r(X), X = 3, X = 4.", "`3 = 4` is never true"),
        ("v(X) :- r(X), X = 3, X = 4. v(X) :- r(X), X < X.", "`3 = 4` is never true; `X < X` is never true"),
    ],
)
def test_a_view_that_can_have_no_rows(text: str, reason: str) -> None:
    schema = of(text)
    view = schema.view("v")
    assert view.always_empty == f"`v` can have no rows: {reason}"
    assert (view.body, view.limitation) == ((), None)
    assert [str(d) for d in schema.warnings if d.code is Code.ALWAYS_EMPTY and "`v`" in d.message] == [
        f"<program>:1:1: warning[SM106]: the view `v` can have no rows: {reason}"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "v(X) :- r(X), X = 3, X = 3.0.",
        "v(X) :- r(X), X = 0.1, X = 0.10000000000000000001.",  # one value as doubles
        ".decl r(a: bigint, b: double). v(X, Y) :- r(X, Y), X > 9007199254740992, Y <= 9007199254740992, X <= Y.",
        ".decl r(a: decimal(20, 18), b: double). v(X, Y) :- r(X, Y), X > 0.5, Y <= 0.5, X <= Y.",
        "v(X) :- r(X), X = 3, X <= 3.",
        "v(X) :- r(X), X = 3, X != 4.",
        "v(X) :- r(X), X <= X.",
        "v(X) :- r(X), X is null.",
        "v(X, null) :- r(X).",
        "v(X) :- r(X), X = 3, X = 4. v(X) :- s(X).",
        "v(X) :- r(X), not s(X), not w(X). w(X) :- r(X), X < X.",
    ],
)
def test_a_view_that_can_have_rows(text: str) -> None:
    assert of(text).view("v").always_empty is None


@given(
    st.lists(
        st.builds(
            "{} {} {}".format,
            st.sampled_from(["X", "Y", "1", "2", "null"]),
            st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
            st.sampled_from(["X", "Y", "1", "2.5"]),
        )
        | st.builds("{} is {}".format, st.sampled_from(["X", "Y"]), st.sampled_from(["null", "not null"])),
        max_size=4,
    )
)
def test_a_view_called_always_empty_is_so(tests: list[str]) -> None:
    """Oracle: the rule as written, evaluated over every pair of the values that it tells apart, and null."""
    program = parse_program(f"v(X, Y) :- {', '.join(['r(X, Y)', *tests])}.")
    values = (Decimal("0.5"), 1, Decimal("1.5"), 2, Decimal("2.2"), Decimal("2.5"), 3, None)
    rows = frozenset((x, y) for x in values for y in values)
    if catalog(program).view("v").always_empty:
        assert evaluate(program, Predicate("v"), {Predicate("r"): rows}) == frozenset()


# -------------------------------------------------------------------------------------------------- errors


def test_a_fact_is_no_view() -> None:
    with pytest.raises(InputError, match=r"SM105.*`v` is defined by a fact"):
        of("v(1).")


@pytest.mark.parametrize("text", ["v(X) :- v(X).", "v(X) :- w(X). w(X) :- v(X).", "v(X, Y) :- r(X)."])
def test_an_invalid_program_is_refused(text: str) -> None:
    with pytest.raises(ProgramError):
        of(text)


def test_equal_or_both_null_is_read_inside_a_filter() -> None:
    found = catalog_of(
        """create table t (k int primary key, a string, b int);
        create view v as select k, sum(b) filter (where a is not distinct from 'x') as n from t group by k;"""
    )
    assert found.view("v").is_decided
    assert not found.warnings
