"""Cross-examination against two oracles: it contradicts nothing that is right, and finds most of what is wrong.

Oracles: for rules `tests/oracle/bruteforce.py`, which also says of two databases whether they are two; for views that
group, or keep or remove duplicates, `tests/oracle/aggregates.py`, which lists every database over small domains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from random import Random

import pytest

from datalog.model import Predicate, Row, Version
from datalog.syntax import parse_program
from selfmaint.conformance.run import case_facts
from selfmaint.cross_examine.question import Answer, Differing, NotExamined, NothingFound, Question, better
from selfmaint.cross_examine.search import answers
from selfmaint.decide.decision import Decision
from selfmaint.decide.procedure import check
from selfmaint.decide.verdict import SelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.warehouse.catalog import Catalog, catalog
from selfmaint.warehouse.situation import Situation
from tests.effort import effort
from tests.oracle.aggregates import Question as Known
from tests.oracle.aggregates import Schema, questions
from tests.oracle.bruteforce import SearchTooLongError, solve
from tests.oracle.constrained_cases import random_situation
from tests.oracle.counterexample import objections
from tests.oracle.random_stars import random_bag_above, random_roll_up, random_star
from tests.selfmaint.decide.test_constrained_decision import as_date, recorded
from tests.selfmaint.decide.test_group_decision import facts_of, stored
from tests.selfmaint.possible.test_possible import STEPS, WANTED, plain

SECONDS = 10.0
CANDIDATES = 200
"""Making a program of more candidate rows may take minutes here, where no process is ended."""

FOUND = 0.9
"""Of the views of rules whose new state is open, for so many at least two databases are found."""
FOUND_OF_GROUPS = 0.7
"""The same of views that group: their sums are of values that nothing tells."""

State = frozenset[Row]


def examined(
    schema: Catalog, situation: Situation, facts: Facts[State], promised: Mapping[str, State | None]
) -> dict[str, Answer]:
    found: dict[str, Answer] = {}
    for answer in answers(Question(schema, situation, facts.relations, promised, CANDIDATES), SECONDS):
        found[answer.view] = better(found.get(answer.view), answer)
    return found


@pytest.mark.parametrize("wanted", WANTED)
def test_rules(wanted: str) -> None:
    kinds: Counter[tuple[bool, type[Answer]]] = Counter()
    for seed in range(effort(12, 150)):
        case = random_situation(Random(seed), WANTED[wanted]).case
        try:
            right = solve(case, steps=STEPS)
        except SearchTooLongError:
            continue
        assert right is not None
        record = recorded(case, right)
        schema = catalog(record.program)
        situation = Situation.of(
            (p for p in record.contents if p.name in schema.relations), effective=record.effective
        )
        facts = case_facts(record, schema, MemoryEngine())
        promised = {
            name: frozenset(tuple(map(as_date, row)) for row in its["state"])
            if its["self_maintainable"]
            else None
            for name, its in right.items()
        }
        for name, found in examined(schema, situation, facts, promised).items():
            kinds[promised[name] is not None, type(found)] += 1
            assert promised[name] is None or not isinstance(found, Differing), (case, name)
            if isinstance(found, Differing):
                first, second = map(plain, found.databases)
                assert objections(case, name, first, second) == []  # type: ignore[arg-type]
    judge(kinds, FOUND)


def judge(kinds: Counter[tuple[bool, type[Answer]]], least: float) -> None:
    yes, no = (sum(n for (is_yes, _), n in kinds.items() if is_yes is which) for which in (True, False))
    assert yes
    assert no
    assert kinds[True, NotExamined] <= 0.1 * yes, kinds
    assert kinds[False, Differing] >= least * no, kinds


random_bags = partial(random_star, bags=0.8)


@pytest.mark.parametrize("make", [random_star, random_bags, random_roll_up, random_bag_above])
def test_groups_and_bags(make: Callable[[Random], Schema]) -> None:
    """What is promised is what the product computes for a "yes", and nothing where two states are known."""
    kinds: Counter[tuple[bool, type[Answer]]] = Counter()
    for seed in range(5000, 5000 + effort(4, 40)):
        random = Random(seed)
        schema = make(random)
        decision = Decision(catalog(parse_program(schema.text)))
        for known in questions(schema, random, 3, 3):
            facts = facts_of(decision, known)
            changes = [p for p in facts.relations if p.version is not Version.STORED]
            situation = Situation.of(changes, effective=True)
            promised = _promised(schema, decision, known, facts, situation)
            for name, found in examined(decision.catalog, situation, facts, promised).items():
                kinds[promised[name] is not None, type(found)] += 1
                assert promised[name] is None or not isinstance(found, Differing), (schema.text, known, name)
    judge(kinds, FOUND_OF_GROUPS)


def _promised(
    schema: Schema, decision: Decision, known: Known, facts: Facts[State], situation: Situation
) -> dict[str, State | None]:
    known_facts = decision.knowledge(MemoryEngine(), facts, situation)
    verdicts = check(known_facts, decision.catalog.views, sample=0)
    promised: dict[str, State | None] = {}
    for view in schema.views:
        states = known.states[view.name]
        if isinstance(verdicts[view.name], SelfMaintainable):
            (state,) = states
            is_counted = decision.catalog.view(view.name).is_counted
            promised[view.name] = stored(Counter(dict(state)), is_counted=is_counted)
        elif len(states) > 1:
            promised[view.name] = None
    return promised


def test_an_empty_question_has_no_answer() -> None:
    schema = catalog(parse_program("v(X) :- r(X)."))
    facts: Facts[State] = Facts({Predicate("v"): frozenset()})
    assert examined(schema, Situation(), facts, {}) == {}
    (answer,) = examined(schema, Situation(), facts, {"v": frozenset()}).values()
    assert isinstance(answer, NothingFound)
