"""Where a search for two databases cannot change what a test looks at, each run does without it: it takes long."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from selfmaint.decide import differing
from tests.effort import EXPLORE


@contextlib.contextmanager
def without_search() -> Iterator[None]:
    """Meanwhile an undecided view that groups stays undecided: it is recomputed as one that is a "no" would be."""
    with pytest.MonkeyPatch.context() as patch:
        if not EXPLORE:
            patch.setattr(differing, "NEAR_ROWS", ())
        yield
