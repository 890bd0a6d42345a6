"""The rows that are looked at: all, or where there are too many, those near the update.

Near are the stored rows that have a value of a changed row where they could meet it, those that have a value of these
in columns that join, until there is no room, and what the base rows that these tell give. What is found there is a
candidate only: rows that were left out may forbid it. So it is held against all rows (`whole.py`), and not reported
where that fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from datalog.model import Atom, Predicate, Program, Row, Rule, Value, Variable, Version
from selfmaint.cross_examine.consequences import with_consequences
from selfmaint.cross_examine.domains import Domains
from selfmaint.cross_examine.question import Question, identity
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.situation import Situation

_CHANGES = (Version.INSERTED, Version.DELETED)
_RADIUS = 2
"""How many joins away rows are looked for."""
_MOST_VALUES = 400
"""Of a class of columns, at most so many values are looked for."""


class TooManyRowsError(Exception):
    """The update alone has more rows than are looked at; or they have no exact values here."""


@dataclass(frozen=True)
class Near:
    """Rows at hand.

    Attributes:
        rows: by predicate.
        is_whole: whether these are all.
    """

    rows: Mapping[Predicate, frozenset[Row]]
    is_whole: bool


def near(engine: Engine[D], catalog: Catalog, facts: Facts[D], situation: Situation, most: int) -> Near:
    """The rows to look at.

    Args:
        engine: holds the facts.
        catalog: the schema.
        facts: what is known: stored views, the update, copies.
        situation: the kinds of it.
        most: at most so many rows.

    Raises:
        TooManyRowsError: the update has more rows.
    """
    views = {view.name for view in catalog.views}
    stored = {p: d for p, d in facts.relations.items() if p.version is not Version.STORED or p.name in views}
    everything = fetched(engine, stored, most)
    if everything is not None:
        return Near(everything, is_whole=True)
    changes = fetched(engine, {p: d for p, d in stored.items() if p.version in _CHANGES}, most)
    if changes is None:
        raise TooManyRowsError(f"the update has more than {most} rows, or values that are not exact here")
    others = {p: d for p, d in stored.items() if p.version not in _CHANGES}
    found = _Neighbourhood(engine, catalog, situation, others, changes, most)
    grown = Question(catalog, situation, found.grown())
    return Near(with_consequences(engine, others, grown, most), is_whole=False)


def fetched(
    engine: Engine[D], relations: Mapping[Predicate, D], most: int
) -> dict[Predicate, frozenset[Row]] | None:
    """All rows of some relations; None if there are more than so many."""
    found: dict[Predicate, frozenset[Row]] = {}
    for predicate, data in relations.items():
        rows = engine.fetch(data, most)
        if rows is None:
            return None
        found[predicate] = frozenset(rows)
        most -= len(rows)
    return found


class _Neighbourhood(Generic[D]):
    """Rows that are added as long as there is room."""

    def __init__(
        self,
        engine: Engine[D],
        catalog: Catalog,
        situation: Situation,
        relations: Mapping[Predicate, D],
        changes: Mapping[Predicate, frozenset[Row]],
        most: int,
    ) -> None:
        self._engine = engine
        self._relations = relations
        self._domains = Domains(Question(catalog, situation, changes))
        self._changes = changes
        self._rows: dict[Predicate, set[Row]] = {p: set() for p in relations}
        self._left = most - sum(map(len, changes.values()))
        self._asked: set[tuple[Predicate, int, tuple[str, Value]]] = set()

    def grown(self) -> dict[Predicate, frozenset[Row]]:
        """The changed rows, and those near them."""
        wanted = self._values(self._changes.items(), joining=False)
        for _ in range(_RADIUS):
            new: dict[Predicate, set[Row]] = {}
            for turn, (predicate, data) in enumerate(self._relations.items()):
                share = self._left // (len(self._relations) - turn)
                rows = self._meeting(predicate, data, wanted, share)
                new[predicate] = rows - self._rows[predicate]
                self._rows[predicate] |= rows
                self._left -= len(new[predicate])
            wanted = self._values(new.items(), joining=True)
        return {**self._changes, **{p: frozenset(rows) for p, rows in self._rows.items()}}

    def _values(
        self, rows: Iterable[tuple[Predicate, Iterable[Row]]], *, joining: bool
    ) -> dict[int, list[Value]]:
        """The values of some rows by class of columns; of classes where columns meet alone, if `joining`."""
        found: dict[int, dict[tuple[str, Value], Value]] = {}
        for predicate, its in rows:
            for row in sorted(its, key=repr):
                for i, value in enumerate(row):
                    number = self._domains.of_place(predicate, i)
                    if (
                        number is not None
                        and value is not None
                        and (not joining or self._domains.joins(number))
                    ):
                        found.setdefault(number, {}).setdefault(identity(value), value)
        return {number: list(values.values())[:_MOST_VALUES] for number, values in found.items()}

    def _meeting(
        self, predicate: Predicate, data: D, wanted: Mapping[int, Sequence[Value]], room: int
    ) -> set[Row]:
        """The rows with a wanted value, column by column, those with few such rows first, as far as there is room."""
        meeting: list[tuple[int, int, D]] = []
        for i, column in enumerate(self._engine.columns(data)):
            number = self._domains.of_place(predicate, i)
            values = [] if number is None else wanted.get(number, ())
            asked = [v for v in values if (predicate, i, identity(v)) not in self._asked]
            self._asked.update((predicate, i, identity(v)) for v in asked)
            if asked and number is not None:
                its = self._domains.type_of(number)
                keys = self._engine.load([(v,) for v in asked], [column], [its])
                rows = self._with(predicate, data, i, keys)
                meeting.append((self._engine.count(rows), i, rows))
        found: set[Row] = set()
        for number_of_rows, _, rows in sorted(meeting, key=lambda one: one[:2]):
            if number_of_rows <= room - len(found):
                found.update(self._engine.fetch(rows, room) or ())
        return found

    def _with(self, predicate: Predicate, data: D, column: int, keys: D) -> D:
        """The rows with one of some values in a column."""
        columns = self._engine.columns(data)
        goal, wanted = Predicate("near", Version.STEP), Predicate("wanted", Version.STEP)
        terms = tuple(Variable(f"X{i}") for i in range(len(columns)))
        rule = Rule(Atom(goal, terms), (Atom(predicate, terms), Atom(wanted, (terms[column],))))
        facts = Facts({predicate: data, wanted: keys}, {}, frozenset({wanted}))
        return self._engine.keep(self._engine.evaluate(Program((rule,)), goal, facts, columns))
