"""The canonical database's rules, prepared: what is unfolded, what stays, what is empty, what is split."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings

from datalog.evaluate import evaluate
from datalog.model import Atom, Literal, Negation, Predicate, Program, Rule, Variable, Version, variables_of
from datalog.syntax import parse_program, parse_rule, show
from selfmaint.api.file.programs import catalog_of
from selfmaint.canonical import after_rules, contributions, copied, known_rules
from selfmaint.canonical.support import Support
from selfmaint.conformance.cases import case_of
from selfmaint.decide.decision import Decision
from selfmaint.decide.selftest import DependsRules
from selfmaint.maintain import gained, lost
from selfmaint.warehouse.catalog import Catalog, catalog
from selfmaint.warehouse.situation import Situation
from tests.oracle.bruteforce import Case
from tests.oracle.strategies import Limits, cases

HUYN = "v1(X, Y, Z) :- r(X, Y), s(Y, Z), t(Z). v2(Y, Z) :- s(Y, Z)."
DECLARED = (
    ".decl r(a: int not null, b: int not null). .decl s(a: int not null, b: int not null)."
    " .decl t(a: int not null)."
)
R, S, T = Predicate("r"), Predicate("s"), Predicate("t")
INSERT_R = Situation.of([R.of(Version.INSERTED)])


def of(text: str) -> Catalog:
    return catalog(parse_program(text))


def support(text: str, situation: Situation = INSERT_R) -> Support:
    schema = of(text)
    return Support.of(schema, situation, contributions(schema))


def shown(rules: Iterable[Rule]) -> list[str]:
    return [show(rule) for rule in rules]


def expected(*rules: str) -> list[str]:
    return [show(parse_rule(rule)) for rule in rules]


def negation(text: str) -> Negation:
    literal = parse_rule(f"goal :- {text}.").body[0]
    assert isinstance(literal, Negation)
    return literal


# ------------------------------------------------------------------------------------------- contributions


def test_each_subgoal_of_each_view_tells_of_its_relation_unless_another_tells_it_too() -> None:
    """v1's image of s is in v2, the copy."""
    assert shown(c.rule for c in contributions(of(DECLARED + HUYN))) == expected(
        "r@known(X, Y) :- v1(X, Y, Z).", "t@known(Z) :- v1(X, Y, Z).", "s@known(Y, Z) :- v2(Y, Z)."
    )


def test_of_two_copies_one_is_enough_and_either_order_will_do() -> None:
    kept = contributions(of("v(X) :- r(X). w(X) :- r(X)."))
    assert shown(c.rule for c in kept) == expected("r@known(X) :- v(X).")
    narrow_first = contributions(of("w(X) :- r(X), s(X). v(X) :- r(X)."))
    assert shown(c.rule for c in narrow_first) == expected("s@known(X) :- w(X).", "r@known(X) :- v(X).")


def test_a_copy_that_may_not_hold_null_is_no_copy() -> None:
    """w joins, so it lacks the rows with null."""
    copies = {c.view.name: c.is_copy for c in contributions(of("w(X) :- r(X), r(X). v(Y) :- s(Y)."))}
    assert copies == {"w": False, "v": True}


KEYED = """
CREATE TABLE t (m INT PRIMARY KEY, n INT NOT NULL);
CREATE TABLE s (h INT PRIMARY KEY, d INT NOT NULL REFERENCES t(m), e INT REFERENCES t(m), up INT REFERENCES s(h));
CREATE TABLE r (k INT PRIMARY KEY, a INT NOT NULL REFERENCES s(h), b INT);
"""


@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("SELECT s.*, t.n FROM s JOIN t ON s.d = t.m", {"s"}),
        ("SELECT r.*, t.n FROM r JOIN s ON r.a = s.h JOIN t ON s.d = t.m", {"r"}),
        ("SELECT r.k, r.a, r.b, count(*) AS n FROM r JOIN s ON r.a = s.h GROUP BY r.k, r.a, r.b", {"r"}),
        ("SELECT s.*, t.n FROM s JOIN t ON s.e = t.m", set()),  # where `e` is null there is no row
        ("SELECT s.*, o.d AS their FROM s JOIN s AS o ON s.up = o.h", set()),
        ("SELECT r.k, r.a, t.n FROM r JOIN s ON r.a = s.h JOIN t ON s.d = t.m", set()),  # `b` is hidden
        ("SELECT s.*, t.n FROM s JOIN t ON s.d = t.m WHERE t.n > 3", set()),
        ("SELECT s.*, t.n FROM s JOIN t ON s.d = t.n", set()),  # no foreign key
        ("SELECT s.*, r.k FROM s JOIN r ON r.a = s.h", set()),  # the other way round
        (
            "SELECT r.*, o.k AS ok FROM r JOIN s ON r.a = s.h JOIN r AS o ON o.a = s.h",
            {"r"},
        ),  # a row meets itself
        ("SELECT r.k, r.a, r.b, count(*) AS n FROM r GROUP BY r.k, r.a, r.b HAVING count(*) > 1", set()),
    ],
)
def test_a_relation_is_wholly_known_from_a_view_that_joins_it_by_foreign_keys(
    query: str, whole: set[str]
) -> None:
    assert set(copied(catalog_of(KEYED + f"CREATE VIEW v AS {query};"))) == whole


def test_a_projected_view_tells_what_is_left() -> None:
    kept = contributions(of("v(X, Y) :- r(X, Y), s(Y, Z)."))
    assert shown(c.rule for c in kept) == expected("r@known(X, Y) :- v(X, Y).")
    assert contributions(of("u(X) :- s(X). u(X) :- t(X).")) == ()


# ------------------------------------------------------------------------------- known and after, unfolded


def test_what_one_rule_defines_is_unfolded_into_the_after_image() -> None:
    made = support(DECLARED + HUYN)
    assert made.shared == tuple(
        parse_program("r@after(X0, X1) :- v1(X0, X1, Z_1). r@after(X0, X1) :- r@inserted(X0, X1).").rules
    )
    assert {str(p): show(rule) for p, rule in made.definitions.items()} == {
        "r@known": show(parse_rule("r@known(X, Y) :- v1(X, Y, Z).")),
        "t@known": show(parse_rule("t@known(Z) :- v1(X, Y, Z).")),
        "s@known": show(parse_rule("s@known(Y, Z) :- v2(Y, Z).")),
        "s@after": show(parse_rule("s@after(X0, X1) :- v2(X0, X1).")),
        "t@after": show(parse_rule("t@after(X0) :- v1(X_1, Y_1, X0).")),
    }
    assert made.empty == frozenset()


def test_what_several_rules_define_is_shared() -> None:
    made = support("v(X) :- r(X), s(X). w(X) :- r(X), t(X).", Situation.of([S.of(Version.INSERTED)]))
    assert shown(made.shared) == expected(
        "r@known(X) :- v(X).",
        "r@known(X) :- w(X).",
        "s@after(X0) :- v(X0).",
        "s@after(X0) :- s@inserted(X0).",
    )
    assert {str(p) for p in made.definitions} == {"s@known", "t@known", "r@after", "t@after"}


def test_what_no_rule_defines_is_empty() -> None:
    made = support(".decl r(a: int). .decl q(a: int). v(X, Y) :- r(X), r(Y).", Situation())
    assert made.empty == {Predicate("q", Version.KNOWN), Predicate("q", Version.AFTER)}


def test_a_deletion_is_taken_off_before_the_insertion() -> None:
    given = Situation.of([S.of(Version.INSERTED), S.of(Version.DELETED)])
    rules = after_rules(of(DECLARED + HUYN), given)
    assert expected(
        "s@after(X0, X1) :- s@known(X0, X1), not s@deleted(X0, X1).", "s@after(X0, X1) :- s@inserted(X0, X1)."
    ) == [line for line in shown(rules) if "s@after" in line]


@pytest.mark.parametrize(
    ("given", "effective", "rules"),
    [
        ([], True, ["r@known(X, Y) :- v(X, Y)."]),
        (
            [R.of(Version.PRESENT)],
            False,
            ["r@known(X, Y) :- v(X, Y).", "r@known(X0, X1) :- r@present(X0, X1)."],
        ),
        ([R.of(Version.DELETED)], False, ["r@known(X, Y) :- v(X, Y)."]),
        (
            [R.of(Version.DELETED)],
            True,
            ["r@known(X, Y) :- v(X, Y).", "r@known(X0, X1) :- r@deleted(X0, X1)."],
        ),
        ([R.of(Version.BEFORE), R.of(Version.PRESENT)], True, ["r@known(X0, X1) :- r@before(X0, X1)."]),
    ],
)
def test_what_else_is_known(given: list[Predicate], effective: bool, rules: list[str]) -> None:
    schema = of("v(X, Y) :- r(X, Y), t('a').")
    known = known_rules(schema, Situation.of(given, effective=effective), contributions(schema))
    assert [line for line in shown(known) if line.startswith("r@known")] == expected(*rules)


def test_a_copy_needs_no_partial_copy() -> None:
    schema = of("v(X, Y) :- r(X, Y).")
    known = known_rules(schema, Situation.of([R.of(Version.PRESENT)]), contributions(schema))
    assert shown(known) == expected("r@known(X, Y) :- v(X, Y).")


# --------------------------------------------------------------------------------------- rules and negations


def test_a_rule_with_an_empty_relation_is_none() -> None:
    made = support(".decl r(a: int). .decl q(a: int). v(X, Y) :- r(X), r(Y).", Situation())
    head = parse_rule("goal(X) :- r(X).").head
    of_q = parse_rule("goal(X) :- q@known(X), r(X).").body
    assert made.rule(head, of_q, ()) is None
    kept = made.rule(head, parse_rule("goal(X) :- r(X).").body, [negation("not q@known(X)")])
    assert kept == parse_rule("goal(X) :- r(X).")


def test_a_negation_of_nothing_makes_the_rule_none() -> None:
    made = support(DECLARED + HUYN)
    assert (
        made.rule(parse_rule("goal(X) :- t(X).").head, parse_rule("g :- t(X).").body, [Negation(())]) is None
    )


def test_negations_are_unfolded_with_variables_that_no_view_has() -> None:
    made = support(DECLARED + "v(X_n1, Y, Z) :- r(X_n1, Y), s(Y, Z), t(Z). v2(Y, Z) :- s(Y, Z).")
    assert made.mark == "nn"
    found = made.negation(negation("not t@known(Z)"), frozenset({Variable("Z")}))
    assert found == negation("not v(X_n1_nn1, Y_nn1, Z)")


def test_a_negation_is_split_over_what_several_rules_define() -> None:
    made = support("v(X) :- r(X), s(X). w(X) :- r(X), t(X).", Situation())
    x = frozenset({Variable("X")})
    prepared = negation("not r@known(X)")
    assert made.negation(prepared, x) == prepared
    split = made.disjuncts(prepared, x)
    assert set(split) == {negation("not v(X)"), negation("not w(X)")}
    twice = negation("not (r@known(X), r@known(Y))")
    assert made.disjuncts(twice, x) == (negation("not r@known(X)"),)


def test_a_negation_that_another_one_implies_is_left_out() -> None:
    made = support(DECLARED + HUYN)
    body = parse_rule("goal(Y, Z) :- s@inserted(Y, Z).").body
    both = [negation("not t@known(Z)"), negation("not (t@known(Z), s@known(Y, Z))")]
    found = made.rule(Atom(Predicate("goal"), tuple(variables_of(body))), body, both)
    assert found is not None
    assert len([literal for literal in found.body if isinstance(literal, Negation)]) == 1


def test_a_program_has_the_shared_rules_that_it_uses() -> None:
    made = support(DECLARED + HUYN)
    goal = Predicate("goal")
    uses = parse_rule("goal(X, Y) :- r@after(X, Y).")
    uses_not = parse_rule("goal(X, Y) :- s@inserted(X, Y).")
    assert made.program([uses], [goal]).rules == (uses, *made.shared)
    assert made.program([uses_not], [goal]).rules == (uses_not,)


# --------------------------------------------------------------------------------------- the same meaning


def written(rules: DependsRules) -> list[Rule]:
    """TEST as its conditions say it: one rule for each anchor, nothing unfolded."""
    return [Rule(rules.head, (*positive, *rules.negative)) for positive in rules.positive]


@given(cases(Limits(odd_heads=True)))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_prepared_rules_mean_what_the_rules_say(case: Case) -> None:
    """Oracle: the rules of TEST and of maintenance as written, over those of the canonical database as written."""
    record = case_of({"id": "random", **case, "expected": {}})
    schema = catalog(record.program)
    situation = Situation.of(
        (p for p in record.contents if p.name in schema.relations), effective=record.effective
    )
    decision = Decision(schema)
    base = (*known_rules(schema, situation, decision.contributions), *after_rules(schema, situation))
    for view in schema.views:
        test = decision.test(view, situation)
        for rules in decision.depends(view, situation):
            plain = Program((*written(rules), *base))
            assert evaluate(test, rules.goal, record.contents) == evaluate(plain, rules.goal, record.contents)
        maintenance = decision.maintenance(view, situation)
        state: tuple[Literal, ...] = tuple(Atom(a.predicate.of(Version.AFTER), a.terms) for a in view.body)
        new = Program((Rule(Atom(gained(view), view.head.terms), (*state, *view.filters)), *base))
        after = evaluate(new, gained(view), record.contents)
        before = record.contents[view.predicate]
        assert evaluate(maintenance, gained(view), record.contents) <= after
        kept = before - evaluate(maintenance, lost(view), record.contents)
        assert kept | evaluate(maintenance, gained(view), record.contents) == after
