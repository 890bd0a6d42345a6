"""The in-memory engine made to evaluate as for large data: step by step from the update outwards."""

from __future__ import annotations

from datalog.model import Row
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts


class StagedEngine(MemoryEngine):
    """Takes all data for large, so that what is meant for millions of rows is tested with three."""

    name = "staged"

    def fetch(self, data: frozenset[Row], limit: int) -> None:
        """Nothing: there is always too much, so that nothing is looked up."""
        return

    def look_up(self, data: frozenset[Row], *_: object) -> None:
        """Nothing either."""
        return

    def is_large(self, facts: Facts[frozenset[Row]]) -> bool:
        """Always."""
        return True
