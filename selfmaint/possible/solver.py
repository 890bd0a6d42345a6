"""Asking the solver, clingo, in a process of its own (`worker.py`): it may be killed, or run out of memory or time."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import select
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import IO

Model = Mapping[str, frozenset[tuple[int, ...]]]
"""The true atoms of an answer set, by name."""

MOST_MEMORY = 2 * 1024**3
"""The bytes of address space that the solver may have."""

_STARTING_S = 10.0
"""How long the start of its process may take besides."""

_ENDING_S = 2.0
"""How long it may take to end when it has closed its pipes."""


class SolverStoppedError(Exception):
    """The solver gave no answer; why, in words."""


class SolverLateError(SolverStoppedError):
    """The time is over."""


@dataclass
class Solver:
    """Runs programs until a deadline.

    Attributes:
        seconds: how long all runs may take.
    """

    seconds: float
    _deadline: float = field(init=False)

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.seconds

    def answer_set(self, text: str, names: Collection[str]) -> Model | None:
        """An answer set of a program, its atoms of some names; None if it has none.

        Raises:
            SolverLateError: the time is over.
            SolverStoppedError: there is not enough memory, or the solver's process died.
        """
        late = f"the search did not end within {self.seconds:g} s"
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise SolverLateError(late)
        with _LOCK:
            found, why = _worker().asked(text, names, left)
        if why is not None:
            raise SolverLateError(late) if why == "late" else SolverStoppedError(why)
        return found


class _Worker:
    """The process, kept from one program to the next."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-m", "selfmaint.possible.worker", str(MOST_MEMORY)]
        self.owner = os.getpid()
        self._is_new = True
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, this package
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )

    @property
    def is_usable(self) -> bool:
        """Whether it runs, and is this process's own: one that is forked has the pipes, too."""
        return self.owner == os.getpid() and self._process.poll() is None

    def asked(self, text: str, names: Collection[str], seconds: float) -> tuple[Model | None, str | None]:
        """An answer set, None if there is none; or why nobody knows."""
        wait = seconds + (_STARTING_S if self._is_new else 0) + 1
        self._is_new = False
        try:
            pickle.dump((text, tuple(names), seconds), self._to)
            self._to.flush()
            if not select.select([self._from], [], [], wait)[0]:
                self.end()
                return None, "late"
            found: tuple[Model | None, str | None] = pickle.load(self._from)  # noqa: S301 - of the child
        except (OSError, EOFError, pickle.UnpicklingError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_ENDING_S)
            self.end()
            status = self._process.returncode
            how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
            return None, f"the solver's process {how}"
        if found[1] not in {None, "late"}:
            self.end()  # it ends by itself, and takes no more questions
        return found

    @property
    def _to(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _from(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def end(self) -> None:
        """Ends it, if it is this process's own."""
        if self.owner != os.getpid():
            return
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._to, self._from):
            with contextlib.suppress(OSError):  # what was not yet written has no reader
                pipe.close()


_LOCK = threading.Lock()
_RUNNING: list[_Worker] = []


def _worker() -> _Worker:
    """The process, started if need be."""
    if not (_RUNNING and _RUNNING[0].is_usable):
        _ended()
        try:
            _RUNNING[:] = [_Worker()]
        except OSError as error:
            raise SolverStoppedError(f"the solver's process could not be started: {error}") from error
    return _RUNNING[0]


@atexit.register
def _ended() -> None:
    for one in _RUNNING:
        one.end()
    _RUNNING.clear()
