"""The rows that are looked at: all, or where there are too many, those near the update.

Near are the stored rows that have a value of a changed row where they could meet it, those that have a value of these
in columns that join, until there is no room, and what the base rows that these tell give. What is found there is a
candidate only: rows that were left out may forbid it. So it is held against all rows, and not reported
where that fails.

Stored rows must be looked at, too, because rows that are looked at tell base rows, and these give them:

    order_lines(1, 'Ann', 7, ...) tells customer(1, 'Ann'); so the row of `customers` is looked at, too

Else a database of what is near would hold rows that no view near has, and there would be none.

What was found is held against all rows so: it is completed by rows that explain the stored rows far from the update,
those that their rules tell, with new values where they tell none. If the definition accepts the whole, it is a database
that explains everything known; if not, nothing is concluded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Generic

from msgspec import Struct

from datalog.copies import replace
from datalog.evaluate.order import with_one_nan
from datalog.model import ANY, Atom, Predicate, Program, Row, Rule, Value, Variable, Version
from selfmaint.countermodel.databases import CannotEvaluateError, stored_rows
from selfmaint.countermodel.model_check import may_repeat
from selfmaint.cross_examine.definition import definition
from selfmaint.cross_examine.domains import Domains
from selfmaint.cross_examine.matches import Hole, Sketches, Told, own_values
from selfmaint.cross_examine.question import Question, Rows, identity
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.reads import reads
from selfmaint.warehouse.situation import Situation

_CHANGES = (Version.INSERTED, Version.DELETED)
_RADIUS = 2
"""How many joins away rows are looked for."""
_MOST_VALUES = 400
"""Of a class of columns, at most so many values are looked for."""


class TooManyRowsError(Exception):
    """The update alone has more rows than are looked at."""


class Near(Struct, frozen=True):
    """Rows at hand.

    Attributes:
        rows: by predicate.
        catalog: the views that they are of; where these are not all, none with rows that may stand twice, uncounted.
        is_whole: whether these are all.
    """

    rows: Mapping[Predicate, frozenset[Row]]
    catalog: Catalog
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
    everything = fetched(engine, catalog, stored, most)
    if everything is not None:
        return Near(everything, catalog, is_whole=True)
    repeating = [view.predicate for view in catalog.views if may_repeat(view)]
    stored = {p: d for p, d in stored.items() if p not in repeating}
    catalog = without(catalog, {p.name for p in repeating})
    given = {p: d for p, d in stored.items() if p.version in _CHANGES}
    changes = fetched(engine, catalog, given, most)
    if changes is None:
        raise TooManyRowsError(f"the update has more than {most} rows")
    others = {p: d for p, d in stored.items() if p.version not in _CHANGES}
    found = _Neighbourhood(engine, catalog, situation, others, changes, most)
    grown = Question(catalog, situation, found.grown())
    return Near(with_consequences(engine, others, grown, most), catalog, is_whole=False)


def without(catalog: Catalog, names: Collection[str]) -> Catalog:
    """The catalog without some views, and those that read them."""
    below, lost = reads(catalog), frozenset(names)
    kept = tuple(v for v in catalog.views if v.name not in lost and lost.isdisjoint(below[v.name]))
    return catalog if len(kept) == len(catalog.views) else replace(catalog, views=kept)


def fetched(
    engine: Engine[D], catalog: Catalog, relations: Mapping[Predicate, D], most: int
) -> dict[Predicate, frozenset[Row]] | None:
    """All rows of some relations, as a question has them; None if there are more than so many."""
    repeating = {view.predicate for view in catalog.views if may_repeat(view)}
    found: dict[Predicate, frozenset[Row]] = {}
    for predicate, data in relations.items():
        rows = fetched_rows(engine, data, most, repeating=predicate in repeating)
        if rows is None:
            return None
        most -= len(rows)
        found[predicate] = rows
    return found


def fetched_rows(engine: Engine[D], data: D, most: int, *, repeating: bool) -> frozenset[Row] | None:
    """All rows, also of doubles; None if there are more than so many.

    Args:
        engine: holds the rows.
        data: the rows.
        most: how many.
        repeating: whether they may stand twice: then the number of copies is added to them, last.
    """
    asked = engine.bags.numbered(data, 1, "copy") if repeating else data
    found: Collection[Row] | None = engine.fetch(asked, most)
    if found is None and engine.count(asked) <= most:
        found = engine.sample(asked, most)
    if found is None:
        return None
    rows = with_one_nan(found)
    if not repeating:
        return rows
    return frozenset((*row, number) for row, number in Counter(row[:-1] for row in rows).items())


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
        width = len(self._engine.columns(data))
        return self._engine.keep(_joined(self._engine, predicate, data, keys, (_row(width)[column],)))


_ROUNDS = 2
"""How often the rows found are asked what they give."""


def with_consequences(
    engine: Engine[D], relations: Mapping[Predicate, D], question: Question, most: int
) -> dict[Predicate, frozenset[Row]]:
    """The rows of a question, and the stored rows that the base rows they tell give.

    Args:
        engine: holds all rows.
        relations: all stored views and copies.
        question: the rows that are looked at.
        most: how many rows are added at most for one view.
    """
    for _ in range(_ROUNDS):
        more = {
            p: question.rows.get(p, frozenset()) | found
            for p, found in _given(engine, relations, question, most)
        }
        if all(rows == question.rows.get(p) for p, rows in more.items()):
            break
        question = replace(question, rows={**question.rows, **more})
    return dict(question.rows)


def _given(
    engine: Engine[D], relations: Mapping[Predicate, D], question: Question, most: int
) -> Iterator[tuple[Predicate, frozenset[Row]]]:
    told: dict[str, set[Row]] = {name: set() for name in question.catalog.relations}
    for name, slots in Sketches(question).make():
        row = tuple(slot.value for slot in slots if isinstance(slot, Told))
        if len(row) == len(slots):
            told[name].add(row)
    known = definition(question)
    database = {name: frozenset(rows) - question.of(name, Version.INSERTED) for name, rows in told.items()}
    for view in question.catalog.views:
        data = relations.get(view.predicate)
        if data is None:
            continue
        derived: set[Row] = set()
        for its in (database, known.after(database)):
            try:
                contents = {view.name: known.evaluation.state(view.name, its)}
            except (CannotEvaluateError, TypeError):
                continue
            derived |= stored_rows(question.catalog, contents)[view.name]
        if derived:
            yield view.predicate, _stored(engine, data, view, question, derived, most)


def _stored(
    engine: Engine[D], data: D, view: View, question: Question, derived: set[Row], most: int
) -> frozenset[Row]:
    """The stored rows that some derived ones are, or of groups the rows that show what these are grouped by."""
    columns = engine.columns(data)
    wanted = engine.like(engine.load(sorted(derived, key=repr), columns, [ANY] * len(columns)), data)
    key = _key(view, question, len(columns))
    others = tuple(v if i in key else Variable(f"Y{i}") for i, v in enumerate(_row(len(columns))))
    return frozenset(engine.fetch(_joined(engine, view.predicate, data, wanted, others), most) or ())


def _row(width: int) -> tuple[Variable, ...]:
    return tuple(Variable(f"X{i}") for i in range(width))


def _joined(engine: Engine[D], predicate: Predicate, data: D, wanted: D, terms: Sequence[Variable]) -> D:
    """The rows, as variables `_row`, that some wanted ones go with, as the terms of these say."""
    columns = engine.columns(data)
    goal, given = Predicate("near", Version.STEP), Predicate("wanted", Version.STEP)
    its = _row(len(columns))
    rule = Rule(Atom(goal, its), (Atom(predicate, its), Atom(given, tuple(terms))))
    facts = Facts({predicate: data, given: wanted}, {}, frozenset({given}))
    return engine.evaluate(Program((rule,)), goal, facts, columns)


def _key(view: View, question: Question, width: int) -> frozenset[int]:
    """The positions that tell a view's rows apart: of groups what they group by, of counted rows all but the count."""
    for part in question.parts(view):
        if part.block is not None and part.block.groups is not None:
            groups = {repr(group) for group in part.block.groups}
            return frozenset(i for i, output in enumerate(part.outputs) if repr(output) in groups)
    return frozenset(range(width - 1 if view.is_counted else width))


def completed(near: Question, whole: Question, database: Rows) -> dict[str, frozenset[Row]]:
    """A database found near the update, with rows for what is far from it.

    Args:
        near: the question about the rows near the update.
        whole: the question about all rows.
        database: what explains the first.
    """
    far = replace(whole, rows={p: _far(near, p, rows) for p, rows in whole.rows.items()})
    sketches = Sketches(far).make()
    own = own_values(Domains(whole), sketches)
    found = {name: set(database.get(name, ())) for name in whole.catalog.relations}
    keys = {
        name: {tuple(row[i] for i in key) for row in rows for key in whole.catalog.relations[name].unique[:1]}
        for name, rows in found.items()
    }
    for name, slots in sketches:
        row = tuple(slot.value if isinstance(slot, Told) else own[slot] for slot in slots)
        key = next((tuple(row[i] for i in k) for k in whole.catalog.relations[name].unique[:1]), None)
        invented = any(isinstance(slot, Hole) for slot in slots)
        if not whole.is_excluded(name, row) and not (invented and key in keys[name]):
            found[name].add(row)
    return {name: frozenset(rows) for name, rows in found.items()}


def _far(near: Question, predicate: Predicate, rows: frozenset[Row]) -> frozenset[Row]:
    """The rows that were left out; the update is near, whole."""
    if predicate.version in (Version.INSERTED, Version.DELETED):
        return frozenset()
    return rows - near.rows.get(predicate, frozenset())
