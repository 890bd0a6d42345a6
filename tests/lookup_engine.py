"""The in-memory engine made to evaluate as for large data, by looking up what the update's rows need."""

from __future__ import annotations

from datalog.model import Row
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts, Layout


class LookupEngine(MemoryEngine):
    """Takes all data for large, and no relation for so small that it would be fetched whole."""

    name = "lookups"

    def __init__(self, ordered_by: int | None = None) -> None:
        """Every relation is taken to be stored in the order of one column, if it has it."""
        self._ordered_by = ordered_by

    def is_large(self, facts: Facts[frozenset[Row]]) -> bool:
        """Always."""
        return True

    def layout(self, data: frozenset[Row]) -> Layout:
        """Any size, in the order of the column."""
        width = len(self.columns(data))
        return Layout(
            None, self._ordered_by if self._ordered_by is not None and self._ordered_by < width else None
        )
