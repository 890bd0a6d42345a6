"""Asking in a process of its own: whatever becomes of the solver, there is an answer for each view."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys

from selfmaint.cross_examine.answers import Answer, Differing, NotExamined, NothingFound, better
from selfmaint.cross_examine.question import Question

MOST_MEMORY = 2 * 1024**3
"""The bytes of address space that the solver's process may have."""

_STARTING_S = 10.0
"""What is added to the time, for the process to start and to read the question."""

_ENDED = (EOFError, pickle.UnpicklingError, ValueError, IndexError)
"""How a pickle that was not written to its end is told."""


def asked(question: Question, seconds: float, memory: int = MOST_MEMORY) -> dict[str, Answer]:
    """The answers, by view.

    Args:
        question: what is asked.
        seconds: how long the search may take, without the start of the process.
        memory: the bytes of address space that it may have.
    """
    given = pickle.dumps((seconds, memory, question))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "selfmaint.cross_examine.worker"]
    why = f"the search did not end within {seconds:g} s"
    try:
        ended = subprocess.run(  # noqa: S603 - this interpreter, this package
            command,
            input=given,
            capture_output=True,
            timeout=seconds + _STARTING_S,
            env=environment,
            check=False,
        )
        output = ended.stdout
        if ended.returncode:
            why = _died(ended.returncode, ended.stderr)
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
    except OSError as error:
        output, why = b"", f"the solver's process could not be started: {error}"
    found: dict[str, Answer] = {}
    for answer in _read(output):
        found[answer.view] = better(found.get(answer.view), answer)
    return {view: found.get(view, NotExamined(view, why)) for view in question.promised}


def _died(status: int, errors: bytes) -> str:
    if status < 0:
        return f"the solver's process was ended by signal {-status}"
    last = errors.decode(errors="replace").strip().splitlines()[-1:] or [f"exit status {status}"]
    if "MemoryError" in last[0] or "bad_alloc" in last[0]:
        return "the solver ran out of memory"
    return f"the solver failed: {last[0][:200]}"


def _read(output: bytes) -> list[Answer]:
    found: list[Answer] = []
    stream = io.BytesIO(output)
    while stream.tell() < len(output):
        try:
            answer = pickle.load(stream)  # noqa: S301 - of the child
        except _ENDED:
            break
        if isinstance(answer, NothingFound | Differing | NotExamined):
            found.append(answer)
    return found
