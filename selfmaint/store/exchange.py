"""What passes between an engine and this process: rows in one type a column, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from datalog.model import ColumnType, Row
from selfmaint.engine.protocol import D
from selfmaint.store.spill import Spill


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that leave an engine.

    Attributes:
        types: the types of their columns; None for one that the language does not have.
        rows: them, to be gone through once; instants as a clock in UTC shows them.
    """

    types: Sequence[ColumnType | None]
    rows: Iterable[Row]


class Exchange(Protocol[D]):
    """How rows enter an engine and leave it."""

    def entered(self, spill: Spill) -> D:
        """The rows of a spill that has ended."""
        ...

    def distinct(self, data: D) -> Rows:
        """The distinct rows of a relation.

        Raises:
            InputError: SM104 a value that this process does not have, such as a year after 9999; as they come.
        """
        ...
