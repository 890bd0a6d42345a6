"""Verdicts at definition time, held against single situations.

Oracles:

- *Brute force* (`tests.oracle.bruteforce`), which shares no code with the product: where the audit says "always",
  no random situation of that kind may be undetermined; where it says "depends", its example must be one for which
  brute force finds two databases too; where it says "never", a situation with an inserted row is undetermined.
- *The decision itself*: on no example may it say yes.
- *The search without short cuts*: where nothing is ruled out before it is whole, no more and no fewer tests have rows.
- *All rules of the canonical database*, evaluated on consistent data: the fewest of them prove the same rows.
"""

from __future__ import annotations

import datetime as dt
import math
from contextlib import suppress
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datalog.budget import BudgetSpentError, limit
from datalog.copies import replace
from datalog.evaluate import Evaluator
from datalog.model import Predicate, Program, Value, Version
from selfmaint.audit.candidates import Candidates
from selfmaint.audit.changes import ANYTHING, Change, Kind, changes_of, relations_of
from selfmaint.audit.example import Always, Depends, Example
from selfmaint.audit.instance import Instance, Unfolding
from selfmaint.audit.ruled_out import RuledOut
from selfmaint.audit.search import Search
from selfmaint.conformance.cases import case_of
from selfmaint.decide.procedure import check
from selfmaint.decide.selftest import DependsRules, compact_program
from selfmaint.decide.verdict import SelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.warehouse.catalog import Catalog, View, catalog
from selfmaint.warehouse.situation import Situation
from tests.oracle.bruteforce import Case, SearchTooLongError, solve
from tests.oracle.constrained_cases import (
    BOTH,
    COMPARISONS,
    CONSTRAINTS,
    CONSTRAINTS_WITH_NULLS,
    TYPED_COMPARISONS,
    Wanted,
    _add_constraints,
    _listed,
    random_situation,
)
from tests.oracle.random_rules import draw_views
from tests.oracle.random_schemas import draw_database, draw_schema
from tests.oracle.random_updates import draw_update
from tests.oracle.rules import contents, ordered
from tests.oracle.strategies import spelled

STEPS = 1_000
FEW = 50
CHANGES = 3
CHANGED = (Version.INSERTED, Version.DELETED)
EXPLORING = settings().max_examples > 100
BUDGET_S = math.inf if EXPLORING else 2.0
"""For each verdict: a few of the warehouses that are drawn take minutes, whose verdicts are for `make explore`."""
EFFECTIVE = Situation(effective=True)
PLAIN = Wanted(effective=None)
KINDS = {
    "plain": PLAIN,
    "constraints": CONSTRAINTS,
    "nulls": CONSTRAINTS_WITH_NULLS,
    "comparisons": COMPARISONS,
    "typed": TYPED_COMPARISONS,
    "both": BOTH,
}
seldom = settings(
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    deadline=None,
    max_examples=max(settings().max_examples // 4, 1),
)


def drawn(seed: int, wanted: Wanted) -> tuple[Case, Catalog]:
    """A random case and its warehouse."""
    case = random_situation(Random(seed), replace(wanted, knowledge=False)).case
    record = case_of({"id": "random", **case, "expected": {}})
    return case, catalog(record.program)


def kind_of(case: Case) -> Change | None:
    """The narrowest kind of change, apart from an update of columns, that the case's update is; None if it is none."""
    inserted, deleted = ({n for n, rows in case[part].items() if rows} for part in ("insert", "delete"))  # type: ignore[literal-required]
    changed = inserted | deleted
    if not changed:
        return None
    if len(changed) > 1:
        return ANYTHING
    kind = Kind.ANY if inserted and deleted else Kind.INSERT if inserted else Kind.DELETE
    return Change(kind, changed.pop())


def plain(value: Value) -> Any:
    """A value as the recorded cases write it."""
    match value:
        case dt.date():
            return value.isoformat()
        case Decimal():
            return int(value) if value == int(value) else float(value)
        case _:
            return value


def as_case(case: Case, example: Example) -> Case:
    """The situation of an example, in the form that brute force reads."""

    def listed(part: Any) -> dict[str, list[list[Any]]]:
        return {n: [[plain(v) for v in row] for row in sorted(rows, key=repr)] for n, rows in part.items()}

    made = {k: v for k, v in case.items() if k not in ("access", "present", "absent")}
    made |= {
        "views": listed(example.contents),
        "insert": listed(example.inserted),
        "delete": listed(example.deleted),
    }
    return Case(**made)  # type: ignore[typeddict-item]


def decided(schema: Catalog, search: Search, example: Example) -> object:
    """The decision's verdict on an example."""
    facts: dict[Predicate, Any] = {Predicate(n): frozenset(rows) for n, rows in example.contents.items()}
    for version, part in ((Version.INSERTED, example.inserted), (Version.DELETED, example.deleted)):
        facts.update({Predicate(n, version): rows for n, rows in part.items()})
    situation = Situation.of(
        [p for p in facts if p.version is not Version.STORED], effective=search.known.effective
    )
    view = schema.view(example.view)
    known = search.decision.knowledge(MemoryEngine(), Facts(facts), situation)
    return check(known, [view])[example.view]


def redrawn(seed: int, wanted: Wanted, number: int) -> list[Case]:
    """Situations of one random warehouse: its schema and views, with several databases and updates."""
    random = Random(seed)
    schema = draw_schema(
        random, wanted.domains, constraints=wanted.constraints, nulls=wanted.nulls, arity=wanted.arity
    )
    views = draw_views(random, schema, wanted.rules)
    found: list[Case] = []
    for _ in range(number):
        hidden = draw_database(random, schema, wanted.rows)
        insert, delete = draw_update(random, schema, hidden, effective=True)
        case: Case = {
            "relations": {name: len(columns) for name, columns in schema.columns.items()},
            "program": "\n".join(spelled(rule) for rules in views.values() for rule in rules),
            "views": {name: ordered(contents(rules, hidden)) for name, rules in views.items()},
            "insert": _listed(insert),
            "delete": _listed(delete),
            "effective": True,
        }
        _add_constraints(random, case, schema)
        if wanted.typed:
            case["types"] = {n: [c.domain.type for c in columns] for n, columns in schema.columns.items()}
        found.append(case)
    return found


def hold_always(seed: int, wanted: Wanted, number: int = 6) -> int:
    """Holds the verdicts "always" of one random warehouse against several situations; how many there were."""
    cases = redrawn(seed, wanted, number)
    schema = catalog(case_of({"id": "random", **cases[0], "expected": {}}).program)
    search = Search(schema, EFFECTIVE, budget_s=BUDGET_S)
    held = 0
    for case in cases:
        change = kind_of(case)
        views = [v for v in schema.views if change and isinstance(search.outcome(v, change), Always)]
        try:
            answers = solve(case, steps=STEPS) if views else None
        except SearchTooLongError:
            continue
        for view in views if answers else ():
            assert answers is not None
            assert answers[view.name]["self_maintainable"], (seed, view.name, change, case)
            held += 1
    return held


def hold_against_brute_force(seed: int, wanted: Wanted) -> dict[str, int]:
    """Audits one random warehouse; counts what the audit said."""
    case, schema = drawn(seed, wanted)
    search = Search(schema, Situation(effective=case["effective"]), budget_s=BUDGET_S)
    counts: dict[str, int] = {}
    change = kind_of(case)
    try:
        answers = solve(case, steps=STEPS)
    except SearchTooLongError:
        answers = None
    for view in schema.views:
        if change is not None and answers is not None:
            outcome = search.outcome(view, change)
            if isinstance(outcome, Always):
                assert answers[view.name]["self_maintainable"], (seed, view.name, change)
            if (
                isinstance(outcome, Depends)
                and outcome.is_never
                and change.kind is Kind.INSERT
                and case["effective"]
            ):
                assert not answers[view.name]["self_maintainable"], (seed, view.name, change)
        for relation in (None, *dict.fromkeys(atom.predicate.name for atom in view.body)):
            for one in [ANYTHING] if relation is None else changes_of(schema, relation):
                outcome = search.outcome(view, one)
                counts[type(outcome).__name__] = counts.get(type(outcome).__name__, 0) + 1
                if isinstance(outcome, Depends):
                    hold_example(case, schema, search, outcome.example, seed)
    return counts


def hold_example(case: Case, schema: Catalog, search: Search, example: Example, seed: int) -> None:
    try:
        found = solve(as_case(case, example), steps=STEPS)
    except (SearchTooLongError, ValueError):
        return  # a ValueError: columns of no declared type, and texts among their numbers
    assert found is not None, (seed, example)
    assert not found[example.view]["self_maintainable"], (seed, example)
    assert not isinstance(decided(schema, search, example), SelfMaintainable), (seed, example)


@pytest.mark.parametrize("wanted", KINDS.values(), ids=KINDS.keys())
@given(seed=st.integers(0, 2**32))
@seldom
def test_always_holds_whatever_the_data(wanted: Wanted, seed: int) -> None:
    hold_always(seed, wanted)


@pytest.mark.parametrize("wanted", KINDS.values(), ids=KINDS.keys())
@given(seed=st.integers(0, 2**32))
@seldom
def test_always_and_depends_are_those_of_brute_force(wanted: Wanted, seed: int) -> None:
    hold_against_brute_force(seed, wanted)


class Whole(Candidates):
    """The candidates of which none is ruled out before it is whole."""

    def _may_fire(self, current: Unfolding, ruled_out: RuledOut) -> bool:
        return True

    def _is_ruled_out(self, instance: Instance, ruled_out: RuledOut) -> bool:
        return False


def fires(search: Search, rules: DependsRules, candidates: Candidates) -> bool | None:
    """Whether the rules of one J have the row that some candidate was made for; None if not all could be made.

    Others, which it may have besides, are those of other candidates: one of them may come later.
    """
    situation = candidates.situation
    program = compact_program(search.decision.support(situation), [rules])
    for candidate in candidates.of(rules, search.evaluation):
        if candidate is None:
            continue
        facts = candidate.facts(search.evaluation, situation)
        if candidate.asked in MemoryEngine().evaluate(program, rules.goal, facts):
            return True
    return False if candidates.are_all else None


def hold_short_cuts(schema: Catalog, view: View, change: Change, most: int) -> int:
    """Compares the search with one without short cuts, of as many steps; how many tests were compared."""
    search = Search(schema, EFFECTIVE)
    situation = change.situation(schema, EFFECTIVE)
    held = 0
    for rules in search.decision.depends(view, situation):
        made = [its(search.decision, change, situation, most=most) for its in (Whole, Candidates)]
        expected = fires(search, rules, made[0])
        if expected is not None:
            assert fires(search, rules, made[1]) == expected, (view.name, change, rules.goal)
            held += 1
    return held


@pytest.mark.parametrize("wanted", KINDS.values(), ids=KINDS.keys())
@given(seed=st.integers(0, 2**32))
@seldom
def test_what_is_ruled_out_early_has_no_row(wanted: Wanted, seed: int) -> None:
    _, schema = drawn(seed, wanted)
    for view in schema.views:
        some = [change for name in relations_of(schema, view) for change in changes_of(schema, name)]
        for change in (ANYTHING, *Random(seed).sample(some, min(CHANGES, len(some)))):
            with suppress(BudgetSpentError), limit(BUDGET_S, "comparing searches"):
                hold_short_cuts(schema, view, change, FEW)


def hold_fewest(seed: int, wanted: Wanted, number: int = 5) -> int:
    """Compares what all rules of the canonical database prove with what the fewest do; how many were left out."""
    cases = redrawn(seed, wanted, number)
    schema = catalog(case_of({"id": "random", **cases[0], "expected": {}}).program)
    search = Search(schema, EFFECTIVE)
    situation = ANYTHING.situation(schema, EFFECTIVE)
    known = search.decision.known(situation)
    fewest = search.fewest.of(known)
    every = {Predicate(name, version) for name in schema.relations for version in CHANGED}
    for case in cases if len(fewest) < len(known) else ():
        facts = dict.fromkeys(every, frozenset()) | case_of({"id": "random", **case, "expected": {}}).contents
        all_, few = (Evaluator(Program(rules), facts) for rules in (known, fewest))
        for predicate in Program(known).heads:
            assert all_.extension(predicate) == few.extension(predicate), (seed, predicate, case)
    return len(known) - len(fewest)


@pytest.mark.parametrize("wanted", KINDS.values(), ids=KINDS.keys())
@given(seed=st.integers(0, 2**32))
def test_the_fewest_rules_prove_what_all_prove(wanted: Wanted, seed: int) -> None:
    hold_fewest(seed, wanted)
