"""Budgets in time: a search asks again and again whether its budget is spent; its end is an answer, "undecided".

    with limit(10, "the test of view `v`"):
        for step in search:
            check()

Conditions of soundness:

1. `BudgetSpentError` passes through everything up to where a verdict is made, and makes that undecided. Nobody in
   between may take it for "nothing found".
2. What is kept for later is kept once it is whole.

Time is the processor time of this thread: what else the machine does, and how long Spark is waited for, makes no
verdict another one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn, TypeAlias

from msgspec import Struct

from datalog.errors import DatalogError

DEFAULT_S = 10.0
"""How many seconds a search may take where nobody says."""

EVERY = 32
"""The clock is looked at every so many checks."""

Observer: TypeAlias = Callable[[str], None]


class _Limit(Struct):
    what: str
    seconds: float
    deadline: float
    checks: int = 0


class BudgetSpentError(DatalogError):
    """A search has taken as long as it may.

    Attributes:
        what: what was being done.
    """

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(
            f"budget of {seconds:g} s spent on {what} (`--budget SECONDS` or `budget_s` raises it)"
        )
        self.what = what
        self.seconds = seconds


_limit: ContextVar[_Limit | None] = ContextVar("limit", default=None)
_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


@contextmanager
def limit(seconds: float, what: str) -> Iterator[None]:
    """Bounds the time of a block; of nested ones the tighter holds. Observers are told what is being done.

    Args:
        seconds: how long it may take; no bound if infinite.
        what: what is being done, as it is named where the budget is spent.

    >>> with limit(60, "a search"):
    ...     check()
    """
    observer, outer = _observer.get(), _limit.get()
    if observer is not None:
        observer(what)
    own = _Limit(what, seconds, time.thread_time() + seconds)
    token = _limit.set(own if outer is None or own.deadline < outer.deadline else outer)
    try:
        yield
    finally:
        _limit.reset(token)


@contextmanager
def share(part: float, what: str) -> Iterator[None]:
    """Bounds the time of a block by a part of what is left; of nothing if there is no bound."""
    with limit(part * left(), what):
        yield


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Has an observer told what is being done, whenever a limit begins within a block."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def left() -> float:
    """How many seconds are left; infinite without a limit."""
    current = _limit.get()
    return math.inf if current is None else max(current.deadline - time.thread_time(), 0.0)


def spend() -> NoReturn:
    """The end of what was stopped because nothing is left.

    Raises:
        BudgetSpentError: always.
    """
    current = _limit.get()
    assert current is not None
    raise BudgetSpentError(current.what, current.seconds)


def check() -> None:
    """One step of a search.

    Raises:
        BudgetSpentError: the time is over.
    """
    current = _limit.get()
    if current is None:
        return
    if current.checks % EVERY == 0 and time.thread_time() >= current.deadline:
        raise BudgetSpentError(current.what, current.seconds)
    current.checks += 1
