"""Deciding recorded cases and comparing with their answers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from datalog.model import ANY, Predicate, Row, Version
from selfmaint.conformance.cases import Case
from selfmaint.decide.decision import Decision
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.procedure import check
from selfmaint.decide.searched import determined_delta
from selfmaint.decide.unions import deltas_of_unions, of_unions
from selfmaint.decide.verdict import SelfMaintainable, Verdict
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.warehouse.catalog import Catalog, View, catalog
from selfmaint.warehouse.situation import Situation

STATE_LIMIT = 100_000
"""A recorded case's state has fewer rows than this."""


class Outcome(Struct, frozen=True):
    """What was decided for one view of one case, against what is recorded.

    Attributes:
        verdict: `yes`, `no` or `undecided`.
        expected: `yes` or `no`.
        state: the new contents, when the verdict is yes.
        wrong_state: the verdict is rightly yes, but the contents differ.
        milliseconds: time for the case, divided by its number of views.
    """

    case: str
    view: str
    verdict: str
    expected: str
    state: frozenset[Row] | None
    wrong_state: bool
    milliseconds: float

    @property
    def disagreement(self) -> str | None:
        """`unsound`, `incomplete`, `wrong state`, or None."""
        if self.verdict == "yes" and self.expected == "no":
            return "unsound"
        if self.verdict != "yes" and self.expected == "yes":
            return "incomplete" if self.verdict == "no" else None
        return "wrong state" if self.wrong_state else None


@dataclass
class Summary:
    """Counts over one file."""

    file: str
    cases: int = 0
    views: int = 0
    yes: int = 0
    no: int = 0
    undecided: int = 0
    unsound: int = 0
    incomplete: int = 0
    wrong_state: int = 0
    names: set[str] = field(default_factory=set, repr=False)

    def add(self, outcome: Outcome) -> None:
        """Counts one outcome."""
        if outcome.case not in self.names:
            self.names.add(outcome.case)
            self.cases += 1
        self.views += 1
        setattr(self, outcome.verdict, getattr(self, outcome.verdict) + 1)
        if outcome.disagreement is not None:
            name = outcome.disagreement.replace(" ", "_")
            setattr(self, name, getattr(self, name) + 1)

    @property
    def disagreements(self) -> int:
        """How many outcomes contradict the record."""
        return self.unsound + self.incomplete + self.wrong_state


def run_case(case: Case, engine: Engine[D]) -> Iterator[Outcome]:
    """Decides every view of a case, and maintains those that are self-maintainable."""
    start = time.perf_counter()
    schema = catalog(case.program)
    decision = Decision(schema.apart)
    situation = Situation.of(
        (p for p in case.contents if p.name in schema.relations), effective=case.effective
    )
    known = decision.knowledge(engine, case_facts(case, schema, engine), situation)
    found = check(known, decision.catalog.views, sample=0)
    verdicts = of_unions(schema, found)
    states = {
        view.name: _state(case, known, schema, view, found)
        for view in schema.views
        if isinstance(verdicts[view.name], SelfMaintainable)
    }
    engine.release()
    each = (time.perf_counter() - start) * 1000 / max(len(schema.views), 1)
    for name, expected in case.expected.items():
        state = states.get(name)
        yield Outcome(
            case=case.name,
            view=name,
            verdict=verdicts[name].kind.value,
            expected="yes" if expected.self_maintainable else "no",
            state=state,
            wrong_state=state is not None and expected.state is not None and state != expected.state,
            milliseconds=each,
        )


def case_facts(case: Case, schema: Catalog, engine: Engine[D]) -> Facts[D]:
    """What is given in a case, held by an engine."""
    relations = {}
    not_null = {}
    for predicate, rows in case.contents.items():
        arity = _arity(schema, predicate)
        if arity is None:
            continue
        relations[predicate] = engine.load(rows, [f"c{i}" for i in range(arity)], [ANY] * arity)
        not_null[predicate] = _not_null(schema, predicate)
    for predicate, union, selection in schema.selections:
        relations[predicate] = engine.selected(selection, relations[union])
        not_null[predicate] = schema.not_null(schema.apart.view(predicate.name))
    small = frozenset(p for p in relations if p.version is not Version.STORED)
    return Facts(relations, not_null, small)


def _arity(schema: Catalog, predicate: Predicate) -> int | None:
    if predicate.version is Version.STORED:
        return schema.view(predicate.name).head.arity
    relation = schema.relations.get(predicate.name)
    return None if relation is None else relation.arity


def _not_null(schema: Catalog, predicate: Predicate) -> frozenset[int]:
    if predicate.version is Version.STORED:
        return schema.not_null(schema.view(predicate.name))
    relation = schema.relations[predicate.name]
    return frozenset(range(relation.arity)) - relation.nullable


def _state(
    case: Case, known: Knowledge[D], schema: Catalog, view: View, verdicts: Mapping[str, Verdict]
) -> frozenset[Row]:
    parts = (verdicts[part.name] for part in schema.parts(view))
    changes = {
        part.view: determined_delta(known, part) for part in parts if isinstance(part, SelfMaintainable)
    }
    change = deltas_of_unions(schema, known.engine, known.facts, changes)[view.name]
    gained, lost = (
        frozenset(known.engine.sample(part, STATE_LIMIT)) for part in (change.gained, change.lost)
    )
    return case.contents[view.predicate] - lost | gained
