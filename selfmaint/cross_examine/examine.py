"""Cross-examining verdicts: asking the solver, and believing what the definition confirms.

The solver is asked in a process of its own: whatever becomes of it, there is an answer for each view.

What came of it goes to a file that says all of it, to be read, sent, and run again. The file is text in the language
of rules: the program, and the facts in sections. Nothing else is needed to see what is wrong; it holds rows of the
views and of the update.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from functools import partial
from pathlib import Path

from datalog.copies import replace
from datalog.model import Atom, Constant, Predicate, Program, Row, Rule, Version, ViewDefinition
from datalog.syntax import show
from selfmaint.cross_examine.definition import Definition, definition
from selfmaint.cross_examine.neighbourhood import completed
from selfmaint.cross_examine.process import Kept, ProcessEndedError
from selfmaint.cross_examine.question import (
    MOST_CANDIDATES,
    Answer,
    Differing,
    NotExamined,
    NothingFound,
    Question,
    Rows,
    better,
    database_with_one_nan,
)

_GIVEN = (Version.INSERTED, Version.DELETED, Version.PRESENT, Version.ABSENT, Version.BEFORE)


@unique
class Outcome(StrEnum):
    """What a cross-examination says of a verdict."""

    AGREES = "agrees"
    """Nothing that contradicts the verdict was found; of a "no", two databases were."""
    CONTRADICTS = "contradicts"
    """A defect: a database that explains what is known contradicts the verdict."""
    NOT_EXAMINED = "not examined"
    """Nothing is said."""


@dataclass(frozen=True)
class Examined:
    """What a cross-examination says of the verdict on one view.

    Attributes:
        file: where all of it is written, of a defect.
    """

    view: str
    outcome: Outcome
    because: str
    file: Path | None = None

    def __str__(self) -> str:
        if self.outcome is Outcome.NOT_EXAMINED:
            return f"not cross-examined: {self.because}"
        where = "" if self.file is None else f"; `{self.file}` has all of it"
        return f"cross-examined: {self.because}{where}"


def document(
    question: Question, view: str, verdict: str, states: Mapping[str, Iterable[Row]], rows: Mapping[str, Rows]
) -> str:
    """The file about one view."""
    catalog = question.catalog
    definitions = tuple(v.definition for v in catalog.views if isinstance(v.definition, ViewDefinition))
    defined = {one.name for one in definitions}
    rules = tuple(rule for rule in catalog.program.rules if rule.head.predicate.name not in defined)
    program: Program = replace(catalog.program, rules=rules, views=definitions)
    effective = "effective" if question.situation.effective else "not known to be effective"
    lines = [
        f"% A verdict on the view {_one_line(view)} that something contradicts: {verdict}",
        f"% The update is {effective}. All rows are of the moment before it, but where it is said.",
        "",
        show(program),
        "",
        "% the views' rows; of a view that keeps duplicates the number of copies last",
    ]
    for name in (v.name for v in catalog.views):
        lines += _facts(Predicate(name), question.of(name, Version.STORED))
    lines += ["", "% the update, and partial copies"]
    for version in _GIVEN:
        for name in catalog.relations:
            lines += _facts(Predicate(name, version), question.of(name, version))
    for heading, database in rows.items():
        lines += ["", f"% {heading}"]
        for name, its in database.items():
            lines += _facts(Predicate(name), its)
    for heading, state in states.items():
        lines += ["", f"% {heading}", *_facts(Predicate(view), state)]
    return "\n".join(lines) + "\n"


def written(folder: Path, view: str, text: str) -> Path | None:
    """The file, under a name that is not taken; None if it cannot be written."""
    plain = re.sub(r"\W+", "-", view)[:60]
    for number in range(1, 1000):
        path = folder / f"cross-examined-{plain}{'' if number == 1 else f'-{number}'}.txt"
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            continue
        except OSError:
            return None
        return path
    return None


def _facts(predicate: Predicate, rows: Iterable[Row]) -> Iterator[str]:
    for row in sorted(rows, key=repr):
        yield show(Rule(Atom(predicate, tuple(map(Constant, row)))))


def _one_line(text: str) -> str:
    return " ".join(f"`{text}`".split())


SECONDS = 10.0
"""How much processor time the search for all views together may take, if nobody says."""

MOST_ROWS = 400
"""At most so many rows of views, update and copies are looked at, if nobody says."""

MOST_TO_CONFIRM = 20_000
"""What was found near the update is held against all rows where there are no more."""

MOST_MEMORY = 2 * 1024**3
"""The bytes of address space that the solver's process may have."""

_SLOWER = 3
"""A process that others leave less than this part of a processor is ended before it has had its time."""

_MORE_S = 5.0
"""What is added to the time, to read the question and to end."""

_SOLVER = Kept("selfmaint.cross_examine.worker")


@dataclass(frozen=True)
class CrossExamination:
    """The budget of a cross-examination, and where it writes what contradicts a verdict.

    Attributes:
        seconds: processor time for the search, of all views together.
        rows: how many rows of the views, the update and the copies are looked at.
        candidates: how many rows of base relations databases are chosen from.
        memory: the bytes of address space of the solver's process.
        folder: for the files; by default the working directory.
    """

    seconds: float = SECONDS
    rows: int = MOST_ROWS
    candidates: int = MOST_CANDIDATES
    memory: int = MOST_MEMORY
    folder: Path | None = None


TOO_MANY_TO_CONFIRM = "something was found near the update, and there are too many rows to hold it against"
"""Why what was found is not believed."""

Certificates = Callable[[str], Sequence[tuple[Rows, Rows]]]
"""For the name of a view with a "no", pairs of databases that it rests on."""


def examined(
    question: Question,
    certificates: Certificates,
    budget: CrossExamination,
    everything: Callable[[], Question | None],
) -> dict[str, Examined]:
    """What is to be said of each verdict; files are written of those that are contradicted.

    `certificates` are asked for what a "no" rests on where the solver finds nothing, `everything` for the question of
    all rows where something is found: None if there are too many.
    """
    answers = asked(question, budget.seconds, budget.memory)
    whole: Question | None = None
    found: dict[str, Examined] = {}
    for view, promised in question.promised.items():
        answer = answers[view]
        if isinstance(answer, Differing):
            whole = whole or everything()
            if whole is None:
                found[view] = Examined(view, Outcome.NOT_EXAMINED, TOO_MANY_TO_CONFIRM)
                continue
            if whole is not question:
                answer = Differing(view, tuple(completed(question, whole, d) for d in answer.databases))
        asking = whole if isinstance(answer, Differing) and whole is not None else question
        is_yes = promised is not None or view in question.open
        judge = _of_yes if is_yes else partial(_of_no, certificates)
        found[view] = judge(asking, view, answer, budget)
    return found


def _of_yes(question: Question, view: str, answer: Answer, budget: CrossExamination) -> Examined:
    if isinstance(answer, NotExamined):
        return Examined(view, Outcome.NOT_EXAMINED, answer.reason)
    if isinstance(answer, NothingFound):
        return _agrees(view, answer)
    known = definition(question)
    promised = question.promised[view]
    first, *more = answer.databases
    state = _state(known, view, first)
    if promised is None:
        why = _why_no_pair(known, view, first, *more)
        databases = {"the first of two databases": first, "the second one": more[0]}
        states, found = {}, "two databases that explain what is known give different new states"
    else:
        same = state is None or known.are_alike(known.catalog.view(view), state, promised)
        why = known.why_not(first) or ("no difference" if same else "")
        databases = {"a database that explains all of this": first}
        states = {
            "the new state that the verdict promises": promised,
            "the new state on the database": state or (),
        }
        found = "a database that explains what is known gives another new state than the verdict says"
    if why:
        return Examined(view, Outcome.NOT_EXAMINED, f"what was found is not confirmed: {why}")
    file = written(budget.folder or Path(), view, document(question, view, "yes", states, databases))
    return Examined(view, Outcome.CONTRADICTS, found, file)


def _of_no(
    certificates: Certificates, question: Question, view: str, answer: Answer, budget: CrossExamination
) -> Examined:
    """A "no" is right if the solver finds two databases, or the definition confirms those that it rests on."""
    known = definition(question)
    if isinstance(answer, Differing) and _why_no_pair(known, view, *answer.databases) == "":
        return Examined(view, Outcome.AGREES, "two databases that differ were found")
    pairs = [(database_with_one_nan(one), database_with_one_nan(two)) for one, two in certificates(view)]
    refused = [_why_no_pair(known, view, *pair) for pair in pairs]
    if "" in refused:
        return Examined(view, Outcome.AGREES, "its two databases explain what is known, and differ")
    if not refused or any(not known.tells(database) for database in pairs[0]):
        reason = answer.reason if isinstance(answer, NotExamined) else "no two databases are at hand"
        return Examined(view, Outcome.NOT_EXAMINED, reason)
    first, second = pairs[0]
    databases = {"the first of two databases": first, "the second one": second}
    file = written(budget.folder or Path(), view, document(question, view, "no", {}, databases))
    found = f"the two databases that the verdict rests on prove nothing: {refused[0]}"
    return Examined(view, Outcome.CONTRADICTS, found, file)


def _why_no_pair(known: Definition, view: str, first: Rows, second: Rows) -> str:
    """Why two databases prove no "no"; empty if they do."""
    for database in (first, second):
        if why := known.why_not(database):
            return why
    one, other = _state(known, view, first), _state(known, view, second)
    if one is None or other is None:
        return f"`{view}` cannot be evaluated here"
    return "their new states are one" if known.are_alike(known.catalog.view(view), one, other) else ""


def _state(known: Definition, view: str, database: Rows) -> frozenset[Row] | None:
    return known.state(known.catalog.view(view), known.after(database))


def _agrees(view: str, answer: NothingFound) -> Examined:
    found = f"no database made of {answer.candidates:,} possible base rows gives another new state"
    return Examined(view, Outcome.AGREES, found)


def asked(question: Question, seconds: float, memory: int = MOST_MEMORY) -> dict[str, Answer]:
    """The answers, by view.

    The seconds are processor time of the search, without the start of the process, which ends soon after them; `memory`
    is the bytes of address space that it may have.
    """
    most_s = _SLOWER * seconds + _MORE_S
    found: dict[str, Answer] = {}
    failure = ""
    why, is_late = f"the search did not end within {seconds:g} s", True
    try:
        with _SOLVER.lock:
            for answer in _SOLVER.process().answers((seconds, memory, question), most_s):
                if isinstance(answer, str):
                    failure = answer
                else:
                    found[answer.view] = better(found.get(answer.view), answer.with_one_nan())
    except ProcessEndedError as ended:
        if not ended.is_late and ended.status not in (0, -getattr(signal, "SIGPROF", 0)):
            why, is_late = _died(ended, failure), False
    except OSError as error:
        why, is_late = f"the solver's process could not be started: {error}", False
    return {view: found.get(view, NotExamined(view, why, is_late)) for view in question.promised}


def _died(ended: ProcessEndedError, failure: str) -> str:
    if "MemoryError" in failure or "bad_alloc" in failure:
        return "the solver ran out of memory"
    return f"the solver failed: {failure[:200]}" if failure else ended.why
