"""Warehouses before and after an update, on which printed statements are run: small, with rows that matter."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

from datalog.model import Declaration, Predicate, Row, TypeName, Version
from datalog.syntax import parse_program
from selfmaint.countermodel.databases import Evaluation, satisfies, stored_rows
from selfmaint.decide.decision import Decision
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.procedure import check
from selfmaint.decide.verdict import SelfMaintainable, Verdict
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.warehouse.catalog import Catalog, catalog
from selfmaint.warehouse.situation import Situation
from tests.oracle.aggregates import Schema
from tests.oracle.random_stars import changed, random_database, renamed

WORDS = ("food", "gold", "EUROPE", "BUILDING", "paid", "other")
Database = Mapping[str, frozenset[Row]]
BATCHES = 12


def random_rows(random: Random, declaration: Declaration, nullable: frozenset[int]) -> list[Row]:
    def value(at: int, kind: TypeName) -> Any:
        if at in nullable and random.random() < 0.2:
            return None
        match kind:
            case TypeName.STRING:
                return random.choice(WORDS)
            case TypeName.DECIMAL:
                return Decimal(random.randrange(4))
            case TypeName.DATE:
                return dt.date(2026, 12, random.randrange(1, 3))
            case TypeName.TIMESTAMP:
                return dt.datetime(2026, 12, random.randrange(1, 3))
            case TypeName.BOOLEAN:
                return random.random() < 0.5
            case _:
                return random.choice((0, 1, 2, 12))

    kinds = [column.type.name for column in declaration.columns]
    return [tuple(value(at, kind) for at, kind in enumerate(kinds)) for _ in range(random.randint(2, 6))]


def sound(schema: Catalog, rows: Mapping[str, Iterable[Row]]) -> dict[str, frozenset[Row]]:
    """As many of some rows as satisfy the constraints."""
    found: dict[str, frozenset[Row]] = {}
    for name, every in rows.items():
        kept: list[Row] = []
        for row in every:
            if satisfies_keys(schema, name, [*kept, row]):
                kept.append(row)
        found[name] = frozenset(kept)
    for _ in range(len(found)):
        for relation in schema.relations.values():
            for reference in relation.references:
                there = {tuple(r[i] for i in reference.target_columns) for r in found[reference.target]}
                keys = {row: tuple(row[i] for i in reference.columns) for row in found[relation.name]}
                found[relation.name] = frozenset(r for r, key in keys.items() if None in key or key in there)
    assert satisfies(schema, found)
    return found


def satisfies_keys(schema: Catalog, name: str, rows: Sequence[Row]) -> bool:
    for key in schema.relations[name].unique:
        values = [tuple(row[i] for i in key) for row in rows]
        if len(set(values)) < len(values):
            return False
    return True


@dataclass(frozen=True)
class Case:
    """A warehouse before and after an update."""

    schema: Catalog
    before: Database
    after: Database
    decision: Decision

    @property
    def situation(self) -> Situation:
        names = [n for n, rows in self.before.items() if rows != self.after[n]]
        return Situation.any_update(names, effective=True)

    def part(self, version: Version, name: str) -> frozenset[Row]:
        old, new = self.before[name], self.after[name]
        return new - old if version is Version.INSERTED else old - new


def example(schema: Catalog, touched: Sequence[str], seed: int) -> Case:
    random = Random(seed)

    def rows(names: Iterable[str]) -> dict[str, list[Row]]:
        found = {}
        for name in names:
            declared = schema.program.declaration(name)
            assert declared is not None
            found[name] = random_rows(random, declared, schema.relations[name].nullable)
        return found

    before = sound(schema, rows(schema.relations))
    more = rows(touched)
    kept = {n: [r for r in before[n] if n not in touched or random.random() < 0.6] for n in before}
    after = sound(schema, {n: [*kept[n], *more.get(n, ())] for n in before})
    return Case(schema, before, after, Decision(schema))


def stars(make: Callable[[Random], Schema], seed: int) -> list[Case]:
    """Many batches of a random warehouse at once, over strings of their own: those that are followed, and all."""
    random = Random(seed)
    schema = make(random)
    made = catalog(parse_program(schema.text))
    decision, every, passing = Decision(made), list[Case](), list[Case]()
    for number in range(BATCHES):
        before = random_database(random, schema)
        after = changed(random, schema, before)
        if schema.is_sound(before) and schema.is_sound(after) and before != after:
            one = Case(made, *(renamed(part, f"{number}:") for part in (before, after)), decision)
            every.append(one)
            verdicts, _ = verdicts_of(one)
            if all(isinstance(verdict, SelfMaintainable) for verdict in verdicts.values()):
                passing.append(one)
    return [together(part) for part in (passing, every) if part]


def together(cases: Sequence[Case]) -> Case:
    names = cases[0].schema.relations
    before = {n: frozenset[Row]().union(*(c.before[n] for c in cases)) for n in names}
    after = {n: frozenset[Row]().union(*(c.after[n] for c in cases)) for n in names}
    return Case(cases[0].schema, before, after, cases[0].decision)


def facts_of(case: Case) -> Facts[frozenset[Row]]:
    contents = stored_rows(case.schema, Evaluation(case.schema).contents(case.before))
    relations = {Predicate(name): rows for name, rows in contents.items()}
    changes = {
        Predicate(name, version): case.part(version, name)
        for name in case.schema.relations
        for version in (Version.INSERTED, Version.DELETED)
    }
    return Facts(relations | changes, {}, frozenset(changes))


def verdicts_of(case: Case) -> tuple[dict[str, Verdict], Knowledge[frozenset[Row]]]:
    """What `check` says, and what it knows."""
    facts = facts_of(case)
    given = Facts(
        {p: r for p, r in facts.relations.items() if r or p.version is Version.STORED}, {}, facts.small
    )
    changes = [p for p in given.relations if p.version is not Version.STORED]
    known = case.decision.knowledge(MemoryEngine(), given, Situation.of(changes, effective=True))
    return check(known, case.schema.views), known
