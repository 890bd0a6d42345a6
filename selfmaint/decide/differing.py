"""A "no" of what is left undecided where views group, or show rows without a match: two databases among few rows.

Aggregates are no conjunctive queries, nor are rows without a match, and `possible` does not take them. The search of
the cross-examination does, among base rows that it makes up: it proves no "yes", since other rows may differ. Nothing
of it is believed, and it need not know all views (those that are text are left out):

1. Only two databases that explain everything known, by the definition (`model_check.py`), and give a view two states
   make a "no".
2. What it does not find leaves a verdict as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from datalog.budget import BudgetSpentError, limit
from datalog.model import OpaqueView
from selfmaint.countermodel.completion import explaining
from selfmaint.countermodel.databases import Rows
from selfmaint.countermodel.model_check import Given
from selfmaint.cross_examine.examine import asked
from selfmaint.cross_examine.neighbourhood import TooManyRowsError, near, without
from selfmaint.cross_examine.question import Differing, NotExamined, Question
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.searched import at_hand
from selfmaint.decide.verdict import NotSelfMaintainable, Undecided, Verdict
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import D, Facts
from selfmaint.possible.new_state import TwoDatabases
from selfmaint.warehouse.catalog import View

NEAR_ROWS = (8, 24)
"""So many rows of it, those near the update, are looked at, then more; what is found is completed to explain all."""

MOST_SECONDS = 0.5
"""How much processor time a search may take for all views together, besides the start of its process."""

MOST_CANDIDATES = 300
"""From so many base rows databases are chosen."""


def with_differing(known: Knowledge[D], verdicts: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """Verdicts, with a "no" in place of each that is undecided and has two databases that differ.

    Args:
        known: everything known.
        verdicts: by view.
    """
    found, catalog = dict(verdicts), known.catalog
    names = [n for n, verdict in verdicts.items() if isinstance(verdict, Undecided) and not verdict.is_cut]
    beyond = [view for view in catalog.views if view.name not in known.decision.searchable]
    if not names or not beyond or known.situation.regions:
        return found
    given = at_hand(known)
    if given is not None:
        seconds = min(known.decision.budget_s, 2 * _seconds(known))
        with suppress(BudgetSpentError), limit(seconds, "looking for two databases that differ"):
            for name, pair in _pairs(known, given, names):
                found[name] = NotSelfMaintainable(name, (), found[name].semantics, databases=pair)
    return found


def _seconds(known: Knowledge[D]) -> float:
    return min(known.decision.budget_s, known.decision.patience * MOST_SECONDS)


def is_text(view: View) -> bool:
    """Whether only the text of a view is known: not so of rows without a match."""
    return isinstance(its := view.definition, OpaqueView) and its.by_rules is None


def _pairs(known: Knowledge[D], given: Given, names: Iterable[str]) -> Iterator[tuple[str, TwoDatabases]]:
    """Two databases for each of some views that has some."""
    every, situation = known.catalog.sides_as_views, known.situation
    catalog = without(every, {view.name for view in every.views if is_text(view)})
    left = dict[str, None].fromkeys(view.name for view in catalog.views if view.name in {*names})
    if not left:
        return
    for most in NEAR_ROWS:
        try:
            rows = near(MemoryEngine(), catalog, Facts(given.rows), situation, most)
        except TooManyRowsError:
            continue
        question = Question(catalog, situation, rows.rows, dict(left), most_candidates=MOST_CANDIDATES)
        is_late = False
        for answer in asked(question, _seconds(known)).values():
            is_late |= isinstance(answer, NotExamined) and answer.is_late
            if isinstance(answer, Differing):
                pair = _confirmed(given, catalog.view(answer.view), *answer.databases)
                if pair is not None:
                    yield answer.view, pair
                    left.pop(answer.view)
        if rows.is_whole or is_late or not left:
            return


def _confirmed(given: Given, view: View, *databases: Rows) -> TwoDatabases | None:
    """Condition 1, of two databases with rows made up for what is far from the update."""
    whole = [next(explaining(given, database), None) for database in databases]
    first, second = whole
    if first is None or second is None:
        return None
    old, new = (given.state(view, given.after(each)) for each in (first, second))
    if old is None or new is None or old == new:
        return None
    if not new - old:
        first, second, old, new = second, first, new, old
    return TwoDatabases.of(given.catalog, view, first, second, min(new - old, key=repr))
