"""What is looked up in the relations that an engine holds, kept: each large one is read about once for each key.

A relation of few rows is fetched whole. In a larger one the rows of some keys are looked up, and what was looked up
is not asked for again. Which columns serve as the key is chosen by what reading costs:

- a column by which the relation is stored in order, if it is bound: little else is then read, so whole rows are
  fetched, which later questions find here;
- else, where another column finds few rows, first the values of the former by the latter, then by these the rows;
- else the bound columns as they are, with few columns more than are wanted.

A caller can name keys that will be asked for later (`expected`): they are fetched along with the first, where the
rows are in their order or they are not many more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol

from datalog.model import Predicate, Row
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.engine.topdown import Index, OutOfReachError, TopDown, decoded, encoded

NEAR_ROWS = 50_000
"""How many rows of one relation, and of one intermediate result, may be held in this process."""

WHOLE_ROWS = 10_000
"""A relation with at most so many rows is fetched whole."""

FEW_ROWS = 5_000
"""If a column alone should find at most so many rows, wide ones are fetched in two steps."""

NARROW = 3
"""Rows of so many columns are fetched in one step."""


class Expected(Protocol):
    """What may be asked for later."""

    def keys(self, predicate: Predicate, columns: tuple[int, ...]) -> Iterable[Row]:
        """Keys of some columns of a relation."""
        ...

    def along(self, predicate: Predicate, columns: tuple[int, ...], wanted: tuple[int, ...]) -> Iterable[int]:
        """Columns to fetch along with some that are wanted by some key; no more rows should come of it."""
        ...


class Unforeseen:
    """Nothing is expected."""

    def keys(self, predicate: Predicate, columns: tuple[int, ...]) -> Iterable[Row]:
        """None."""
        return ()

    def along(self, predicate: Predicate, columns: tuple[int, ...], wanted: tuple[int, ...]) -> Iterable[int]:
        """None."""
        return ()


@dataclass
class _Part:
    """The rows of some keys: the values of `out`, by position, for the keys asked for."""

    key: tuple[int, ...]
    out: tuple[int, ...]
    asked: set[Row] = field(default_factory=set)
    rows: set[Row] = field(default_factory=set)
    indexes: dict[tuple[tuple[int, ...], tuple[int, ...]], Index] = field(default_factory=dict)

    def serves(self, columns: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
        """Whether questions by these columns can be answered from here."""
        return set(self.key) <= set(columns) and {*columns, *wanted} <= {*self.out}

    def index(self, columns: tuple[int, ...], wanted: tuple[int, ...]) -> Index:
        """The rows by the values of some columns."""
        if not self.rows:
            return {}
        if (columns, wanted) not in self.indexes:
            places = {c: i for i, c in enumerate(self.out)}
            by, take = [places[c] for c in columns], [places[c] for c in wanted]
            found: dict[Row, set[Row]] = {}
            for row in self.rows:
                found.setdefault(tuple([row[i] for i in by]), set()).add(tuple([row[i] for i in take]))
            self.indexes[columns, wanted] = found
        return self.indexes[columns, wanted]


@dataclass
class _Table(Generic[D]):
    """What is held of one relation."""

    data: D
    width: int
    whole: _Part | None = None
    parts: list[_Part] = field(default_factory=list)
    refused: set[tuple[int, ...]] = field(default_factory=set)


class Lookups(Generic[D]):
    """Looks up rows in relations of an engine, and keeps them."""

    def __init__(self, engine: Engine[D], limit: int = NEAR_ROWS) -> None:
        self.limit = limit
        self._engine = engine
        self._tables: dict[int, _Table[D]] = {}

    def over(self, facts: Facts[D], expected: Expected | None = None) -> Near[D]:
        """Some facts, to be looked up in; what is held of others is let go of."""
        wanted = {id(data) for data in facts.relations.values()}
        self._tables = {key: table for key, table in self._tables.items() if key in wanted}
        return Near(self, facts, expected or Unforeseen())

    def table(self, data: D) -> _Table[D]:
        """What is held of a relation; by identity, the relation being kept alive."""
        return self._tables.setdefault(id(data), _Table(data, len(self._engine.columns(data))))

    def fetched(self, data: D, limit: int) -> _Part | None:
        """All rows of a relation, if they are few enough."""
        table = self.table(data)
        if table.whole is None:
            rows = self._engine.fetch(data, limit)
            if rows is None:
                return None
            every = tuple(range(table.width))
            table.whole = _Part((), every, rows=set(encoded(rows)))
        return table.whole

    def part(
        self,
        predicate: Predicate,
        facts: Facts[D],
        columns: tuple[int, ...],
        keys: Collection[Row],
        wanted: tuple[int, ...],
        expected: Expected,
    ) -> _Part:
        """The part of a large relation that holds all rows of some keys.

        Raises:
            OutOfReachError: they are too many, or of types that cannot be held here.
        """
        table, order = self._table_of(predicate, facts)
        serving = [
            part
            for part in table.parts
            if part.serves(columns, wanted)
            and (part.key in (columns, (order,)) or not _missing(part, columns, keys))
        ]
        if serving:
            best = min(serving, key=lambda part: len(_missing(part, columns, keys)))
            if self._extend(best, predicate, facts, _missing(best, columns, keys), expected):
                return best
        every = tuple(range(table.width))
        if order in columns and (order,) not in table.refused:
            part = _Part((order,), every)
            if self._extend(part, predicate, facts, _missing(part, columns, keys), expected):
                table.parts.append(part)
                return part
            table.refused.add((order,))
        if order is not None and order not in columns and len({*columns, *wanted}) > NARROW:
            finding = self._finding(facts.relations[predicate], columns, keys)
            if finding is not None:
                return self._in_two_steps(predicate, facts, finding, columns, keys, order)
        along = expected.along(predicate, columns, wanted)
        part = _Part(columns, tuple(sorted({*columns, *wanted, *along})))
        if not self._extend(part, predicate, facts, _missing(part, columns, keys), expected):
            raise OutOfReachError
        table.parts.append(part)
        return part

    def _table_of(self, predicate: Predicate, facts: Facts[D]) -> tuple[_Table[D], int | None]:
        data = facts.relations[predicate]
        return self.table(data), self._engine.layout(data).ordered_by

    def _finding(self, data: D, columns: tuple[int, ...], keys: Collection[Row]) -> int | None:
        """The column that finds the rows of some keys by itself, few others with them; None if none does."""
        layout = self._engine.layout(data)
        rows = layout.rows or 0
        found = {
            c: len({key[i] for key in keys}) * max(1, rows / layout.spreads[c])
            for i, c in enumerate(columns)
            if c in layout.spreads
        }
        best = min(found, key=lambda c: found[c], default=None)
        return best if best is not None and found[best] <= FEW_ROWS else None

    def _in_two_steps(
        self,
        predicate: Predicate,
        facts: Facts[D],
        finding: int,
        columns: tuple[int, ...],
        keys: Collection[Row],
        order: int,
    ) -> _Part:
        """The whole rows of some keys, by the column that they are stored in order of."""
        few = {(key[columns.index(finding)],) for key in keys}
        narrow = self.part(predicate, facts, (finding,), few, (order,), Unforeseen())
        index = narrow.index((finding,), (order,))
        places = {found for key in few for found in index.get(key, ())}
        every = tuple(range(self.table(facts.relations[predicate]).width))
        return self.part(predicate, facts, (order,), places, every, Unforeseen())

    def _extend(
        self, part: _Part, predicate: Predicate, facts: Facts[D], missing: set[Row], expected: Expected
    ) -> bool:
        """Looks up more keys, and those expected later along with them; whether that was possible."""
        if not missing:
            return True
        more = set(expected.keys(predicate, part.key)) - part.asked - missing
        if part.key != (self._table_of(predicate, facts)[1],) and len(more) > len(missing):
            more = set()  # where rows are in no order, each key costs
        for keys in (missing | more, missing) if more else (missing,):
            found = None
            if len(keys) <= self.limit:
                not_null = facts.not_null.get(predicate, frozenset())
                found = self._engine.look_up(
                    facts.relations[predicate], part.key, decoded(keys), part.out, self.limit, not_null
                )
            if found is not None:
                part.rows.update(encoded(found))
                part.asked |= keys
                part.indexes.clear()
                return True
        return False


def _missing(part: _Part, columns: tuple[int, ...], keys: Collection[Row]) -> set[Row]:
    """The keys of a part, out of keys of more columns, that were not asked for yet."""
    places = [columns.index(c) for c in part.key]
    return {tuple([key[i] for i in places]) for key in keys} - part.asked


@dataclass(frozen=True)
class Near(Generic[D]):
    """Some facts, by what is looked up in them: what a top-down evaluation reads."""

    lookups: Lookups[D]
    facts: Facts[D]
    expected: Expected

    @property
    def limit(self) -> int:
        """How many rows an intermediate result may have."""
        return self.lookups.limit

    def is_near(self, predicate: Predicate) -> bool:
        """Whether all rows are held here, or there are none."""
        return predicate not in self.facts.relations or self._whole(predicate) is not None

    def size(self, predicate: Predicate) -> int:
        """The number of rows of a relation that is held here, or that has none."""
        return len(self.rows(predicate)) if predicate in self.facts.relations else 0

    def is_at_hand(self, predicate: Predicate, columns: Collection[int]) -> bool:
        """Whether look-ups by these columns have been made before, or some of them."""
        data = self.facts.relations.get(predicate)
        return data is None or any({*part.key} <= {*columns} for part in self.lookups.table(data).parts)

    def look_up(
        self, predicate: Predicate, columns: tuple[int, ...], keys: Collection[Row], wanted: tuple[int, ...]
    ) -> Index:
        """For each key the values of `wanted` in the rows that have it; maybe more keys."""
        if predicate not in self.facts.relations:
            return {}
        whole = self._whole(predicate)
        if whole is not None:
            return whole.index(columns, wanted)
        if not columns:
            raise OutOfReachError
        part = self.lookups.part(predicate, self.facts, columns, keys, wanted, self.expected)
        return part.index(columns, wanted)

    def rows(self, predicate: Predicate) -> Collection[Row]:
        """All rows of a small relation.

        Raises:
            OutOfReachError: it is not.
        """
        whole = self._whole(predicate)
        if whole is None:
            raise OutOfReachError
        return whole.rows

    def _whole(self, predicate: Predicate) -> _Part | None:
        data = self.facts.relations[predicate]
        held = self.lookups.table(data).whole
        if held is not None:
            return held
        if predicate in self.facts.small:
            return self.lookups.fetched(data, self.lookups.limit)
        rows = self.lookups._engine.layout(data).rows
        return self.lookups.fetched(data, WHOLE_ROWS) if rows is not None and rows <= WHOLE_ROWS else None


def near_rows(evaluation: TopDown, goal: Predicate, arity: int) -> frozenset[Row] | None:
    """All rows of a goal; None where few look-ups do not give them."""
    try:
        return evaluation.extension(goal, arity)
    except OutOfReachError:
        return None
