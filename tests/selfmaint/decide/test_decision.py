"""The decision, its certificates and maintenance on random small cases.

Oracles:

- *Brute force* (`tests.oracle.bruteforce`): a search that shares no code with the product, itself held against the
  enumeration of all databases. It says of each view whether its new state is determined, and what it is; and of
  any database whether it explains all that is known.
- *The hidden database* around which a case is drawn: one explanation of what is known, so a determined state is what
  the views give on it after the update.
- *Laws*: more knowledge never turns a yes into a no; constants' names do not matter; a batch is as good as its rows
  one by one.
- *The definition in Datalog* (Huyn 1997, Table 1): on every database over a few constants, DIFF has an answer only
  where INCON has.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from random import Random
from typing import Any, NamedTuple, TypeAlias

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from datalog import model
from datalog.copies import replace
from datalog.evaluate import evaluate
from datalog.model import ColumnType, Constant, Literal, Predicate, Program, Row, Term, TypeName
from selfmaint.api.explain import explain
from selfmaint.api.following.not_maintained import NotMaintainedError
from selfmaint.api.maintain import maintain, new_contents
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.canonical import contributions
from selfmaint.conformance import cases as recorded
from selfmaint.conformance.cases import case_of
from selfmaint.conformance.run import run_case
from selfmaint.decide.counterexample import counterexample
from selfmaint.decide.decision import Decision
from selfmaint.decide.procedure import check as decide
from selfmaint.decide.table1 import PANIC, diff_program, incon_program
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.fallback.settle import Readable
from selfmaint.sources.memory import RowsSource
from selfmaint.warehouse.catalog import Catalog, catalog
from selfmaint.warehouse.situation import Situation
from tests.large_engine import LargeEngine
from tests.oracle.bruteforce import Case, explains, fact_count, possible_facts, solve, state_after
from tests.oracle.problem import Problem, facts_of, grouped
from tests.oracle.program import parse_program
from tests.oracle.rules import Atom, Rule, Value, Variable
from tests.oracle.strategies import Limits, cases, situations, spelled
from tests.oracle.strategies import Situation as Drawn

Rows: TypeAlias = frozenset[Row]

ODD = Limits(odd_heads=True)
ENGINES = [MemoryEngine, LargeEngine]
ENUMERABLE = 8
"""Facts whose subsets are enumerated within a moment."""

patient = settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
seldom = settings(patient, max_examples=max(settings().max_examples // 4, 1))
randoms = st.randoms(use_true_random=False)


class Decided(NamedTuple):
    """What the product says of a view."""

    verdict: str
    state: Rows | None


def decided(case: Case, engine: MemoryEngine | None = None) -> dict[str, Decided]:
    """What the product says of each view of a case."""
    expected = {name: {"self_maintainable": True} for name in case["views"]}
    record = case_of({"id": "random", **case, "expected": expected})
    outcomes = run_case(record, engine or MemoryEngine())
    return {outcome.view: Decided(outcome.verdict, outcome.state) for outcome in outcomes}


def as_rows(rows: Any) -> Rows:
    return frozenset(map(tuple, rows))


# ---------------------------------------------------------------------------------------- brute force


@pytest.mark.parametrize("engine", ENGINES)
@given(case=cases(ODD))
@settings(patient, max_examples=2 * settings().max_examples)
def test_verdict_and_state_are_those_of_brute_force(engine: type[MemoryEngine], case: Case) -> None:
    answers = solve(case)
    assert answers is not None
    expected = {name: {k: v for k, v in answer.items() if k != "witness"} for name, answer in answers.items()}
    for outcome in run_case(case_of({"id": "random", **case, "expected": expected}), engine()):
        assert outcome.disagreement is None, outcome
        assert outcome.verdict != "undecided"


@given(situations(ODD), randoms)
@patient
def test_yes_means_that_any_consistent_database_gives_the_state(drawn: Drawn, random: Random) -> None:
    """The databases are grown from the forced facts, fact by fact, as long as they explain what is known."""
    case = drawn.case
    found = decided(case)
    problem = Problem.of(case)
    assert problem.forced is not None
    possible = list(problem.facts_over(problem.fresh_constants(1)))
    for _ in range(2):
        database = set(problem.forced)
        for fact in random.sample(possible, min(len(possible), 12)):
            if explains(case, grouped(database | {fact})):
                database.add(fact)
        for view, (verdict, state) in found.items():
            if verdict == "yes":
                assert state == state_after(case, grouped(database), view)


# ------------------------------------------------------------------------------------------------- laws


def grows(less: Case, more: Case) -> None:
    """Whoever knows more says yes where it was said before, with the same state."""
    before, after = decided(less), decided(more)
    for view, (verdict, state) in before.items():
        if verdict == "yes":
            assert after[view] == Decided("yes", state)


@given(situations(Limits(views=4)), st.data())
@patient
def test_adding_a_view_turns_no_yes_into_a_no(drawn: Drawn, data: st.DataObject) -> None:
    case = drawn.case
    names = sorted(case["views"])
    assume(len(names) > 1)
    without = data.draw(st.sampled_from(names))
    rules = [rule for rule in parse_program(case["program"]) if rule.head.name != without]
    fewer = {name: rows for name, rows in case["views"].items() if name != without}
    grows({**case, "program": "\n".join(map(spelled, rules)), "views": fewer}, case)


@given(situations(ODD), st.data())
@patient
def test_reading_a_relation_turns_no_yes_into_a_no(drawn: Drawn, data: st.DataObject) -> None:
    case = drawn.case
    name = data.draw(st.sampled_from(sorted(case["relations"])))
    grows(case, {**case, "access": {**case.get("access", {}), name: drawn.hidden[name]}})


@given(situations(ODD), randoms)
@patient
def test_knowing_more_rows_turns_no_yes_into_a_no(drawn: Drawn, random: Random) -> None:
    case = drawn.case
    problem = Problem.of(case)
    hidden = facts_of(drawn.hidden)
    present = {f for f in hidden if random.random() < 0.4} | facts_of(case.get("present", {}))
    others = [f for f in problem.facts_over([]) if f not in hidden and random.random() < 0.2]
    absent = {*others, *facts_of(case.get("absent", {}))}
    grows(case, {**case, "present": listed(present), "absent": listed(absent)})


def listed(facts: Any) -> dict[str, list[Any]]:
    return {name: sorted(rows, key=repr) for name, rows in grouped(facts).items()}


@given(cases(ODD), st.data())
@patient
def test_the_names_of_constants_do_not_matter(case: Case, data: st.DataObject) -> None:
    """Texts and numbers are exchanged for each other, or mixed among themselves; null stays."""
    texts = sorted({c for c in Problem.of(case).constants if isinstance(c, str)})
    numbers = sorted({c for c in Problem.of(case).constants if not isinstance(c, str)})
    if data.draw(st.booleans()):
        new_texts: list[Any] = [*range(len(texts))]
        new_numbers: list[Any] = [f"new{n}" for n in numbers]
    else:
        new_texts = data.draw(st.permutations([*texts, "x y", "%"]))
        new_numbers = data.draw(st.permutations([*numbers, -3, 10**12]))
    change: dict[Any, Any] = {None: None}
    change |= dict(zip(texts, new_texts, strict=False))
    change |= dict(zip(numbers, new_numbers, strict=False))

    def renamed(rows: Any) -> list[list[Value]]:
        return [[change[value] for value in row] for row in rows]

    def atom(old: Atom) -> Atom:
        return Atom(old.name, tuple(t if isinstance(t, Variable) else change[t] for t in old.terms))

    rules = [Rule.of(atom(r.head), tuple(map(atom, r.body))) for r in parse_program(case["program"])]
    other: Any = {**case, "program": "\n".join(map(spelled, rules))}
    for part in ("views", "insert", "delete", "access", "present", "absent"):
        if part in case:
            other[part] = {name: renamed(rows) for name, rows in case[part].items()}  # type: ignore[literal-required]
    after = decided(other)
    for view, (verdict, state) in decided(case).items():
        new = None if state is None else as_rows(renamed(state))
        assert after[view] == Decided(verdict, new)


# ------------------------------------------------------------------------------- limits, and few values


@given(cases(ODD), st.sampled_from(["IMPLICATION_LIMIT", "DISJUNCT_LIMIT"]), st.sampled_from(ENGINES))
@patient
def test_limits_of_simplification_change_no_verdict(
    case: Case, limit: str, engine: type[MemoryEngine]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"selfmaint.canonical.support.{limit}", 0)
        limited = decided(case, engine())
    assert limited == decided(case)


@given(cases(ODD))
@patient
def test_above_the_limit_of_mappings_a_no_is_undecided_and_a_yes_stays_true(case: Case) -> None:
    exact = decided(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("selfmaint.decide.instances.MAPPING_LIMIT", 2)
        limited = decided(case)
    for view, found in limited.items():
        assert found == exact[view] or found.verdict == "undecided"


@given(cases(replace(ODD, relations=2, subgoals=4, nulls=False)))
@patient
def test_without_idle_mappings_the_verdicts_are_the_same(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Catalog, "leaves_fresh", False)
        every = decided(case)
    assert decided(case) == every


BOOLEANS: Mapping[Any, bool | None] = {"a": True, "b": False, None: None}
TWO_VALUES = Limits(arity=2, subgoals=3, constants=2, newcomers=False, numbers=False)


def with_booleans(case: Case) -> recorded.Case:
    """The case with the texts a and b as the two values of boolean columns."""

    def term(old: Term) -> Term:
        return Constant(BOOLEANS[old.value]) if isinstance(old, Constant) else old

    def atom(old: Literal) -> Literal:
        assert isinstance(old, model.Atom)
        return replace(old, terms=tuple(map(term, old.terms)))

    record = recorded.case_of({"id": "booleans", **case, "expected": {}})
    rules = (
        replace(
            rule,
            head=replace(rule.head, terms=tuple(map(term, rule.head.terms))),
            body=tuple(map(atom, rule.body)),
        )
        for rule in record.program.rules
    )
    declarations = (
        replace(d, columns=tuple(replace(c, type=ColumnType(TypeName.BOOLEAN)) for c in d.columns))
        for d in record.program.declarations
    )
    return replace(
        record,
        program=Program(tuple(rules), tuple(declarations)),
        contents={
            p: frozenset(tuple(BOOLEANS[v] for v in row) for row in rows)
            for p, rows in record.contents.items()
        },
    )


@given(cases(TWO_VALUES), st.sampled_from(ENGINES))
@patient
def test_columns_with_two_values_are_decided_exactly(case: Case, engine: type[MemoryEngine]) -> None:
    """Oracle: enumeration of all databases of the two values. A fresh value there is none."""
    both: Case = {**case, "domains": {name: [["a", "b"]] * n for name, n in case["relations"].items()}}
    assume(fact_count(both, 0) <= ENUMERABLE + 5)
    answers = solve(both, exhaustive=True, fresh=0)
    assert answers is not None
    record = with_booleans(both)
    schema = catalog(record.program)
    facts = Facts(record.contents)
    situation = Situation.of(
        (p for p in record.contents if p.name in schema.relations), effective=record.effective
    )
    known = Decision(schema).knowledge(engine(), facts, situation)
    verdicts = decide(known, schema.views)
    for view, verdict in verdicts.items():
        assert isinstance(verdict, SelfMaintainable) == answers[view]["self_maintainable"]
        if isinstance(verdict, NotSelfMaintainable):
            found = counterexample(known, verdict.witnesses[0])
            first, second = (found.database(b, after=False) for b in (False, True))
            assert first != second


# ------------------------------------------------------------------------------------------ certificates


def warehouse_of(
    case: Case, engine: MemoryEngine, base: Mapping[str, Any] | None = None, readable: Any = ()
) -> tuple[Warehouse[Rows], Update[Rows]]:
    """A case as a warehouse in memory, and its update; `base` is the state of the sources after the update."""
    record = case_of({"id": "random", **case, "expected": {}})
    schema = catalog(record.program)
    now = {name: (schema.relations[name].columns, as_rows(rows)) for name, rows in (base or {}).items()}
    source = RowsSource("base", now)

    def part(key: str) -> dict[str, Rows]:
        given: Mapping[str, Any] = case.get(key, {})  # type: ignore[assignment]
        return {name: as_rows(rows) for name, rows in given.items() if name in schema.relations}

    warehouse: Warehouse[Rows] = Warehouse(
        schema,
        engine,
        {name: as_rows(rows) for name, rows in case["views"].items()},
        part("present"),
        part("absent"),
        {name: Readable(source) for name in readable},
    )
    return warehouse, Update(part("insert"), part("delete"), bool(case.get("effective")))


@given(cases(ODD))
@patient
def test_the_counterexample_of_every_no_is_one(case: Case) -> None:
    case = {**case}
    case.pop("access", None)  # a warehouse reads base relations after the update only
    warehouse, update = warehouse_of(case, MemoryEngine())
    for view in case["views"]:
        explanation = explain(warehouse, update, view)
        if not isinstance(explanation.verdict, NotSelfMaintainable):
            assert explanation.counterexample is None
            continue
        found = explanation.counterexample
        assert found is not None
        assert found.complete
        states = []
        for second in (False, True):
            database = found.database(second, after=False)
            assert explains(case, database)
            states.append(state_after(case, database, view))
            after = Problem.of(case).updated(facts_of(database))
            assert facts_of(found.database(second, after=True)) == after
        assert states[0] < states[1]
        assert found.row in states[1] - states[0]
        assert explanation.settled_by


@given(cases(ODD))
@patient
def test_every_witness_makes_a_counterexample(case: Case) -> None:
    """With relations that were read as they were before the update, too."""
    record = case_of({"id": "random", **case, "expected": {}})
    schema = catalog(record.program)
    contents = {p: rows for p, rows in record.contents.items() if rows or p.name in case["views"]}
    contents |= {p: rows for p, rows in record.contents.items() if p.version.value == "before"}
    facts = Facts(contents)
    situation = Situation.of((p for p in contents if p.name in schema.relations), effective=record.effective)
    known = Decision(schema).knowledge(MemoryEngine(), facts, situation)
    for view, verdict in decide(known, schema.views).items():
        if isinstance(verdict, NotSelfMaintainable):
            assert verdict.witnesses
            for witness in verdict.witnesses[:5]:
                found = counterexample(known, witness)
                first, second = (found.database(b, after=False) for b in (False, True))
                assert explains(case, first)
                assert explains(case, second)
                assert found.row in state_after(case, second, view) - state_after(case, first, view)


# ------------------------------------------------------------------------------ the definition in Datalog

FEW = Limits(
    relations=2,
    arity=2,
    views=2,
    subgoals=2,
    variables=3,
    constants=2,
    rows=2,
    newcomers=False,
    numbers=False,
)


@given(cases(FEW))
@seldom
def test_diff_is_contained_in_incon_iff_the_view_is_self_maintainable(case: Case) -> None:
    """On all databases over the constants at hand: brute force is held to the same ones, and the product to both
    where more constants change nothing."""
    fresh = next((n for n in (1, 0) if fact_count(case, n) <= ENUMERABLE), None)
    assume(fresh is not None)
    bounded, free = solve(case, exhaustive=True, fresh=fresh), solve(case)
    assert bounded is not None
    assert free is not None
    record = case_of({"id": "random", **case, "expected": {}})
    schema = catalog(record.program)
    situation = Situation.of(
        (p for p in record.contents if p.name in schema.relations), effective=record.effective
    )
    kept = contributions(schema)
    incon = incon_program(schema, situation, kept)
    possible = possible_facts(case, fresh)
    product_says = decided(case)
    for view in schema.views:
        diff = diff_program(schema, situation, kept, view)
        contained = True
        for chosen in product((False, True), repeat=len(possible)):
            database = grouped([fact for fact, used in zip(possible, chosen, strict=True) if used])
            facts = {**record.contents, **{Predicate(n): frozenset(rows) for n, rows in database.items()}}
            if evaluate(diff, PANIC, facts) and not evaluate(incon, PANIC, facts):
                contained = False
                break
        assert contained == bounded[view.name]["self_maintainable"]
        assert contained or product_says[view.name].verdict == "no"
        if bounded[view.name]["self_maintainable"] == free[view.name]["self_maintainable"]:
            assert contained == (product_says[view.name].verdict == "yes")


# ------------------------------------------------------------------------------------------- maintenance


def after_update(case: Case, hidden: Mapping[str, Any]) -> dict[str, Rows]:
    updated = grouped(Problem.of(case).updated(facts_of(hidden)))
    return {name: frozenset(updated.get(name, ())) for name in case["relations"]}


@pytest.mark.parametrize("engine", ENGINES)
@given(drawn=situations(ODD), random=randoms)
@patient
def test_maintenance_with_reads_equals_recomputation(
    engine: type[MemoryEngine], drawn: Drawn, random: Random
) -> None:
    """Oracle: the views on the hidden database after the update. Some or all base relations may be read."""
    case = {**drawn.case}
    case.pop("access", None)
    readable = [name for name in case["relations"] if random.random() < 0.8]
    warehouse, update = warehouse_of(case, engine(), after_update(case, drawn.hidden), readable)
    try:
        maintained = maintain(warehouse, update)
    except NotMaintainedError:
        assert len(readable) < len(case["relations"])
        return
    for view in warehouse.catalog.views:
        new = new_contents(warehouse, view, maintained.deltas[view.name])
        assert new == state_after(case, drawn.hidden, view.name)
        assert maintained.deltas[view.name].lost <= warehouse.contents[view.name]
        assert not maintained.deltas[view.name].gained & warehouse.contents[view.name]
    assert {read.relation for read in maintained.reads} <= set(readable)


@pytest.mark.parametrize("engine", ENGINES)
@given(drawn=situations(ODD), random=randoms)
@patient
def test_a_batch_is_as_good_as_its_rows_one_by_one(
    engine: type[MemoryEngine], drawn: Drawn, random: Random
) -> None:
    """Oracle: recomputation after each part. Partial copies follow the parts, and every relation may be read."""
    case: Any = {**drawn.case}
    case.pop("access", None)
    rows = [
        (key, fact) for key in ("insert", "delete") for fact in sorted(facts_of(case.get(key, {})), key=repr)
    ]
    random.shuffle(rows)
    hidden: Any = drawn.hidden
    while rows:
        part, rows = rows[: 1 + len(rows) // 2], rows[1 + len(rows) // 2 :]
        case = {**case, **{key: listed({f for k, f in part if k == key}) for key in ("insert", "delete")}}
        now = after_update(case, hidden)
        warehouse, update = warehouse_of(case, engine(), now, now)
        maintained = maintain(warehouse, update)
        case["views"] = {
            view.name: new_contents(warehouse, view, maintained.deltas[view.name])
            for view in warehouse.catalog.views
        }
        for view, contents in case["views"].items():
            assert contents == state_after(case, hidden, view)
        inserted, deleted = facts_of(case["insert"]), facts_of(case["delete"])
        case["present"] = listed(facts_of(case.get("present", {})) - deleted | inserted)
        case["absent"] = listed(facts_of(case.get("absent", {})) - inserted | deleted)
        hidden = now
    for view in case["views"]:
        assert as_rows(case["views"][view]) == state_after(drawn.case, drawn.hidden, view)
