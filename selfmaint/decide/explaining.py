"""Whether a database explains everything known: the definition, applied to rows at hand.

Shares nothing with the test: it evaluates the views on the database and compares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from datalog.evaluate import EvaluationError, evaluate, evaluate_view
from datalog.model import Atom, Predicate, Program, Row, Rule, Version, ViewDefinition
from selfmaint.decide.decision import Decision
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.warehouse.catalog import BaseRelation, Catalog, Outside, View
from selfmaint.warehouse.constraints import Reference
from selfmaint.warehouse.situation import Situation

Database = Mapping[str, frozenset[Row]]
"""Rows by base relation."""


@dataclass(frozen=True)
class Given:
    """Everything known, as rows at hand.

    Attributes:
        catalog: the warehouse's schema.
        situation: the kinds of facts known.
        rows: the facts.
        known: the canonical database.
    """

    catalog: Catalog
    situation: Situation
    rows: Mapping[Predicate, frozenset[Row]]
    known: Database

    def of(self, name: str, version: Version) -> frozenset[Row]:
        """What is given of one version of a relation."""
        return self.rows.get(Predicate(name, version), frozenset())

    @property
    def every_row(self) -> tuple[Row, ...]:
        """All rows at hand."""
        return tuple(row for found in (*self.rows.values(), *self.known.values()) for row in found)

    def after(self, database: Database) -> dict[str, frozenset[Row]]:
        """A database with the update applied."""
        return {
            name: database.get(name, frozenset()) - self.of(name, Version.DELETED)
            | self.of(name, Version.INSERTED)
            for name in self.catalog.relations
        }


def given(
    decision: Decision, engine: Engine[D], facts: Facts[D], situation: Situation, limit: int
) -> Given | None:
    """Everything known, or None if some relation has more than `limit` rows."""
    rows: dict[Predicate, frozenset[Row]] = {}
    for predicate, data in facts.relations.items():
        found = engine.sample(data, limit + 1)
        if len(found) > limit:
            return None
        rows[predicate] = frozenset(found)
    program = Program(decision.known(situation))
    known = {
        name: evaluate(program, Predicate(name, Version.KNOWN), rows) for name in decision.catalog.relations
    }
    return Given(decision.catalog, situation, rows, known)


def is_evaluated(view: View) -> bool:
    """Whether `state` tells a view's rows, but for values that an expression does not have."""
    if view.limitation is None or view.limitation.kind is Outside.PROJECTION or view.always_empty:
        return True
    return view.core is not None and isinstance(view.grouping or view.definition, ViewDefinition)


def state(view: View, database: Database) -> frozenset[Row] | None:
    """A view's rows on a database, counted ones of a bag; None for a view that is more than rules and groups."""
    if view.always_empty:
        return frozenset()
    definition = view.grouping or view.definition
    if view.core is not None and isinstance(definition, ViewDefinition):
        bags = {Predicate(name): Counter(rows) for name, rows in database.items()}
        try:
            return frozenset(evaluate_view(definition, bags))
        except (EvaluationError, TypeError):  # of undeclared columns: a sum of names, say
            return None
    if view.limitation is not None and view.limitation.kind is not Outside.PROJECTION:
        return None
    rule = Rule(view.head, (*view.body, *view.filters))
    rows = {Predicate(name): found for name, found in database.items()}
    goal = view.predicate.of(Version.RECOMPUTED)
    return evaluate(Program((Rule(Atom(goal, rule.head.terms), rule.body),)), goal, rows)


def why_not(known: Given, database: Database) -> str:
    """What a database before the update leaves unexplained; empty if nothing."""
    for view in known.catalog.views:
        found = state(view, database)
        if found is None:
            return f"`{view.name}` cannot be evaluated here"
        if found != known.of(view.name, Version.STORED):
            return f"`{view.name}` would have other rows"
    for relation in known.catalog.relations.values():
        for problem in _objections(known, relation, database.get(relation.name, frozenset())):
            return problem
    for each in (database, known.after(database)):
        for problem in broken(known.catalog, each):
            return problem
    return ""


def _objections(known: Given, relation: BaseRelation, rows: frozenset[Row]) -> Iterator[str]:
    name, situation = relation.name, known.situation
    inserted, deleted = known.of(name, Version.INSERTED), known.of(name, Version.DELETED)
    if situation.effective and (rows & inserted or deleted - rows):
        yield f"the update of `{name}` would not be effective"
    if known.of(name, Version.PRESENT) - rows:
        yield f"rows of `{name}` that are known would be missing"
    if known.of(name, Version.ABSENT) & rows:
        yield f"`{name}` would have a row that is known to be absent"
    if name in situation.readable and rows != known.of(name, Version.BEFORE):
        yield f"`{name}` would differ from what was read"
    for region in (r for r in situation.regions if r.name == name):
        keys = known.rows.get(region, frozenset())
        new = rows - known.known[name]
        if any(not region.columns or tuple(row[i] for i in region.columns) in keys for row in new):
            yield f"`{name}` would have a row that a read would have found"


def broken(catalog: Catalog, database: Database) -> Iterator[str]:
    """The constraints that a database breaks, in words."""
    for relation in catalog.relations.values():
        rows = database.get(relation.name, frozenset())
        if any(row[i] is None for row in rows for i in range(relation.arity) if i not in relation.nullable):
            yield f"`{relation.name}` would have null in a column that is not null"
        for key in relation.unique:
            values = [tuple(row[i] for i in key) for row in rows]
            values = [value for value in values if None not in value]
            if len(set(values)) < len(values):
                yield f"a key of `{relation.name}` would be there twice"
        for reference in relation.references:
            if missing(reference, rows, database.get(reference.target, frozenset())):
                yield f"a row of `{relation.name}` would reference none of `{reference.target}`"


def missing(reference: Reference, rows: frozenset[Row], targets: frozenset[Row]) -> frozenset[Row]:
    """The values that rows reference and no target has."""
    there = {tuple(row[i] for i in reference.target_columns) for row in targets}
    wanted = {tuple(row[i] for i in reference.columns) for row in rows}
    return frozenset(value for value in wanted if None not in value) - there
