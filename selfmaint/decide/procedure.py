"""Deciding self-maintainability of the views of a warehouse in one situation, with its data.

The symbolic part (which sets J survive, and the programs) depends on the rules alone and is made once. On data:

- `check` runs TEST as one program, which the engine evaluates from the update outwards.
- A view that passes is self-maintainable. One that fails is not, unless the class of a view, a view left out or a
  foreign key makes that doubtful: then it is undecided, unless two databases can be shown.
- What is undecided then is searched for among all databases, where there are few rows (`searched.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias

from datalog.budget import BudgetSpentError, limit
from datalog.model import Predicate, Program
from selfmaint.canonical.support import Knowledge
from selfmaint.countermodel.model_check import is_evaluated
from selfmaint.decide.at_hand import Tests, all_tests, tests_at_hand
from selfmaint.decide.decision import Decision
from selfmaint.decide.new_facts import NewFacts
from selfmaint.decide.own_columns import known_there
from selfmaint.decide.pairs import confirmed
from selfmaint.decide.searched import searched
from selfmaint.decide.selftest import DependsRules, compact_program
from selfmaint.decide.summands import Summed, Told
from selfmaint.decide.unread_columns import untouched
from selfmaint.decide.verdict import (
    Change,
    NotSelfMaintainable,
    SelfMaintainable,
    Undecided,
    Verdict,
    Witness,
)
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.maintain.deltas import Delta, delta
from selfmaint.maintain.groups import group_change
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.situation import Situation

__all__ = ["Decision", "check", "failing_rules"]

_SAMPLE = 20
"""How many witnesses of one J are looked at."""

_TRIED = 2
"""How many witnesses of one J are tried for two databases, where none were asked for."""

NO_TWO_DATABASES = (
    "foreign keys prove rows of which little is known, and no two databases were found that differ"
)
"""Why a failing test is not believed."""

TOO_LARGE = (
    "foreign keys prove rows of which little is known and which could rule out what else is unknown, "
    "and there is too much data to show two databases"
)
"""Why it is not on large data."""
_SHOWN_GROUPS = 5
"""How many groups that are not determined a reason names."""

UNCOUNTABLE = "whether the rows of the update were there before is not known: say that it is effective"
"""Why a view that groups is not decided where the update may not be effective."""

TOGETHER = 1_000
"""More tests are not asked in one go: one of them would take the budget of all."""

MAY_STAY = "a row that one of its queries loses may be given by another row"
"""Why a UNION is not decided by its queries."""

_INEXACT = "its sums of doubles can differ from recomputing in their last digits"
"""What is to be known of a view that adds up doubles."""


def check(
    decision: Decision,
    engine: Engine[D],
    facts: Facts[D],
    situation: Situation,
    views: Iterable[View],
    sample: int = _SAMPLE,
) -> dict[str, Verdict]:
    """The verdict on each view.

    Args:
        decision: the symbolic side.
        engine: evaluates the tests.
        facts: the views' contents, the update, and what else is known; no base relation.
        situation: which kinds of facts there are.
        views: the views to decide.
        sample: how many witnesses to fetch for each failing J; none if 0.

    Returns:
        A verdict for each view's name, in the order given.
    """
    wanted = tuple(views)
    asked = _Asked(decision, engine, facts, situation)
    same = untouched(decision.catalog, engine, facts, situation, wanted)
    tests = asked.tested([view for view in wanted if view.name not in same])
    result: dict[str, Verdict] = {}
    for view in wanted:
        if view.name in same:
            none = Change(frozenset(), frozenset())
            result[view.name] = SelfMaintainable(view.name, semantics=view.semantics, change=none, exact=True)
            continue
        failing, spent = tests[view.name]
        verdict: Verdict | None = None
        if failing or spent is None:
            verdict = asked.of_test(view, failing, sample)
        if spent is not None and not isinstance(verdict, NotSelfMaintainable):
            verdict = Undecided(view.name, (str(spent),), is_cut=True)
        assert verdict is not None
        if not isinstance(verdict, SelfMaintainable):
            verdict = asked.over_own_relations(view) or asked.over_summands(view, verdict)
        if isinstance(verdict, Undecided) and not verdict.is_cut:
            verdict = searched(decision, engine, facts, situation, verdict)
        result[view.name] = replace(verdict, semantics=view.semantics)
    return result


_Failing: TypeAlias = list[tuple[DependsRules, D]]


@dataclass(frozen=True)
class _Asked(Generic[D]):
    """What is asked about: see `check`."""

    decision: Decision
    engine: Engine[D]
    facts: Facts[D]
    situation: Situation

    def tested(self, views: Sequence[View]) -> dict[str, tuple[_Failing[D], BudgetSpentError | None]]:
        """For each view the J's whose tests have rows, and which budget was spent before all of them were known.

        All tests are one program, which derives what they share once. Where that takes too long, or they are many,
        each view has a try of its own. Of a part of the tests one that fails proves as much as ever; none that does
        proves nothing.
        """
        found: dict[str, tuple[_Failing[D], BudgetSpentError | None]] = {}
        tests: dict[str, Tests] = {}
        for view in views:
            try:
                tests[view.name] = tests_at_hand(self.decision, self.engine, self.facts, self.situation, view)
            except BudgetSpentError as spent:
                found[view.name] = [], spent
        waiting = [view for view in views if view.name not in found]
        together = [waiting] if sum(len(tests[view.name].rules) for view in waiting) <= TOGETHER else []
        for part in (*together, *([view] for view in waiting)):
            left = [view for view in part if view.name not in found]
            if not left:
                continue
            try:
                with limit(self.decision.budget_s, f"evaluating the test of {_named(left)}"):
                    rules = [r for view in left for r in tests[view.name].rules]
                    failing = self.failing_of(rules)
            except BudgetSpentError as spent:
                if len(left) == 1:
                    found[left[0].name] = [], spent
                continue
            for view in left:
                its = [one for one in failing if one[0].new_facts.view.name == view.name]
                found[view.name] = its, tests[view.name].spent
        return found

    def of_test(self, view: View, failing: _Failing[D], sample: int) -> Verdict:
        """The verdict on a view whose test is known."""
        doubtful_last = sorted(failing, key=_doubtful)
        found = _witnesses(self.engine, doubtful_last, sample) if sample else ()
        sets = [rules.new_facts for rules, _ in failing]
        verdict = self.verdict(view, sets, found)
        exact = not isinstance(view, GroupedView) and all(
            is_evaluated(v) for v in self.decision.catalog.views
        )
        try:
            if exact and sets and (isinstance(verdict, Undecided) or self.decision.half_known.forced):
                with limit(
                    self.decision.budget_s, f"looking for two databases in which {view.shown} differs"
                ):
                    witnesses = found or _witnesses(self.engine, doubtful_last, _TRIED)
                    shown = confirmed(self.decision, self.engine, self.facts, self.situation, witnesses)
                    if shown:
                        verdict = NotSelfMaintainable(view.name, found)
                    elif isinstance(verdict, NotSelfMaintainable):
                        reason = self.not_shown(view, sets, is_large=shown is None)
                        verdict = verdict if reason is None else Undecided(view.name, (reason,), found)
            if isinstance(view, GroupedView) and not sets:
                with limit(self.decision.budget_s, f"finding the groups of {view.shown} that stay open"):
                    known = self.decision.knowledge(self.engine, self.facts, self.situation)
                    verdict = _group_verdict(known, self.decision.catalog, view)
        except BudgetSpentError as spent:
            doubts = verdict.reasons if isinstance(verdict, Undecided) else ()
            verdict = Undecided(view.name, (*doubts, str(spent)), found)
        return verdict

    def over_own_relations(self, view: View) -> SelfMaintainable | None:
        """That a view is self-maintainable, if it is over relations that have only what it uses."""
        with suppress(BudgetSpentError):
            own = self._passing_over_own(view)
            if own is None:
                return None
            asked, there = own
            verdict = asked.of_test(there, [], 0)
            if isinstance(verdict, SelfMaintainable):
                return replace(verdict, delta=lambda: asked.delta(there), exact=False)
        return None

    def _passing_over_own(self, view: View) -> tuple[_Asked[D], View] | None:
        """A view over relations that have only what it uses, if its test passes there."""
        own = self.decision.over_own_relations(view, self.situation)
        if own is None:
            return None
        schema, there = own
        known = known_there(schema, self.decision.catalog, self.engine, self.facts, self.situation)
        asked = _Asked(there, self.engine, *known)
        return None if asked.is_failing(schema.view) else (asked, schema.view)

    def over_summands(self, view: View, verdict: Verdict) -> Verdict:
        """The verdict on a union by what each of its queries gains and loses; on another view as it was."""
        summands = self.decision.catalog.summands.get(view.name)
        if summands is None or not isinstance(verdict, Undecided):
            return verdict
        if not self.situation.effective:
            return _because(verdict, UNCOUNTABLE)
        situation = replace(self.situation, followed=frozenset(), ruled_out=frozenset())
        asked = _Asked(self.decision.over_summands, self.engine, self.facts, situation)
        changed = situation.inserted | situation.deleted
        with suppress(BudgetSpentError):
            told: list[Told[D]] = []
            for part in summands:
                if not changed.isdisjoint(atom.predicate.name for atom in part.core.body):
                    found = asked.told(part)
                    if found is None:
                        number = part.name.rpartition("#")[2]
                        return _because(verdict, f"what its query {number} gains or loses is not determined")
                    told.append(found)
            summed = Summed(self.engine, self.facts, view, told, is_set=view.stands_once)
            if summed.is_open():
                return _because(verdict, MAY_STAY)
            return SelfMaintainable(view.name, delta=summed.delta)
        return verdict

    def told(self, part: GroupedView) -> Told[D] | None:
        """A summand, where what it gains and loses is determined, perhaps over relations of its own."""
        asked, there = (
            (self, part) if not self.is_failing(part) else (self._passing_over_own(part) or (self, None))
        )
        if not isinstance(there, GroupedView):
            return None
        known = asked.decision.knowledge(self.engine, asked.facts, asked.situation)
        return Told(known, asked.decision.catalog, there)

    def is_failing(self, view: View) -> bool:
        """Whether the test of a view has a row.

        Raises:
            BudgetSpentError: it takes longer than it may.
        """
        tests = tests_at_hand(self.decision, self.engine, self.facts, self.situation, view)
        if tests.spent is not None:
            raise tests.spent
        with limit(self.decision.budget_s, f"evaluating the test of {view.shown}"):
            return bool(self.nonempty(tests.rules)[1])

    def delta(self, view: View) -> Delta[D]:
        """The change of a view that is self-maintainable."""
        known = self.decision.knowledge(self.engine, self.facts, self.situation)
        return delta(known, self.decision.catalog, view)

    def not_shown(self, view: View, sets: Sequence[NewFacts], *, is_large: bool) -> str | None:
        """Why failing tests are not believed where no two databases were shown; None if they are."""
        if not is_large:
            return NO_TWO_DATABASES
        sure = (one for one in sets if not self.decision.doubts(view, self.situation, [one]))
        return TOO_LARGE if all(self.decision.half_known.may_rule_out(one) for one in sure) else None

    def verdict(self, view: View, failing: Sequence[NewFacts], found: tuple[Witness, ...]) -> Verdict:
        """The verdict that some failing J's make."""
        if not failing and (view.limitation is None or self.decision.is_unchanged(view, self.situation)):
            exact = view.limitation is None and self.decision.is_exact(self.situation)
            return SelfMaintainable(view.name, exact=exact)
        doubts = self.decision.doubts(view, self.situation, failing)
        if doubts:
            return Undecided(view.name, doubts, found)
        return NotSelfMaintainable(view.name, found)

    def failing_of(self, rules: Sequence[DependsRules]) -> _Failing[D]:
        """Those of some J's whose tests have rows, with these rows."""
        program, failing = self.nonempty(rules)
        if not failing:
            return []
        rows = self.engine.evaluate_all(
            program, {r.goal: _names(r) for r in rules if r.goal in failing}, self.facts
        )
        return [(r, rows[r.goal]) for r in rules if r.goal in rows]

    def nonempty(self, rules: Sequence[DependsRules]) -> tuple[Program, frozenset[Predicate]]:
        """The tests of some J's as one program, and the goals that have a row."""
        program = compact_program(self.decision.support(self.situation), rules)
        defined = frozenset(program.heads)
        goals = [r.goal for r in rules if r.goal in defined]
        return program, self.engine.nonempty(program, goals, self.facts) if goals else frozenset()


def _because(verdict: Undecided, reason: str) -> Undecided:
    """The verdict with one more reason."""
    return replace(verdict, reasons=(*verdict.reasons, reason))


def _named(views: Sequence[View]) -> str:
    return views[0].shown if len(views) == 1 else "all views"


def _witnesses(engine: Engine[D], failing: _Failing[D], number: int) -> tuple[Witness, ...]:
    """A few witnesses of each J."""
    return tuple(
        Witness(rules.new_facts, dict(zip(rules.new_facts.bound, row, strict=True)))
        for rules, rows in failing
        for row in engine.sample(rows, number)
    )


def _doubtful(failing: tuple[DependsRules, D]) -> bool:
    """Whether the witnesses of a J may have no counterexample; then those of others come first."""
    new_facts = failing[0].new_facts
    return new_facts.is_vague or new_facts.is_approximate or new_facts.may_be_forced


def failing_rules(
    decision: Decision, engine: Engine[D], facts: Facts[D], situation: Situation, views: Sequence[View]
) -> list[tuple[DependsRules, D]]:
    """The J's of some views whose tests have rows, with these rows, all views in one go.

    Raises:
        BudgetSpentError: finding the tests takes longer than it may.
    """
    rules = [r for view in views for r in all_tests(decision, engine, facts, situation, view)]
    return _Asked(decision, engine, facts, situation).failing_of(rules)


def failing_views(
    decision: Decision, engine: Engine[D], facts: Facts[D], situation: Situation, views: Sequence[View]
) -> frozenset[str]:
    """The names of those of some views whose tests have a row, all views in one go.

    Raises:
        BudgetSpentError: finding the tests takes longer than it may.
    """
    rules = [r for view in views for r in all_tests(decision, engine, facts, situation, view)]
    _, failing = _Asked(decision, engine, facts, situation).nonempty(rules)
    return frozenset(r.new_facts.view.name for r in rules if r.goal in failing)


def _names(rule: DependsRules) -> list[str]:
    return [f"x{i}" for i in range(rule.head.arity)]


def _group_verdict(known: Knowledge[D], catalog: Catalog, view: GroupedView) -> Verdict:
    """Whether the old values and the core rows gained and lost determine the new values.

    Args:
        known: everything known.
        catalog: the warehouse's schema.
        view: a view that groups, with a core whose test passes.
    """
    situation = known.situation
    touched = {a.predicate.name for a in view.core.body} & (situation.inserted | situation.deleted)
    if not touched:
        return SelfMaintainable(view.name, exact=True)
    if not situation.effective:
        return Undecided(view.name, (str(view.limitation), UNCOUNTABLE))
    change = group_change(known, catalog, view)
    if change is None:
        return SelfMaintainable(view.name)
    if change.open is None:
        remarks = (_INEXACT,) if view.grouped.inexact else ()
        return SelfMaintainable(view.name, remarks)
    groups = known.engine.sample(change.open, _SHOWN_GROUPS)
    shown = "; ".join(", ".join(str(v) for v in row[:-1]) or "the only one" for row in groups)
    return Undecided(view.name, (f"{_why(view)} (groups: {shown})",))


def _why(view: GroupedView) -> str:
    if not view.grouped.is_total and view.grouped.count_column is None:
        return f"{view.shown} does not tell whether a group that loses rows is empty: add `count(*)` to it"
    return f"a value that an aggregate of {view.shown} rests on is lost, and other rows of the group are not known"
