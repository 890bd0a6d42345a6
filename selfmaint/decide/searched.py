"""What the tests leave undecided, decided by a search among all databases, where there are few rows (`possible`)."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

from datalog.model import ANY, Predicate, Row
from selfmaint.countermodel.model_check import Given
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.pairs import Counterexample, given_rows, shown
from selfmaint.decide.saturation import saturated
from selfmaint.decide.verdict import Change, NotSelfMaintainable, SelfMaintainable, Undecided, Verdict
from selfmaint.engine.protocol import D
from selfmaint.maintain import Delta, delta
from selfmaint.possible.new_state import Determined, NewStates, Open, TwoDatabases

MOST_ROWS = 400
"""A search is made where everything known, the views, the update and the copies, has at most so many rows in all."""

MOST_SECONDS = 3.0
"""How long one may take, whatever the budget; after so long for some views others are not searched for."""


def searched(known: Knowledge[D], verdict: Undecided) -> Verdict:
    """The verdict on a view that was left undecided, with the reason if it still is.

    Args:
        known: everything known.
        verdict: the verdict without a search.
    """
    view = known.catalog.view(verdict.view)
    states = _states(known) if view.name in known.decision.searchable else None
    if states is None:
        return verdict
    before, start = float(known.kept.get(searched, 0)), process_time()
    if before > MOST_SECONDS:
        return replace(verdict, reasons=(*verdict.reasons, "the searches for other views took the time"))
    answer = states.of(view)
    known.kept[searched] = before + process_time() - start
    match answer:
        case Determined(state):
            stored = states.stored(view)
            return SelfMaintainable(view.name, change=Change(state - stored, stored - state), exact=True)
        case TwoDatabases() as found:
            return NotSelfMaintainable(view.name, (), databases=found)
        case Open(reason):
            return replace(verdict, reasons=(*verdict.reasons, reason))


def found_databases(known: Knowledge[D], verdict: NotSelfMaintainable) -> Counterexample | None:
    """The two databases of a "no" that were found by search; None of another "no"."""
    found = verdict.databases
    states = None if found is None else _states(saturated(known))
    if found is None or states is None:
        return None
    return shown(states.known, None, found.row, found.first, found.second)


def _states(known: Knowledge[D]) -> NewStates | None:
    """The search over what is known; None if that is too much."""
    if NewStates not in known.kept:
        given = at_hand(known)
        seconds = min(known.decision.budget_s, MOST_SECONDS)
        known.kept[NewStates] = given and NewStates(given, seconds)
    found: NewStates | None = known.kept[NewStates]
    return found


def at_hand(known: Knowledge[D]) -> Given | None:
    """Everything known, with exactly the values that are stored; None if there is too much of it."""
    rows: dict[Predicate, frozenset[Row]] = {}
    left = MOST_ROWS
    for predicate, data in known.facts.relations.items():
        found = known.engine.fetch(data, left)
        if found is None:
            return None
        rows[predicate] = frozenset(found)
        left -= len(found)
    return given_rows(known, rows)


def determined_delta(known: Knowledge[D], verdict: SelfMaintainable) -> Delta[D]:
    """The change of a view that is self-maintainable, held by the engine."""
    known = saturated(known)
    view = known.catalog.view(verdict.view)
    if verdict.delta is not None:
        found: Delta[D] = verdict.delta()
        return found
    if verdict.change is None:
        return delta(known, view)
    engine, stored = known.engine, known.facts.relations[view.predicate]
    gained, lost = (
        engine.keep(engine.like(engine.load(rows, view.columns, [ANY] * len(view.columns)), stored))
        if rows
        else engine.empty(stored)
        for rows in (verdict.change.gained, verdict.change.lost)
    )
    return Delta(gained, lost)
