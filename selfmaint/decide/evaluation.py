"""Evaluating the tests of views: which have rows, and these.

Where several views are asked about their tests are one program, which derives what they share once. Of a part of the
tests one that fails proves as much as ever; that none does proves nothing.

No test is asked twice of the same knowledge, and none of a view whose tests passed with less (`more_known`).

Conditions of soundness:

1. A view whose tests have no row is determined: in every database that explains what is known it changes by the rows
   that known facts give. Each database that explains more explains that too, and all facts that were known still are:
   so these rows are the same ones. Of the tests that ask for one J alone this is not so: with more known facts a
   witness may be one of another J.
2. Where a finer view tells what changes of other subgoals move (`told_subgoals`), the tests of a view that groups pass
   for that way of rolling up alone: with another one they are asked again, and where they passed without they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias, TypeVar

from datalog.budget import BudgetSpentError, limit
from datalog.model import Predicate, Program
from selfmaint.decide.at_hand import Tests, all_tests, tests_at_hand
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.pairs import AT_HAND_ROWS
from selfmaint.decide.selftest import DependsRules, compact_program
from selfmaint.decide.unmet_rows import with_unmet
from selfmaint.engine.protocol import Asked, D
from selfmaint.maintain import gained, lost, maintenance_program
from selfmaint.maintain.core_rows import for_changes
from selfmaint.maintain.roll_up import RollUp
from selfmaint.warehouse.catalog import GroupedView, View

TOGETHER = 1_000
"""More tests are not asked in one go: one of them would take the budget of all."""

LOOKED_AHEAD_SHARE = 0.25
"""The part of the budget that looking ahead takes at most: what is not foreseen is read when it is asked for."""
FORESEEN_SHARE = 0.02
"""What part of the budget may be spent to find out which tests there will be, only to read less."""

T = TypeVar("T")

_FIRST_TESTS = 64, 512
"""So many J's of a view are asked before more are found, where one that has a row is enough."""

_SHORTEST_TESTS = 8
"""So many of these are asked first, where there are twice as many: those that join least have a row most often."""

MOST_JOINED = 20_000
"""Of a test whose joins have more rows no witness is looked at, where a few would do."""

Failing: TypeAlias = list[tuple[DependsRules, D]]
"""The J's whose tests have rows, with these rows."""

Sampled: TypeAlias = list[tuple[DependsRules, D | None]]
"""The same; without rows where joins have too many."""


def tested(
    known: Knowledge[D], views: Sequence[View]
) -> dict[str, tuple[Sampled[D], BudgetSpentError | None]]:
    """For each view the J's whose tests have rows, and which budget was spent before all of them were known.

    Where all views at once take too long, or their tests are many, each view has a try of its own. Where no test could
    prove a "no", and there is too much data to show two databases, one that has a row will do (`failing_first`).
    """
    decision, situation = known.decision, known.situation
    first = failing_first(known, [view for view in views if decision.doubts(view, situation, ())])
    if first and all(
        known.engine.fetch(its, AT_HAND_ROWS) is not None for its in known.facts.relations.values()
    ):
        first = {}
    found = _in_parts(
        known,
        [view for view in views if view.name not in first],
        lambda rules: _failing_of(known, rules, MOST_JOINED),
    )
    failing = [rule for rules in first.values() for rule in rules]
    sampled: Sampled[D] = [(rule, None) for rule in failing]
    with suppress(BudgetSpentError), limit(decision.budget_s, "looking at first tests"):
        sampled = _failing_of(known, failing, MOST_JOINED)
    for name in first:
        found[name] = [one for one in sampled if one[0].new_facts.view.name == name], None
    return found


def passing(known: Knowledge[D], views: Sequence[View]) -> frozenset[str]:
    """The names of the views of whose tests all are known within the budget, and none has a row; tried as `tested`."""

    def ask(rules: Sequence[DependsRules]) -> list[tuple[DependsRules, None]]:
        failing = _nonempty(known, rules)
        return [(rule, None) for rule in rules if rule.goal in failing]

    failing = failing_first(known, views)
    found = _in_parts(known, [view for view in views if view.name not in failing], ask)
    return frozenset(name for name, (failing, spent) in found.items() if not failing and spent is None)


def failing_first(known: Knowledge[D], views: Sequence[View]) -> dict[str, list[DependsRules]]:
    """Those of some views that have many tests, of which one of the first has a row, with such tests.

    The others are not found then, which would take long where views group.
    """
    held: dict[str, list[DependsRules]] = known.kept.setdefault(failing_first, {})
    left = [v for v in views if v.name not in held and known.catalog.grouped_views and not _passes(known, v)]
    held.update((view.name, []) for view in left)
    for most in _FIRST_TESTS:
        tests = {view.name: _first_tests(known, view, most) for view in left}
        for part in (slice(_SHORTEST_TESTS), slice(_SHORTEST_TESTS, None)):
            asked = [rule for name, rules in tests.items() if not held[name] for rule in rules[part]]
            with suppress(BudgetSpentError), limit(known.decision.budget_s, "evaluating first tests"):
                failing = _nonempty(known, asked)
                for rule in (rule for rule in asked if rule.goal in failing):
                    held[rule.new_facts.view.name].append(rule)
        left = [view for view in left if not held[view.name] and len(tests[view.name]) == most]
    return {view.name: rules for view in views if (rules := held.get(view.name))}


def _first_tests(known: Knowledge[D], view: View, most: int) -> Sequence[DependsRules]:
    """The first tests of a view, at most so many, those that join least first; none if there are few in all."""
    with suppress(BudgetSpentError):
        rules = known.decision.first_tests(view, known.situation, most)
        if len(rules) > 2 * _SHORTEST_TESTS:
            return sorted(rules, key=lambda one: min(map(len, one.positive)))
    return ()


def _in_parts(
    known: Knowledge[D],
    views: Sequence[View],
    ask: Callable[[Sequence[DependsRules]], list[tuple[DependsRules, T]]],
) -> dict[str, tuple[list[tuple[DependsRules, T]], BudgetSpentError | None]]:
    """What is found of the tests of all views, or of each."""
    found: dict[str, tuple[list[tuple[DependsRules, T]], BudgetSpentError | None]] = {}
    tests: dict[str, Tests] = {}
    for view in views:
        if _passes(known, view):
            found[view.name] = [], None
            continue
        try:
            tests[view.name] = tests_at_hand(known, view)
        except BudgetSpentError as spent:
            found[view.name] = [], spent
    waiting = [view for view in views if view.name in tests]
    together = [waiting] if sum(len(its.rules) for its in tests.values()) <= TOGETHER else []
    for part in (*together, *([view] for view in waiting)):
        left = [view for view in part if view.name not in found]
        if not left:
            continue
        try:
            with limit(known.decision.budget_s, f"evaluating the test of {_named(left)}"):
                failing = ask([r for view in left for r in tests[view.name].rules])
        except BudgetSpentError as spent:
            if len(left) == 1:
                found[left[0].name] = [], spent
            continue
        for view in left:
            its = [one for one in failing if one[0].new_facts.view.name == view.name]
            found[view.name] = its, tests[view.name].spent
    return found


def foresee(known: Knowledge[D], views: Sequence[View], *, maintained: bool) -> None:
    """Tells the engine what the tests of some views will read, and what their changes will, if they are maintained."""
    seconds = known.decision.budget_s * LOOKED_AHEAD_SHARE
    with suppress(BudgetSpentError), limit(seconds, "looking ahead at what is read"):
        known.engine.foresee(_foreseen(known, views, maintained=maintained), known.facts)


def _foreseen(known: Knowledge[D], views: Sequence[View], *, maintained: bool) -> Iterator[Asked]:
    asked = [view for view in views if not known.decision.is_over_whole(view, known.situation)]
    if not asked and not maintained:
        return
    known = with_unmet(known)
    decision, situation, rules = known.decision, known.situation, list[DependsRules]()
    with suppress(BudgetSpentError):
        rules = [r for view in asked for r in decision.depends(view, situation, FORESEEN_SHARE)]
    if 0 < len(rules) <= TOGETHER:
        program = compact_program(known.support, rules)
        yield Asked(program, tuple(_goals(program, rules)), whole=False)
    for view in views if maintained else ():
        if view.is_decided and not isinstance(view, GroupedView):
            program = maintenance_program(known.support, situation, view)
            goals = (goal for goal in (lost(view), gained(view)) if program.rules_for(goal))
            yield from (Asked(program, (goal,), whole=True) for goal in goals)


def is_failing(known: Knowledge[D], view: View) -> bool:
    """Whether the test of a view has a row.

    Raises:
        BudgetSpentError: it takes longer than it may.
    """
    if failing_first(known, [view]):
        return True
    rules = _asked(known, [view])
    with limit(known.decision.budget_s, f"evaluating the test of {view.shown}"):
        return bool(_nonempty(known, rules))


def failing_rules(known: Knowledge[D], views: Sequence[View]) -> Failing[D]:
    """The J's of some views whose tests have rows, with these rows, all views in one go.

    Raises:
        BudgetSpentError: finding the tests takes longer than it may.
    """
    found = _failing_of(known, _asked(known, views))
    return [(rules, rows) for rules, rows in found if rows is not None]


def sampled_rules(known: Knowledge[D], views: Sequence[View]) -> Sampled[D]:
    """The same, without the rows of tests whose joins have too many.

    Raises:
        BudgetSpentError: finding the tests takes longer than it may.
    """
    return _failing_of(known, _asked(known, views), MOST_JOINED)


def failing_views(known: Knowledge[D], views: Sequence[View]) -> frozenset[str]:
    """The names of those of some views whose tests have a row, and of those of which finding them takes too long.

    All views are asked in one go.
    """
    first = failing_first(known, views)
    left = [view for view in views if view.name not in first]
    asked = [view for view in left if known.decision.has_rules(view, known.situation)]
    rules = _asked(known, asked)
    failing = _nonempty(known, rules)
    unknown = (view.name for view in left if view not in asked)
    return frozenset((*first, *unknown, *(r.new_facts.view.name for r in rules if r.goal in failing)))


def joins_many(known: Knowledge[D], view: View) -> bool:
    """Whether the witnesses of a view's test were asked for, and left out since they take joins of too many rows."""
    held: dict[Predicate, D | None] = known.kept.get((_failing_of, MOST_JOINED), {})
    few: dict[str, list[DependsRules]] = known.kept.get(failing_first, {})
    _, rules = _tests_asked(known).get(view.name, (view, few.get(view.name, ())))
    return any(held.get(rule.goal, True) is None for rule in rules)


def more_known(before: Knowledge[D], known: Knowledge[D]) -> None:
    """Says which views' tests passed with what was known before: the same, but less."""
    answers, passed = _answers(before), dict(_passed(before))
    for name, (view, rules) in _tests_asked(before).items():
        if all(r.goal in answers and not answers[r.goal][1] for r in rules):
            passed[name] = _rolled_up(before, view)
    known.kept[_passed] = passed


def _passed(known: Knowledge[D]) -> Mapping[str, RollUp | None]:
    """The views whose tests passed with less, and by which way of rolling up."""
    passed: dict[str, RollUp | None] = known.kept.setdefault(_passed, {})
    return passed


def _passes(known: Knowledge[D], view: View) -> bool:
    """Whether a view's tests passed with less (condition 2)."""
    passed = _passed(known)
    return view.name in passed and passed[view.name] in (None, _rolled_up(known, view))


def _rolled_up(known: Knowledge[D], view: View) -> RollUp | None:
    """How a finer view tells what changes of other subgoals move, if one does."""
    if not isinstance(view, GroupedView):
        return None
    return for_changes(known.catalog, known.situation, view)


def _asked(known: Knowledge[D], views: Iterable[View]) -> list[DependsRules]:
    """The tests of some views but for those that passed with less.

    Raises:
        BudgetSpentError: finding them takes longer than it may.
    """
    tests = [(view, all_tests(known, view)) for view in views if not _passes(known, view)]
    _tests_asked(known).update((view.name, (view, rules)) for view, rules in tests if rules)
    return [rule for _, rules in tests for rule in rules]


def _tests_asked(known: Knowledge[D]) -> dict[str, tuple[View, tuple[DependsRules, ...]]]:
    """The views all of whose tests are asked of what is known, with these."""
    asked: dict[str, tuple[View, tuple[DependsRules, ...]]] = known.kept.setdefault(_tests_asked, {})
    return asked


def _answers(known: Knowledge[D]) -> dict[Predicate, tuple[DependsRules, bool]]:
    """By goal the tests that were asked of what is known, and whether they have a row."""
    answers: dict[Predicate, tuple[DependsRules, bool]] = known.kept.setdefault(_answers, {})
    return answers


def _failing_of(known: Knowledge[D], rules: Sequence[DependsRules], most: int | None = None) -> Sampled[D]:
    failing = _nonempty(known, rules)
    held: dict[Predicate, D | None] = known.kept.setdefault((_failing_of, most), {})
    waiting = [r for r in rules if r.goal in failing and r.goal not in held]
    if waiting:
        rows = _rows_of(known, waiting, most)
        held.update((r.goal, rows.get(r.goal)) for r in waiting)
    return [(r, held[r.goal]) for r in rules if r.goal in failing]


def _rows_of(known: Knowledge[D], rules: Sequence[DependsRules], most: int | None) -> dict[Predicate, D]:
    """The rows of tests, but of those that join too many: also where each view is asked alone."""
    goals = {r.goal: [f"x{i}" for i in range(r.head.arity)] for r in rules}
    found = known.engine.evaluate_all(compact_program(known.support, rules), goals, known.facts, most)
    by_view: dict[str, list[DependsRules]] = {}
    for rule in rules:
        by_view.setdefault(rule.new_facts.view.name, []).append(rule)
    for its in by_view.values() if len(by_view) > 1 else ():
        if not all(rule.goal in found for rule in its):
            found |= _rows_of(known, its, most)
    return found


def _nonempty(known: Knowledge[D], rules: Sequence[DependsRules]) -> frozenset[Predicate]:
    """The goals of the tests that have a row, or take too much to know; those not asked before are one program."""
    answers = _answers(known)
    waiting = [r for r in rules if r.goal not in answers or answers[r.goal][0] is not r]
    if waiting:
        program = compact_program(known.support, waiting)
        goals = _goals(program, waiting)
        found = known.engine.nonempty(program, goals, known.facts, bounded=True) if goals else frozenset()
        answers.update((r.goal, (r, r.goal in found)) for r in waiting)
    return frozenset(r.goal for r in rules if answers[r.goal][1])


def _goals(program: Program, rules: Sequence[DependsRules]) -> list[Predicate]:
    defined = frozenset(program.heads)
    return [r.goal for r in rules if r.goal in defined]


def _named(views: Sequence[View]) -> str:
    return views[0].shown if len(views) == 1 else "all views"
