"""Reading base relations only as needed: probe, learn, ask again, until every view's test passes.

Conditions of soundness:

1. The source is in the state right after the update, or, with an effective one, brought there from right before it
   (`states.py`); a row found that was not inserted was there before it.
2. A new fact is never an inserted or deleted row, so on the probed keys every other new fact is ruled out.
3. The rows found must agree with the update and with what is known; else the source has moved, and nothing
   is concluded from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic

from msgspec import Struct, field

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.model import Atom, Negation, NullTest, Predicate, Program, Rule, Variable, Version
from datalog.rewrite import drop_empty, simplify
from selfmaint.canonical import row_atom
from selfmaint.decide.evaluation import failing_rules
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.selftest import DependsRules
from selfmaint.engine.protocol import D, Facts
from selfmaint.errors import Code, SourceError
from selfmaint.fallback.probes import Probe, next_probes
from selfmaint.fallback.states import (
    CLASH,
    OTHERS,
    found_after,
    is_before,
    moved,
    others_of_deleted,
    rows_of,
    signs_of_state,
    twins_of_deleted,
)
from selfmaint.sources.protocol import Read, Source
from selfmaint.warehouse.base_relations import shown_rows
from selfmaint.warehouse.catalog import BaseRelation, View

Progress = Callable[[str], None]

_SHOWN_ROWS = 5
"""How many culprits an error names."""


@dataclass(frozen=True)
class Readable(Generic[D]):
    """A base relation that may be read.

    Attributes:
        cost: what a looked-up key costs; None: estimated when it matters.
        is_after: whether its source is known to be right after each update, where it has no key and nothing else tells.
    """

    source: Source[D]
    cost: float | None = None
    is_after: bool = False

    def cost_of(self, relation: str) -> float:
        """What one looked-up key costs."""
        return _estimated_cost(self.source.row_count(relation)) if self.cost is None else self.cost


class Reader(Struct, Generic[D]):
    """Reads base rows and adds them to what is known.

    Attributes:
        known: what is known, with what was learnt.
        readable: the base relations that may be read.
        progress: told of every read.
        require: refuses what is known with rows that were just read (`Version.FOUND`), if they cannot be used.
        reads: every read so far, in order.
    """

    known: Knowledge[D]
    readable: Mapping[str, Readable[D]]
    progress: Progress = lambda _message: None
    require: Callable[[Facts[D]], None] = lambda _facts: None
    reads: list[Read] = field(default_factory=list)
    _signs: dict[str, frozenset[str]] = field(default_factory=dict)

    def read(self, probe: Probe, witnesses: Mapping[Predicate, D]) -> None:
        """One read.

        Raises:
            SourceError: SM401 or SM103 from a source; SM402 a source that is not in the state after the update;
                SM104 one that has null in a column declared not null.
        """
        self.known, read = self._learnt(probe, witnesses)
        self.reads.append(read)
        self.progress(f"read {read.rows_read} rows of {read.relation} for {read.keys_asked} keys")

    def _learnt(self, probe: Probe, witnesses: Mapping[Predicate, D]) -> tuple[Knowledge[D], Read]:
        """One read, checked against what is known, and added to it."""
        engine, relation = self.known.engine, self.known.catalog.relations[probe.relation]
        names = [relation.columns[i] for i in probe.columns]
        keys = None
        if probe.columns:
            given = Facts(dict(witnesses), {}, frozenset(witnesses))
            keys = engine.keep(engine.evaluate(probe.program, probe.keys, given, names))
        rows, read = rows_of(engine, relation, self.readable[relation.name].source, names, keys)
        more = {Predicate(relation.name, Version.FOUND): engine.keep(rows)}
        more |= {} if keys is None else {probe.keys: keys}
        held = self.known.learning(self.known.facts.extended(more, small=keys is not None))
        if held.situation.effective and relation.keys and not relation.is_numbered:
            asked, earlier = None if keys is None else probe.keys, self._signs.get(relation.name, frozenset())
            after, signs = found_after(held, relation, probe.columns, asked, earlier)
            more = {Predicate(relation.name, Version.FOUND): after}
            held = held.learning(held.facts.extended(more, small=keys is not None))
            self._signs[relation.name], read = signs, replace(read, is_before=is_before(signs))
        elif relation.is_numbered and relation.name in held.situation.deleted:
            row = row_atom(relation, Version.FOUND)
            its = () if keys is None else (Atom(probe.keys, tuple(row.terms[i] for i in probe.columns)),)
            read = replace(
                read, has_twins=twins_of_deleted(signs_of_state(held, relation, its), held.situation)
            )
        self.require(held.facts)
        require_keys_not_moved(held, probe)
        return _extended(held, probe, relation, keys), read


def settle(reader: Reader[D], views: Sequence[View]) -> tuple[DependsRules, ...]:
    """Reads base rows until the tests of all views pass, or nothing more can be read.

    Returns:
        The J's that still have witnesses because none of their relations can be read.

    Raises:
        SourceError: SM401 or SM103 from a source; SM402 a source that is not in the state after the update.
    """
    costs = LazyCosts({name: partial(entry.cost_of, name) for name, entry in reader.readable.items()})
    failing = failing_rules(reader.known, views)
    while True:
        rules = tuple(rule for rule, _ in failing)
        probes = next_probes(reader.known.catalog, rules, costs) if failing else ()
        if not probes:
            return rules
        witnesses = {rule.goal: rows for rule, rows in failing}
        for probe in probes:
            reader.read(probe, witnesses)
        failing = failing_rules(reader.known, views)


def _require_no_null(known: Knowledge[D], relation: BaseRelation) -> None:
    """Refuses found rows that have null in a column declared not null."""
    found, goal = row_atom(relation, Version.FOUND), row_atom(relation, Version.PROBLEM)
    promised = [term for i, term in enumerate(found.terms) if i not in relation.nullable]
    program = Program(tuple(Rule(goal, (found, NullTest(term, negated=False))) for term in promised))
    if known.engine.nonempty(program, [goal.predicate], known.facts):
        found_rows = known.engine.evaluate(program, goal.predicate, known.facts)
        rows = known.engine.sample(found_rows, _SHOWN_ROWS)
        what = f"the source has null in a column of `{relation.name}` declared not null"
        message = f"{what}: {shown_rows(relation.columns, rows)}"
        raise SourceError(
            [Diagnostic(Code.COLUMNS_DIFFER, message, hint="correct the rows, or the declaration")]
        )


def _extended(known: Knowledge[D], probe: Probe, relation: BaseRelation, keys: D | None) -> Knowledge[D]:
    """Condition 1: found rows that were not inserted are present; the keys join the region."""
    name, engine, facts, situation = relation.name, known.engine, known.facts, known.situation
    found, present = (Predicate(name, version) for version in (Version.FOUND, Version.PRESENT))
    inserted = Negation((row_atom(relation, Version.INSERTED),))
    body = (
        (row_atom(relation, Version.FOUND), inserted)
        if name in situation.inserted
        else (row_atom(relation, Version.FOUND),)
    )
    rows = engine.evaluate(
        Program((Rule(row_atom(relation, Version.PRESENT), body),)), present, facts, relation.columns
    )
    learnt = {
        present: rows if name not in situation.present else engine.union([facts.relations[present], rows])
    }
    if keys is not None:
        old = [facts.relations[probe.region]] if probe.region in situation.regions else []
        learnt[probe.region] = engine.union([*old, keys])
    kept = {predicate: engine.keep(data) for predicate, data in learnt.items()}
    remaining = {p: d for p, d in facts.relations.items() if p not in (found, probe.keys)}
    not_null = {present: frozenset(range(relation.arity)) - relation.nullable}
    after = replace(facts, relations=remaining).extended(kept, not_null=not_null, small=keys is not None)
    told = replace(situation, present=situation.present | {name}, regions=situation.regions | {probe.region})
    return known.learning(after, told)


def require_not_moved(known: Knowledge[D], relation: BaseRelation) -> None:
    """Condition 3, on a whole relation: its found rows, among the facts, agree with the update and what is known.

    Raises:
        SourceError: SM402.
    """
    _check_moved(known, Probe(relation.name, (), Program(), ()), relation)


def require_keys_not_moved(known: Knowledge[D], probe: Probe) -> None:
    """Condition 3, on the rows found for some keys, both among the facts.

    Raises:
        SourceError: SM402, SM303; SM104 null in a column declared not null.
    """
    relation = known.catalog.relations[probe.relation]
    _require_no_null(known, relation)
    _check_moved(known, probe, relation)


def _check_moved(known: Knowledge[D], probe: Probe, relation: BaseRelation) -> None:
    """Condition 3, on the probed keys; and the rows of the update have the rows there that they reference."""
    _require_referenced(known, probe)
    engine, facts = known.engine, known.facts
    program, goals = _moved_program(known, probe, relation)
    given = [goal for goal in goals if program.rules_for(goal)]
    for goal in sorted(engine.nonempty(program, given, facts), key=lambda p: p.columns):
        rows = engine.sample(engine.evaluate(program, goal, facts, relation.columns), _SHOWN_ROWS)
        note = "a base row counts only if it is read in the state right after the update"
        raise moved(relation, f"{goals[goal]}: {shown_rows(relation.columns, rows)}", note)


def _require_referenced(known: Knowledge[D], probe: Probe) -> None:
    """Refuses inserted rows that reference what was looked for and not found."""
    engine, facts, relations = known.engine, known.facts, known.catalog.relations
    every = tuple(Variable(f"T{i}") for i in range(relations[probe.relation].arity))
    for child in (relations[name] for name in sorted(known.situation.inserted)):
        for one in child.references:
            if one.target != probe.relation or not set(probe.columns) <= set(one.target_columns):
                continue
            row = row_atom(child, Version.INSERTED)
            given = dict(zip(one.target_columns, (row.terms[i] for i in one.columns), strict=True))
            found = Atom(
                Predicate(one.target, Version.FOUND), tuple(given.get(i, v) for i, v in enumerate(every))
            )
            asked = [Atom(probe.keys, tuple(given[i] for i in probe.columns))] if probe.columns else []
            goal = row_atom(child, Version.PROBLEM)
            program = Program(
                (Rule(goal, (row, *asked, *map(NullTest, given.values()), Negation((found,)))),)
            )
            if engine.nonempty(program, [goal.predicate], facts):
                rows = engine.sample(
                    engine.evaluate(program, goal.predicate, facts, child.columns), _SHOWN_ROWS
                )
                names = ", ".join(child.columns[i] for i in one.columns)
                what = f"rows inserted into `{child.name}` reference ({names}) no row of `{one.target}`"
                message = f"{what} in its source: {shown_rows(child.columns, rows)}"
                hint = "correct the rows, complete the update, or read the source right after the update"
                raise SourceError([Diagnostic(Code.BREAKS_CONSTRAINT, message, hint=hint)])


def _moved_program(
    given: Knowledge[D], probe: Probe, relation: BaseRelation
) -> tuple[Program, dict[Predicate, str]]:
    decision, situation = given.decision, given.situation
    row = row_atom(relation, Version.FOUND)
    key: tuple[Atom, ...] = ()
    if probe.columns:
        key = (Atom(probe.keys, tuple(row.terms[i] for i in probe.columns)),)
    name = relation.name
    rules: list[Rule] = []
    messages: dict[Predicate, str] = {}

    def add(message: str, *body: Atom | Negation) -> None:
        goal = Predicate(name, Version.PROBLEM, (len(rules),))
        messages[goal] = message
        rules.append(Rule(Atom(goal, row.terms), (*key, *body)))

    still = [Negation((row_atom(relation, Version.DELETED),))] if name in situation.deleted else []
    if name in situation.inserted:
        there = Negation((row_atom(relation, Version.INSERTED),))
        for columns in relation.keys:
            terms = tuple(t if i in columns else Variable(f"New{i}") for i, t in enumerate(row.terms))
            its = Atom(Predicate(name, Version.INSERTED), terms)
            add(CLASH, its, row, there, *still)
        add("inserted rows are not there", row_atom(relation, Version.INSERTED), Negation((row,)))
    for body in others_of_deleted(situation, relation):
        add(OTHERS, *body)
    if name in situation.deleted:
        add("deleted rows are still there", row_atom(relation, Version.DELETED), row)
    add("rows that the views prove are gone", row_atom(relation, Version.KNOWN), *still, Negation((row,)))
    if name in situation.absent:
        new = [Negation((row_atom(relation, Version.INSERTED),))] if name in situation.inserted else []
        add("rows known to be absent are there", row_atom(relation, Version.ABSENT), row, *new)
    known = decision.known(situation)
    defined = {rule.head.predicate for rule in known}
    empty = [p for n in decision.catalog.relations if (p := Predicate(n, Version.KNOWN)) not in defined]
    program = drop_empty(Program((*rules, *known)), empty)
    return simplify(program, list(messages)), messages


def _estimated_cost(rows: int) -> float:
    """The cost of one looked-up key in a relation of so many rows: one, and one more for each tenfold size.

    An index is as deep as the logarithm of its relation's size, and a larger relation is more likely to be
    the busy one that should be spared. The unit is that of costs given by hand: a key of an almost empty
    relation.

    >>> _estimated_cost(0), _estimated_cost(999), _estimated_cost(999_999)
    (1.0, 4.0, 7.0)
    """
    return round(1 + math.log10(1 + max(rows, 0)), 2)


class LazyCosts(Mapping[str, float]):
    """Costs by relation, each asked for when it is first needed: a source may have to be connected to."""

    def __init__(self, ask: Mapping[str, Callable[[], float]]) -> None:
        self._ask = dict(ask)
        self._known: dict[str, float] = {}

    def __getitem__(self, relation: str) -> float:
        if relation not in self._known:
            self._known[relation] = self._ask[relation]()
        return self._known[relation]

    def __contains__(self, relation: object) -> bool:
        return relation in self._ask

    def __iter__(self) -> Iterator[str]:
        return iter(self._ask)

    def __len__(self) -> int:
        return len(self._ask)
