"""Reading and showing programs."""

from __future__ import annotations

import datetime as dt
import math
import time
from decimal import Decimal

import pytest

from datalog.diagnostics import Code, ProgramError
from datalog.model import (
    ANY,
    Atom,
    Column,
    ColumnType,
    Comparison,
    Constant,
    Declaration,
    ForeignKey,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Rule,
    Span,
    Term,
    TypeName,
    Value,
    Variable,
    Version,
)
from datalog.syntax import parse_program, parse_rule, show

X, Y, Z = Variable("X"), Variable("Y"), Variable("Z")


def atom(name: str, *terms: Term) -> Atom:
    return Atom(Predicate(name), terms)


def body(text: str) -> tuple[Literal, ...]:
    return parse_rule(f"v :- {text}").body


def term(text: str) -> Term:
    (found,) = parse_rule(f"v({text})").head.terms
    return found


def refused(text: str) -> tuple[str, ...]:
    with pytest.raises(ProgramError) as caught:
        parse_program(text)
    return tuple(diagnostic.code.value for diagnostic in caught.value.diagnostics)


# --------------------------------------------------------------------------------------------------- rules


def test_rule() -> None:
    assert parse_program("v(X, Y) :- r(X, Z), s(Z, Y), Y != 3.") == Program(
        (Rule(atom("v", X, Y), (atom("r", X, Z), atom("s", Z, Y), Comparison("!=", Y, Constant(3)))),)
    )


@pytest.mark.parametrize("text", ["v(X):-r(X),s(X).", "v(X) <- r(X) & s(X).", "v(X)\n:-\nr(X)\n,\ns(X)\n."])
def test_spellings_of_a_rule(text: str) -> None:
    assert parse_program(text) == parse_program("v(X) :- r(X), s(X).")


def test_empty_program() -> None:
    assert parse_program("") == parse_program(" \n % nothing\n") == Program()
    assert show(Program()) == ""


def test_facts_and_propositions() -> None:
    assert parse_program("r(1, 'a'). panic. panic() :- r(1, X).").rules == (
        Rule(atom("r", Constant(1), Constant("a"))),
        Rule(atom("panic")),
        Rule(atom("panic"), (atom("r", Constant(1), X),)),
    )
    assert show(parse_rule("panic() :- r().")) == "panic :- r."


@pytest.mark.parametrize("sign", ["not ", "!", "! ", "\N{NOT SIGN}", "not\n"])
def test_negation(sign: str) -> None:
    assert body(f"{sign}r(X)") == (Negation((atom("r", X),)),)
    assert body(f"{sign}(r(X), X < Y & not s(Y))") == (
        Negation((atom("r", X), Comparison("<", X, Y), Negation((atom("s", Y),)))),
    )


def test_negations_of_other_than_an_atom_keep_their_parentheses() -> None:
    for text in ("not (X = 3)", "not (not r(X))", "not (X is null)", "not ()", "not (r(X), s(X))"):
        assert show(parse_rule(f"v :- {text}")) == f"v :- {text}."
    assert show(parse_rule("v :- not (r(X))")) == "v :- not r(X)."


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("space", ["", " "])
def test_comparison(operator: str, space: str) -> None:
    (found,) = body(f"X{space}{operator}{space}-3")
    assert found == Comparison(operator, X, Constant(-3))  # type: ignore[arg-type]


def test_other_not_equal_reads_as_the_one() -> None:
    assert body("X <> 3") == body("X != 3")


def test_an_arrow_in_a_body_is_less_than_minus() -> None:
    assert body("X<-3") == (Comparison("<", X, Constant(-3)),)


def test_null_test() -> None:
    assert body("X is null, Y is not null") == (NullTest(X, negated=False), NullTest(Y))


def test_comments_do_not_begin_in_quotes() -> None:
    program = parse_program("r('% # //'). % r(1).\n# r(2).\n// r(3). 'not closed\ns(1). %")
    assert [rule.head.predicate.name for rule in program.rules] == ["r", "s"]
    assert program.rules[0].head.terms == (Constant("% # //"),)


# --------------------------------------------------------------------------------------------------- names


def test_names_that_are_words_elsewhere_are_free() -> None:
    text = ".decl key(key: date, unique: int) key(key) foreign(unique) references date(decl).\n\n"
    text += "date(X) :- key(X, date), unique(X).\n".replace("date)", "date '2026-01-31')")
    assert show(parse_program(text)) == text


@pytest.mark.parametrize(
    "name", ["Orders", "a b", "a`b", "", "not", "NULL", "1a", "a.b", "\n", "\\", "a@known", "_"]
)
def test_names_in_backticks(name: str) -> None:
    rule = Rule(Atom(Predicate(name), ()))
    assert show(rule).startswith("`")
    assert parse_rule(show(rule)) == rule


def test_names_in_other_scripts_are_plain() -> None:
    assert show(parse_rule("größe(X) :- 注文(X)")) == "größe(X) :- 注文(X)."


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("r@known", Predicate("r", Version.KNOWN)),
        ("r@possible_after", Predicate("r", Version.POSSIBLE_AFTER)),
        ("r@region_0_12", Predicate("r", Version.REGION, (0, 12))),
        ("r@possible_after_3", Predicate("r", Version.POSSIBLE_AFTER, (3,))),
        ("`a@b`@known", Predicate("a@b", Version.KNOWN)),
        ("r@stored_1", Predicate("r", Version.STORED, (1,))),
    ],
)
def test_versions(text: str, predicate: Predicate) -> None:
    assert parse_rule(f"{text}(X)").head.predicate == predicate
    assert show(predicate) == text


def test_stored_version_is_the_plain_name() -> None:
    assert parse_rule("r@stored(X)").head.predicate == Predicate("r")


@pytest.mark.parametrize("name", ["a b", "x", "", "_", "NULL", "A`", "not", "X\n"])
def test_quoted_variables(name: str) -> None:
    rule = Rule(atom("v", Variable(name)), (atom("r", Variable(name), Variable("_1")),))
    assert "?`" in show(rule)
    assert parse_rule(show(rule)) == rule


# ----------------------------------------------------------------------------------------------- anonymous


def names(text: str) -> list[str]:
    rule = parse_rule(text)
    return [t.name for a in (rule.head, *rule.atoms) for t in a.terms if isinstance(t, Variable)]


def test_each_anonymous_variable_is_its_own() -> None:
    assert names("v :- r(_, X, _), s(_)") == ["_1", "X", "_2", "_3"]
    assert body("r(_), not s(_, _)")[1] == Negation((atom("s", Variable("_2"), Variable("_3")),))


def test_anonymous_names_pass_over_those_spelled_out() -> None:
    assert names("v :- r(_, _2, _)") == ["_1", "_2", "_3"]
    assert names("v :- r(_, ?`_1`, _)") == ["_2", "_1", "_3"]


def test_anonymous_names_begin_anew_in_each_rule() -> None:
    program = parse_program("v :- r(_). w :- r(_).")
    assert program.rules[0].body == program.rules[1].body


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        (("_1", "_2"), "r(_, _)"),
        (("_2", "_1"), "r(_2, _)"),
        (("_1", "_1"), "r(_1, _1)"),
        (("_2", "_3"), "r(_2, _3)"),
        (("_1", "_3", "_2"), "r(_, _3, _)"),
        (("_1", "_2", "_2", "_3"), "r(_, _2, _2, _)"),
        (("_3", "_1", "_2", "_4"), "r(_3, _, _, _)"),
        (("_01", "_x", "_1"), "r(_01, _x, _)"),
    ],
)
def test_shown_as_anonymous_only_if_read_back_so(variables: tuple[str, ...], text: str) -> None:
    rule = Rule(atom("v"), (atom("r", *map(Variable, variables)),))
    assert show(rule) == f"v :- {text}."
    assert parse_rule(show(rule)) == rule


# ----------------------------------------------------------------------------------------------- constants


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("0", 0),
        (str(10**60), 10**60),
        ("1.50", Decimal("1.50")),
        ("-0.5", Decimal("-0.5")),
        ("decimal '100'", Decimal(100)),
        ("decimal '1E+5'", Decimal("1E+5")),
        ("1.5e0", 1.5),
        ("1e+300", 1e300),
        ("-2.5e-10", -2.5e-10),
        ("double 'inf'", math.inf),
        ("double '-inf'", -math.inf),
        ("true", True),
        ("false", False),
        ("null", None),
        ("''", ""),
        ("'it''s'", "it's"),
        ("'a\\nb\\\\\"'", 'a\nb\\"'),
        ("'\\u2028\\u200b\\U000e0001'", "\u2028\u200b\U000e0001"),
        ("'\\ud800'", "\ud800"),
        ("date '2026-01-31'", dt.date(2026, 1, 31)),
        ("timestamp '2026-01-31 23:59:00'", dt.datetime(2026, 1, 31, 23, 59)),
        ("timestamp '2026-01-31 23:59:00.000001'", dt.datetime(2026, 1, 31, 23, 59, 0, 1)),
        ("timestamp '2026-01-31 23:59:00+00:00'", dt.datetime(2026, 1, 31, 23, 59, tzinfo=dt.UTC)),
    ],
)
def test_constants_keep_value_and_type(text: str, value: Value) -> None:
    found = term(text)
    assert isinstance(found, Constant)
    assert (found.value, type(found.value)) == (value, type(value))
    assert show(found) == text


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('"it\'s"', "'it''s'"),
        ("'it\\'s'", "'it''s'"),
        ('"a""b\\""', "'a\"b\"'"),
        ("'\\x41\\u0042\\U00000043'", "'ABC'"),
        ("1E5", "1e5"),
        ('date "2026-01-31"', "date '2026-01-31'"),
        ("timestamp '2026-01-31T23:59'", "timestamp '2026-01-31 23:59:00'"),
    ],
)
def test_other_spellings_of_constants(text: str, same: str) -> None:
    assert term(text) == term(same)


def test_true_one_and_text_are_three_constants() -> None:
    assert len({term("true"), term("1"), term("'1'")}) == 3
    assert term("1") == term("1.0") == term("1e0")


def test_a_number_does_not_swallow_the_full_stop() -> None:
    assert parse_program("v :- X < 3. r(1).s(2.5).").rules[0].body == (Comparison("<", X, Constant(3)),)


# -------------------------------------------------------------------------------------------- declarations


def test_declaration() -> None:
    text = (
        ".decl orders(o_orderkey: bigint, o_custkey: bigint not null, o_total: decimal(12,2)) "
        "key(o_orderkey) unique(o_custkey, o_total) foreign(o_custkey) references customer(c_custkey)."
    )
    (found,) = parse_program(text).declarations
    bigint = ColumnType(TypeName.BIGINT)
    assert found == Declaration(
        "orders",
        (
            Column("o_orderkey", bigint),
            Column("o_custkey", bigint, not_null=True),
            Column("o_total", ColumnType(TypeName.DECIMAL, 12, 2)),
        ),
        ("o_orderkey",),
        (("o_custkey", "o_total"),),
        (ForeignKey(("o_custkey",), "customer", ("c_custkey",)),),
    )
    assert show(found) == text


def test_declaration_without_types_or_columns() -> None:
    found = parse_program(".decl r(a, B not null). .decl panic. .decl panic2() key().").declarations
    assert found[0].columns == (Column("a", ANY), Column("B", ANY, not_null=True))
    assert [d.arity for d in found] == [2, 0, 0]
    assert [d.key for d in found] == [None, None, ()]


@pytest.mark.parametrize(
    ("text", "type_name"),
    [
        ("integer", TypeName.INT),
        ("long", TypeName.BIGINT),
        ("INT", TypeName.INT),
        ("varchar(20)", TypeName.STRING),
        ("text", TypeName.STRING),
        ("numeric", TypeName.DECIMAL),
        ("bool", TypeName.BOOLEAN),
        ("real", TypeName.FLOAT),
        ("any", TypeName.ANY),
        *((type_name.value, type_name) for type_name in TypeName),
    ],
)
def test_types(text: str, type_name: TypeName) -> None:
    (found,) = parse_program(f".decl r(a: {text}).").declarations
    assert found.columns[0].type == ColumnType(type_name)


def test_primary_and_foreign_key_in_the_words_of_sql() -> None:
    assert parse_program(".decl r(a) primary key(a) foreign key(a) references s(b).") == parse_program(
        ".decl r(a) key(a) foreign(a) references s(b)."
    )


# --------------------------------------------------------------------------------------------------- spans


def place(span: Span | None) -> tuple[str, int, int, int] | None:
    return None if span is None else span.place


def test_spans() -> None:
    text = "% one\nv(X) :-\n  r(X, 'a'),\n  not (s(X),\n       t(X)).\n.decl r(a: int)\n  key(a)."
    program = parse_program(text, "f.dl")
    (rule,), (declaration,) = program.rules, program.declarations
    negation = rule.body[1]
    assert place(rule.span) == ("f.dl", 2, 1, 7)
    assert place(rule.head.span) == ("f.dl", 2, 1, 4)
    assert place(rule.body[0].span) == ("f.dl", 3, 3, 9)
    assert place(rule.atoms[0].terms[1].span) == ("f.dl", 3, 8, 3)
    assert place(negation.span) == ("f.dl", 4, 3, 10)
    assert isinstance(negation, Negation)
    assert place(negation.body[1].span) == ("f.dl", 5, 8, 4)
    assert place(declaration.span) == ("f.dl", 6, 1, 15)
    assert place(declaration.columns[0].span) == ("f.dl", 6, 9, 6)


def test_spans_do_not_matter_for_equality() -> None:
    assert parse_rule("v(X):-r(X)", "a") == parse_rule("\n\nv( X ) :- r( X ).", "b")


# -------------------------------------------------------------------------------------------------- errors


def test_all_syntax_errors_are_reported_at_once() -> None:
    text = "v(x) :- r(X).\nOrders(X).\nok(1).\nr(1)\ns(2).\nt('a)."
    assert refused(text) == ("DL003", "DL004", "DL002", "DL005")


def test_errors_have_the_place_in_the_whole_text() -> None:
    with pytest.raises(ProgramError) as caught:
        parse_program("r(1).\n\nr(x).\n  s(y).", "f")
    assert [str(d.span) for d in caught.value.diagnostics] == ["f:3:3", "f:4:5"]


def test_errors_end_at_some_number() -> None:
    assert len(refused("r(x).\n" * 500)) == 20


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("r(1)", Code.MISSING_STOP),
        ("r(1) .decl s(a).", Code.MISSING_STOP),
        ("r(1)\n`s`(2).", Code.MISSING_STOP),
        ("r(1) s(2).", Code.UNEXPECTED_TEXT),
        ("v :- x < 3.", Code.LOWER_CASE_TERM),
        ("v :- x is null.", Code.LOWER_CASE_TERM),
        ("v :- 3 < x.", Code.LOWER_CASE_TERM),
        (".decl R(a).", Code.UPPER_CASE_RELATION),
        (".decl r(a) foreign(a) references S(a).", Code.UPPER_CASE_RELATION),
        ("v :- R@known(X).", Code.UPPER_CASE_RELATION),
        ("v :- r(X), _(X).", Code.UPPER_CASE_RELATION),
        ("r('a", Code.UNCLOSED_QUOTE),
        ("r('a\n').", Code.UNCLOSED_QUOTE),
        ('r("a).', Code.UNCLOSED_QUOTE),
        ("`r(1).", Code.UNCLOSED_QUOTE),
        ("r('\\').", Code.UNCLOSED_QUOTE),
        ("select * from r;", Code.SQL_TEXT),
        ("CREATE VIEW v AS SELECT 1;", Code.SQL_TEXT),
        ("r('\\q').", Code.BAD_ESCAPE),
        ("r('\\u12').", Code.BAD_ESCAPE),
        ("r(date '\\q').", Code.BAD_ESCAPE),
        ("r(?`\\q`).", Code.BAD_ESCAPE),
        ("r(decimal 'NaN').", Code.BAD_CONSTANT),
        (f"r({'9' * 5000}).", Code.BAD_CONSTANT),
        ("v :- r@nothing(X).", Code.UNKNOWN_VERSION),
        (f"v :- r@demand_{5001 * '9'}(X).", Code.UNKNOWN_VERSION),
        ("v :- r@region_x(X).", Code.UNKNOWN_VERSION),
        (".decl r(a: decimal(0)).", Code.UNKNOWN_TYPE),
        (".decl r(a: decimal(3,4)).", Code.UNKNOWN_TYPE),
        ("v :- r(X), X = Null.", Code.RESERVED_WORD),
        (".decl r(a) key(a) key(a).", Code.SECOND_KEY),
        ("v :- r(X), X + 1 = 3.", Code.UNEXPECTED_TEXT),
        ("v :- r(X);", Code.UNEXPECTED_TEXT),
        (".", Code.UNEXPECTED_TEXT),
        ("r(1,).", Code.UNEXPECTED_TEXT),
        ("v :- r(X), X IS NOT NULL.", Code.UNEXPECTED_TEXT),
        ("r(\N{LEFT SINGLE QUOTATION MARK}a\N{RIGHT SINGLE QUOTATION MARK}).", Code.UNEXPECTED_TEXT),
        ("\x00", Code.UNEXPECTED_TEXT),
    ],
)
def test_syntax_errors(text: str, code: Code) -> None:
    assert refused(text) == (code.value,)


@pytest.mark.parametrize("name", ["select", "with", "update"])
def test_words_of_sql_may_be_names(name: str) -> None:
    assert parse_program(f"{name}(X) :- r(X). {name}. {name} :- r(1).").heads == (Predicate(name),)


def test_one_rule_only() -> None:
    with pytest.raises(ProgramError):
        parse_rule("r(1). s(2).")
    with pytest.raises(ProgramError):
        parse_rule(".decl r(a).")
    with pytest.raises(ProgramError):
        parse_rule("")


# --------------------------------------------------------------------------------------------------- speed


def test_long_rules_are_broken_into_lines() -> None:
    rule = parse_rule("v(X) :- " + ", ".join(f"relation_{i}(X)" for i in range(12)))
    lines = show(rule).split("\n")
    assert lines[:2] == ["v(X) :-", "    relation_0(X),"]
    assert parse_rule(show(rule)) == rule


def test_hundred_rules_are_read_well_under_a_second() -> None:
    parse_program("")
    text = "v(X, Y) :- r(X, Z, 'abc', 3), s(Z, Y, _, _), not t(X, _), Y != 3.\n" * 100
    start = time.perf_counter()
    program = parse_program(text)
    assert time.perf_counter() - start < 1
    assert parse_program(show(program)) == program


# ------------------------------------------------------------------------------------------------- beyond limits


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("v(" + "abs(" * 2000 + "X" + ")" * 2000 + ") :- r(X).", "DL013"),
        ("v(X" + " + X" * 2000 + ") :- r(X).", "DL013"),
        ("v(" + "-" * 2000 + "X) :- r(X).", "DL013"),
        ("v(X) :- " + "not (" * 2000 + "r(X)" + ")" * 2000 + ".", "DL013"),
        ("v(X) :- r(X)" + ", r(X)" * 300 + ".", "DL014"),
        ("v(X) :- r(X).\n" * 20_000, "DL014"),
        ("v(X) :- r(X, " + "9" * 5000 + ").", "DL008"),
        ("v(X) :- r(X, decimal '1e999999999').", "DL008"),
        (".decl r(a: decimal(" + "9" * 5000 + ", 2)).", "DL010"),
        (".decl r(a: decimal(30, c)).", "DL001"),
        ("v(abs(X, Y)) :- r(X, Y).", "DL102"),
    ],
)
def test_what_cannot_be_read_has_a_code(text: str, code: str) -> None:
    with pytest.raises(ProgramError) as caught:
        parse_program(text)
    assert code in {one.code.value for one in caught.value.diagnostics}
