"""Examples among small databases, for views of which the decision makes none: rows without a match, HAVING, ...

    quiet(id) :- customer(id), not orders(_, id).      an order is deleted: there may be another one of its customer

Databases of a few rows with few values are drawn, with an update of the kind in question and a second database that
differs in one row. What makes an example of them is `Replay`: the definition, with every view of the warehouse. So
"depends" is proved, and that nothing is found says nothing. The same are drawn each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property
from itertools import islice
from random import Random

from msgspec import Struct

from datalog.budget import check
from datalog.copies import contents
from datalog.model import ColumnType, Constant, OpaqueView, Row, TypeName, Value
from selfmaint.audit.candidates import Candidate, Relations
from selfmaint.audit.changes import Change, Kind, closure, relations_of
from selfmaint.audit.example import Example, Replay
from selfmaint.countermodel.databases import CannotEvaluateError, satisfies
from selfmaint.countermodel.values import values_of
from selfmaint.decide.anti_joins import anti_join_of
from selfmaint.possible.value_classes import fits
from selfmaint.warehouse.base_relations import BaseRelation
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.reads import is_unknown

TRIED = 120
"""So many databases are drawn."""

_SECOND = 4
"""So many second databases for each."""

_VALUES = 3
"""So many values a column has that is no key, besides the constants of the views and those beside them."""

_MOST_TEXTS = 2
"""So many texts are run on each database: an engine runs them, a hundred times slower than what is computed here."""

_ROWS = 3
"""So many rows a relation has at most, and more where a view counts so far."""

_MOST_ROWS = 8


def small_example(view: View, replay: Replay) -> Example | None:
    """The smallest part of the first example that is found for a view and a kind of change; None if none is."""
    drawing = _Drawing(view, replay)
    if replay.change.relation not in drawing.relations or not drawing.differing:
        return None
    found = next((example for _ in range(TRIED) for example in drawing.examples()), None)
    return None if found is None else replay.shrunk(found)


class _Drawing(Struct, dict=True):
    view: View
    replay: Replay

    def __post_init__(self) -> None:
        self.drawn: dict[tuple[ColumnType, str], list[Value]] = {}
        self.random = Random(0)  # noqa: S311 - the same each time, as is said

    @property
    def catalog(self) -> Catalog:
        return self.replay.evaluation.catalog

    @property
    def change(self) -> Change:
        return self.replay.change

    @cached_property
    def relations(self) -> dict[str, BaseRelation]:
        """What is read, with what that references; none where equal rows are told apart by a number."""
        found = {name: self.catalog.relations[name] for name in closure(self.catalog, self.view)}
        return {} if any(one.is_numbered for one in found.values()) else found

    @cached_property
    def differing(self) -> tuple[str, ...]:
        """What the view reads and no view of which nobody can tell what it holds: in these databases differ."""
        database, unread = self._database(), {*relations_of(self.catalog, self.view)}
        near = [view for view in self.catalog.views if unread.intersection(relations_of(self.catalog, view))]
        texts = [view.name for view in near if _is_text(view)]
        for view in [self.view, *near]:
            may_be_run = view.name not in texts or len(texts) <= _MOST_TEXTS
            if may_be_run and self._is_evaluated(view, database):
                continue
            if view.name == self.view.name or is_unknown(view):
                return ()
            unread -= {*relations_of(self.catalog, view)}
        return tuple(sorted(unread))

    def _is_evaluated(self, view: View, database: Relations) -> bool:
        try:
            self.replay.evaluation.state(view.name, database)
        except CannotEvaluateError:
            return False
        return True

    @cached_property
    def constants(self) -> tuple[Value, ...]:
        """The constants of the view."""
        return tuple(dict.fromkeys(_constants((self.view.definition, self.view.body, self.view.filters))))

    def values(self, its: ColumnType, name: str) -> list[Value]:
        """The values of a column."""
        if (its, name) not in self.drawn:
            near = [_as_number(value, its) for value in (*self.constants, *self._beside) if value is not None]
            found = dict.fromkeys([*islice(values_of(its, name), _VALUES), *near])
            self.drawn[its, name] = [value for value in found if fits(value, its)]
        return self.drawn[its, name]

    @property
    def _beside(self) -> list[Value]:
        numbers = [v for v in self.constants if isinstance(v, int) and not isinstance(v, bool)]
        return [number + step for number in numbers for step in (-1, 1)]

    @cached_property
    def most(self) -> int:
        """The most rows of a relation."""
        counted = [v + 2 for v in self.constants if isinstance(v, int) and 0 < v + 2 <= _MOST_ROWS]
        return max([_ROWS, *counted])

    def examples(self) -> Iterator[Example]:
        """The examples of one database that is drawn."""
        check()
        first = self._database()
        if not satisfies(self.catalog, first):
            return
        inserted, deleted = self._update(first)
        if not inserted and not deleted:
            return
        given = Candidate(first, inserted, deleted)
        for _ in range(_SECOND):
            second = self._second(first, deleted)
            found = self.replay.example(self.view.name, first, second, given)
            if found is not None:
                yield found

    def _database(self) -> dict[str, frozenset[Row]]:
        database: dict[str, frozenset[Row]] = {}
        for name in self._referenced_first:
            rows = [self._row(name, number, database) for number in range(self.random.randint(0, self.most))]
            database[name] = frozenset(row for row in rows if row is not None)
        return database

    @cached_property
    def _referenced_first(self) -> list[str]:
        """The relations, each behind those that it references, but where references go round."""
        found, waiting = list[str](), list(self.relations)
        while waiting:
            free = [n for n in waiting if {r.target for r in self.relations[n].references} <= {*found, n}]
            found += free or waiting[:1]
            waiting = [name for name in waiting if name not in found]
        return found

    def _row(self, name: str, number: int, database: Relations) -> Row | None:
        """A row with a key of its own, that references rows which there are; None if there is none to reference."""
        relation = self.relations[name]
        keys = {i for key in relation.unique[:1] for i in key}
        row = list[Value]()
        for i, (its, column) in enumerate(zip(relation.types, relation.columns, strict=True)):
            values = self.values(its, column)
            if i in keys:
                values = (
                    list(islice(values_of(its, column), number, number + 1)) if len(keys) == 1 else values
                )
            may_be_null = i in relation.nullable and self.random.random() < 0.1  # noqa: PLR2004
            row.append(None if may_be_null or not values else self.random.choice(values))
        for reference in relation.references:
            targets = sorted(database.get(reference.target, ()), key=repr)
            if not targets and any(row[i] is not None for i in reference.columns):
                return None
            target = self.random.choice(targets) if targets else ()
            for i, j in zip(reference.columns, reference.target_columns, strict=True):
                row[i] = target[j] if target and row[i] is not None else None
        return tuple(row)

    def _update(self, first: Relations) -> tuple[Relations, Relations]:
        """An update of one row of the kind in question; nothing where there is no such row."""
        name = str(self.change.relation)
        rows = sorted(first[name], key=repr)
        old = self.random.choice(rows) if rows else None
        if self.change.kind is Kind.DELETE:
            return {}, {} if old is None else {name: frozenset([old])}
        new = self._row(name, self.most, first)
        if new is None or new in rows:
            return {}, {}
        if self.change.kind is Kind.INSERT:
            return {name: frozenset([new])}, {}
        if old is None:
            return {}, {}
        changed = tuple(new[i] if i in self.change.columns else value for i, value in enumerate(old))
        return ({}, {}) if changed in rows else ({name: frozenset([changed])}, {name: frozenset([old])})

    def _second(self, first: Relations, deleted: Relations) -> Relations:
        """A database that differs in one row, which the update does not delete."""
        name = self.random.choice(self.differing)
        rows = first[name]
        kept = sorted(rows - deleted.get(name, frozenset()), key=repr)
        gone = frozenset([self.random.choice(kept)] if kept and self.random.random() < 0.7 else [])  # noqa: PLR2004
        more = None if gone and self.random.random() < 0.5 else self._row(name, self.most + 1, first)  # noqa: PLR2004
        return {**first, name: rows - gone | ({more} if more is not None else set())}


def _is_text(view: View) -> bool:
    return isinstance(view.definition, OpaqueView) and anti_join_of(view) is None


def _as_number(value: Value, its: ColumnType) -> Value:
    """A whole number as a column of another type of numbers holds it; any other value as it is."""
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    return float(value) if its.name.is_floating else Decimal(value) if its.name is TypeName.DECIMAL else value


def _constants(what: object) -> Iterator[Value]:
    """The constants in a definition."""
    if isinstance(what, Constant):
        yield what.value
    elif isinstance(what, tuple | list | frozenset):
        for one in what:
            yield from _constants(one)
    else:
        for one in contents(what):
            yield from _constants(one)
