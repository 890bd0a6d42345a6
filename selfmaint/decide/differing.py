"""A "no" of what is left undecided where views group: two databases, looked for among few rows.

Aggregates are no conjunctive queries, and `possible` does not take them. The search of the cross-examination does,
among base rows that it makes up: it proves no "yes", since other rows may differ. Nothing of it is believed:

1. Only two databases that explain everything known, by the definition (`model_check.py`), and give a view two states
   make a "no".
2. What it does not find leaves a verdict as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from datalog.model import OpaqueView
from selfmaint.countermodel.databases import Rows
from selfmaint.countermodel.model_check import Given, why_not
from selfmaint.cross_examine.examine import asked
from selfmaint.cross_examine.question import Differing, Question
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.searched import at_hand
from selfmaint.decide.verdict import NotSelfMaintainable, Undecided, Verdict
from selfmaint.engine.protocol import D
from selfmaint.possible.new_state import TwoDatabases
from selfmaint.warehouse.catalog import View

MOST_ROWS = 100
"""A search is made where everything known has at most so many rows in all."""

MOST_SECONDS = 1.0
"""How long one may take for all views together, besides the start of its process."""

MOST_CANDIDATES = 300
"""From so many base rows databases are chosen."""


def with_differing(known: Knowledge[D], verdicts: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """Verdicts, with a "no" in place of each that is undecided and has two databases that differ.

    Args:
        known: everything known.
        verdicts: by view.
    """
    found, catalog = dict(verdicts), known.catalog
    views = [catalog.view(n) for n, v in verdicts.items() if isinstance(v, Undecided) and not v.is_cut]
    beyond = [view for view in catalog.views if view.name not in known.decision.searchable]
    if not views or not beyond or not _are_evaluated(known, beyond):
        return found
    given = at_hand(known, MOST_ROWS)
    if given is None:
        return found
    for name, pair in _pairs(known, given, views).items():
        found[name] = NotSelfMaintainable(name, (), found[name].semantics, databases=pair)
    return found


def _are_evaluated(known: Knowledge[D], views: Iterable[View]) -> bool:
    """Whether the views can be evaluated, and what is known besides is rows."""
    branches = any(known.catalog.whole(view.name) != view.name for view in known.catalog.views)
    texts = any(isinstance(view.definition, OpaqueView) for view in views)
    return not (branches or texts or known.situation.regions)


def _pairs(known: Knowledge[D], given: Given, views: Iterable[View]) -> dict[str, TwoDatabases]:
    """Two databases for each view that has some."""
    question = Question(
        given.catalog, given.situation, given.rows, dict.fromkeys(v.name for v in views), MOST_CANDIDATES
    )
    seconds = min(known.decision.budget_s, MOST_SECONDS)
    answers = asked(question, seconds).values()
    found = ((a.view, _confirmed(given, a.view, *a.databases)) for a in answers if isinstance(a, Differing))
    return {name: pair for name, pair in found if pair is not None}


def _confirmed(given: Given, name: str, first: Rows, second: Rows) -> TwoDatabases | None:
    """Condition 1."""
    if why_not(given, first) or why_not(given, second):
        return None
    view = given.catalog.view(name)
    old, new = (given.state(view, given.after(each)) for each in (first, second))
    if old is None or new is None or old == new:
        return None
    if not new - old:
        first, second, old, new = second, first, new, old
    return TwoDatabases(first, second, min(new - old, key=repr))
