"""The solver's process: a question comes in, answers go out one by one. It may be killed at any time.

    python -m selfmaint.cross_examine.worker <question >answers

Both are pickles, between a process and its child.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys

_LATE_S = 0.5
"""So long after the search should have ended its process does: while a program is ground nothing looks at the time."""


def main() -> None:
    """Answers one question, within a bound on memory."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    seconds, memory, question = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the parent
    _bound(memory)
    from selfmaint.cross_examine.search import answers  # noqa: PLC0415 - within the bound

    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds + _LATE_S)
    for answer in answers(question, seconds):
        out.write(pickle.dumps(answer))
        out.flush()


def _bound(memory: int) -> None:
    try:
        import resource  # noqa: PLC0415 - not everywhere
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


if __name__ == "__main__":
    main()
