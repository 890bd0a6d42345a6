"""The oracle against Huyn's examples, the recorded cases, and plain enumeration.

Sources: Huyn, "Multiple-View Self-Maintenance in Data Warehousing Environments", 1997.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.oracle.bruteforce import Answer, Answers, Case, explains, fact_count, solve, state_after
from tests.oracle.problem import Rows
from tests.oracle.program import parse_program
from tests.oracle.rules import Value, ordered
from tests.oracle.strategies import DEFAULT, TINY, Limits, Situation, cases, situations

RECORDED = Path(__file__).parents[1] / "conformance" / "data"
ENUMERABLE = 11
"""Facts whose subsets are enumerated within a moment."""

patient = settings(
    max_examples=100, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


def verdicts(answers: Answers | None) -> dict[str, object] | None:
    """The answers without witnesses, of which there may be many."""
    if answers is None:
        return None
    return {name: answer.get("state", "undetermined") for name, answer in answers.items()}


def decided(case: Case) -> Answers:
    """The answers, with each witness checked against the definition."""
    answers = solve(case)
    assert answers is not None
    for name, answer in answers.items():
        check_witness(case, name, answer)
    return answers


def check_witness(case: Case, view: str, answer: Answer) -> None:
    assert answer["self_maintainable"] == ("state" in answer) == ("witness" not in answer)
    if "witness" in answer:
        states = []
        for database in answer["witness"]:
            assert explains(case, database)
            states.append(state_after(case, database, view))
        assert states[0] != states[1]


# --- Huyn's examples ---------------------------------------------------------------


def huyn(v1: Rows, v2: Rows, **more: Mapping[str, Rows]) -> Case:
    """Example 1.1: V1 joins R, S and T, V2 copies S; r(a, b) is inserted."""
    case: Case = {
        "relations": {"r": 2, "s": 2, "t": 1},
        "program": "v1(X, Y, Z) :- r(X, Y), s(Y, Z), t(Z).\nv2(Y, Z) :- s(Y, Z).",
        "views": {"v1": v1, "v2": v2},
        "insert": {"r": [["a", "b"]]},
    }
    return Case(**{**case, **more})  # type: ignore[typeddict-item]


FIRST = [["a1", "b1", "c1"]], [["b1", "c1"], ["b", "c2"]]
SECOND = ([["a1", "b1", "c1"], ["a1", "b1", "c2"]], [["b1", "c1"], ["b", "c2"], ["b1", "c2"]])


def test_huyn_example_1_1_first_instance_is_undetermined() -> None:
    case = huyn(*FIRST)
    answers = decided(case)
    assert not answers["v1"]["self_maintainable"]
    assert answers["v2"]["state"] == [["b", "c2"], ["b1", "c1"]]
    small, large = answers["v1"]["witness"]
    assert small == {"r": [["a1", "b1"]], "s": [["b", "c2"], ["b1", "c1"]], "t": [["c1"]]}
    assert large == {**small, "t": [["c1"], ["c2"]]}


def test_huyn_example_1_1_second_instance_gains_one_row() -> None:
    answers = decided(huyn(*SECOND))
    gained = ["a", "b", "c2"]
    assert answers["v1"]["state"] == [gained, ["a1", "b1", "c1"], ["a1", "b1", "c2"]]


def test_huyn_example_1_1_without_the_copy_is_undetermined() -> None:
    case = huyn(*SECOND)
    alone: Case = {**case, "program": case["program"].splitlines()[0], "views": {"v1": case["views"]["v1"]}}
    assert not decided(alone)["v1"]["self_maintainable"]


def test_huyn_section_1_two_insertions_at_once_are_determined() -> None:
    case: Case = {
        "relations": {"r": 1, "s": 1},
        "program": "v(X) :- r(X), s(X).",
        "views": {"v": []},
        "insert": {"r": [["a"]], "s": [["a"]]},
    }
    assert decided(case)["v"]["state"] == [["a"]]
    for name in ("r", "s"):
        alone: Case = {**case, "insert": {name: [["a"]]}}
        assert not decided(alone)["v"]["self_maintainable"]


def test_huyn_example_4_1_databases() -> None:
    canonical: dict[str, Rows] = {"r": [["a1", "b1"]], "s": [["b1", "c1"], ["b", "c2"]], "t": [["c1"]]}
    larger: dict[str, Rows] = {**canonical, "t": [["c1"], ["c2"]]}
    case = huyn(*FIRST)
    assert explains(case, canonical)
    assert explains(case, larger)
    assert state_after(case, larger, "v1") - state_after(case, canonical, "v1") == {("a", "b", "c2")}
    assert not explains(case, {**larger, "s": [*canonical["s"], ["b1", "c2"]]})


@given(st.sets(st.tuples(*[st.sampled_from(["a", "b"])] * 2)), st.data())
def test_huyn_example_4_2_query(s: set[tuple[str, str]], data: st.DataObject) -> None:
    """The test that the paper derives for V1 agrees with the definition."""
    r = data.draw(st.sets(st.tuples(*[st.sampled_from(["a", "b"])] * 2)))
    t = data.draw(st.sets(st.sampled_from(["a", "b"])))
    v1 = {(x, y, z) for x, y in r for y2, z in s if y == y2 and z in t}
    joined, left = {z for _, _, z in v1}, {y for _, y, _ in v1}
    depends = {z for y, z in s if y == "b"} - joined - {z for y, z in s if y in left}
    answers = decided(huyn([*map(list, v1)], [*map(list, s)]))
    assert answers["v1"]["self_maintainable"] == (not depends)


@pytest.mark.parametrize("views", [FIRST, SECOND])
def test_huyn_section_6_a_readable_relation_is_a_copy(views: tuple[Rows, Rows]) -> None:
    copy = huyn(*views)
    readable: Case = {
        **copy,
        "program": copy["program"].splitlines()[0],
        "views": {"v1": views[0]},
        "access": {"s": views[1]},
    }
    copied, read = verdicts(decided(copy)), verdicts(decided(readable))
    assert copied is not None
    assert read is not None
    assert copied["v1"] == read["v1"]


# --- NULL, and what else is known --------------------------------------------------


def joined(**more: object) -> Case:
    case: Case = {
        "relations": {"r": 1, "s": 1},
        "program": "v(X) :- r(X), s(X).\nw(X, Y) :- r(X), s(Y).",
        "views": {"v": [], "w": []},
    }
    return Case(**{**case, **more})  # type: ignore[typeddict-item]


def test_an_inserted_null_joins_nothing_but_crosses() -> None:
    answers = decided(joined(insert={"r": [[None]], "s": [[None]]}, nullable={"r": [0], "s": [0]}))
    assert answers["v"]["state"] == []
    assert not answers["w"]["self_maintainable"]


def test_only_a_nullable_column_explains_a_null() -> None:
    known = {"v": [], "w": [["a", None]]}
    assert solve(joined(views=known)) is None
    assert solve(joined(views=known, nullable={"s": [0]})) is not None


def test_a_null_may_be_the_only_witness() -> None:
    """The other view tells of every row of s but one with NULL."""
    case: Case = {
        "relations": {"r": 1, "s": 1, "t": 1},
        "program": "v(X, Y) :- r(X), s(Y).\nw(X) :- s(X), s(X).",
        "views": {"v": [], "w": []},
        "insert": {"r": [["a"]]},
    }
    assert decided(case)["v"]["state"] == []
    assert not decided({**case, "nullable": {"s": [0]}})["v"]["self_maintainable"]


def test_partial_copies_and_effectiveness() -> None:
    insert = {"r": [["a"]]}
    assert not decided(joined(insert=insert))["v"]["self_maintainable"]
    assert decided(joined(insert=insert, absent={"s": [["a"]]}))["v"]["state"] == []
    assert decided(joined(insert=insert, present={"s": [["a"]]}))["v"]["state"] == [["a"]]
    assert decided(joined(insert=insert, access={"s": []}))["w"]["state"] == []
    deleted = joined(insert=insert, delete={"s": [["a"]]}, effective=True)
    assert decided(deleted)["v"]["state"] == []


@pytest.mark.parametrize(
    "known",
    [
        {"present": {"r": [["a"]]}, "absent": {"r": [["a"]]}},
        {"present": {"r": [["a"]], "s": [["a"]]}},
        {"present": {"r": [["a"]]}, "access": {"r": []}},
        {"delete": {"r": [["a"]]}, "effective": True, "access": {"r": []}},
        {"insert": {"r": [["a"]]}, "effective": True, "access": {"r": [["a"]]}},
        {"views": {"v": [["a"]], "w": []}},
    ],
)
def test_contradictions_have_no_explanation(known: Mapping[str, object]) -> None:
    case = joined(**known)
    assert solve(case) is None
    assert solve(case, exhaustive=True, fresh=1) is None


@pytest.mark.parametrize(
    "program",
    [
        "v(X) :- r(X, Y).",
        "v(X, Y) :- r(X).",
        "v(X) :- r(X). v(X, X) :- r(X).",
        "v(X) :- r(X), Y < 1.",
        "v(X) :- r(X), X 1.",
        "v(X) :- r(X), X < 1, X < 'a'.",
        "v(X) :- q(X).",
        "v(X) :- r(X, X).",
        "v(X) :- r(x).",
        "v(X) :- r(X)",
    ],
)
def test_bad_rules_are_refused(program: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        solve({"relations": {"r": 1}, "program": program, "views": {"v": []}})


def test_rules_are_read_with_constants_of_both_types() -> None:
    (rule,) = parse_program("""v( X,X ,1) :- r(X, 'a, b', "c.", -2, 1.5),\n  s().""")
    assert rule.body[0].terms[1:] == ("a, b", "c.", -2, 1.5)
    assert rule.head.terms[2] == 1
    assert rule.body[1].terms == ()


# --- recorded cases ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "count"),
    [("no_projection", 400), ("constraints", 253), ("comparisons", 250), ("projection", 250), ("union", 200)],
)
def test_recorded_cases(file: str, count: int) -> None:
    lines = (RECORDED / f"{file}.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    assert len(found) == count
    for case in found:
        assert verdicts(decided(case)) == verdicts(case["expected"]), case["id"]


# --- search against enumeration ---------------------------------------------


def affordable(case: Case) -> int:
    """The number of fresh constants with which enumeration is quick."""
    fresh = [count for count in (2, 1, 0) if fact_count(case, count) <= ENUMERABLE]
    assume(fresh)
    return fresh[0]


@patient
@given(cases(TINY))
def test_search_agrees_with_enumeration(case: Case) -> None:
    fresh = affordable(case)
    exhaustive = solve(case, exhaustive=True, fresh=fresh)
    assert exhaustive is not None
    assert verdicts(solve(case, fresh=fresh)) == verdicts(exhaustive)
    for name, answer in exhaustive.items():
        check_witness(case, name, answer)


@patient
@given(situations(TINY), st.data())
def test_both_modes_agree_on_what_has_no_explanation(situation: Situation, data: st.DataObject) -> None:
    """A view that lost or gained a row may, or may not, have another explanation."""
    case = situation.case
    view = data.draw(st.sampled_from(sorted(case["views"])))
    width = len(next(r for r in parse_program(case["program"]) if r.head.name == view).head.terms)
    values: list[Value] = ["a", "b", None]
    row = data.draw(st.lists(st.sampled_from(values), min_size=width, max_size=width))
    rows = [list(other) for other in case["views"][view]]
    rows = [other for other in rows if other != row] if row in rows else [*rows, row]
    changed: Case = {**case, "views": {**case["views"], view: rows}}
    fresh = affordable(changed)
    assert verdicts(solve(changed, fresh=fresh)) == verdicts(solve(changed, exhaustive=True, fresh=fresh))


# --- larger random cases -----------------------------------------------------------


@patient
@given(situations(Limits(odd_heads=True)))
def test_the_hidden_database_is_one_explanation(situation: Situation) -> None:
    case = situation.case
    assert explains(case, situation.hidden)
    for name, answer in decided(case).items():
        if answer["self_maintainable"]:
            assert answer["state"] == ordered(state_after(case, situation.hidden, name))


@patient
@given(cases(DEFAULT))
def test_more_fresh_constants_change_nothing(case: Case) -> None:
    assert verdicts(solve(case)) == verdicts(solve(case, fresh=DEFAULT.variables + 2))
