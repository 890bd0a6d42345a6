"""The oracle with constraints, comparisons, projections and unions: by enumeration, by denser values, by hand."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from datalog.copies import replace
from tests.oracle.bruteforce import (
    Answers,
    Case,
    SearchTooLongError,
    explains,
    fact_count,
    solve,
    state_after,
)
from tests.oracle.column_types import between, fits, in_order
from tests.oracle.constrained_cases import (
    BOTH,
    COMPARISONS,
    CONSTRAINTS,
    CONSTRAINTS_WITH_NULLS,
    TYPED_BOTH,
    TYPED_COMPARISONS,
    Wanted,
    constrained_cases,
    constrained_situations,
    random_situation,
)
from tests.oracle.counterexample import objections
from tests.oracle.random_rules import RuleLimits
from tests.oracle.random_schemas import DATE, DECIMAL, INTEGER, NUMBER, TEXT, Domain
from tests.oracle.rules import Constant, ordered
from tests.oracle.strategies import Situation

ENUMERABLE = 12
"""Facts whose subsets are enumerated within a moment."""
STEPS = 20_000
"""Of a search; longer ones are left to patience."""

patient = settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])


def verdicts(answers: Answers | None) -> dict[str, object] | None:
    """The answers without witnesses, of which there may be many."""
    if answers is None:
        return None
    return {name: answer.get("state", "undetermined") for name, answer in answers.items()}


def check(case: Case, answers: Answers | None) -> None:
    """Each witness is one, by the definition."""
    for name, answer in (answers or {}).items():
        assert answer["self_maintainable"] == ("witness" not in answer)
        if "witness" in answer:
            assert objections(case, name, *answer["witness"]) == []


# --- enumeration -------------------------------------------------------------------

FEW_TEXTS = Domain("string", ("a", "b"), "b", ("a", "b"))
FEW_NUMBERS = Domain("number", (1, 2), 2, (1, 2))
SMALL = Wanted(
    constraints=True, nulls=True, domains=(FEW_TEXTS,), arity=2, rows=2, effective=None,
    rules=RuleLimits(views=2, subgoals=3, variables=4, projection=True, unions=True),
)  # fmt: skip
SMALL_ORDERED = replace(SMALL, domains=(FEW_NUMBERS,), rules=replace(SMALL.rules, comparisons=2))


@pytest.mark.parametrize("wanted", [SMALL, SMALL_ORDERED], ids=["texts", "numbers"])
@given(data=st.data())
@settings(patient, max_examples=4 * settings().max_examples)
def test_search_agrees_with_enumeration(wanted: Wanted, data: st.DataObject) -> None:
    """Also where a view lost or gained a row, so that there may be no explanation."""
    case = data.draw(constrained_cases(wanted))
    pool = list(wanted.domains[0].constants)
    case["domains"] = {name: [pool] * arity for name, arity in case["relations"].items()}
    assume(fact_count(case, 0) <= ENUMERABLE)
    if data.draw(st.integers(0, 3)) == 0:
        view = data.draw(st.sampled_from(sorted(case["views"])))
        case = {**case, "views": {**case["views"], view: case["views"][view][1:]}}
    enumerated = solve(case, exhaustive=True, fresh=0)
    found = solve(case)
    assert verdicts(found) == verdicts(enumerated)
    check(case, found)
    check(case, enumerated)


@given(constrained_cases(replace(SMALL, knowledge=False)), st.integers(0, 2))
@settings(patient, max_examples=4 * settings().max_examples)
def test_search_agrees_with_enumeration_with_new_values(case: Case, fresh: int) -> None:
    assume(fact_count(case, fresh) <= ENUMERABLE)
    assert verdicts(solve(case, fresh=fresh)) == verdicts(solve(case, exhaustive=True, fresh=fresh))


@given(constrained_cases(SMALL_ORDERED), st.integers(0, 2**32).map(Random))
@settings(patient, max_examples=4 * settings().max_examples)
def test_search_agrees_with_enumeration_on_cyclic_foreign_keys(case: Case, random: Random) -> None:
    """Two relations, or one, that refer to each other by any column; mostly nothing explains the case."""
    relations = case["relations"]
    first, second = (random.choice(sorted(relations)) for _ in range(2))
    for child, parent in ((first, second), (second, first)):
        columns = [random.randrange(relations[child])], [random.randrange(relations[parent])]
        case["foreign_keys"] = [*case.get("foreign_keys", ()), (child, columns[0], parent, columns[1])]
    pool = list(FEW_NUMBERS.constants)
    case["domains"] = {name: [pool] * arity for name, arity in relations.items()}
    assume(fact_count(case, 0) <= ENUMERABLE)
    assert verdicts(solve(case)) == verdicts(solve(case, exhaustive=True, fresh=0))


# --- enough values in each gap -----------------------------------------------------

FEW_VARIABLES = RuleLimits(views=2, subgoals=3, variables=3, comparisons=2)


def grid(domain: Domain) -> list[Constant]:
    """The constants and, around and between them, more values than a rule has variables."""
    known = in_order({*domain.constants, domain.newcomer, *domain.cuts})
    numbers = [value for value in known if isinstance(value, int | float)]
    match domain.type:
        case "int":
            return [*range(-4, 12)]
        case "date":
            days = [f"02-{day}" for day in range(23, 30)] + [f"03-{day:02}" for day in range(1, 10)]
            return [f"2024-{day}" for day in days]
        case "string":
            return [*known, *(f"{text}{'m' * n}" for text in known for n in range(1, 4))]
    inner = [low + (high - low) * n / 4 for low, high in pairwise(numbers) for n in range(1, 4)]
    return [*known, *inner, *(numbers[0] - n for n in range(1, 4)), *(numbers[-1] + n for n in range(1, 4))]


@pytest.mark.parametrize("domain", [NUMBER, INTEGER, DECIMAL, DATE, TEXT], ids=lambda domain: domain.type)
@pytest.mark.parametrize(("projection", "constraints"), [(False, False), (False, True), (True, False)])
@given(data=st.data())
@patient
def test_more_values_change_nothing(
    domain: Domain, projection: bool, constraints: bool, data: st.DataObject
) -> None:
    rules = replace(FEW_VARIABLES, projection=projection, views=1 if projection else 2)
    wanted = Wanted(
        constraints=constraints, domains=(domain,), typed=True, effective=None, arity=2, rows=2, rules=rules
    )
    case = data.draw(constrained_cases(wanted))
    found = solve(case)
    values = grid(domain)
    assume(len(case["program"]) < 90)
    dense: Case = {**case, "domains": {n: [values] * arity for n, arity in case["relations"].items()}}
    try:
        expected = solve(dense, steps=3 * STEPS)
    except SearchTooLongError:
        assume(False)
    else:
        assert verdicts(found) == verdicts(expected)
    check(case, found)


@given(st.lists(st.text("\0\1ab", max_size=4), min_size=2, max_size=2, unique=True))
def test_a_text_between_two_texts_is_between(ends: list[str]) -> None:
    low, high = sorted(ends)
    found = between(low, high, "string", 3, discrete=False)
    assert all(low < str(text) < high for text in found)
    assert bool(found) == (high != low + "\0")
    if high.removeprefix(low).strip("\0") or not high.startswith(low):
        (middle,) = found  # and there is as much room on both its sides
        assert between(low, middle, "string", 3, discrete=False)
        assert between(middle, high, "string", 3, discrete=False)
        assert middle not in {low + "\0" * n for n in range(6)}


@given(st.tuples(*[st.integers(-5, 20) | st.sampled_from([0.5, 1.25])] * 2), st.integers(0, 4))
def test_values_in_a_gap_of_integers(ends: tuple[float, float], room: int) -> None:
    low, high = ends
    assume(low < high)
    every = [n for n in range(-6, 22) if low < n < high]
    found = between(low, high, "integer", room, discrete=True)
    assert {*found} <= {*every}
    if [*every] != found:
        (middle,) = found
        assert isinstance(middle, int)
        assert min(sum(n < middle for n in every), sum(n > middle for n in every)) >= room
    assert between(low, high, "number", room, discrete=True)


# --- random cases ------------------------------------------------------------------

ALL = [CONSTRAINTS, CONSTRAINTS_WITH_NULLS, COMPARISONS, TYPED_COMPARISONS, BOTH, TYPED_BOTH]


@pytest.mark.parametrize("wanted", ALL)
@given(data=st.data())
@patient
def test_the_hidden_database_is_one_explanation(wanted: Wanted, data: st.DataObject) -> None:
    drawn: Situation = data.draw(constrained_situations(wanted))
    case = drawn.case
    assert explains(case, drawn.hidden)
    try:
        answers = solve(case, steps=STEPS)
    except SearchTooLongError:
        reject()  # drawn too large for brute force
    assert answers is not None
    check(case, answers)
    for name, answer in answers.items():
        if answer["self_maintainable"]:
            assert answer["state"] == ordered(state_after(case, drawn.hidden, name))


@pytest.mark.parametrize("wanted", ALL)
def test_random_cases_have_what_is_wanted(wanted: Wanted) -> None:
    """Enough answers of both kinds, foreign keys, updates, and comparisons."""
    drawn = [random_situation(Random(seed), wanted).case for seed in range(200)]
    answers = [answer for case in drawn for answer in (solve(case, steps=STEPS) or {}).values()]
    assert sum(not answer["self_maintainable"] for answer in answers) >= len(answers) / 12
    assert sum(answer["self_maintainable"] for answer in answers) >= len(answers) / 4
    assert sum(bool(case["insert"] or case["delete"]) for case in drawn) >= 150
    if wanted.constraints:
        assert sum("foreign_keys" in case for case in drawn) >= 100
        assert any(len(key[1]) > 1 for case in drawn for key in case.get("foreign_keys", ()))
        assert any("unique" in case for case in drawn)
    if wanted.rules.comparisons:
        assert sum("<" in case["program"] for case in drawn) >= 50
    for case in drawn:
        for name, its in case.get("types", {}).items():
            rows = [row for part in (case["insert"], case["delete"]) for row in part.get(name, [])]
            assert all(fits(v, t) for row in rows for v, t in zip(row, its, strict=True) if v is not None)


# --- by hand -----------------------------------------------------------------------


def star(**more: object) -> Case:
    """Sales refer to customers."""
    case: Case = {
        "relations": {"sales": 2, "customers": 2},
        "program": "v(I, C, R) :- sales(I, C), customers(C, R).",
        "views": {"v": [["s1", "k1", "eu"]]},
        "effective": True,
        "keys": {"sales": [0], "customers": [0]},
        "foreign_keys": [("sales", [1], "customers", [0])],
    }
    return Case(**{**case, **more})  # type: ignore[typeddict-item]


def test_a_new_dimension_row_has_no_facts() -> None:
    insert = {"customers": [["k2", "us"]]}
    assert verdicts(solve(star(insert=insert))) == {"v": [["s1", "k1", "eu"]]}
    assert verdicts(solve(star(insert=insert, foreign_keys=[]))) == {"v": "undetermined"}


def test_a_new_fact_row_has_a_dimension_row() -> None:
    known, unknown = {"sales": [["s2", "k1"]]}, {"sales": [["s2", "k2"]]}
    assert verdicts(solve(star(insert=known))) == {"v": [["s1", "k1", "eu"], ["s2", "k1", "eu"]]}
    assert verdicts(solve(star(insert=unknown))) == {"v": "undetermined"}
    both = {**unknown, "customers": [["k2", "us"]]}
    assert verdicts(solve(star(insert=both))) == {"v": [["s1", "k1", "eu"], ["s2", "k2", "us"]]}


def test_what_constraints_refute_has_no_explanation() -> None:
    assert solve(star(insert={"sales": [["s1", "k1"]]})) is None  # s1 is taken
    assert solve(star(delete={"customers": [["k1", "eu"]]})) is None  # s1 would refer to nothing
    assert solve(star(views={"v": [["s1", "k1", "eu"], ["s1", "k1", "us"]]})) is None
    assert solve(star(insert={"sales": [["s2", "k2"]]}, access={"customers": [["k1", "eu"]]})) is None


def test_a_unique_constraint_lets_nulls_repeat() -> None:
    case: Case = {
        "relations": {"r": 2},
        "program": "v(X, Y) :- r(X, Y).",
        "views": {"v": [[1, None], [2, None]]},
        "unique": {"r": [[1]]},
        "nullable": {"r": [0, 1]},
    }
    assert solve(case) is not None
    assert solve({**case, "keys": {"r": [1]}}) is None
    assert solve({**case, "not_null": {"r": [1]}}) is None
    assert solve({**case, "views": {"v": [[1, 5], [2, 5]]}}) is None


@pytest.mark.parametrize(("its", "determined"), [("number", False), ("decimal", False), ("int", True)])
def test_no_integer_is_between_1_and_2(its: str, determined: bool) -> None:
    case: Case = {
        "relations": {"r": 1, "s": 1},
        "program": "v(X, Y) :- r(X), s(Y), X > 1, X < 2.",
        "views": {"v": []},
        "insert": {"s": [[0]]},
        "types": {"r": [its], "s": [its]},
    }
    assert (verdicts(solve(case)) == {"v": []}) == determined


def test_a_day_where_there_is_none_yet() -> None:
    case: Case = {
        "relations": {"r": 1, "u": 1},
        "program": "v(X, Y, Z) :- r(X), r(Y), u(Z), X > Y.",
        "views": {"v": []},
        "insert": {"u": [[1]]},
        "types": {"r": ["date"], "u": ["int"]},
    }
    assert verdicts(solve(case)) == {"v": "undetermined"}


@pytest.mark.parametrize(("its", "determined"), [("decimal", False), ("int", True)])
def test_integers_and_decimals_share_a_gap(its: str, determined: bool) -> None:
    """Between 1 and 3 there is one integer, and another number of the other column above it, or none."""
    case: Case = {
        "relations": {"r": 1, "s": 1, "t": 1},
        "program": "v(X, Y, Z) :- r(X), s(Y), t(Z), X > 1, Y > X, Y < 3.",
        "views": {"v": []},
        "insert": {"t": [[0]]},
        "types": {"r": ["int"], "s": [its], "t": ["int"]},
    }
    assert (verdicts(solve(case)) == {"v": []}) == determined


@pytest.mark.parametrize("its", ["any", "int", "date"])
def test_a_new_value_fits_all_columns_that_share_it(its: str) -> None:
    case: Case = {
        "relations": {"r": 1, "s": 1, "t": 1, "u": 1},
        "program": "v(X, Y) :- r(X), s(X), t(Y).\nw(X) :- r(X), u(X).",
        "views": {"v": [], "w": []},
        "insert": {"t": [["a"]]},
        "types": {"r": ["any"], "s": [its], "t": ["string"], "u": ["string"]},
    }
    assert verdicts(solve(case)) == {"v": "undetermined", "w": []}


def test_a_cycle_of_foreign_keys_is_closed() -> None:
    """A new employee has a superior, who may be new too, and a superior's superior."""
    case: Case = {
        "relations": {"staff": 2},
        "program": "v(E, M, T) :- staff(E, M), staff(M, T).\nw(E) :- staff(E, E).",
        "views": {"v": [], "w": []},
        "keys": {"staff": [0]},
        "foreign_keys": [("staff", [1], "staff", [0])],
        "insert": {"staff": [["e", "m"]]},
        "effective": True,
    }
    assert solve(case) is None  # before, nobody was there; so m is nobody
    own: Case = {**case, "insert": {"staff": [["e", "e"]]}}
    assert verdicts(solve(own)) == {"v": [["e", "e", "e"]], "w": [["e"]]}
    alone: Case = {
        **case, "program": "w(E) :- staff(E, E).", "views": {"w": []}, "insert": {"staff": [["e", "m"]]}
    }  # fmt: skip
    assert verdicts(solve(alone)) == {"w": []}


def test_the_way_with_the_fewest_facts_need_not_be_the_one() -> None:
    case: Case = {
        "relations": {"r": 1, "s": 1, "t": 1, "u": 1},
        "program": "v(X) :- r(X).\nv(X) :- s(X), t(X).",
        "views": {"v": [["a"]]},
        "foreign_keys": [("r", [0], "u", [0])],
        "access": {"u": []},
    }
    assert verdicts(solve(case)) == {"v": [["a"]]}


@pytest.mark.parametrize(("fresh", "state"), [(0, []), (1, []), (2, "undetermined"), (None, "undetermined")])
def test_two_new_values_in_one_row(fresh: int | None, state: object) -> None:
    case: Case = {
        "relations": {"r": 2, "s": 1},
        "program": "v(X, Y, Z) :- r(X, Y), s(Z).\nw(X) :- r(X, X).",
        "views": {"v": [], "w": []},
        "insert": {"s": [["a"]]},
    }
    assert verdicts(solve(case, fresh=fresh)) == {"v": state, "w": []}


def test_objections_name_what_is_wrong() -> None:
    case = star(insert={"sales": [["s2", "k2"]]})
    known = {"sales": [["s1", "k1"]], "customers": [["k1", "eu"]]}
    good = [{**known, "customers": [["k1", "eu"], ["k2", region]]} for region in ("eu", "us")]
    assert objections(case, "v", *good) == []
    assert objections(case, "v", good[0], good[0]) == ["both give v the same state"]
    lacking = objections(case, "v", known, good[0])
    assert lacking == ["first: after the update, sales('s2', 'k2') refers to no row of customers"]
    twins = {**good[0], "customers": [*good[0]["customers"], ["k2", "us"]]}
    assert any("has a twin" in one for one in objections(case, "v", good[1], twins))
    assert any("lacks" in one for one in objections(case, "v", {"customers": [["k2", "eu"]]}, good[1]))
    assert any("cannot be there" in one for one in objections(case, "v", good[0], {"sales": [["s2", "k2"]]}))
