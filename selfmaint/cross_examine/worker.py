"""The solver's process: questions come in, and answers go out one by one, up to None. It may be killed at any time.

    python -m selfmaint.cross_examine.worker <questions >answers

Each question has a fork of its own, which begins with all that is imported. If that fails, it says why in a text, and
the process ends as the fork did; when its time is over, nothing more is said.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import sys
from collections.abc import Iterator
from functools import partial
from typing import IO

from selfmaint.cross_examine import search

_TIME_IS_OVER = getattr(signal, "SIGPROF", 0)

_LATE_S = 0.5
"""So much processor time after the search should have ended its process does: a program is ground without a look at it.
"""


def main() -> None:
    """Answers questions, each within a bound on memory."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    gc.freeze()
    while True:
        try:
            seconds, memory, question = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the parent
        except EOFError:
            return
        child = os.fork()
        if not child:
            sys.excepthook = partial(_failed, out)
            _bound(memory)
            if hasattr(signal, "setitimer"):
                signal.setitimer(signal.ITIMER_PROF, seconds + _LATE_S)
            for answer in search.answers(question.with_one_nan(), seconds):
                with _whole():
                    _say(out, answer)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == -_TIME_IS_OVER:
            status = 0
        if status < 0:
            os.kill(os.getpid(), -status)
        if status:
            sys.exit(status)
        _say(out, None)


def _say(out: IO[bytes], answer: object) -> None:
    out.write(pickle.dumps(answer))
    out.flush()


@contextlib.contextmanager
def _whole() -> Iterator[None]:
    """Lets an answer be written to its end, though the time is over: who reads would wait for the rest."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {_TIME_IS_OVER})
    yield
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {_TIME_IS_OVER})


def _failed(out: IO[bytes], kind: type[BaseException], error: BaseException, _: object) -> None:
    _say(out, f"{kind.__name__}: {error}")


def _bound(memory: int) -> None:
    try:
        import resource  # noqa: PLC0415 - not everywhere
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


if __name__ == "__main__":
    main()
