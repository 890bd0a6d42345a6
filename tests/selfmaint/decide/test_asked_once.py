"""No test is asked again of a view whose tests passed with less: the verdicts are those of asking all each time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import pytest

from datalog.model import Predicate, Row, Version
from datalog.syntax import parse_program
from selfmaint.decide import differing, evaluation
from selfmaint.decide.decision import Decision
from selfmaint.decide.procedure import check
from selfmaint.decide.saturation import saturated
from selfmaint.decide.verdict import Verdict
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.situation import Situation
from tests.effort import effort

SCHEMAS, QUESTIONS = effort(3, 100), 4
"""Random sets of views for each test, and updates of each."""

TABLES = """
.decl sale(id: int not null, c: int not null, a: int not null) key(id) foreign key (c) references cust(c).
.decl cust(c: int not null, r: int not null) key(c) foreign key (r) references reg(r).
.decl reg(r: int not null, z: int not null) key(r).
"""
VIEWS = {
    "lines": "lines(I, C, A) :- sale(I, C, A).",
    "bought": "bought(C, A) :- sale(I, C, A).",
    "custs": "custs(C, R) :- cust(C, R).",
    "zones": "zones(C, Z) :- cust(C, R), reg(R, Z).",
    "regs": "regs(R, Z) :- reg(R, Z).",
    "by_cust": "by_cust(C, count(*), sum(A)) :- sale(I, C, A).",
    "by_reg": "by_reg(R, count(*), sum(A)) :- sale(I, C, A), cust(C, R).",
    "by_zone": "by_zone(Z, count(*), sum(A)) :- sale(I, C, A), cust(C, R), reg(R, Z).",
    "lines_r": "lines_r(I, A, R) :- sale(I, C, A), cust(C, R).",
    "lines_z": "lines_z(I, A, Z) :- sale(I, C, A), cust(C, R), reg(R, Z).",
    "by_cr": "by_cr(C, R, count(*), sum(A)) :- sale(I, C, A), cust(C, R).",
    "by_cz": "by_cz(C, Z, count(*), sum(A)) :- sale(I, C, A), cust(C, R), reg(R, Z).",
    "sizes": "sizes(R, count(*)) :- cust(C, R).",
}
Base = Mapping[str, frozenset[tuple[Any, ...]]]


def rows(view: str, base: Base) -> frozenset[Row]:
    region: dict[Any, Any] = dict(base["cust"])
    zone: dict[Any, Any] = dict(base["reg"])
    sales = [(i, c, region[c], zone[region[c]], a) for i, c, a in sorted(base["sale"])]
    keys: dict[str, list[tuple[Row, int]]] = {
        "by_cust": [((c,), a) for _, c, _, _, a in sales],
        "by_reg": [((r,), a) for _, _, r, _, a in sales],
        "by_zone": [((z,), a) for _, _, _, z, a in sales],
        "by_cr": [((c, r), a) for _, c, r, _, a in sales],
        "by_cz": [((c, z), a) for _, c, _, z, a in sales],
    }
    plain: dict[str, Iterable[Row]] = {
        "lines": base["sale"],
        "bought": ((c, a) for _, c, _, _, a in sales),
        "lines_r": ((i, a, r) for i, _, r, _, a in sales),
        "lines_z": ((i, a, z) for i, _, _, z, a in sales),
        "custs": base["cust"],
        "zones": ((c, zone[r]) for c, r in base["cust"]),
        "regs": base["reg"],
        "sizes": (row[:2] for row in grouped(((r,), 0) for _, r in base["cust"])),
    }
    return grouped(keys[view]) if view in keys else frozenset(plain[view])


def grouped(pairs: Iterable[tuple[Row, int]]) -> frozenset[Row]:
    found: dict[Row, list[int]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return frozenset((*key, len(its), sum(its)) for key, its in found.items())


def random_base(random: Random) -> Base:
    return {
        "reg": frozenset((r, random.randrange(2)) for r in range(3)),
        "cust": frozenset((c, random.randrange(3)) for c in range(3)),
        "sale": frozenset(
            (i, random.randrange(3), random.randrange(1, 4)) for i in range(4) if random.random() < 0.7
        ),
    }


def changed(random: Random, base: Base) -> Base:
    """The base rows after an update: sales come and go, customers and regions may move."""
    after = {name: set(its) for name, its in base.items()}
    if random.random() < 0.6:
        after["sale"].add((9, random.randrange(3), random.randrange(1, 4)))
    after["sale"] -= {row for row in base["sale"] if random.random() < 0.2}
    for name, of in (("cust", 3), ("reg", 2)):
        for key, value in base[name]:
            if random.random() < 0.3:
                after[name] = after[name] - {(key, value)} | {(key, random.randrange(of))}
    return {name: frozenset(its) for name, its in after.items()}


@pytest.mark.parametrize("block", range(2))
def test_asking_all_again_gives_the_same(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differing, "NEAR_ROWS", ())  # what a search finds in its time is another matter
    spared = 0
    for number in range(block * SCHEMAS, (block + 1) * SCHEMAS):
        names = Random(number).sample(sorted(VIEWS), 6)
        schema = catalog(parse_program(TABLES + "\n".join(VIEWS[name] for name in names)))
        once, each_time = Decision(schema), Decision(schema)
        for seed in range(QUESTIONS):
            facts = random_question(Random(seed), names)
            verdicts, some = decided(once, facts)
            spared += some
            with monkeypatch.context() as patched:
                patched.setattr(evaluation, "_passes", lambda *_: False)
                patched.setattr(evaluation, "_answers", lambda _: {})
                again, none = decided(each_time, facts)
            assert not none
            assert again == verdicts, (names, seed)
    assert spared  # else nothing was compared


def test_asking_few_tests_first_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differing, "NEAR_ROWS", ())
    spared = 0
    for number in range(2 * SCHEMAS):
        names = Random(number).sample(sorted(VIEWS), 6)
        schema = catalog(parse_program(TABLES + "\n".join(VIEWS[name] for name in names)))
        in_parts, whole = Decision(schema), Decision(schema)
        for seed in range(QUESTIONS):
            facts = random_question(Random(seed), names)
            expected, _ = decided(whole, facts)
            with monkeypatch.context() as patched:
                patched.setattr(evaluation, "_SHORTEST_TESTS", 0)
                patched.setattr(evaluation, "_FIRST_TESTS", (1, 2, 3))
                found, _ = decided(in_parts, facts)
            assert {n: its[:2] for n, its in found.items()} == {n: its[:2] for n, its in expected.items()}
        spared += found_tests(in_parts) < found_tests(whole)
    assert spared


def found_tests(decision: Decision) -> int:
    return sum(len(tests._found) for tests in decision._rules.values())


def random_question(random: Random, names: Iterable[str]) -> Facts[frozenset[Row]]:
    base = random_base(random)
    after = changed(random, base)
    stored = {Predicate(name): rows(name, base) for name in names}
    for name, its in base.items():
        stored[Predicate(name, Version.INSERTED)] = after[name] - its
        stored[Predicate(name, Version.DELETED)] = its - after[name]
    return Facts({p: its for p, its in stored.items() if its or p.version is Version.STORED})


def decided(decision: Decision, facts: Facts[frozenset[Row]]) -> tuple[dict[str, object], bool]:
    """The verdicts, and whether some view that has tests was not asked again."""
    changes = [p for p in facts.relations if p.version is not Version.STORED]
    known = decision.knowledge(MemoryEngine(), facts, Situation.of(changes, effective=True))
    verdicts = check(known, decision.catalog.views)
    found = saturated(known)
    is_spared = any(evaluation._passes(found, view) for view in decision.catalog.views)
    return {name: shown(v) for name, v in verdicts.items()}, is_spared


def shown(verdict: Verdict) -> tuple[str, object, object]:
    return type(verdict).__name__, getattr(verdict, "exact", None), getattr(verdict, "reasons", None)
