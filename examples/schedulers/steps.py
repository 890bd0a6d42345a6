"""The two steps of a job that brings views up to date, by the command: for any scheduler.

Both can be run again at any time: an update is known by its id, and one that is committed does nothing a second time.
SELFMAINT says where the command is, if not on the PATH: it may have a Python environment of its own.
"""

from __future__ import annotations

import json
import os
import subprocess

AGAIN = frozenset({"SM401", "SM405"})
"""A source that does not answer, somebody else who writes: later it may go."""
COMMITTED = "SM409"


class HopelessError(Exception):
    """What will not go however often it is tried: somebody has to look."""


def check(warehouse: str, update: str) -> bool:
    """Whether all views follow the update without a base row; as of an update that is committed already."""
    status, _ = _ran("check", warehouse, "--update", update)
    return status in {0, 2}


def maintain(warehouse: str, update: str, name: str, *, alone: bool) -> str:
    """Brings the views up to date, or none.

    Args:
        warehouse: the warehouse file, whose views are in a store.
        update: the folder of the update's files.
        name: what it is known by.
        alone: whether to do without base rows, and so without access to the sources.

    Returns:
        What was done, in JSON.

    Raises:
        HopelessError: a view stays undetermined (1) or undecided (3), or the input is wrong (2).
        RuntimeError: to be tried again.
    """
    strict = ["--strict"] if alone else []
    status, said = _ran("maintain", warehouse, "--update", update, "--id", name, *strict)
    if status != 0:
        raise HopelessError(f"exit status {status}: {said}")
    return said


def _ran(*arguments: str) -> tuple[int, str]:
    """Runs the command: its exit status, 2 only of an update that is committed already, and what it says."""
    command = [os.environ.get("SELFMAINT", "selfmaint"), *arguments, "--format", "json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    codes = _codes(ended.stderr)
    said = f"exit status {ended.returncode}: {ended.stderr.strip() or ended.stdout}"
    if ended.returncode not in {0, 1, 2, 3} or codes & AGAIN:
        raise RuntimeError(said)
    if ended.returncode == 2 and codes != {COMMITTED}:
        raise HopelessError(said)
    return ended.returncode, ended.stdout or ended.stderr


def _codes(said: str) -> set[str]:
    """The codes of the errors that JSON tells."""
    try:
        return {error["code"] for error in json.loads(said).get("errors", ())}
    except ValueError:  # nothing, or bad usage, which is said in words
        return set()
