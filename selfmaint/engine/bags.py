"""Bags as sets of counted rows: each row once, its number of copies last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from datalog.model import Row
from selfmaint.errors import Code, input_error


class SetBags:
    """`Bags` over frozensets of rows."""

    def recounted(self, parts: Sequence[tuple[frozenset[Row], int]]) -> frozenset[Row]:
        """The sum of some bags, each with 1 or -1."""
        total: Counter[Row] = Counter()
        for rows, sign in parts:
            for row in rows:
                total[row[:-1]] += sign * _copies(row)
        return frozenset((*row, copies) for row, copies in total.items() if copies > 0)

    def copies(self, data: frozenset[Row]) -> int:
        """The sum of the last column."""
        return sum(map(_copies, data))

    def expanded(self, data: frozenset[Row]) -> frozenset[Row]:
        """The rows, if none stands twice."""
        if any(_copies(row) > 1 for row in data):
            message = "a set of rows cannot hold a row twice, as a view that keeps duplicates does"
            raise input_error(Code.NOT_MAINTAINED, message, "use the Spark engine")
        return frozenset(row[:-1] for row in data)


def _copies(row: Row) -> int:
    copies = row[-1]
    assert isinstance(copies, int)
    return copies
