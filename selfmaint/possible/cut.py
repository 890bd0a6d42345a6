"""What is at hand where only a part of the stored rows is: a neighbourhood of the update.

All stored rows of a view that have certain values in certain columns are at hand, or none is promised to be. The search
then asserts less of a database than is known, and so looks at more databases than there are. Conditions for that:

1. Each row at hand has a match (`instances.py`); of the others nothing is asked.
2. A row that a database gives is forbidden only where it has values for which all stored rows are at hand, and is
   none of these (`encoding.py`). Any other may be stored.
3. A labelled null is narrowed to what stored rows show only where all of them are at hand (`narrowing.py`).
4. A labelled null may always have a value of its own, which stands for all that is not at hand, too. What a view
   shows of it is then forbidden by 2 only if a row at hand could be meant: `candidates.py` has the values of these.
5. A row that a database gives before the update, and that is not at hand, is no change (`Encoding.want`). It
   is stored. Whether the update may take it away must be known: rows that could be lost are all at hand.

So "there is no second database" holds of all databases that explain everything, since each of them has a part that the
search has looked at, with the same rows gained and lost. That there is one proves nothing here: rows that are not at
hand may rule it out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from msgspec import Struct

from datalog.model import Constant, Row
from selfmaint.possible.value_classes import ValueClasses

Columns = tuple[int, ...]
Values = tuple[Constant, ...]


class Cut(Struct, frozen=True):
    """Which stored rows are at hand.

    Attributes:
        whole: the views with all their rows.
        covered: for other views, by columns, the values of which all rows are at hand.
        may_lose: the views that may lose rows that are not at hand.
        nulls: with more labelled nulls nothing is searched.
    """

    whole: frozenset[str]
    covered: Mapping[str, Mapping[Columns, frozenset[Values]]]
    may_lose: frozenset[str] = frozenset()
    nulls: int = sys.maxsize

    def has_all(self, view: str, told: Mapping[int, Constant]) -> bool:
        """Whether all rows of a view that have some values are at hand."""
        return view in self.whole or any(
            all(i in told for i in columns) and tuple(told[i] for i in columns) in values
            for columns, values in self.covered.get(view, {}).items()
        )

    def has_all_like(self, view: str, row: Row) -> bool:
        """Whether a row of a view is at hand if it is stored."""
        return self.has_all(view, dict(enumerate(map(Constant, row))))

    def numbers(self, view: str, classes: ValueClasses) -> Iterator[tuple[Columns, list[list[int]]]]:
        """By columns the values of which all rows are at hand, as numbers; without those that no fact has."""
        for columns, keys in self.covered.get(view, {}).items():
            constants = [classes.of_column(view, i).constants for i in columns]
            pairs = ([*zip(key, constants, strict=True)] for key in keys)
            found = [[its[v] for v, its in key] for key in pairs if all(v in its for v, its in key)]
            if found:
                yield columns, found
