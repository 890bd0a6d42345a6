"""Verdicts at definition time on views that group or are bags, held against random batches and by the definition.

Oracles: `tests/oracle/aggregates.py`, which evaluates views with no code of the product's, and lists every database
over small domains. Where the audit says "always", no batch of that kind may leave a view undecided, its delta must give
what recomputing gives, and no two databases that explain what is known may differ. Where it says "depends", its two
databases have the same views before the update, and the view differs after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

import pytest

from datalog.model import Predicate, Row, Version
from datalog.syntax import parse_program
from selfmaint.audit.changes import ANYTHING, Change, Kind, changes_of
from selfmaint.audit.example import Always, Depends, Example, word
from selfmaint.audit.search import Search
from selfmaint.decide.decision import Decision
from selfmaint.decide.procedure import check
from selfmaint.decide.searched import determined_delta
from selfmaint.decide.verdict import SelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.maintain import applied
from selfmaint.warehouse.catalog import Catalog, catalog
from selfmaint.warehouse.situation import Situation
from tests.effort import effort
from tests.oracle.aggregates import Database, Schema, questions
from tests.oracle.random_stars import changed, random_database, random_row, random_star
from tests.selfmaint.decide.test_group_decision import stored

SCHEMAS, BATCHES, UPDATES, KNOWN = effort(4, 30), 25, 3, 3
EFFECTIVE = Situation(effective=True)


def kinds(schema: Catalog) -> list[Change]:
    return [ANYTHING, *(change for name in schema.relations for change in changes_of(schema, name))]


def of_kind(random: Random, schema: Schema, before: Database, change: Change) -> Database | None:
    """A state after a random change of a kind; None if it is none, or breaks a constraint."""
    after = dict(before)
    mixed = changed(random, schema, before)
    for relation in schema.relations:
        name, old = relation.name, before[relation.name]
        if change.relation not in (None, name):
            continue
        match change.kind:
            case Kind.INSERT:
                after[name] = old | mixed[name]
            case Kind.DELETE:
                after[name] = frozenset(row for row in old if random.random() < 0.5)
            case Kind.UPDATE:
                rows = {row: row for row in old}
                for row in rows:
                    other = random_row(random, relation, before)
                    if other is not None and random.random() < 0.7:
                        rows[row] = tuple(other[i] if i in change.columns else v for i, v in enumerate(row))
                after[name] = frozenset(rows.values())
            case _:
                after[name] = mixed[name]
    return after if after != before and schema.is_sound(after) else None


def facts_of(
    schema: Schema, counted: Mapping[str, bool], before: Database, after: Database
) -> Facts[frozenset[Row]]:
    relations = {Predicate(v.name): stored(v.rows(before), is_counted=counted[v.name]) for v in schema.views}
    for name, rows in before.items():
        for version, part in ((Version.INSERTED, after[name] - rows), (Version.DELETED, rows - after[name])):
            if part:
                relations[Predicate(name, version)] = part
    return Facts(relations, {}, frozenset(p for p in relations if p.version is not Version.STORED))


def hold(seed: int, bags: float) -> Counter[str]:
    """Audits one random warehouse; counts what was said of views that group or are bags, and what was held."""
    random = Random(seed)
    schema = random_star(random, bags)
    decision = Decision(catalog(parse_program(schema.text)))
    counted = {view.name: view.is_counted for view in decision.catalog.views}
    search = Search(decision.catalog, EFFECTIVE)
    counts: Counter[str] = Counter()
    for change in kinds(decision.catalog):
        outcomes = {view: search.outcome(decision.catalog.view(view.name), change) for view in schema.views}
        for view, outcome in outcomes.items():
            if view.aggregates or view.semantics:
                counts[word(outcome)] += 1
            if isinstance(outcome, Depends):
                hold_example(schema, outcome.example)
        always = [view for view, outcome in outcomes.items() if isinstance(outcome, Always)]
        for _ in range(BATCHES if always else 0):
            before = random_database(random, schema)
            after = of_kind(random, schema, before, change)
            if after is None or not schema.is_sound(before):
                continue
            facts = facts_of(schema, counted, before, after)
            situation = Situation.of(
                [p for p in facts.relations if p.version is not Version.STORED], effective=True
            )
            stages = decision.knowledge(MemoryEngine(), facts, situation)
            verdicts = check(stages, [decision.catalog.view(view.name) for view in always], sample=0)
            for view in always:
                shown = (
                    f"{seed} {change} {view.name}\n{schema.text}\n{before}\n{after}\n{verdicts[view.name]}"
                )
                verdict = verdicts[view.name]
                assert isinstance(verdict, SelfMaintainable), shown
                known = decision.catalog.view(view.name)
                found = determined_delta(stages, verdict)
                new = applied(MemoryEngine(), known, facts.relations[known.predicate], found)
                assert new == stored(view.rows(after), is_counted=counted[view.name]), shown
                counts["held"] += 1
    return counts


def hold_example(schema: Schema, example: Example) -> None:
    """By the definition, with the oracle's views."""

    def full(part: Database) -> dict[str, frozenset[Row]]:
        return {r.name: frozenset(part.get(r.name, ())) for r in schema.relations}

    first, second, inserted, deleted = map(
        full, (example.first, example.second, example.inserted, example.deleted)
    )
    states = []
    for database in (first, second):
        after = {n: rows - deleted[n] | inserted[n] for n, rows in database.items()}
        assert all(deleted[n] <= rows and not inserted[n] & rows for n, rows in database.items()), example
        assert keyed(schema, database), example
        assert keyed(schema, after), example
        states.append(after)
    for view in schema.views:
        assert view.rows(first) == view.rows(second), example
    (named,) = (view for view in schema.views if view.name == example.view)
    assert named.rows(states[0]) != named.rows(states[1]), example


def keyed(schema: Schema, database: Database) -> bool:
    """Whether keys and foreign keys hold."""
    for relation in schema.relations:
        rows = database[relation.name]
        if relation.key is not None and len({row[relation.key] for row in rows}) < len(rows):
            return False
        for column, target in relation.references:
            there = {row[0] for row in database[target]}
            if any(row[column] is not None and row[column] not in there for row in rows):
                return False
    return True


@pytest.mark.parametrize(("block", "bags"), [(0, 0.0), (1, 0.0), (2, 0.0), (3, 0.9)])
def test_always_is_followed_and_depends_has_an_example(block: int, bags: float) -> None:
    counts: Counter[str] = Counter()
    for seed in range(block * SCHEMAS, (block + 1) * SCHEMAS):
        counts += hold(seed, bags)
    assert min(counts["held"], counts["always"], counts["depends"]) > SCHEMAS


@pytest.mark.parametrize(("block", "bags"), [(0, 0.0), (1, 0.0), (2, 0.9)])
def test_always_holds_in_every_database_over_small_domains(block: int, bags: float) -> None:
    held = 0
    for seed in range(block * SCHEMAS, (block + 1) * SCHEMAS):
        random = Random(seed)
        schema = random_star(random, bags)
        search = Search(catalog(parse_program(schema.text)), EFFECTIVE, quick=True)
        for question in questions(schema, random, UPDATES, KNOWN):
            parts = [
                {n for n, rows in part.items() if rows} for part in (question.inserted, question.deleted)
            ]
            names = parts[0] | parts[1]
            change = ANYTHING
            if len(names) == 1:
                kind = Kind.ANY if all(parts) else Kind.INSERT if parts[0] else Kind.DELETE
                change = Change(kind, next(iter(names)))
            for view in schema.views:
                outcome = search.outcome(search.catalog.view(view.name), change)
                if names and isinstance(outcome, Always):
                    assert len(question.states[view.name]) == 1, (
                        f"{seed} {view.name}\n{schema.text}\n{question}"
                    )
                    held += 1
    assert held > SCHEMAS
