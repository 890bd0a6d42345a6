"""A "no" found near the update, put together with what is far away: two whole databases, by the oracle's definition."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datalog.model import Constant, Predicate, Row, Version
from selfmaint.conformance.cases import Case as Recorded
from selfmaint.conformance.run import case_facts
from selfmaint.countermodel.databases import Rows
from selfmaint.decide import neighbourhood
from selfmaint.decide.decision import Decision
from selfmaint.decide.neighbourhood import Neighbourhood, neighbourhoods
from selfmaint.decide.separate import Separation
from selfmaint.engine.memory import MemoryEngine
from selfmaint.possible.new_state import NewStates, TwoDatabases
from selfmaint.warehouse.catalog import Catalog, catalog
from selfmaint.warehouse.situation import Situation
from tests.effort import effort
from tests.embedded import Database, embedded, moved
from tests.oracle.constrained_cases import random_situation
from tests.oracle.counterexample import objections
from tests.oracle.problem import Case, Problem
from tests.oracle.problem import Rows as Claimed
from tests.oracle.program import parse_program
from tests.oracle.rules import contents, derivations, ordered
from tests.selfmaint.decide.test_constrained_decision import as_date, as_recorded, recorded
from tests.selfmaint.possible.test_possible import WANTED

DATA = Path(__file__).parents[2] / "conformance" / "data"
SECONDS = 5
FAR = 10**5

patient = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], deadline=None)


def plain(database: Mapping[str, frozenset[Row]]) -> dict[str, Claimed]:
    return {name: [list(map(as_recorded, row)) for row in rows] for name, rows in database.items()}


def found_noes(schema: Catalog, made: Recorded) -> Iterator[tuple[Separation, str, TwoDatabases]]:
    """The views with a "no" from a neighbourhood, and its two databases."""
    engine = MemoryEngine()
    base = (p for p in made.contents if p.name in schema.relations)
    situation = Situation.of(base, effective=made.effective)
    known = Decision(schema).knowledge(engine, case_facts(made, schema, engine), situation)
    for near in neighbourhoods(known):
        separation = Separation(near)
        if not separation.allows():
            continue
        states = NewStates(near.known, SECONDS, rules=near.rules)
        for view in schema.views:
            pair = states.of(view) if view.name in near.rules else None
            if isinstance(pair, TwoDatabases) and separation.is_a_no(pair, view.name):
                yield separation, view.name, pair


def far_part(separation: Separation, case: Case, large: Recorded, database: Database) -> Rows:
    """Of a database that explains everything a match for each row that is not near, and what these reference.

    What they have in common with the rows near the update is renamed, as the proof says.
    """
    near, problem = separation.near, Problem.of(case)
    there = {name: {tuple(map(as_recorded, row)) for row in rows} for name, rows in database.items()}
    waiting = [
        fact
        for view in problem.rules
        for row in large.contents[Predicate(view)] - near.known.of(view, Version.STORED)
        for fact in _match(problem, view, tuple(map(as_recorded, row)), there)
    ]
    for name, copy in near.copies.items():
        far = database[name] - near.known.of(copy, Version.STORED)
        waiting += [(name, tuple(map(as_recorded, row))) for row in far]
    facts = set(waiting)
    for name, row in waiting:
        for key, asked in problem.constraints.references(name, row):
            target = next(r for r in there[key.parent] if key.met(asked, [r]))
            if (key.parent, target) not in facts:
                facts.add((key.parent, target))
                waiting.append((key.parent, target))
    values = _values(near)

    def renamed(name: str, column: int, value: object) -> object:
        number = near.classes.of_column(name, column).number
        is_shared = number in separation.followed and Constant(value) in values.get(number, ())  # type: ignore[arg-type]
        return moved(value, FAR) if is_shared else value  # type: ignore[arg-type]

    found: dict[str, set[Row]] = {name: set() for name in database}
    for name, row in facts:
        found[name].add(tuple(renamed(name, i, as_date(v)) for i, v in enumerate(row)))  # type: ignore[misc]
    return {name: frozenset(rows) for name, rows in found.items()}


def _match(
    problem: Problem, view: str, row: Row, there: Mapping[str, set[Row]]
) -> Iterator[tuple[str, tuple[object, ...]]]:
    """The facts of one match of a row."""
    for rule in problem.rules[view]:
        head = rule.match(rule.head, row, {})
        if head is not None:
            for binding in derivations(rule, there, head, rule.body):
                yield from ((atom.name, atom.ground(binding)) for atom in rule.body)
                return
    raise AssertionError((view, row))


def _values(near: Neighbourhood) -> Mapping[int, set[Constant]]:
    """The values of the rows near the update, and of the update, by class."""
    found: dict[int, set[Constant]] = {}
    for predicate, rows in near.known.rows.items():
        for row in rows:
            for i, value in enumerate(row):
                found.setdefault(near.classes.of_column(predicate.name, i).number, set()).add(Constant(value))
    return found


def confirmed(case: Case, record: Recorded, copies: int, shared: float, random: Random) -> int:
    """How many views have a "no" beside other rows; each is held against the definition."""
    schema = catalog(record.program)
    beside = embedded(record, schema, copies, shared, random)
    if beside is None:
        return 0
    large, database = beside
    states = {name: plain({name: large.contents[Predicate(name)]})[name] for name in case["views"]}
    whole: Case = {**case, "views": states}
    if "access" in case:
        read = {p.name: rows for p, rows in large.contents.items() if p.version is Version.BEFORE}
        whole["access"] = plain(read)
    return confirmed_in(whole, large, database)


def confirmed_in(case: Case, record: Recorded, database: Database) -> int:
    """The same of a case that has other rows already, and of a database that explains it."""
    found = set[str]()
    for separation, view, pair in found_noes(catalog(record.program), record):
        if view in found:
            continue
        found.add(view)
        far = far_part(separation, case, record, database)
        first, second = (
            plain({name: rows | one.get(name, frozenset()) for name, rows in far.items()})
            for one in (pair.first, pair.second)
        )
        assert objections(case, view, first, second) == [], (case, view, pair)
    return len(found)


@pytest.fixture(autouse=True)
def _few_rows_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbourhood, "WHOLE", 0)


@pytest.mark.parametrize(("file", "views"), [("projection", effort(32, 70)), ("union", effort(62, 120))])
def test_recorded_cases_have_two_whole_databases(file: str, views: int) -> None:
    found = 0
    lines = (DATA / f"{file}.jsonl").read_text(encoding="utf-8").splitlines()
    for number, line in [*enumerate(lines)][:: effort(2, 1)]:
        case = cast(Case, json.loads(line))
        found += confirmed(case, recorded(case), 6, 0.0, Random(number))
    assert found == views


@pytest.mark.parametrize("wanted", WANTED)
@given(seed=st.integers(0, 2**40))
@patient
def test_random_cases_have_two_whole_databases(wanted: str, seed: int) -> None:
    random = Random(seed)
    case = random_situation(random, WANTED[wanted]).case
    confirmed(case, recorded(case), random.choice((1, 3, 6)), random.choice((0, 0, 0.3)), random)


PARTS_OF_KEYS = [
    "v(O, P) :- line(O, N, P).\nw(N, P) :- line(O, N, P).",
    "v(O) :- line(O, N, P).\nw(O, C) :- orders(O, C).\nu(O, N) :- line(O, N, P).",
    "v(O, N, C) :- line(O, N, P), orders(O, C).\nw(C) :- orders(O, C).",
    "v(O, P) :- line(O, N, P).\nv(O, P) :- orders(O, P).\nw(N, P) :- line(O, N, P).",
]


def test_a_part_of_a_key_that_many_rows_have() -> None:
    """Every order has a line `n1`: the lines of another order are far all the same."""
    found, seeds = 0, effort(8, 20)
    for seed in range(seeds):
        random = Random(seed)
        program = random.choice(PARTS_OF_KEYS)
        orders = [f"o{i}" for i in range(45)]
        database = {
            "orders": frozenset((o, f"c{random.randint(0, 5)}") for o in orders),
            "line": frozenset(
                (o, f"n{n}", f"p{random.randint(0, 9)}")
                for o in orders
                for n in range(1, random.randint(1, 3) + 1)
            ),
        }
        rules = parse_program(program)
        case: Case = {
            "relations": {"orders": 2, "line": 3},
            "program": program,
            "views": {
                name: ordered(contents([rule for rule in rules if rule.head.name == name], database))  # type: ignore[arg-type]
                for name in {rule.head.name for rule in rules}
            },
            "delete": {"line": [[*random.choice(sorted(database["line"]))]]},  # type: ignore[list-item]
            "effective": True,
            "keys": {"orders": [0], "line": [0, 1]},
            "foreign_keys": random.choice(([], [("line", [0], "orders", [0])])),
        }
        found += confirmed_in(case, recorded(case), database)
    assert found == effort(3, 11)
