"""Evaluating the tests of views: which have rows, and these.

Where several views are asked about their tests are one program, which derives what they share once. Of a part of the
tests one that fails proves as much as ever; that none does proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeAlias, TypeVar

from datalog.budget import BudgetSpentError, limit
from datalog.model import Predicate, Program
from selfmaint.decide.at_hand import Tests, all_tests, tests_at_hand
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.selftest import DependsRules, compact_program
from selfmaint.decide.unmet_rows import with_unmet
from selfmaint.engine.protocol import Asked, D
from selfmaint.maintain import gained, lost, maintenance_program
from selfmaint.warehouse.catalog import GroupedView, View

TOGETHER = 1_000
"""More tests are not asked in one go: one of them would take the budget of all."""

FORESEEN_SHARE = 0.02
"""What part of the budget may be spent to find out which tests there will be, only to read less."""

T = TypeVar("T")

MOST_JOINED = 1_000_000
"""Of a test whose joins have more rows no witness is looked at, where a few would do."""

Failing: TypeAlias = list[tuple[DependsRules, D]]
"""The J's whose tests have rows, with these rows."""

Sampled: TypeAlias = list[tuple[DependsRules, D | None]]
"""The same; without rows where joins have too many."""


def tested(
    known: Knowledge[D], views: Sequence[View]
) -> dict[str, tuple[Sampled[D], BudgetSpentError | None]]:
    """For each view the J's whose tests have rows, and which budget was spent before all of them were known.

    Where all views at once take too long, or their tests are many, each view has a try of its own.
    """
    return _in_parts(known, views, lambda rules: _failing_of(known, rules, MOST_JOINED))


def passing(known: Knowledge[D], views: Sequence[View]) -> frozenset[str]:
    """The names of the views of whose tests all are known within the budget, and none has a row; tried as `tested`."""

    def ask(rules: Sequence[DependsRules]) -> list[tuple[DependsRules, None]]:
        failing = _nonempty(known, rules)[1]
        return [(rule, None) for rule in rules if rule.goal in failing]

    found = _in_parts(known, views, ask)
    return frozenset(name for name, (failing, spent) in found.items() if not failing and spent is None)


def _in_parts(
    known: Knowledge[D],
    views: Sequence[View],
    ask: Callable[[Sequence[DependsRules]], list[tuple[DependsRules, T]]],
) -> dict[str, tuple[list[tuple[DependsRules, T]], BudgetSpentError | None]]:
    """What is found of the tests of all views, or of each."""
    found: dict[str, tuple[list[tuple[DependsRules, T]], BudgetSpentError | None]] = {}
    tests: dict[str, Tests] = {}
    for view in views:
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
    known.engine.foresee(_foreseen(known, views, maintained=maintained), known.facts)


def _foreseen(known: Knowledge[D], views: Sequence[View], *, maintained: bool) -> Iterator[Asked]:
    known = with_unmet(known)
    decision, situation, rules = known.decision, known.situation, list[DependsRules]()
    with suppress(BudgetSpentError):
        rules = [r for view in views for r in decision.depends(view, situation, FORESEEN_SHARE)]
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
    rules = all_tests(known, view)
    with limit(known.decision.budget_s, f"evaluating the test of {view.shown}"):
        return bool(_nonempty(known, rules)[1])


def failing_rules(known: Knowledge[D], views: Sequence[View]) -> Failing[D]:
    """The J's of some views whose tests have rows, with these rows, all views in one go.

    Raises:
        BudgetSpentError: finding the tests takes longer than it may.
    """
    found = _failing_of(known, [r for view in views for r in all_tests(known, view)])
    return [(rules, rows) for rules, rows in found if rows is not None]


def sampled_rules(known: Knowledge[D], views: Sequence[View]) -> Sampled[D]:
    """The same, without the rows of tests whose joins have too many.

    Raises:
        BudgetSpentError: finding the tests takes longer than it may.
    """
    return _failing_of(known, [r for view in views for r in all_tests(known, view)], MOST_JOINED)


def failing_views(known: Knowledge[D], views: Sequence[View]) -> frozenset[str]:
    """The names of those of some views whose tests have a row, all views in one go.

    Raises:
        BudgetSpentError: finding the tests takes longer than it may.
    """
    rules = [r for view in views for r in all_tests(known, view)]
    _, failing = _nonempty(known, rules)
    return frozenset(r.new_facts.view.name for r in rules if r.goal in failing)


def _failing_of(known: Knowledge[D], rules: Sequence[DependsRules], most: int | None = None) -> Sampled[D]:
    program, failing = _nonempty(known, rules)
    if not failing:
        return []
    goals = {r.goal: [f"x{i}" for i in range(r.head.arity)] for r in rules if r.goal in failing}
    rows = known.engine.evaluate_all(program, goals, known.facts, most)
    return [(r, rows.get(r.goal)) for r in rules if r.goal in goals]


def _nonempty(known: Knowledge[D], rules: Sequence[DependsRules]) -> tuple[Program, frozenset[Predicate]]:
    """The tests of some J's as one program, and the goals that have a row."""
    program = compact_program(known.support, rules)
    goals = _goals(program, rules)
    return program, known.engine.nonempty(program, goals, known.facts) if goals else frozenset()


def _goals(program: Program, rules: Sequence[DependsRules]) -> list[Predicate]:
    defined = frozenset(program.heads)
    return [r.goal for r in rules if r.goal in defined]


def _named(views: Sequence[View]) -> str:
    return views[0].shown if len(views) == 1 else "all views"
