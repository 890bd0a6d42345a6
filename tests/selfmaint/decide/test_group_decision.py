"""Views that group, against an oracle that lists every database over small domains.

Oracle: `tests/oracle/aggregates.py`, which shares no code with the product. If the product says that a view's new
state is determined, all databases that explain what is known must give it one state, and that one. (A state that the
product leaves open may be determined in small domains.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random

import pytest

from datalog.model import Predicate, Row, Version
from datalog.syntax import parse_program
from selfmaint.decide import differing
from selfmaint.decide.counterexample import NotConfirmedError, counterexample
from selfmaint.decide.decision import Decision
from selfmaint.decide.pairs import Counterexample
from selfmaint.decide.procedure import check
from selfmaint.decide.saturation import saturated
from selfmaint.decide.searched import determined_delta, found_databases
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, Undecided
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.maintain import applied
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.situation import Situation
from tests.effort import effort
from tests.large_engine import LargeEngine
from tests.oracle.aggregates import Question, Schema, questions
from tests.oracle.random_groups import random_groups
from tests.oracle.random_having import random_having
from tests.oracle.random_stars import random_roll_up, random_star

SCHEMAS, UPDATES, KNOWN = effort(2, 25), 4, 4
"""For each of sixteen tests: about 300 views decided."""
LEAST_DECIDED = {
    random_star: (0.7, 0.7),
    random_roll_up: (0.7, 0.7),
    random_groups: (0.55, 0.55),
    random_having: (0.35, 0),
}
"""Of the views that group and are determined in the small domains, how many must be decided at least, and of the
others, for which two databases are searched for so long. Those of `random_having` leave groups out, and show little."""


def stored(rows: Counter[Row], *, is_counted: bool) -> frozenset[Row]:
    """A view's rows as the product takes them; one of which it does not count copies has no row twice."""
    if is_counted:
        return frozenset((*row, copies) for row, copies in rows.items())
    assert set(rows.values()) <= {1}
    return frozenset(rows)


def facts_of(decision: Decision, question: Question) -> Facts[frozenset[Row]]:
    counted = {view.name: view.is_counted for view in decision.catalog.views}
    relations = {
        Predicate(name): stored(rows, is_counted=counted[name]) for name, rows in question.contents.items()
    }
    for version, part in ((Version.INSERTED, question.inserted), (Version.DELETED, question.deleted)):
        relations |= {Predicate(name, version): rows for name, rows in part.items() if rows}
    small = frozenset(p for p in relations if p.version is not Version.STORED)
    return Facts(relations, {}, small)


@pytest.mark.parametrize("make", LEAST_DECIDED)
@pytest.mark.parametrize("block", range(4))
def test_an_answer_holds_for_every_database(
    make: Callable[[Random], Schema], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if LEAST_DECIDED[make][1]:  # a "no" is asked for, and gets more time
        monkeypatch.setattr(differing, "MOST_SECONDS", 2.0)
    first = block * effort(3, 25)
    found = decided(range(first, first + SCHEMAS), make)
    for is_determined, least in zip((True, False), LEAST_DECIDED[make], strict=True):
        asked = found[is_determined, True] + found[is_determined, False]
        assert found[is_determined, True] >= least * asked


def decided(seeds: range, make: Callable[[Random], Schema]) -> Counter[tuple[bool, bool]]:
    """Of the views of some random schemas, how many are determined in the small domains, and decided."""
    found: Counter[tuple[bool, bool]] = Counter()
    for seed in seeds:
        random = Random(seed)
        schema = make(random)
        decision = Decision(catalog(parse_program(schema.text)))
        for question in questions(schema, random, UPDATES, KNOWN):
            engine = LargeEngine() if random.random() < 0.3 else MemoryEngine()
            found.update(judged(schema, decision, question, engine))
    return found


def is_proof(schema: Schema, decision: Decision, question: Question, engine: MemoryEngine, name: str) -> bool:
    """Whether the two databases of a "no" are two by the oracle's definition; their values are any."""
    facts = facts_of(decision, question)
    changes = [p for p in facts.relations if p.version is not Version.STORED]
    known = saturated(decision.knowledge(engine, facts, Situation.of(changes, effective=True)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(differing, "MOST_SECONDS", 10.0)  # what was found in less is found again
        verdict = check(known, [decision.catalog.view(name)])[name]
    small = decision.knowledge(MemoryEngine(), known.facts, known.situation)
    assert isinstance(verdict, NotSelfMaintainable)
    if verdict.near is not None:
        # What is shown is the part near the update; that the rest goes with it, `test_separate` tests.
        known, verdict = small, check(small, [decision.catalog.view(name)])[name]
        assert isinstance(verdict, NotSelfMaintainable)
    if verdict.databases is not None:
        pair = found_databases(known, verdict)
        assert pair is not None
        return differs(schema, question, pair, name)
    for witness in verdict.witnesses:
        try:
            # Of large data only what a derivation uses is shown: the whole databases are judged here.
            found = counterexample(small, witness)
        except NotConfirmedError:
            continue
        return differs(schema, question, found, name)
    return False


def differs(schema: Schema, question: Question, found: Counterexample, name: str) -> bool:
    """Whether two databases explain what is known, and give a view different states."""
    new = []
    for second in (False, True):
        before, after = (filled(schema, found.database(second, when)) for when in (False, True))
        assert all(v.rows(before) == question.contents[v.name] for v in schema.views)
        assert schema.is_sound(before)
        assert schema.is_sound(after)
        for relation in schema.relations:
            n = relation.name
            assert question.deleted[n] <= before[n]
            assert not question.inserted[n] & before[n]
            assert after[n] == before[n] - question.deleted[n] | question.inserted[n]
        new.append(next(v for v in schema.views if v.name == name).rows(after))
    return new[0] != new[1]


def filled(schema: Schema, rows: Mapping[str, frozenset[Row]]) -> dict[str, frozenset[Row]]:
    return {r.name: rows.get(r.name, frozenset()) for r in schema.relations}


def judged(
    schema: Schema, decision: Decision, question: Question, engine: MemoryEngine
) -> list[tuple[bool, bool]]:
    """For each view that groups, or keeps or removes duplicates, whether it is determined in the small domains, and
    whether the product says so."""
    facts = facts_of(decision, question)
    changes = [p for p in facts.relations if p.version is not Version.STORED]
    situation = Situation.of(changes, effective=True)
    stages = decision.knowledge(engine, facts, situation)
    verdicts = check(stages, decision.catalog.views, sample=0)
    found = []
    for view in schema.views:
        verdict, states = verdicts[view.name], question.states[view.name]
        shown = f"{schema.text}\n{question}"
        if isinstance(verdict, SelfMaintainable):
            assert len(states) == 1, shown
            known = decision.catalog.view(view.name)
            change = determined_delta(stages, verdict)
            (state,) = states
            new = applied(engine, known, facts.relations[Predicate(view.name)], change)
            assert new == stored(Counter(dict(state)), is_counted=known.is_counted), shown
        if isinstance(verdict, NotSelfMaintainable):
            assert is_proof(schema, decision, question, engine, view.name), shown
        # Of large data there is no "no": two databases would have to be shown.
        is_asked = len(states) == 1 or not isinstance(engine, LargeEngine)
        if is_asked and (view.aggregates or view.semantics):
            found.append((len(states) == 1, not isinstance(verdict, Undecided)))
    return found
