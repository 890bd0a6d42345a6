"""Running clingo: in this process, bounded in time; the only importer of it."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import clingo

Model = Mapping[str, frozenset[tuple[int, ...]]]
"""The true atoms of an answer set, by name."""


class SolverStoppedError(Exception):
    """The solver gave no answer; why, in words."""


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
            SolverStoppedError: the time is over, or there is not enough memory.
        """
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise SolverStoppedError(f"the search did not end within {self.seconds:g} s")
        try:
            return self._run(text, names, left)
        except (MemoryError, RuntimeError) as error:
            raise SolverStoppedError(f"the solver failed: {error}") from error

    def _run(self, text: str, names: Collection[str], left: float) -> Model | None:
        control = clingo.Control(["--warn=none", "--models=1"])
        control.add("base", [], text)
        control.ground([("base", [])])
        with control.solve(yield_=True, async_=True) as handle:
            handle.resume()
            if not handle.wait(left):
                handle.cancel()
                raise SolverStoppedError(f"the search did not end within {self.seconds:g} s")
            model = handle.model()
            if model is None:
                return None
            found: dict[str, set[tuple[int, ...]]] = {name: set() for name in names}
            for symbol in model.symbols(atoms=True):
                if symbol.name in found:
                    found[symbol.name].add(tuple(argument.number for argument in symbol.arguments))
        return {name: frozenset(rows) for name, rows in found.items()}
