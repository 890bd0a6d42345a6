"""The search near the update against the search of everything, on cases beside other rows; and against brute force."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from selfmaint.conformance.run import case_facts
from selfmaint.decide import neighbourhood, searched
from selfmaint.decide.decision import Decision
from selfmaint.decide.search_budget import SearchBudget
from selfmaint.decide.searched import searches
from selfmaint.engine.memory import MemoryEngine
from selfmaint.possible.new_state import Determined, NewStates, Open, TwoDatabases
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.situation import Situation
from tests.embedded import embedded
from tests.oracle.constrained_cases import random_situation
from tests.searched import given_of
from tests.selfmaint.decide.test_constrained_decision import recorded
from tests.selfmaint.possible.test_possible import WANTED

SECONDS = 5

patient = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], deadline=None)


@pytest.mark.parametrize("wanted", WANTED)
@given(seed=st.integers(0, 2**40))
@patient
def test_what_is_found_near_the_update_is_so(wanted: str, seed: int) -> None:
    random = Random(seed)
    case = random_situation(random, WANTED[wanted]).case
    record = recorded(case)
    schema = catalog(record.program)
    beside = embedded(record, schema, random.choice((0, 1, 1, 2, 4)), random.choice((0, 0.3, 0.7)), random)
    assume(beside is not None)
    assert beside is not None
    made, _ = beside
    engine = MemoryEngine()
    facts = case_facts(made, schema, engine)
    assume(sum(map(len, facts.relations.values())) <= searched.MOST_ROWS)
    situation = Situation.of(
        (p for p in made.contents if p.name in schema.relations), effective=made.effective
    )
    whole = NewStates(given_of(made, schema), SECONDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searched, "MOST_ROWS", -1)
        patch.setattr(neighbourhood, "WHOLE", random.choice((0, 0, 2, 24)))
        budget = SearchBudget(rows=random.choice((5, 12, 25, 60, 400)))
        near = searches(Decision(schema, search=budget).knowledge(engine, facts, situation))
        for view in schema.views:
            found = near.of(view) if whole.covers(view) else None
            if found is None or isinstance(found.answer, Open):
                continue
            expected = whole.of(view)
            if isinstance(expected, Open):
                continue
            assert type(found.answer) is type(expected), (made, view.name)
            if isinstance(found.answer, Determined) and isinstance(expected, Determined):
                before, at_hand = whole.stored(view), found.states.stored(view)
                assert found.answer.state - at_hand == expected.state - before, (made, view.name)
                assert at_hand - found.answer.state == before - expected.state, (made, view.name)
            assert isinstance(found.answer, Determined | TwoDatabases)
