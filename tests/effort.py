"""How much the random tests try: little in each run, much where new examples are looked for (`make explore`)."""

from __future__ import annotations

import os

EXPLORE = os.environ.get("HYPOTHESIS_PROFILE") == "explore"


def rounds(each_run: int) -> int:
    """So many rounds of two who write at once; `SELFMAINT_ROUNDS=40` is for a run by hand."""
    return int(os.environ.get("SELFMAINT_ROUNDS") or each_run)


def effort(each_run: int, exploring: int) -> int:
    """So many cases."""
    return exploring if EXPLORE else each_run
