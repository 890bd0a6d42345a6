"""What looking up one key costs, where the user does not say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping


def estimated_cost(rows: int) -> float:
    """The cost of one looked-up key in a relation of so many rows: one, and one more for each tenfold size.

    An index is as deep as the logarithm of its relation's size, and a larger relation is more likely to be
    the busy one that should be spared. The unit is that of costs given by hand: a key of an almost empty
    relation.

    >>> estimated_cost(0), estimated_cost(999), estimated_cost(999_999)
    (1.0, 4.0, 7.0)
    """
    return round(1 + math.log10(1 + max(rows, 0)), 2)


class LazyCosts(Mapping[str, float]):
    """Costs by relation, each asked for when it is first needed: a source may have to be connected to."""

    def __init__(self, ask: Mapping[str, Callable[[], float]]) -> None:
        self._ask = dict(ask)
        self._known: dict[str, float] = {}

    def __getitem__(self, relation: str) -> float:
        if relation not in self._known:
            self._known[relation] = self._ask[relation]()
        return self._known[relation]

    def __contains__(self, relation: object) -> bool:
        return relation in self._ask

    def __iter__(self) -> Iterator[str]:
        return iter(self._ask)

    def __len__(self) -> int:
        return len(self._ask)
