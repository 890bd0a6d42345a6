"""The tests of a view with the data at hand, where finding all of them takes too long.

What there are many of is not the sets J, but the ways of arranging what is compared, for each of the ways of satisfying
foreign keys. Most of these need known facts that are not there. So on small data the known facts are looked at first,
and only the candidates whose known part has a row, anchored at a row of the update, are arranged.

Conditions of soundness:

1. A test of a candidate has a row only where its known part has one (`selftest.known_parts`).
2. Where the time is over before every candidate was arranged, the tests found so far are *a part*: one that fails
   proves as much as it ever does; that none fails proves nothing.
3. What is found holds for these facts only. Where views group, tests are told by their numbers later on, which must
   then be those of all tests: there nothing is found this way.
"""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct

from datalog.budget import BudgetSpentError, limit, share
from datalog.model import Atom, Literal, Predicate, Version
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.new_facts import NewFacts
from selfmaint.decide.selftest import DependsRules, depends_rules, known_parts
from selfmaint.decide.surviving import candidates, placed
from selfmaint.engine.protocol import D
from selfmaint.warehouse.catalog import View

FIRST_SHARE = 0.2
"""What part of the budget may be spent on finding all tests, where they may be found with the data at hand."""

ARRANGING_SHARE = 0.7
"""What part of what is left may be spent on arranging; the rest is for making rules of what was found."""


class Tests(Struct, frozen=True):
    """The tests of a view that can have a row in some facts.

    Attributes:
        rules: one entry for each J.
        spent: the budget that was spent before all were found (condition 2).
    """

    rules: tuple[DependsRules, ...]
    spent: BudgetSpentError | None = None


def tests_at_hand(known: Knowledge[D], view: View) -> Tests:
    """The tests of a view: all that there are, or those that can have a row in the facts.

    Raises:
        BudgetSpentError: finding them takes longer than it may, and there is too much data to look at first.
    """
    decision, key = known.decision, (Tests, view.name)
    if known.catalog.grouped_views or view.limitation is not None:
        return Tests(decision.depends(view, known.situation))
    with suppress(BudgetSpentError):
        return Tests(decision.depends(view, known.situation, FIRST_SHARE))
    if key not in known.kept:
        with limit(decision.budget_s, _named(view)):
            known.kept[key] = _found(known, view)
    found: Tests = known.kept[key]
    return found


def all_tests(known: Knowledge[D], view: View) -> tuple[DependsRules, ...]:
    """The same where a part of them will not do.

    Raises:
        BudgetSpentError: finding them takes longer than it may.
    """
    found = tests_at_hand(known, view)
    if found.spent is not None:
        raise found.spent
    return found.rules


def _found(known: Knowledge[D], view: View) -> Tests:
    possible = _with_known_part(known, view)
    arranged: list[NewFacts] = []
    spent: BudgetSpentError | None = None
    try:
        with share(ARRANGING_SHARE, _named(view)):
            arranged.extend(placed(known.catalog, possible))
    except BudgetSpentError:
        spent = BudgetSpentError(_named(view), known.decision.budget_s)
    return Tests(depends_rules(known.catalog, known.situation, arranged), spent)


def _named(view: View) -> str:
    return f"finding what {view.shown} depends on"


def _with_known_part(known: Knowledge[D], view: View) -> list[NewFacts]:
    """Condition 1: the candidates whose known part has a row; equal parts are asked for once."""
    goals: dict[tuple[Literal, ...], Predicate] = {}
    asked: list[tuple[NewFacts, list[Predicate]]] = []
    for candidate in candidates(known.catalog, view):
        parts = known_parts(known.catalog, known.situation, candidate)
        for part in parts:
            goals.setdefault(part, Predicate(view.name, Version.DEPENDS, (len(goals),)))
        asked.append((candidate, [goals[part] for part in parts]))
    rules = [known.support.rule(Atom(goal, ()), part, ()) for part, goal in goals.items()]
    made = [rule for rule in rules if rule is not None]
    program = known.support.program(made, [rule.head.predicate for rule in made])
    waiting = [rule.head.predicate for rule in made]
    found = known.engine.nonempty(program, waiting, known.facts) if waiting else frozenset()
    return [candidate for candidate, its in asked if not found.isdisjoint(its)]
