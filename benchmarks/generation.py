"""How long it takes to generate tests and maintenance queries, from the rules alone.

What is timed, for a program's text: reading it, making the catalog and finding the surviving sets J of every view
(`rules`), and writing every view's test and maintenance queries as programs, for any update of any relation (`any`).
And all that rows inserted into the first relation ask for, from the text to the programs (`one`). Times are processor
time: it is one thread of this process.
"""

from __future__ import annotations

import signal
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from shapes import SHAPES, one_view, windows

from datalog.syntax import parse_program
from selfmaint.decide.decision import Decision
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.situation import Situation

Record = dict[str, object]


class TooSlowError(Exception):
    """A measurement took longer than it may."""


@dataclass(frozen=True)
class Setting:
    """One program to generate for."""

    shape: str
    views: int
    subgoals: int
    copies: int
    text: str


def settings(*, quick: bool) -> Iterator[Setting]:
    """Single views of 2 to 10 subgoals, 10 views of 8, and 1 to 50 views of 4."""
    for shape in SHAPES:
        for size in (2, 4, 6, 8) if quick else range(2, 11):
            yield Setting(shape, 1, size, 0, one_view(shape, size))
    for size in (2, 3, 4) if quick else range(2, 9):
        yield Setting("chain of one relation", 1, size, 0, one_view("chain", size, self_join=True))
    for shape in SHAPES:
        for copies in (0, 10, 20) if quick else (0, 5, 10, 15, 20):
            yield Setting(shape, 10, 8, copies, windows(shape, 10, 8, 20, copies))
    for views in (1, 10, 50) if quick else (1, 2, 5, 10, 20, 50):
        for copies in (0, views):
            pool = max(8, 2 * views)
            yield Setting("chain", views, 4, copies, windows("chain", views, 4, pool, copies, step=2))


def measure(setting: Setting, *, repetitions: int, limit_s: int) -> Record:
    """The median times of a setting, in seconds; None where one took longer than the limit."""
    record: Record = {
        "shape": setting.shape,
        "views": setting.views,
        "subgoals": setting.subgoals,
        "copies": setting.copies,
    }
    runs: list[Record] = []
    try:
        with limited(limit_s):
            for _ in range(repetitions):
                runs.append(_once(setting.text))
                if runs[0]["total_s"] > limit_s / repetitions:
                    break
    except TooSlowError:
        record["too_slow_s"] = limit_s
    if runs:
        for key in runs[0]:
            record[key] = statistics.median(run[key] for run in runs)
    return record


def _once(text: str) -> Record:
    one_rules, one_s = _timed(lambda: _of_one(text))
    made, rules_s = _timed(lambda: _definition(text))
    decision, count = made
    any_update = Situation.any_update(decision.catalog.relations)
    any_rules, any_s = _timed(lambda: _programs(decision, any_update))
    return {
        "sets": count,
        "rules_s": rules_s,
        "any_rules": any_rules,
        "any_s": any_s,
        "one_rules": one_rules,
        "one_s": one_s,
        "total_s": rules_s + any_s + one_s,
    }


def _of_one(text: str) -> int:
    decision = Decision(catalog(parse_program(text)))
    first = next(iter(decision.catalog.relations))
    return _programs(decision, Situation(inserted=frozenset([first])))


def _definition(text: str) -> tuple[Decision, int]:
    decision = Decision(catalog(parse_program(text)))
    assert decision.contributions
    return decision, sum(len(decision.surviving(view)) for view in decision.catalog.views)


def _programs(decision: Decision, situation: Situation) -> int:
    """Makes every view's programs; how many rules they have."""
    made = [
        program
        for view in decision.catalog.views
        for program in (decision.test(view, situation), decision.maintenance(view, situation))
    ]
    return sum(len(program.rules) for program in made)


def _timed(work: Callable[[], object]) -> tuple[object, float]:
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raises `TooSlowError` when the block takes longer."""

    def stop(*_: object) -> None:
        raise TooSlowError

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def run(*, quick: bool, show: Callable[[Record], None]) -> list[Record]:
    """All settings; each record is shown as soon as it is there."""
    parse_program("v(X) :- r(X).")  # the grammar is loaded once a process
    found = []
    for setting in settings(quick=quick):
        record = measure(setting, repetitions=1 if quick else 3, limit_s=20 if quick else 60)
        show(record)
        found.append(record)
    return found
