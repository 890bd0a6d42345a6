"""What a long search has found so far: as much as was asked for, more if more is asked for.

A search that a budget ended is begun anew when more is asked for, and what it had found is kept: it finds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")


class Begun(Generic[T]):
    """The items of an iterator, found as they are asked for.

    Attributes:
        is_whole: whether all are found.

    >>> squares = Begun(lambda: (n * n for n in range(5)))
    >>> squares.first(2), squares.all
    ((0, 1), (0, 1, 4, 9, 16))
    """

    def __init__(self, begin: Callable[[], Iterator[T]]) -> None:
        self._begin, self._left = begin, begin()
        self._found: list[T] = []
        self.is_whole = False

    def has(self, number: int) -> bool:
        """Whether so many are found already, or all that there are."""
        return self.is_whole or len(self._found) >= number

    def first(self, number: int) -> tuple[T, ...]:
        """The first items, at most so many.

        Raises:
            BudgetSpentError: finding them takes longer than it may.
        """
        return tuple(islice(self, number))

    @property
    def all(self) -> tuple[T, ...]:
        """All items.

        Raises:
            BudgetSpentError: finding them takes longer than it may.
        """
        return tuple(self)

    def __iter__(self) -> Iterator[T]:
        at = 0
        while at < len(self._found) or self._finds():
            yield self._found[at]
            at += 1

    def _finds(self) -> bool:
        """Whether there is one item more."""
        try:
            for item in self._left:
                self._found.append(item)
                return True
        except BaseException:
            self._left = islice(self._begin(), len(self._found), None)
            raise
        self.is_whole = True
        return False
