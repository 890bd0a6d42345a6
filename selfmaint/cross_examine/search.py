"""The search itself: databases that explain what is known, and then ones that differ, view by view."""

from __future__ import annotations

import time
from collections.abc import Iterator

import clingo
from msgspec import Struct

from datalog.copies import replace
from datalog.model import Row
from selfmaint.cross_examine.definition import definition
from selfmaint.cross_examine.encoding import Encoding
from selfmaint.cross_examine.matches import Candidates, candidates
from selfmaint.cross_examine.question import Answer, Differing, NotExamined, NothingFound, Question, Rows
from selfmaint.cross_examine.symbols import Symbols

MOST_MODELS = 25
"""So many databases are held against the definition before a search gives up."""


_LEAST_WAIT_S = 0.01
"""So long the solver works at least before the time is looked at again."""

FEW = (60, 300)
"""So many candidate rows are looked at first."""


class _StoppedError(Exception):
    """The time is over."""


class _Functions:
    """What the program calls while it is ground."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols

    def compares(self, operator: clingo.Symbol, left: clingo.Symbol, right: clingo.Symbol) -> clingo.Symbol:
        found = self._symbols.compares(operator.string, left.number, right.number)  # type: ignore[arg-type]
        return clingo.Number(int(found))

    def computed(self, name: clingo.Symbol, *arguments: clingo.Symbol) -> list[clingo.Symbol]:
        found = self._symbols.computed(name.number, [a.number for a in arguments])
        return [] if found is None else [clingo.Number(found)]

    def holds(self, name: clingo.Symbol, *arguments: clingo.Symbol) -> clingo.Symbol:
        return clingo.Number(int(self._symbols.holds(name.number, [a.number for a in arguments])))

    def number(self, value: clingo.Symbol) -> clingo.Symbol:
        return clingo.Number(self._symbols.of(value.number))

    def rounded(self, value: clingo.Symbol) -> clingo.Symbol:
        return clingo.Number(self._symbols.of_rounded(self._symbols.value(value.number)))

    def total(self, unit: clingo.Symbol, number: clingo.Symbol) -> clingo.Symbol:
        return clingo.Number(self._symbols.of(self._symbols.total(unit.number, number.number)))

    def average(self, *given: clingo.Symbol) -> clingo.Symbol:
        name, unit, total, number = (one.number for one in given)
        return clingo.Number(self._symbols.of(self._symbols.average_of(name, unit, total, number)))

    def beyond(self, *given: clingo.Symbol) -> clingo.Symbol:
        unit, average, number = (one.number for one in given)
        return clingo.Number(self._symbols.beyond(unit, average, number))

    def weight(self, unit: clingo.Symbol, value: clingo.Symbol) -> clingo.Symbol:
        return clingo.Number(self._symbols.weight(unit.number, value.number))


class _Found(Struct):
    """What one call of the solver came to: a database; or none, and what the last one that was refused lacks."""

    database: Rows | None
    refused: str = ""


def answers(question: Question, seconds: float) -> Iterator[Answer]:
    """An answer for each view that something is promised of, as soon as it is found; those left get none in time.

    Among few candidate rows first, which may be all that there is time for, then among as many as there may be: of
    several answers for a view the better one counts (`better`).

    The seconds are processor time of this process: what else the machine does makes no answer another one.
    """
    deadline = time.process_time() + seconds
    promised, before = dict(question.promised), 0
    for most in (*(few for few in FEW if few < question.most_candidates), question.most_candidates):
        asked = replace(question, promised=promised, most_candidates=most)
        its = candidates(asked)
        if its.number > before:
            for answer in _among(asked, its, deadline):
                if isinstance(answer, Differing):
                    del promised[answer.view]
                yield answer
        before = its.number


def _among(question: Question, its: Candidates, deadline: float) -> Iterator[Answer]:
    """The answers among some candidate rows."""
    search = _Search(question, Encoding(question, its), deadline)
    try:
        search.ground()
        first = search.next_database()
    except _StoppedError:
        return
    for view, promised in list(question.promised.items()):
        if first.database is None:
            why = (
                first.refused
                or f"of {its.number} candidate rows no database could be made, so the search says nothing"
            )
            yield NotExamined(view, f"{why}{search.shortcomings}")
            continue
        state = search.state(view, first.database)
        if state is None:
            yield NotExamined(view, "it cannot be evaluated here")
        elif promised is not None and not search.are_alike(view, state, promised):
            yield Differing(view, (first.database,))
        else:
            try:
                yield search.other(view, state, first.database, its.number, is_promised=promised is not None)
            except _StoppedError:
                continue


class _Search:
    """One program, solved again and again."""

    def __init__(self, question: Question, encoding: Encoding, deadline: float) -> None:
        self._encoding = encoding
        self._deadline = deadline
        self._known = definition(question)
        self._control = clingo.Control(["--warn=none", "--models=0"])
        self._functions = _Functions(encoding.symbols)
        self._question = question

    @property
    def shortcomings(self) -> str:
        """What the program lacks, in words to append."""
        lacking = [f"of `{name}` {what}" for name, what in self._encoding.left_out.items()]
        lacking += self._encoding.symbols.failures
        return f" (not encoded: {'; '.join(lacking)})" if lacking else ""

    def ground(self) -> None:
        self._add("base", self._encoding.text)

    def state(self, view: str, database: Rows) -> frozenset[Row] | None:
        """A view's rows after the update of a database, by the definition."""
        return self._known.state(self._question.catalog.view(view), self._known.after(database))

    def are_alike(self, view: str, one: frozenset[Row], other: frozenset[Row]) -> bool:
        """Whether two states of a view are the same."""
        return self._known.are_alike(self._question.catalog.view(view), one, other)

    def other(
        self, view: str, state: frozenset[Row], first: Rows, number: int, *, is_promised: bool
    ) -> Answer:
        """Whether a database gives a view another new state than a first one does."""
        part = self._encoding.differing(view, state)
        if part is None:
            return NotExamined(view, f"it is not encoded: {self._encoding.left_out[view]}")
        self._add(f"view{self._encoding.number(view)}", part)
        ask = clingo.Function("ask", [clingo.Number(self._encoding.number(view))])
        self._control.assign_external(ask, True)
        found = self.next_database((view, state))
        self._control.assign_external(ask, False)
        if found.database is not None:
            return Differing(view, (found.database,) if is_promised else (first, found.database))
        if found.refused or self._encoding.symbols.failures or view in self._encoding.left_out:
            return NotExamined(view, f"{found.refused or 'nothing was found'}{self.shortcomings}")
        return NothingFound(view, number)

    def next_database(self, unlike: tuple[str, frozenset[Row]] | None = None) -> _Found:
        """A database that explains what is known by the definition, too, and on which a view's state is another one.

        Raises:
            _StoppedError: the time is over.
        """
        refused = ""
        with self._control.solve(yield_=True, async_=True) as handle:
            for _ in range(MOST_MODELS):
                handle.resume()
                if not self._ends(handle):
                    handle.cancel()
                    raise _StoppedError
                model = handle.model()
                if model is None:
                    break
                atoms = (
                    (s.name, tuple(a.number for a in s.arguments))
                    for s in model.symbols(atoms=True)
                    if s.name.startswith("b")
                )
                database = self._encoding.database(atoms)
                refused = self._known.why_not(database)
                if not refused and (unlike is None or self._differs(*unlike, database)):
                    return _Found(database)
                refused = f"the databases found are none: {refused or 'the state is the same'}"
        return _Found(None, refused)

    def _ends(self, handle: clingo.SolveHandle) -> bool:
        """Waits for the solver; whether it ends before the time is over."""
        while (left := self._deadline - time.process_time()) > 0:
            if handle.wait(max(left, _LEAST_WAIT_S)):  # as long as that takes at least
                return True
        return False

    def _differs(self, view: str, state: frozenset[Row], database: Rows) -> bool:
        found = self.state(view, database)
        return found is not None and not self.are_alike(view, found, state)

    def _add(self, name: str, text: str) -> None:
        self._control.add(name, [], text)
        self._control.ground([(name, [])], context=self._functions)
