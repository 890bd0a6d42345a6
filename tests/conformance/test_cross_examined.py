"""Cross-examination against the recorded answers: what is right is never contradicted, and what is wrong is found.

The search knows nothing of the recorded answers, and the solver that these are from nothing of the search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from datalog.model import Row
from selfmaint.conformance.cases import Case, read_cases
from selfmaint.conformance.run import case_facts
from selfmaint.cross_examine.question import Answer, Differing, NotExamined, NothingFound, Question, better
from selfmaint.cross_examine.search import answers
from selfmaint.engine.memory import MemoryEngine
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.situation import Situation
from tests.effort import effort

DATA = Path(__file__).parent / "data"
SECONDS = 20.0
STEPS = {
    "no_projection": effort(20, 1),
    "constraints": effort(16, 1),
    "comparisons": effort(20, 1),
    "projection": effort(12, 1),
    "union": effort(12, 1),
    "aggregates": effort(8, 1),
    "hard": 1,
    "found": 1,
}
"""Each how manieth case of a file is taken; of all of them the same is true."""

State = frozenset[Row]


def cases(file: str) -> list[Case]:
    return list(read_cases(DATA / f"{file}.jsonl"))[:: STEPS[file]]


def examined(case: Case, promised: Mapping[str, State | None]) -> dict[str, Answer]:
    schema, engine = catalog(case.program), MemoryEngine()
    relations = (p for p in case.contents if p.name in schema.relations)
    situation = Situation.of(relations, effective=case.effective)
    facts = case_facts(case, schema, engine)
    found: dict[str, Answer] = {}
    for answer in answers(Question(schema, situation, facts.relations, promised), SECONDS):
        found[answer.view] = better(found.get(answer.view), answer)
    return found


def recorded(case: Case) -> dict[str, State | None]:
    return {name: its.state if its.self_maintainable else None for name, its in case.expected.items()}


@pytest.mark.parametrize("file", STEPS)
def test_right_verdicts_agree_and_each_no_is_found(file: str) -> None:
    kinds: Counter[tuple[bool, type[Answer]]] = Counter()
    for case in cases(file):
        promised = recorded(case)
        found = examined(case, promised)
        kinds.update((promised[name] is not None, type(found[name])) for name in promised)
    assert not kinds[True, Differing]
    yes, no = (sum(n for (is_yes, _), n in kinds.items() if is_yes is which) for which in (True, False))
    assert kinds[True, NothingFound] == yes > 0
    assert kinds[False, Differing] == no > 0


def spoilt(case: Case) -> Iterator[dict[str, State | None]]:
    """Wrong promises: of a "no" some state; of a "yes" a row less, or the state before where that is another one."""
    for name, state in recorded(case).items():
        stored = case.contents[catalog(case.program).view(name).predicate]
        if state is None:
            yield {name: stored}
        elif state:
            yield {name: state - {min(state, key=repr)}}
        if state is not None and state != stored:
            yield {name: stored}


@pytest.mark.parametrize("file", STEPS)
def test_wrong_verdicts_are_contradicted(file: str) -> None:
    number = 0
    for case in cases(file)[::3]:
        for promised in spoilt(case):
            (answer,) = examined(case, promised).values()
            number += 1
            assert isinstance(answer, Differing), (case.name, promised)
    assert number


def test_what_is_left_out_says_why() -> None:
    """More time, and other data, make no error."""
    case = cases("no_projection")[0]
    schema = catalog(case.program)
    facts = case_facts(case, schema, MemoryEngine())
    situation = Situation.of(p for p in case.contents if p.name in schema.relations)
    name = next(iter(case.expected))
    few = Question(schema, situation, facts.relations, {name: None}, most_candidates=1)
    (answer,) = answers(few, SECONDS)
    assert isinstance(answer, NotExamined)
    assert "candidate rows" in answer.reason
