"""Which of a view's keys to follow it by: the one that is expected to read the fewest base rows.

    SELECT o.customer, l.product, ... FROM line l JOIN orders o ON l.orders = o.id      either column may be the key

A handful of products may be those of half of all lines, where as many customers are of some hundred. How many rows a
value of a key has, the stored rows tell: a relation's size, divided by how many values of the key they show. How many
values change is known of the rows that change, or estimated by the sizes of the relations between.

What is estimated decides how many rows are read, never what is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from msgspec import Struct, field

from datalog.model import Atom, Predicate, Program, Rule, Variable, Version
from datalog.sql.affected import Keyed, Step
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.fallback.keyed_rows import KeyedRows
from selfmaint.warehouse.catalog import View

_CLEARLY = 2
"""How many times as many rows the first way has to read for another one to be taken."""


def fewest_rows(reader: KeyedRows[D], view: View, ways: Sequence[Keyed]) -> Keyed:
    """One of some ways to follow a view: the first, unless another is expected to read clearly fewer rows.

    Raises:
        SourceError: the source's own.
    """
    first, changed = ways[0], reader.known.situation.inserted | reader.known.situation.deleted
    is_touched = any(step.relation in changed for step in first.steps)
    if len(ways) == 1 or first.looks_up or not is_touched:
        return first
    sizes: dict[str, int] = {}
    rows = [_Expected(reader, view, way, sizes).rows() for way in ways]
    best = min(range(len(ways)), key=lambda i: rows[i])
    return ways[best] if rows[best] * _CLEARLY < rows[0] else first


def number_of_keys(engine: Engine[D], rows: D, columns: Sequence[int]) -> int:
    """How many different values rows have in some columns."""
    given = Predicate("rows", Version.STEP)
    row = tuple(Variable(f"X{i}") for i in range(len(engine.columns(rows))))
    goal = Atom(Predicate("values", Version.STEP), tuple(row[i] for i in columns))
    facts = Facts({given: rows}, {}, frozenset({given}))
    names = [f"x{i}" for i in range(len(columns))]
    program = Program((Rule(goal, (Atom(given, row),)),))
    return engine.count(engine.evaluate(program, goal.predicate, facts, names))


class _Expected(Struct, Generic[D]):
    """How many base rows one way is expected to read.

    Attributes:
        sizes: of relations, as far as their sources were asked.
        read: the rows read so far.
    """

    reader: KeyedRows[D]
    view: View
    how: Keyed
    sizes: dict[str, int]
    read: float = 0
    _of: dict[int, Step] = field(default_factory=dict)

    def rows(self) -> float:
        """All rows that are read, to find the values of the key and by these."""
        stored = self.reader.known.facts.relations[self.view.predicate]
        shown = number_of_keys(self.reader.known.engine, stored, self.how.key)
        self._of = {step.scan: step for step in self.how.steps}
        situation = self.reader.known.situation
        changed = situation.inserted | situation.deleted
        keys = sum(self._keys(step) for step in self.how.steps if step.relation in changed)
        share = min(1.0, keys / shown) if shown else 1.0
        found: dict[int, float] = {}
        for step in self.how.steps:
            sources = [scan for scan, _ in step.sources if scan is not None]
            given = sum(found[scan] for scan in sources) if sources else keys
            of = sum(self._size(self._of[scan].relation) for scan in sources)
            part = min(1.0, given / of) if sources else share
            is_key = step.period is None and self._is_key(step.relation, step.columns)
            most = given if is_key else self._size(step.relation)
            found[step.scan] = min(most, part * self._size(step.relation))
        return self.read + sum(found.values())

    def _keys(self, step: Step) -> float:
        """How many values of the key the changed rows of an occurrence lead to, at most as they are expected."""
        number = self._changed(step)
        return sum(
            number if source is None else self._back(source, positions, step, number)
            for source, positions in step.sources
        )

    def _changed(self, step: Step) -> int:
        """How many values the changed rows have in the columns of an occurrence."""
        rows = self.reader.changed(step.relation)
        if step.period is not None:
            names = [f"x{i}" for i in range(len(step.period.expressions))]
            shown = self.reader.shown(step.relation, rows, step.columns[0], step.period, names)
            return self.reader.known.engine.count(shown)
        return number_of_keys(self.reader.known.engine, rows, step.columns)

    def _back(self, scan: int, positions: Sequence[int], after: Step, number: float) -> float:
        """The same of some rows of an occurrence, which lead to others that are read."""
        step = self._of[scan]
        size = self._size(step.relation)
        each = 1.0 if self._is_key(step.relation, positions) else max(1.0, size / self._size(after.relation))
        found = min(size, number * each)
        self.read += found
        return sum(
            found if source is None else self._back(source, to, step, found) for source, to in step.sources
        )

    def _size(self, name: str) -> int:
        if name not in self.sizes:
            self.sizes[name] = max(1, self.reader.readable[name].source.row_count(name))
        return self.sizes[name]

    def _is_key(self, name: str, columns: Sequence[int]) -> bool:
        return any(set(key) <= set(columns) for key in self.reader.known.catalog.relations[name].keys)
