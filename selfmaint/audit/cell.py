"""The search for one view and one kind of change: over the rules of its test, an example of each that has a row."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct, field

from datalog.budget import BudgetSpentError
from datalog.copies import replace
from datalog.model import Atom, Literal, Negation, Predicate, Program, Row, Variable, Version
from selfmaint.audit.candidates import Candidate, Candidates, by_turns
from selfmaint.audit.changes import Change
from selfmaint.audit.example import Always, Depends, Example, Outcome, Replay, Unclear, second_databases
from selfmaint.countermodel.databases import CannotEvaluateError
from selfmaint.decide.selftest import DependsRules, compact_program
from selfmaint.decide.verdict import Witness
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.warehouse.catalog import View
from selfmaint.warehouse.situation import Situation

if TYPE_CHECKING:
    from selfmaint.audit.search import Search

FIRING_LIMIT = 12
"""For one rule, after so many candidates with a row but no example the search goes on to the next rule."""

WITNESSES = 20
"""So many rows of a rule are tried in one candidate."""

NOT_FOUND = "the decision says no, but two databases that show it were not found"


class Cell(Struct, dict=True):
    """The search for one view and one kind of change."""

    search: Search
    view: View
    change: Change
    situation: Situation
    rules: tuple[DependsRules, ...]
    reasons: dict[str, None] = field(default_factory=dict)
    best: Depends | None = None
    programs: dict[Predicate, Program] = field(default_factory=dict)

    def outcome(self) -> Outcome:
        """The verdict."""
        candidates = self.search.candidates(self.change, self.situation)
        try:
            self._look(candidates)
        except BudgetSpentError:
            if self.best is None:
                raise
        except CannotEvaluateError as error:
            return Unclear((str(error),))
        if self.best is not None:
            return replace(self.best, is_never=self.is_seen_never)
        if self.reasons:
            return Unclear(tuple(self.reasons))
        if not candidates.are_all:
            return Unclear(("there are too many kinds of data to go through",))
        return Always(len(self.rules))

    def _look(self, candidates: Candidates) -> None:
        """Looks for an example: the smallest of those that one turn finds."""
        ordered = sorted(self.rules, key=lambda r: r.new_facts.facts.bit_count())
        for found in by_turns(self._depends(rules, candidates) for rules in ordered):
            if self.best is None or found.example.size < self.best.example.size:
                self.best = found
            if self.search.quick:
                break

    @property
    def is_seen_never(self) -> bool:
        """Whether it is seen to be "never" before the budget is spent."""
        try:
            return self.is_never
        except BudgetSpentError:
            return False

    def _depends(self, rules: DependsRules, candidates: Candidates) -> Iterator[Depends | None]:
        """An example for the rules of one J, from its first few candidates with a row; None for each step."""
        fired = 0
        for found in candidates.firing(rules, self._program(rules), self.search.evaluation):
            if found is None:
                yield None
                continue
            _, candidate, rows = found
            for row in rows[:WITNESSES]:
                witness = Witness(rules.new_facts, dict(zip(rules.new_facts.bound, row, strict=True)))
                example = self._example(candidate, witness)
                if example is not None:
                    yield Depends(example, witness.unknown)
                    return
            doubts = self.search.decision.doubts(self.view, self.situation, [rules.new_facts])
            self.reasons.update(dict.fromkeys(doubts or (NOT_FOUND,)))
            fired += 1
            if fired == FIRING_LIMIT:
                return

    def _program(self, rules: DependsRules) -> Program:
        if rules.goal not in self.programs:
            support = self.search.decision.support(self.situation)
            self.programs[rules.goal] = compact_program(support, [rules])
        return self.programs[rules.goal]

    def _example(self, candidate: Candidate, witness: Witness) -> Example | None:
        replay = Replay(self.search.evaluation, self.situation, self.change)
        for second in second_databases(self.search.catalog, candidate, witness):
            found = replay.example(self.view.name, candidate.database, second, candidate)
            if found is not None:
                if not self._may_shrink:
                    return found
                smaller = replay.shrunk(found)
                try:
                    return smaller if self._fails(smaller) else found
                except BudgetSpentError:
                    return found
        return None

    @property
    def _may_shrink(self) -> bool:
        """Whether a smaller example is wanted, and nothing is known that it would have to be told of."""
        known = self.situation
        return not (self.search.quick or known.present or known.absent or known.readable)

    def _fails(self, smaller: Example) -> bool:
        """Whether the view's test fails on an example, as it must."""
        none: frozenset[Row] = frozenset()
        given = {Predicate(n, Version.INSERTED): none for n in self.situation.inserted}
        given |= {Predicate(n, Version.DELETED): none for n in self.situation.deleted}
        facts = Facts({**given, **smaller.facts(self.search.catalog).relations})
        return any(MemoryEngine().nonempty(self._program(one), [one.goal], facts) for one in self.rules)

    @cached_property
    def is_never(self) -> bool:
        """Whether some rule has a row for every inserted row: what it negates can never hold of one."""
        if self.change.relation is None:
            return False
        return any(
            any(self._is_unconditional(positive, rules.negative) for positive in rules.positive)
            and not self.search.decision.doubts(self.view, self.situation, [rules.new_facts])
            for rules in self.rules
        )

    def _is_unconditional(self, positive: tuple[Literal, ...], negative: tuple[Literal, ...]) -> bool:
        if not _is_any_row(positive):
            return False
        candidates = self.search.candidates(self.change, self.situation)
        for literal in negative:
            if not isinstance(literal, Negation) or any(isinstance(li, Negation) for li in literal.body):
                return False
            if next(candidates.holding((*positive, *literal.body)), None) is not None:
                return False
        return candidates.are_all


def _is_any_row(positive: tuple[object, ...]) -> bool:
    match positive:
        case (Atom(terms=terms),):
            return len(set(terms)) == len(terms) and all(isinstance(t, Variable) for t in terms)
        case _:
            return False
