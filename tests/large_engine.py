"""The in-memory engine made to evaluate as for large data: from the update outwards, with few rows in this process."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

from datalog.analysis.relations import all_atoms
from datalog.model import ANY, Predicate, Program, Row
from selfmaint.decide import neighbourhood, searched
from selfmaint.decide.pairs import AT_HAND_ROWS
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.plans import prepared
from selfmaint.engine.protocol import Facts

_OF_EVERYTHING = (searched.MOST_ROWS, neighbourhood.WHOLE)
"""The numbers of rows by which it is found out whether data is small."""


class LargeEngine(MemoryEngine):
    """Takes all data for large, so that what is meant for millions of rows is tested with three."""

    name = "large"

    def evaluate(
        self,
        program: Program,
        goal: Predicate,
        facts: Facts[frozenset[Row]],
        names: Sequence[str] | None = None,
    ) -> frozenset[Row]:
        """By demands."""
        return super().evaluate(_prepared(program, [goal], facts), goal, facts, names)

    def nonempty(
        self,
        program: Program,
        goals: Sequence[Predicate],
        facts: Facts[frozenset[Row]],
        *,
        bounded: bool = False,
    ) -> frozenset[Predicate]:
        """By demands."""
        return super().nonempty(_prepared(program, goals, facts), goals, facts)

    def fetch(self, data: frozenset[Row], limit: int) -> frozenset[Row] | None:
        """The rows, if they are few; none where all that is known is asked for, or all of a view."""
        return None if limit in _OF_EVERYTHING else super().fetch(data, limit)

    def sample(self, data: frozenset[Row], limit: int) -> list[Row]:
        """More than two databases are made of, where that many are asked for."""
        return list(islice(cycle(data) if limit == AT_HAND_ROWS + 1 else data, limit))


def _prepared(program: Program, goals: Sequence[Predicate], facts: Facts[frozenset[Row]]) -> Program:
    widths = {atom.predicate: atom.arity for atom in all_atoms(program)}
    types = {p: [ANY] * widths.get(p, 0) for p in facts.relations}
    return prepared(program, goals, types, facts.small)
