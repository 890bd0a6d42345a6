"""A process of its own for many cases: `python -m tests.fuzz.worker KIND FIRST LAST`; it may die of one.

On standard output, a line each: `at NUMBER` before a case, `found JSON` for one that fails, `done JSON` at the end.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType

from tests.fuzz.targets import DECISION_SECONDS, SECONDS, SlowDecisionError, TooSlowError, case, run


def _too_slow(_number: int, _frame: FrameType | None) -> None:
    raise TooSlowError


def attempt(kind: str, number: int, folder: Path) -> tuple[str, dict[str, object] | None]:
    """What comes of a case, and the failure if it is one."""
    text, original = case(kind, number)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return run(kind, number, text, original, folder), None
    except TooSlowError:
        return "slow", failure(kind, number, text, f"more than {SECONDS} s")
    except SlowDecisionError:
        return "slow decision", failure(kind, number, text, f"decided in more than {DECISION_SECONDS} s")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what this looks for
        return "crash", failure(kind, number, text, f"{type(error).__name__}: {str(error)[:300]}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def failure(kind: str, number: int, text: str, what: str) -> dict[str, object]:
    """A case that fails, as JSON."""
    lines = traceback.format_exc().splitlines()
    shown = lines if len(lines) < 40 else [*lines[:10], "...", *lines[-25:]]
    return {"kind": kind, "number": number, "what": what, "text": text, "trace": "\n".join(shown)}


def main() -> None:
    """Runs the cases that the command line names."""
    kind, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    outcomes: Counter[str] = Counter()
    signal.signal(signal.SIGPROF, _too_slow)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, last):
            print("at", number, flush=True)
            started = time.monotonic()
            outcome, found = attempt(kind, number, Path(folder))
            outcomes[outcome] += 1
            if found is not None:
                found["seconds"] = round(time.monotonic() - started, 1)
                print("found", json.dumps(found), flush=True)
    print("done", json.dumps(outcomes), flush=True)
    # Freeing very deep values at the end is no part of any case.
    gc.disable()
    os._exit(0)


if __name__ == "__main__":
    main()
