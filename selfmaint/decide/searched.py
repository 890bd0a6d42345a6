"""What the tests leave undecided, decided by a search among all databases (`possible`).

Where there are few rows they are all looked at. Else it is the rows near the update, few first (`neighbourhood.py`); a
"no" needs conditions then (`separate.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from time import process_time
from typing import Generic

from msgspec import Struct, field

from datalog.copies import replace
from datalog.model import ANY, Predicate, Row, Version
from selfmaint.countermodel.model_check import Given
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.neighbourhood import Neighbourhood, neighbourhoods
from selfmaint.decide.pairs import Counterexample, given_rows, shown
from selfmaint.decide.saturation import decided_with, saturated
from selfmaint.decide.separate import Separation
from selfmaint.decide.verdict import Change, Near, NotSelfMaintainable, SelfMaintainable, Undecided, Verdict
from selfmaint.engine.protocol import D
from selfmaint.maintain import Delta, as_stored, delta
from selfmaint.possible.new_state import Answer, Determined, NewStates, Open, TwoDatabases
from selfmaint.warehouse.catalog import View

MOST_ROWS = 400
"""A search is made where everything known, the views, the update and the copies, has at most so many rows in all."""

_CHANGES = (Version.INSERTED, Version.DELETED)

MOST_SECONDS = 3.0
"""How long one may take, whatever the budget; after so long for some views others are not searched for."""


def searched(known: Knowledge[D], verdict: Undecided) -> Verdict:
    """The verdict on a view that was left undecided, with the reason if it still is."""
    view = known.catalog.view(verdict.view)
    if view.name not in known.decision.searchable:
        return verdict
    search, budget = searches(known), known.decision.search
    if search.spent > search.seconds:
        return verdict.because_of("the searches for other views took the time")
    found = search.of(view)
    if found is None:
        changed = [rows for p, rows in known.facts.relations.items() if p.version in _CHANGES]
        size = sum(map(known.engine.count, changed))
        if any(known.engine.fetch(rows, size) is None for rows in changed):
            return verdict.because_of("the update has values, such as doubles, that a search does not take")
        its = f"the update, of {size:,} {'row' if size == 1 else 'rows'}, leaves more open than is searched"
        return verdict.because_of(f"{its}; {budget.larger('rows')}")
    match found.answer:
        case Determined(state):
            stored = found.states.stored(view)
            change = Change(state - stored, stored - state)
            return SelfMaintainable(view.name, change=change, exact=found.near is None, near=found.near)
        case TwoDatabases() as pair:
            return NotSelfMaintainable(view.name, (), databases=pair, near=found.near)
        case Open(reason, larger):
            near = found.near
            is_too_small = near is not None and not near.is_closed
            more = f"; {budget.larger(larger)}" if larger is not None and is_too_small else ""
            return replace(verdict.because_of(f"{reason}{more}"), near=near)


def found_databases(known: Knowledge[D], verdict: NotSelfMaintainable) -> Counterexample | None:
    """The two databases of a "no" that were found by search, of large data their near part; None of another "no"."""
    found, known = verdict.databases, saturated(known)
    if found is None:
        return None
    if verdict.near is None:
        given = at_hand(known)
        return None if given is None else shown(given, None, found.row, found.first, found.second)
    near = searches(known).of(known.catalog.view(verdict.view))
    if near is None:
        return None
    return replace(shown(near.states.known, None, found.row, found.first, found.second), complete=False)


class Found(Struct, frozen=True):
    """An answer, from which rows, and how many these are if there are more."""

    answer: Answer
    states: NewStates
    near: Near | None = None


class Searches(Struct, Generic[D]):
    """The searches over some facts, for one view after the other."""

    whole: NewStates | None
    neighbourhoods: Iterator[Neighbourhood]
    seconds: float
    rows: int
    spent: float = 0
    _steps: list[_Step] = field(default_factory=list)
    _found: dict[str, Found | None] = field(default_factory=dict)

    def of(self, view: View) -> Found | None:
        """The answer for a view; None if the update alone has too many rows."""
        if view.name not in self._found:
            start = process_time()
            self._found[view.name] = self._searched(view)
            self.spent += process_time() - start
        return self._found[view.name]

    def _searched(self, view: View) -> Found | None:
        if self.whole is not None:
            return Found(self.whole.of(view), self.whole)
        found = None
        start = process_time()
        for step in self._every_step():
            found = step.of(view)
            answer = found.answer
            if not isinstance(answer, Open):
                break
            if process_time() - start > self.seconds:  # more rows would be looked at if there were time
                is_small = answer.larger == "rows" and step.near.size < self.rows
                return replace(found, answer=replace(answer, larger="seconds")) if is_small else found
            if answer.is_final and not step.may_be_no:
                break
        return found

    def _every_step(self) -> Iterator[_Step]:
        yield from self._steps
        for near in self.neighbourhoods:
            self._steps.append(_Step(near, self.seconds))
            yield self._steps[-1]


class _Step(Struct, dict=True):
    """A neighbourhood, searched for less than is known, and for what is known of it where that tells of the rest."""

    near: Neighbourhood
    seconds: float

    def of(self, view: View) -> Found:
        """The answer for a view."""
        near = Near(self.near.size, self.near.is_closed)
        answer = self._for_yes.of(view)
        if isinstance(answer, Open) and self._for_no is not None:
            pair = self._for_no.of(view)
            if isinstance(pair, TwoDatabases) and self._separation.is_a_no(pair, view.name):
                return Found(pair, self._for_no, near)
        return Found(answer, self._for_yes, near)

    @cached_property
    def may_be_no(self) -> bool:
        """Whether this neighbourhood or a larger one may give a "no"."""
        return self._separation.may_allow()

    @cached_property
    def _separation(self) -> Separation:
        return Separation(self.near)

    @cached_property
    def _for_yes(self) -> NewStates:
        return NewStates(self.near.known, self.seconds, self.near.cut, self.near.rules)

    @cached_property
    def _for_no(self) -> NewStates | None:
        if not self._separation.allows():
            return None
        return NewStates(self.near.known, self.seconds, rules=self.near.rules)


def searches(known: Knowledge[D]) -> Searches[D]:
    """The searches over everything known."""
    if Searches not in known.kept:
        given = at_hand(known)
        decision, search = known.decision, known.decision.search
        near = min(decision.budget_s, decision.patience * search.seconds)
        all_of_it = min(decision.budget_s, max(decision.patience * MOST_SECONDS, near))
        whole = None if given is None else NewStates(given, all_of_it)
        limit = near if whole is None else all_of_it
        known.kept[Searches] = Searches(whole, neighbourhoods(known), limit, search.rows)
    found: Searches[D] = known.kept[Searches]
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
    known = decided_with(known)
    view = known.catalog.view(verdict.view)
    engine, stored = known.engine, known.facts.relations[view.predicate]
    if verdict.delta is not None:
        return as_stored(engine, stored, verdict.delta())
    if verdict.change is None:
        return as_stored(engine, stored, delta(known, view))
    gained, lost = (
        engine.keep(engine.like(engine.load(rows, view.columns, [ANY] * len(view.columns)), stored))
        if rows
        else engine.empty(stored)
        for rows in (verdict.change.gained, verdict.change.lost)
    )
    return Delta(gained, lost)
