"""The solver's process: answers programs one after the other, within a bound on memory. `solver.py` starts it.

python -m selfmaint.possible.worker BYTES
"""

from __future__ import annotations

import os
import pickle
import resource
import sys
import time
from collections.abc import Collection
from typing import IO

import clingo


def main() -> None:
    """Reads `(text, names, seconds)` until there are no more, and writes an answer to each, and None.

    An answer is `(answer set, why not)`.
    """
    most = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    while True:
        try:
            text, names, seconds = pickle.load(questions)  # noqa: S301 - of the parent
        except EOFError:
            return
        try:
            found = _answer_set(text, names, seconds)
        except (MemoryError, RuntimeError) as error:
            memory = isinstance(error, MemoryError) or "bad_alloc" in str(error)
            why = "the solver ran out of memory" if memory else f"the solver failed: {error}"
            _say((None, why), answers)
            return  # what it holds now nobody knows
        _say(found, answers)


def _say(answer: object, answers: IO[bytes]) -> None:
    answers.write(pickle.dumps(answer) + pickle.dumps(None))
    answers.flush()


def _answer_set(
    text: str, names: Collection[str], seconds: float
) -> tuple[dict[str, frozenset[tuple[int, ...]]] | None, str | None]:
    """The atoms of some names of an answer set, None if there is none; or why nobody knows."""
    late = time.monotonic() + seconds
    control = clingo.Control(["--warn=none", "--models=1"])
    control.add("base", [], text)
    control.ground([("base", [])])
    with control.solve(yield_=True, async_=True) as handle:
        handle.resume()
        if not handle.wait(max(late - time.monotonic(), 0)):
            handle.cancel()
            return None, "late"
        model = handle.model()
        if model is None:
            return None, None
        found: dict[str, set[tuple[int, ...]]] = {name: set() for name in names}
        for symbol in model.symbols(atoms=True):
            if symbol.name in found:
                found[symbol.name].add(tuple(argument.number for argument in symbol.arguments))
    return {name: frozenset(rows) for name, rows in found.items()}, None


if __name__ == "__main__":
    main()
