"""How much the random tests try: little in each run, much where new examples are looked for (`make explore`)."""

from __future__ import annotations

import os

EXPLORE = os.environ.get("HYPOTHESIS_PROFILE") == "explore"


def effort(each_run: int, exploring: int) -> int:
    """So many cases."""
    return exploring if EXPLORE else each_run
