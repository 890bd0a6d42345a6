"""A module of this package as a process of its own, kept from one question to the next.

Pickles go in and come out, between a process and its child. It may be killed, or run out of memory or time: whoever
asks is told, and the next question has a new process.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

STARTING_S = 10.0
"""How long the start of a process may take."""

_ENDING_S = 2.0
"""How long it may take to end when it has closed its pipes."""

_BROKEN = (OSError, EOFError, pickle.UnpicklingError, ValueError, IndexError)
"""How a pickle is told that was not read or written to its end."""


@dataclass(eq=False)
class ProcessEndedError(Exception):
    """The process ended before all was answered.

    Attributes:
        is_late: the time was over.
        status: its exit status, negative for a signal.
    """

    is_late: bool
    status: int

    @property
    def why(self) -> str:
        """How it ended, in words."""
        how = f"was ended by signal {-self.status}" if self.status < 0 else f"ended with status {self.status}"
        return f"the solver's process {how}"


class Process:
    """A running process."""

    def __init__(self, module: str, *arguments: str) -> None:
        """Starts it.

        Raises:
            OSError: that cannot be done.
        """
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.owner = os.getpid()
        self._is_new = True
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, this package
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # an interrupt from the terminal is for who asks
        )

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def is_usable(self) -> bool:
        """Whether it runs, and is this process's own: one that is forked has the pipes, too."""
        return self.owner == os.getpid() and self._process.poll() is None

    def answers(self, question: object, seconds: float) -> Iterator[Any]:
        """What it says to a question, up to None.

        Args:
            question: what is pickled.
            seconds: when it is ended; the start of the process may take longer.

        Raises:
            ProcessEndedError: it ended before.
        """
        late = threading.Event()

        def end() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(seconds + (STARTING_S if self._is_new else 0), end)
        self._is_new = False
        timer.daemon = True
        timer.start()
        is_done = False
        try:
            pickle.dump(question, self._to)
            self._to.flush()
            while (answer := pickle.load(self._from)) is not None:  # noqa: S301 - of the child
                yield answer
            is_done = True
        except _BROKEN as broken:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_ENDING_S)
            if self._process.poll() is None:
                self._process.kill()
            raise ProcessEndedError(late.is_set(), self._process.wait()) from broken
        finally:
            timer.cancel()
            if not is_done:
                self.end()  # what it says later is no answer to the next question

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


class Kept:
    """The process of a module, started when there is a question and none that runs."""

    def __init__(self, module: str) -> None:
        """Starts nothing."""
        self._module = module
        self._running: Process | None = None
        self.lock = threading.Lock()  # one question at a time
        atexit.register(self.end)

    def process(self, *arguments: str) -> Process:
        """The process; the arguments are those of a new one.

        Raises:
            OSError: it cannot be started.
        """
        if self._running is None or not self._running.is_usable:
            self.end()
            self._running = Process(self._module, *arguments)
        return self._running

    def end(self) -> None:
        """Ends it."""
        if self._running is not None:
            self._running.end()
        self._running = None
