"""Whether what a rule of the test negates holds of its row: then the row is ruled out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from datalog.copies import replace
from datalog.model import (
    Atom,
    Comparison,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Rule,
    Version,
    variables_of,
)
from datalog.rewrite.reachable import predicates_of
from selfmaint.countermodel.databases import Evaluation
from selfmaint.decide.decision import Decision
from selfmaint.decide.selftest import DependsRules
from selfmaint.engine.memory import MemoryEngine
from selfmaint.warehouse.situation import Situation

if TYPE_CHECKING:
    from selfmaint.audit.candidates import Candidate


@dataclass(frozen=True)
class RuledOut:
    """Whether what the rules of one J negate holds of their row in a situation.

    Attributes:
        goal: has a row where it does not.
        lasting: those that still hold once rows are added to the database and the update.
        evaluation: the views that are known.
        situation: what is known besides.
    """

    goal: Predicate
    given: Predicate
    program: Program
    lasting: Program | None
    evaluation: Evaluation
    situation: Situation

    @classmethod
    def of(
        cls, decision: Decision, situation: Situation, rules: DependsRules, evaluation: Evaluation
    ) -> RuledOut | None:
        """The negations of some rules; None if one of them always holds."""
        support, bound = decision.support(situation), rules.new_facts.bound
        negations = support.prepared(rules.negative, frozenset(bound))
        if negations is None:
            return None
        given = rules.goal.of(Version.STEP)
        rule = Rule(rules.head, (Atom(given, bound), *negations))
        program = support.program([rule], [rules.goal])
        lasting = _lasting(program, rule)
        return cls(rules.goal, given, program, lasting, evaluation, situation)

    @cached_property
    def views(self) -> frozenset[str]:
        """The views that are read."""
        return views_of(self.program)

    @cached_property
    def tested(self) -> frozenset[int]:
        """Which of the row's values are compared, or must not be null."""
        (rule,) = self.program.rules_for(self.goal)
        given = rule.body[0]
        assert isinstance(given, Atom)
        inner = [li for negation in rule.body if isinstance(negation, Negation) for li in negation.body]
        tests = variables_of([li for li in (*rule.body, *inner) if isinstance(li, Comparison | NullTest)])
        return frozenset(i for i, term in enumerate(given.terms) if term in tests)

    def holds(self, candidate: Candidate) -> bool:
        """Whether the row is ruled out in a candidate."""
        return self._holds(self.program, candidate)

    def will_hold(self, candidate: Candidate) -> bool:
        """Whether the row is ruled out in a candidate and in all that come of it."""
        return self.lasting is not None and self._holds(self.lasting, candidate)

    def _holds(self, program: Program, candidate: Candidate) -> bool:
        facts = candidate.facts(self.evaluation, self.situation, self.views)
        facts = replace(facts, relations={**facts.relations, self.given: frozenset([candidate.asked])})
        return not MemoryEngine().nonempty(program, [self.goal], facts)


def views_of(program: Program) -> frozenset[str]:
    """The stored views that a program reads."""
    read = {predicate for rule in program.rules for predicate in predicates_of(rule.body)}
    return frozenset(predicate.name for predicate in read if predicate.version is Version.STORED)


def _lasting(program: Program, rule: Rule) -> Program | None:
    """A rule with those of its negations alone that more rows cannot take back; None if there are none.

    Facts are taken back by what is negated in their proof: that a referenced row is not inserted, too.
    """
    rules = [its for its in program.rules if its != rule and not _negates(its.body)]
    kept = [li for li in rule.body if not isinstance(li, Negation) or not _negates(li.body)]
    if len(kept) == 1:
        return None
    return Program((Rule(rule.head, tuple(kept)), *rules))


def _negates(body: Sequence[Literal]) -> bool:
    return any(isinstance(literal, Negation) for literal in body)
