"""The real command, killed (SIGKILL) at each of its steps: statements of the lake, or operations on Delta tables."""

from __future__ import annotations

import os
import signal
from typing import Any

from tests.forked import forked

KILLED = """
import os, signal, sys, threading
from selfmaint.cli.app import app

left = int(sys.argv[1])
within_s = float(os.environ.get("WITHIN_S", "nan"))

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def stepping(plain, is_last):
    def step(*given, **more):
        global left, within_s
        left -= 1
        if left == 0:
            die()
        if is_last(given) and within_s >= 0:
            threading.Timer(within_s, die).start()
            within_s = -1
        found = plain(*given, **more)
        if left == 1 and is_last(given):
            left = 0
            die()
        return found
    return step

if os.environ["STEPS"] == "lake":
    from selfmaint.duckdb.database import Database
    Database.run = stepping(Database.run, lambda given: given[1].strip() == "COMMIT")
else:
    import deltalake
    from deltalake import table
    always = lambda given: True
    deltalake.write_deltalake = stepping(deltalake.write_deltalake, always)
    for owner, names in (
        (table.TableMerger, ["execute"]), (table.TableOptimizer, ["compact"]), (table.DeltaTable, ["restore", "vacuum"])
    ):
        for name in names:
            setattr(owner, name, stepping(getattr(owner, name), always))
sys.exit(app(sys.argv[2:]))
"""


def killed(at: int, *arguments: object, within_s: float | None = None, steps: str = "lake") -> int:
    """The exit status of a command that is killed before its `at`-th step, or so long after the last one, or the first.

    Where every operation is one that writes, it is killed after it as well: right before the next one is counted down.
    """
    environment = {**os.environ, "STEPS": steps}
    if within_s is not None:
        environment["WITHIN_S"] = str(within_s)
    return forked(KILLED, at, *arguments, environment=environment).status


def killings(make: Any, look: Any, *arguments: object, step: int = 1, steps: str = "lake") -> int:
    """Runs a command again and again, killed ever later, until it ends; how many times it was killed."""
    at = 1
    while True:
        make()
        status = killed(at, *arguments, steps=steps)
        look(done=status == 0)
        if status == 0:
            return at - 1
        assert status == -signal.SIGKILL, status
        at += step
