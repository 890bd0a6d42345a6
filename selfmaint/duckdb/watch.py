"""Statements within a budget: one that runs until it is spent is interrupted, and the end of the budget is an answer.

A search asks for the time between its steps; a statement that joins all with all has no steps. One thread of the
process looks at all statements that run within a budget, ten times a second. Time is that of `datalog.budget`: the
processor time of the thread that runs the statement.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from datalog.budget import left, spend

_PAUSE_S = 0.1


class _Watch:
    """The statements that run within a budget: of each the connection, whose clock counts, and until when."""

    def __init__(self) -> None:
        self.process, self._lock, self._some = os.getpid(), threading.Lock(), threading.Event()
        self._running: dict[int, tuple[duckdb.DuckDBPyConnection, int, float]] = {}
        threading.Thread(target=self._look, name="selfmaint-budget", daemon=True).start()

    def begin(self, connection: duckdb.DuckDBPyConnection, seconds: float) -> int:
        """Notes a statement of this thread; gives what it is known by."""
        me = threading.get_ident()
        clock = time.pthread_getcpuclockid(me)
        with self._lock:
            self._running[me] = connection, clock, time.clock_gettime(clock) + seconds
        self._some.set()
        return me

    def end(self, number: int) -> None:
        """Forgets a statement: it is not interrupted any more, and neither is the next one."""
        with self._lock:
            self._running.pop(number, None)

    def _look(self) -> None:
        while True:
            self._some.wait()
            time.sleep(_PAUSE_S)
            with self._lock:
                if not self._running:
                    self._some.clear()
                for connection, clock, until in self._running.values():
                    if time.clock_gettime(clock) >= until:
                        connection.interrupt()


_watches: list[_Watch] = []
_starting = threading.Lock()


def _watch() -> _Watch:
    """The watch of this process: threads do not go into one that it starts."""
    with _starting:
        if not _watches or _watches[0].process != os.getpid():
            _watches[:] = [_Watch()]
        return _watches[0]


@contextmanager
def within_budget(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Bounds a statement by what is left of the budget, if there is one.

    Raises:
        BudgetSpentError: the statement was interrupted.
    """
    seconds = left()
    if math.isinf(seconds):
        yield
        return
    watch = _watch()
    number = watch.begin(connection, seconds)
    try:
        with spent_if_interrupted():
            yield
    finally:
        watch.end(number)


@contextmanager
def spent_if_interrupted() -> Iterator[None]:
    """An interrupt is the budget's end, also if it comes while the rows of a statement are handed over.

    Raises:
        BudgetSpentError: a statement was interrupted.
    """
    try:
        yield
    except duckdb.InterruptException:
        if not left():
            spend()
        raise
