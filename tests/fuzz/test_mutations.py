"""Mutated rules, SQL, warehouse files, manifests, feeds, files of rows: only the product's own errors come, and soon.

A case is told by its kind and number; `python -m tests.fuzz.worker KIND NUMBER NUMBER+1` runs it again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import SystemRandom
from typing import Any

import pytest

from tests.effort import EXPLORE
from tests.fuzz.targets import KINDS

ROOT = Path(__file__).resolve().parents[2]
CASES, BLOCKS = (2500, 4) if EXPLORE else (30, 1)
"""How many cases of a kind in each of how many tests: 100,000 when exploring, and then always new ones."""
FIRST = SystemRandom().randrange(10**9) if EXPLORE else 0
SECONDS = 3600


def failures(kind: str, first: int, last: int) -> tuple[list[dict[str, Any]], Counter[str]]:
    """The cases that fail, and how many cases came to what; a case of which the process dies is one too."""
    found: list[dict[str, Any]] = []
    outcomes: Counter[str] = Counter()
    while first < last:
        command = [
            sys.executable,
            "-X",
            "faulthandler",
            "-m",
            "tests.fuzz.worker",
            kind,
            str(first),
            str(last),
        ]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        at = first
        for line in done.stdout.splitlines():
            word, _, rest = line.partition(" ")
            if word == "at":
                at = int(rest)
            elif word == "found":
                found.append(json.loads(rest))
            elif word == "done":
                outcomes.update(json.loads(rest))
                return found, outcomes
        found.append(
            {"kind": kind, "number": at, "what": f"died: {done.returncode}", "trace": done.stderr[-3000:]}
        )
        first = at + 1
    return found, outcomes


@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("kind", KINDS)
def test_only_coded_errors_come_out(kind: str, block: int) -> None:
    first = FIRST + block * CASES
    found, outcomes = failures(kind, first, first + CASES)
    if not EXPLORE:  # how long a decision takes is for the benchmarks to say, not for each run of the tests
        found = [one for one in found if not one["what"].startswith("decided")]
    shown = [f"{one['kind']} {one['number']}: {one['what']}\n{one.get('trace', '')}" for one in found]
    assert not found, "\n\n".join(shown[:5])
    # Neither are all refused nor all of them accepted: the mutations are near what is written.
    assert len(outcomes) > 1
    assert kind in ("feed", "warehouse") or outcomes["accepted"]


def test_a_crash_a_loop_and_a_death_are_found() -> None:
    broken = """
import os, sys
from tests.fuzz import targets, worker
def read(text, original, random, folder):
    number = random.number
    if number == 1: raise KeyError("x")
    if number == 2:
        while True: pass
    if number == 3: os.abort()
class Numbered:
    def __init__(self, number): self.number = number
targets.SECONDS = worker.SECONDS = 1
targets.Random = lambda seed: __import__("random").Random(seed) if isinstance(seed, str) else Numbered(seed)
targets.READERS = {"baseline": read}
sys.argv = ["worker", "baseline", "0", "5"]
worker.main()
"""
    done = subprocess.run(
        [sys.executable, "-c", broken], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if not line.startswith("found")]
    whats = [json.loads(line[6:])["what"] for line in done.stdout.splitlines() if line.startswith("found")]
    assert whats == ["KeyError: 'x'", "more than 1 s"]
    assert lines[-1] == "at 3"
    assert done.returncode != 0
