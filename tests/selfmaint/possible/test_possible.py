"""The search among all databases: its answers, and its two databases, against brute force.

Every view of a random case is searched for, also those that the tests decide without: so the search is held against
the oracle wherever it is exact, and shares no code with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from datalog.copies import replace
from selfmaint.conformance.cases import Case as Recorded
from selfmaint.conformance.run import run_case
from selfmaint.duckdb import DuckEngine
from selfmaint.engine.memory import MemoryEngine
from selfmaint.possible.new_state import Determined, NewStates, Open, TwoDatabases
from selfmaint.warehouse.catalog import Catalog, catalog
from tests.oracle.bruteforce import Answers, Case, SearchTooLongError, solve
from tests.oracle.constrained_cases import Wanted, random_situation
from tests.oracle.counterexample import objections
from tests.oracle.random_rules import RuleLimits
from tests.oracle.random_schemas import DATE, DECIMAL, INTEGER, NUMBER, TEXT
from tests.searched import given_of
from tests.selfmaint.decide.test_constrained_decision import as_date, as_recorded, recorded

RULES = RuleLimits(projection=True, unions=True)
COMPARING = replace(RULES, comparisons=2)
TYPED = (INTEGER, DECIMAL, DATE, TEXT)
WANTED = {
    "plain": Wanted(effective=None, rules=RULES),
    "keys": Wanted(constraints=True, effective=None, rules=RULES),
    "keys and nulls": Wanted(constraints=True, nulls=True, effective=None, rules=RULES),
    "several keys": Wanted(constraints=True, nulls=True, several=True, effective=None, rules=RULES),
    "compared": Wanted(domains=(NUMBER,), effective=None, rules=COMPARING),
    "compared, with keys": Wanted(
        constraints=True, nulls=True, domains=(NUMBER,), effective=None, rules=COMPARING
    ),
    "typed": Wanted(constraints=True, nulls=True, domains=TYPED, typed=True, effective=None, rules=COMPARING),
}
STEPS = 20_000
SECONDS = 5

patient = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], deadline=None)


def drawn(wanted: str, seed: int) -> tuple[Case, Answers]:
    case = random_situation(Random(seed), WANTED[wanted]).case
    try:
        answers = solve(case, steps=STEPS)
    except SearchTooLongError:
        assume(False)
        raise
    assert answers is not None
    return case, answers


def plain(database: Mapping[str, frozenset[tuple[object, ...]]]) -> dict[str, list[list[object]]]:
    return {name: [list(map(as_recorded, row)) for row in rows] for name, rows in database.items()}


def states_of(record: Recorded) -> tuple[Catalog, NewStates]:
    schema = catalog(record.program)
    return schema, NewStates(given_of(record, schema), SECONDS)


@pytest.mark.parametrize("wanted", WANTED)
@given(seed=st.integers(0, 2**40))
@patient
def test_answers_are_those_of_brute_force(wanted: str, seed: int) -> None:
    case, answers = drawn(wanted, seed)
    schema, states = states_of(recorded(case, answers))
    for name, answer in answers.items():
        view = schema.view(name)
        found = states.of(view) if states.covers(view) else None
        match found:
            case Determined(state):
                assert answer["self_maintainable"], (case, name)
                assert state == {tuple(map(as_date, row)) for row in answer["state"]}
            case TwoDatabases():
                assert not answer["self_maintainable"], (case, name)
                assert objections(case, name, plain(found.first), plain(found.second)) == []  # type: ignore[arg-type]
            case Open() | None:
                assert wanted != "plain"


@pytest.mark.parametrize(
    ("engine", "wanted"),
    [*((MemoryEngine, name) for name in WANTED), (DuckEngine, "plain"), (DuckEngine, "keys and nulls")],
)
@given(seed=st.integers(0, 2**40))
@patient
def test_verdicts_and_new_states_are_those_of_brute_force(
    wanted: str, engine: type[MemoryEngine], seed: int
) -> None:
    case, answers = drawn(wanted, seed)
    outcomes = list(run_case(recorded(case, answers), engine()))
    assert [o for o in outcomes if o.disagreement] == []
    assert wanted != "plain" or all(o.verdict != "undecided" for o in outcomes)
