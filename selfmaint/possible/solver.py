"""Asking the solver, clingo, in a process of its own (`worker.py`): it may be killed, or run out of memory or time."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from selfmaint.cross_examine.process import Kept, Process, ProcessEndedError

Model = Mapping[str, frozenset[tuple[int, ...]]]
"""The true atoms of an answer set, by name."""

MOST_MEMORY = 2 * 1024**3
"""The bytes of address space that the solver may have."""

_MORE_S = 1.0
"""How long after its time it is ended: while a program is ground nothing looks at the time."""

_SOLVER = Kept("selfmaint.possible.worker")


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
        try:
            with _SOLVER.lock:
                process = _worker()
                ((found, why),) = process.answers((text, tuple(names), left), left + _MORE_S)
                if why not in {None, "late"}:
                    process.end()  # it takes no more questions
        except ProcessEndedError as ended:
            raise SolverLateError(late) if ended.is_late else SolverStoppedError(ended.why) from ended
        if why is not None:
            raise SolverLateError(late) if why == "late" else SolverStoppedError(why)
        model: Model | None = found
        return model


def _worker() -> Process:
    """The process, started if need be."""
    try:
        return _SOLVER.process(str(MOST_MEMORY))
    except OSError as error:
        raise SolverStoppedError(f"the solver's process could not be started: {error}") from error
