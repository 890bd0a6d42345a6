"""Several searches by turns: mostly one of them has what is looked for near at hand, and which one is not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

FIRST = 8
"""So many steps each search has in the first turn; twice as many in each other than in the one before."""


def by_turns(searches: Iterable[Iterator[T | None]]) -> Iterator[T]:
    """What some searches find in the first turn in which any does.

    Args:
        searches: each with what it finds, and None for a step without.

    Example:
        >>> far, near = iter([None] * 20 + ["far"]), iter([None, "near"])
        >>> list(by_turns([far, near]))
        ['near']
    """
    waiting = list(searches)
    steps, is_found = FIRST, False
    while waiting and not is_found:
        going_on = []
        for search in waiting:
            taken = 0
            for found in islice(search, steps):
                taken += 1
                if found is not None:
                    is_found = True
                    yield found
            if taken == steps:
                going_on.append(search)
        waiting, steps = going_on, 2 * steps
