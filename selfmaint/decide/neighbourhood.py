"""What is at hand of large data for a search (`possible`): the stored rows near the update, found by the engine.

1. The update is at hand whole; so are the copies and the rows read for some keys, or they are left out. Such keys are
   left out also where the update may not be effective: rows of theirs may then be known from rows far away alone.
2. *Anchors*. Where a changed row is a subgoal's, the stored rows that agree with what it tells of the view's row are
   asked for: rows that the update takes away, and gives back, are among them.
3. *Steps*. Then rows with a value that a row at hand has, in columns of the same class; first where values meet, by a
   join, a key or a foreign key. What more rows have than there is room for is left out.
4. A relation that can be read whole and is too large for that is asked like a view that copies it.
5. A view is asked only where this process has exactly the values that it stores (no doubles), and for values of one
   kind: an engine may take others for equal, and give them for those that are stored.

`possible/cut.py` says why a "yes" that is found so is one, whatever is left out. Where no value is left out by which
rules join, and nothing is left that step 3 would ask for, the neighbourhood is *closed*: `separate.py` says when two
databases that differ there make a "no".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from time import monotonic
from typing import Generic

from msgspec import Struct

from datalog.budget import check
from datalog.copies import replace
from datalog.model import (
    ANY,
    Atom,
    ColumnType,
    Constant,
    Predicate,
    Program,
    Row,
    Rule,
    Term,
    TypeName,
    Variable,
    Version,
    value_kind,
)
from selfmaint.countermodel.model_check import Given
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.pairs import given_rows
from selfmaint.decide.search_budget import SearchBudget
from selfmaint.engine.column_types import is_integer
from selfmaint.engine.protocol import D, Facts
from selfmaint.possible.cut import Columns, Cut, Values
from selfmaint.possible.instances import instance
from selfmaint.possible.labelled_nulls import TooManyFactsError
from selfmaint.possible.queries import Query, queries
from selfmaint.possible.value_classes import ValueClasses, joined, meeting

WHOLE = 24
"""A view with at most so many rows is at hand whole."""

_MOST_READ = 10_000
"""More rows are not fetched at once, to see which values have few."""

_AT_ONCE, _PARTS = 50, 4
"""Values are asked for in parts of so many, or in so many parts."""

_STEPS = (0, 1, 2, 6)
"""After so many steps the rows at hand are searched."""

_CHANGES = (Version.INSERTED, Version.DELETED)
_COPIES = (Version.PRESENT, Version.ABSENT, Version.REGION)

Rules = Mapping[str, Sequence[Query]]


class Neighbourhood(Struct, frozen=True):
    """The rows at hand, and what is left out.

    Attributes:
        known: the rows, and the facts that they prove.
        rules: the queries of views, and of relations that can be read (4).
        cut: which rows are at hand.
        classes: the classes of columns.
        joined: the numbers of the classes of variables by which rules join.
        followed: of the classes of whose values at hand no row is left out.
        copies: the names of what stands for relations that can be read, by relation.
        may_close: whether the first are among the second, and nothing known but view rows is left out; if not, it is
            so of no larger one.
        is_complete: whether step 3 has nothing left to ask for but values of classes of which some are left out.
        steps: how many steps were taken.
    """

    known: Given
    rules: Rules
    cut: Cut
    classes: ValueClasses
    joined: frozenset[int]
    followed: frozenset[int]
    copies: Mapping[str, str]
    may_close: bool
    is_complete: bool
    steps: int

    @property
    def is_closed(self) -> bool:
        """Whether no other row meets these."""
        return self.may_close and self.is_complete

    @property
    def size(self) -> int:
        """The number of rows."""
        return sum(map(len, self.known.rows.values()))


def neighbourhoods(known: Knowledge[D]) -> Iterator[Neighbourhood]:
    """Larger and larger neighbourhoods of an update, in what is known; none if the update alone is too large."""
    growing = _Growing.around(known)
    if growing is None or not growing.has_room():
        return
    growing.add_anchors()
    before = (-1, False)
    for steps in range(_STEPS[-1] + 1):
        if steps:
            growing.step()
        if steps in _STEPS or growing.is_complete:
            found = growing.found(steps)
            if (found.size, found.is_closed) > before:
                yield found
            before = (found.size, found.is_closed)
        if growing.is_done:
            return


class _Growing(Struct, Generic[D], dict=True):
    """Rows that are added as long as there is room."""

    known: Knowledge[D]
    rules: Rules
    given: dict[Predicate, frozenset[Row]]
    stored: Mapping[str, D]
    left: int
    is_less: bool

    def __post_init__(self) -> None:
        self.rows: dict[str, set[Row]] = {name: set() for name in self.stored}
        self.covered: dict[str, dict[Columns, set[Values]]] = {name: defaultdict(set) for name in self.stored}
        self.whole: set[str] = set()
        self.may_lose: set[str] = set()
        self.left_out: set[int] = set()
        self.is_complete = self.is_done = False
        self.classes = ValueClasses(Given(self.known.catalog, self.known.situation, {}, {}), self.rules)
        self.joined = joined(self.rules, self.classes)
        self.meeting = self.joined | meeting(self.known.catalog, self.joined, self.classes)
        self._asked: set[tuple[str, Columns, Values]] = set()
        self.until = monotonic() + self.budget.seconds
        for name, data in self.stored.items():
            rows = self.known.engine.fetch(data, min(WHOLE, self.left))
            if rows is not None:
                self.whole.add(name)
                self._add(name, rows)

    @classmethod
    def around(cls, known: Knowledge[D]) -> _Growing[D] | None:
        """Conditions 1 and 4; None if the update has too many rows."""
        facts, situation = known.facts, known.situation
        rules: dict[str, Sequence[Query]] = dict(queries(known.catalog))
        stored = {
            n: facts.relations[p] for n in rules if (p := Predicate(n, Version.STORED)) in facts.relations
        }
        given: dict[Predicate, frozenset[Row]] = {}
        left, missing = known.decision.search.rows, set[Predicate]()
        relations = known.catalog.relations
        for predicate, data in facts.relations.items():
            if predicate.name not in relations or predicate.version not in (*_CHANGES, *_COPIES):
                continue
            rows = known.engine.fetch(data, left // 2)
            if rows is None and predicate.version in _CHANGES:
                return None
            if rows is None:
                missing.add(predicate)
            else:
                given[predicate] = frozenset(rows)
                left -= len(rows)
        absent = frozenset(p.name for p in missing if p.version is Version.ABSENT)
        untold = frozenset(p.name for p in missing if p.version is Version.PRESENT)
        for name in situation.readable:
            its = relations[name]
            terms = tuple(Variable(f"X{i}") for i in range(its.arity))
            copy = copy_of(name)
            rules[copy] = (Query(copy, 0, terms, (Atom(Predicate(name), terms),), ()),)
            stored[copy] = facts.relations[Predicate(name, Version.BEFORE)]
        kinds = replace(
            situation,
            readable=frozenset(),
            absent=situation.absent - absent,
            present=situation.present - untold,
            regions=frozenset(
                r
                for r in situation.regions
                if situation.effective and r.name not in untold and r not in missing
            ),
        )
        every, rules = rules, {name: its for name, its in rules.items() if name in stored}
        is_less = bool(missing) or kinds.regions != situation.regions or len(stored) < len(every)
        return cls(known.learning(facts, kinds), rules, given, stored, left, is_less)

    def found(self, steps: int) -> Neighbourhood:
        """What is at hand now."""
        rows = {**self.given, **{Predicate(n, Version.STORED): frozenset(r) for n, r in self.rows.items()}}
        covered = {
            name: {columns: frozenset(values) for columns, values in its.items()}
            for name, its in self.covered.items()
        }
        return Neighbourhood(
            given_rows(self.known, rows),
            self.rules,
            Cut(frozenset(self.whole), covered, frozenset(self.may_lose), self.budget.labelled_nulls),
            self.classes,
            self.joined,
            frozenset(one.number for one in self.classes.every) - self._few - self.left_out,
            {n: copy_of(n) for n in self.known.catalog.relations if copy_of(n) in self.stored},
            not self.is_less and not self.joined & (self.left_out | self._few),
            self.is_complete,
            steps,
        )

    @property
    def budget(self) -> SearchBudget:
        """How many rows there may be, and how long they may be looked for."""
        return self.known.decision.search

    def has_room(self) -> bool:
        """Whether the update alone leaves room for stored rows among the values that nothing tells."""
        found = self.found(0)
        try:
            instance(found.known, found.rules, cut=found.cut)
        except TooManyFactsError:
            return False
        return True

    # ------------------------------------------------------------------------------------------------- asking

    def add_anchors(self) -> None:
        """Condition 2."""
        wanted: dict[tuple[str, Columns], dict[Values, None]] = {}
        losing: dict[tuple[str, Columns], set[Values]] = {}
        for view, rules in self.rules.items():
            for query in rules:
                for atom, version, row in self._anchors(query):
                    told = _told(query.head, atom.terms, row)
                    if told is None or view in self.whole:
                        continue
                    place = (view, tuple(told))
                    if told:
                        wanted.setdefault(place, {})[tuple(told.values())] = None
                    if version is Version.DELETED:
                        losing.setdefault(place, set()).add(tuple(told.values()))
        for (view, columns), keys in wanted.items():
            self._ask(view, columns, list(keys), per_value=self.left)
        for (view, columns), keys_ in losing.items():
            if not keys_ <= self.covered[view].get(columns, set()):
                self.may_lose.add(view)

    def _anchors(self, query: Query) -> Iterator[tuple[Atom, Version, Row]]:
        for atom in query.body:
            for version in _CHANGES:
                for row in sorted(self.given.get(Predicate(atom.predicate.name, version), ()), key=repr):
                    yield atom, version, row

    def step(self) -> None:
        """Condition 3: first of the classes of which nothing is left out."""
        if self.is_complete:
            self.is_complete = self.is_done = not self._ask_for_values_but(frozenset())
        else:
            self.is_complete = not self._ask_for_values_but(self.left_out)
            self.is_done = self.is_complete and not self.left_out

    def _ask_for_values_but(self, classes: AbstractSet[int]) -> bool:
        """Asks for the rows with the values at hand, but those of some classes; whether there were any to ask for."""
        values = self._values()
        places = [
            (number not in self.meeting, view, column, number)
            for view in self.stored
            if view not in self.whole
            for column in range(len(self.rules[view][0].head))
            if (number := self.classes.of_column(view, column).number) in values and number not in classes
        ]
        asked = False
        for _, view, column, number in sorted(places, key=lambda place: place[0]):
            keys = [(v,) for v in values[number] if (view, (column,), (v,)) not in self._asked]
            if keys:
                check()
                asked = True
                self._ask(view, (column,), keys, per_value=self.budget.rows_per_value)
        return asked

    def _values(self) -> dict[int, list[Constant]]:
        """The values of the rows at hand, by class; null meets nothing."""
        found: dict[int, dict[Constant, None]] = {}
        places = [
            (p.name, p.columns if p.version is Version.REGION else None, r) for p, r in self.given.items()
        ]
        places += [(name, None, frozenset(rows)) for name, rows in self.rows.items()]
        for name, columns, rows in places:
            for row in sorted(rows, key=repr):
                for i, value in zip(columns or range(len(row)), row, strict=True):
                    number = self.classes.of_column(name, i).number
                    if value is not None and number not in self._few:
                        found.setdefault(number, {})[Constant(value)] = None
        return {number: list(values) for number, values in found.items()}

    @cached_property
    def _few(self) -> frozenset[int]:
        """The classes of types with few values, which are not followed."""
        return frozenset(one.number for one in self.classes.every if any(t.is_finite for t in one.types))

    def _ask(self, view: str, columns: Columns, keys: Sequence[Values], per_value: int) -> None:
        """Adds the rows with some values in some columns, all or none of each key.

        Of one column it is asked once: the values that have more rows are left out for good.
        """
        new = [key for key in keys if (view, columns, key) not in self._asked]
        self._asked.update((view, columns, key) for key in new)
        size = max(_AT_ONCE, len(new) // _PARTS)
        parts = [new[i : i + size] for i in range(0, len(new), size)]
        found = [self._ask_part(view, columns, part, per_value) for part in parts]
        if not all(found) and len(columns) == 1:
            self.left_out.add(self.classes.of_column(view, columns[0]).number)

    def _ask_part(self, view: str, columns: Columns, keys: Sequence[Values], per_value: int) -> bool:
        """The same for some keys, those with few rows first."""
        is_late = monotonic() > self.until
        rows = None if is_late or self.left <= 0 else self._with(view, columns, keys, _MOST_READ)
        if rows is None:
            return False
        by_key: dict[Values, list[Row]] = {key: [] for key in keys}
        for row in rows:
            by_key.setdefault(tuple(Constant(row[i]) for i in columns), []).append(row)
        if len(by_key) > len(keys):  # the engine takes other values for equal
            return False
        is_all = True
        for key, its in sorted(by_key.items(), key=lambda one: len(one[1])):
            if len(its) <= min(per_value, self.left):
                self._add(view, its)
                self.covered[view][columns].add(key)
            else:
                is_all = False
        return is_all

    def _with(self, view: str, columns: Columns, keys: Sequence[Values], most: int) -> Collection[Row] | None:
        engine, data = self.known.engine, self.stored[view]
        types = [self._type(view, i) for i in columns]
        kinds = [{value_kind(key[at].value) for key in keys} for at in range(len(columns))]
        if None in types or any(len(its) > 1 for its in kinds):  # condition 5
            return None
        if ANY in types and engine.fetch(engine.empty(data), 0) is None:  # condition 5
            return None
        names = engine.columns(data) or tuple(f"c{i}" for i in range(len(self.rules[view][0].head)))
        wanted = Predicate("wanted", Version.STEP)
        loaded = engine.load(
            [tuple(v.value for v in key) for key in keys],
            [names[i] for i in columns],
            [t for t in types if t],
        )
        stored, goal = Predicate(view, Version.STORED), Predicate("near", Version.STEP)
        terms = tuple(Variable(f"X{i}") for i in range(len(names)))
        rule = Rule(Atom(goal, terms), (Atom(stored, terms), Atom(wanted, tuple(terms[i] for i in columns))))
        facts = Facts({stored: data, wanted: loaded}, {}, frozenset({wanted}))
        return engine.fetch(engine.evaluate(Program((rule,)), goal, facts, names), most)

    def _type(self, view: str, column: int) -> ColumnType | None:
        """The type of the values that a column is asked for; None if one type does not hold all that it may meet."""
        types = self.classes.of_column(view, column).types or {ANY}
        if len(types) > 1 and all(map(is_integer, types)):
            return ColumnType(TypeName.BIGINT)
        return next(iter(types)) if len(types) == 1 else None

    def _add(self, view: str, rows: Collection[Row]) -> None:
        new = set(rows) - self.rows[view]
        self.rows[view] |= new
        self.left -= len(new)


def copy_of(relation: str) -> str:
    """The name of the view that stands for a relation that can be read."""
    return str(Predicate(relation, Version.BEFORE))


def _told(head: Sequence[Term], terms: Sequence[Term], row: Row) -> dict[int, Constant] | None:
    """What a row of a subgoal tells of the view's row: by column, but for nulls; None if it is no row of it."""
    binding: dict[Variable, Constant] = {}
    for term, value in zip(terms, row, strict=True):
        given = Constant(value)
        if (term if isinstance(term, Constant) else binding.setdefault(term, given)) != given:
            return None
    return {
        i: binding[t]
        for i, t in enumerate(head)
        if isinstance(t, Variable) and t in binding and binding[t].value is not None
    }
