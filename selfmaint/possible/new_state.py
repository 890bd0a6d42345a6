"""Whether a view's new state is determined, by two searches among the databases that explain what is known.

1. A first database, D1, and the view's state after the update on it, S.
2. With the values of S as constants: a database, D2, that gives the view another state than S after the update. Either
   it has a row that is possible and not in S, or it lacks one of S that is not certain. If there is none the view is
   self-maintainable, and S is its new state.

Each search looks at enough databases: `labelled_nulls.py` says why, `value_classes.py` with which values. It looks at
more than there are where views are of another class, and where a type is not told by all columns of a class: so what
it does not find is not there, and a "yes" is sound. What it finds is given values and evaluated by the definition
(`model_check.py`): only two databases that pass make a "no". Nothing else of the search is believed.

Of large data a part is at hand (`cut.py`): then what changes of the view is compared, and two databases are no answer.

From an answer set to a database: what the solver knows by number gets values of the columns' types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Literal, TypeVar

from msgspec import Struct

from datalog.budget import BudgetSpentError, limit
from datalog.model import (
    ANY,
    Atom,
    ColumnType,
    Comparison,
    Constant,
    Operator,
    Predicate,
    Row,
    Value,
    Variable,
    Version,
    value_kind,
)
from datalog.order import assign
from selfmaint.countermodel.databases import Rows
from selfmaint.countermodel.model_check import Given, may_repeat, why_not
from selfmaint.countermodel.values import NUMBER, fresh_value
from selfmaint.possible.cut import Cut
from selfmaint.possible.encoding import BEFORE, MOST_GROUND_RULES, Encoding, TooLargeError
from selfmaint.possible.instances import Wanted, Way, instance, ways
from selfmaint.possible.labelled_nulls import TooManyFactsError
from selfmaint.possible.queries import Queries, queries
from selfmaint.possible.solver import Model, Solver, SolverLateError, SolverStoppedError
from selfmaint.possible.value_classes import NULL, NotComparableError, ValueClass, fits
from selfmaint.warehouse.catalog import Catalog, View

_TRIED = 50
"""How many values of a type are tried for one that is fresh."""


def real_database(encoding: Encoding, model: Model, attempt: int) -> Rows | None:
    """The database of an answer set; None if values of some type do not do.

    Each `attempt`, from 0, gives other values where nothing tells them.
    """
    relations = encoding.instance.known.catalog.relations
    numbers = {name: model[f"{BEFORE}{number}"] for name, number in encoding.numbers.items()}
    columns: dict[int, set[tuple[str, int]]] = {}
    for name, rows in numbers.items():
        for row in rows:
            for i, number in enumerate(row):
                columns.setdefault(number, set()).add((name, i))
    values: dict[int, Value] = {NULL: None}
    for one in encoding.instance.classes.every:
        values.update({number: c.value for c, number in one.constants.items()})
        used = {n: its for n, its in columns.items() if n in one.places}
        found = _fresh(encoding, one, used, attempt)
        if found is None:
            return None
        values.update(found)
    database: dict[str, frozenset[Row]] = {}
    for name, rows in numbers.items():
        made = frozenset(tuple(values[n] for n in row) for row in rows)
        types = relations[name].types
        if not all(v is None or fits(v, t) for row in made for v, t in zip(row, types, strict=True)):
            return None
        database[name] = made
    return database


def _fresh(
    encoding: Encoding, one: ValueClass, used: Mapping[int, set[tuple[str, int]]], attempt: int
) -> dict[int, Value] | None:
    """Values for the numbers of a class that are no constants."""
    types = {n: _compared_type(one, _type(encoding, columns)) for n, columns in used.items()}
    if one.is_ordered:
        return _placed(one, types)
    taken = set(one.values)
    found: dict[int, Value] = {}
    for at, (number, its) in enumerate(sorted(types.items())):
        start = 1 + at + (attempt * len(types))
        tried = (fresh_value(its, start + _TRIED * step) for step in range(_TRIED))
        value = next((v for v in tried if Constant(v) not in taken and fits(v, its)), None)
        if value is None:
            return None
        taken.add(Constant(value))
        found[number] = value
    return found


def _placed(one: ValueClass, types: Mapping[int, ColumnType]) -> dict[int, Value] | None:
    """Values in order, between the constants, or in one region in any order."""
    if not types:
        return {}
    told = {number: constant for constant, number in one.constants.items()}
    names = {number: Variable(f"P{number}") for number in types}
    comparisons: list[Comparison] = []
    if one.is_related:
        points = sorted([*types, *told])
        terms = [told[n] if n in told else names[n] for n in points]
        comparisons += [Comparison("<", low, high) for low, high in pairwise(terms)]
    else:
        for number, name in names.items():
            for at, constant in told.items():
                operator: Operator = ">" if at < number else "<"
                comparisons.append(
                    Comparison(operator if constant in one.landmarks else "!=", name, constant)
                )
        comparisons += [Comparison("!=", *both) for both in combinations(names.values(), 2)]
    found = assign(names.values(), comparisons, {}, {names[n]: its for n, its in types.items()})
    return None if found is None else {n: found[name] for n, name in names.items()}


def _compared_type(one: ValueClass, its: ColumnType) -> ColumnType:
    """Of an undeclared column of numbers, or that is compared, a number; else its own type."""
    compared = one.is_ordered or one.is_related or one.landmarks
    kinds = {value_kind(c.value) for c in one.values}
    return NUMBER if its == ANY and (kinds == {"number"} or (compared and not kinds)) else its


def _type(encoding: Encoding, columns: Iterable[tuple[str, int]]) -> ColumnType:
    """The type of a value that stands in some columns: the narrowest that is declared."""
    relations = encoding.instance.known.catalog.relations
    types = {relations[name].types[i] for name, i in columns}
    declared = sorted(types - {ANY}, key=lambda its: _WIDTH.get(its.name.value, 9))
    if declared:
        return declared[0]
    numbers = all(c in encoding.instance.known.catalog.number_columns for c in columns)
    return NUMBER if numbers else ANY


_WIDTH = {"boolean": 0, "tinyint": 1, "smallint": 2, "int": 3, "bigint": 4, "decimal": 5, "float": 6}


T = TypeVar("T")

_ATTEMPTS = 3
"""How many choices of values are tried for an answer set."""

_TOGETHER = 100_000
"""All ways to a row too many are looked at in one program if it has no more ground rules; else each alone."""


class Determined(Struct, frozen=True):
    """The view's state after the update is the same on every database.

    Attributes:
        state: its rows.
    """

    state: frozenset[Row]


class TwoDatabases(Struct, frozen=True):
    """Two databases that explain what is known and give the view different states.

    Attributes:
        first: one of them, before the update.
        second: the other.
        row: a row that the view has on the second one after the update, and not on the first.
        view: the view, which may be a part of another one, as a query of a union is.
        is_counted: whether its last column is the number of its copies.
        numbered: the relations whose last column tells equal rows apart.
    """

    first: Rows
    second: Rows
    row: Row
    view: str = ""
    is_counted: bool = False
    numbered: frozenset[str] = frozenset()

    @classmethod
    def of(cls, catalog: Catalog, view: View, first: Rows, second: Rows, row: Row) -> TwoDatabases:
        """Two databases of a warehouse that differ on a view."""
        numbered = {name for name, relation in catalog.relations.items() if relation.is_numbered}
        return cls(first, second, row, view.name, view.is_counted, frozenset(numbered))

    @property
    def shown(self) -> Row:
        """The row as the view has it."""
        return self.row[:-1] if self.is_counted else self.row

    @property
    def differing(self) -> tuple[Atom, ...]:
        """The facts that one has and the other has not, or has less often, those of the second one first."""
        return tuple(
            Atom(Predicate(name), tuple(map(Constant, row)))
            for more, less in ((self.second, self.first), (self.first, self.second))
            for name in more
            for row in sorted((self._bag(name, more) - self._bag(name, less)).elements(), key=repr)
        )

    def _bag(self, name: str, rows: Rows) -> Counter[Row]:
        found = rows.get(name, frozenset())
        return Counter(row[:-1] if name in self.numbered else row for row in found)


class Open(Struct, frozen=True):
    """No answer.

    Attributes:
        reason: why.
        larger: which part of a budget may be too small for one: `rows` or `seconds`.
        is_final: whether there is none for more rows either, or none in that time.
    """

    reason: str
    larger: Literal["rows", "seconds"] | None = None
    is_final: bool = False


Answer = Determined | TwoDatabases | Open


class NewStates:
    """The answers for the views of a warehouse with some data; the first database is made once.

    Attributes:
        known: everything known, or the part of it that is at hand.
        cut: which part; None if all of it is.
    """

    def __init__(
        self, known: Given, seconds: float, cut: Cut | None = None, rules: Queries | None = None
    ) -> None:
        self.known = known
        self.cut = cut
        self._queries: Queries = queries(known.catalog) if rules is None else rules
        self._seconds = seconds
        self._first: tuple[Encoding, Model] | Open | None = None

    def covers(self, view: View) -> bool:
        """Whether a view is of a class that the search takes exactly."""
        return view.name in self._queries

    def stored(self, view: View) -> frozenset[Row]:
        """The view's rows before the update."""
        return self.known.of(view.name, Version.STORED)

    def of(self, view: View) -> Answer:
        """Whether the view's state after the update is determined, and what it is."""
        if may_repeat(view):
            return Open(MAY_REPEAT, is_final=True)
        if self.cut is not None and view.name in self.cut.may_lose:
            return Open(TOO_MANY_LOST, "rows", is_final=True)
        if self._first is None:
            self._first = self._within(self._found_first)
        if isinstance(self._first, Open):
            return self._first
        encoding, model = self._first
        return self._within(lambda solver: self._compared(view, encoding, model, solver))

    def _within(self, search: Callable[[Solver], T]) -> T | Open:
        """What a search gives, or why it has no end here."""
        try:
            with limit(self._seconds, "searching"):
                return search(Solver(self._seconds))
        except (BudgetSpentError, SolverLateError):
            return Open(f"the search did not end within {self._seconds:g} s", "seconds", is_final=True)
        except SolverStoppedError as error:
            return Open(str(error), is_final=True)
        except (TooLargeError, TooManyFactsError):
            return Open("there are too many possibilities to search", is_final=True)
        except NotComparableError:
            return Open("values of several kinds, or without an order, are compared", is_final=True)

    def _found_first(self, solver: Solver) -> tuple[Encoding, Model] | Open:
        if any(value != value for rows in self.known.rows.values() for row in rows for value in row):  # noqa: PLR0124
            return Open("some value is not a number", is_final=True)
        made = instance(self.known, self._queries, cut=self.cut)
        if made.unexplained is not None:
            view, row = made.unexplained
            return Open(f"{self.known.catalog.view(view).shown} cannot give its row {row}", is_final=True)
        encoding = Encoding(made, self._queries)
        model = solver.answer_set(encoding.text, _names(encoding))
        if model is None:
            return Open(_CIRCLES if made.is_cut else "no database explains what is known", is_final=True)
        return encoding, model

    def _compared(self, view: View, encoding: Encoding, model: Model, solver: Solver) -> Answer:
        firsts = [real_database(encoding, model, attempt) for attempt in range(2)]
        first, renamed = firsts  # with other values where nothing tells them
        if first is None or renamed is None:
            return Open(_NO_VALUES)
        state = self._state(view, first)
        if self.cut is not None and not all(
            self.cut.has_all_like(view.name, row) for row in state - self.stored(view)
        ):
            return Open(TOO_MANY_LIKE, "rows")
        if self._state(view, renamed) != state:
            return self._pair(view, first, [renamed])
        every = tuple(ways(self.known, self._queries, view.name, state))
        try:
            return self._other(view, state, first, every, solver, most=_TOGETHER)
        except TooLargeError:
            each: list[tuple[Way, ...]] = [(), *((way,) for way in every)]
        for some in each:
            found = self._other(view, state, first, some, solver, most=MOST_GROUND_RULES)
            if not isinstance(found, Determined):
                return found
        return Determined(state)

    def _other(
        self,
        view: View,
        state: frozenset[Row],
        first: Rows,
        some: tuple[Way, ...],
        solver: Solver,
        *,
        most: float,
    ) -> Answer:
        """The answer as far as some ways to a row too many go, and rows that may be missing."""
        wanted = Wanted(view.name, state, some)
        made = instance(self.known, self._queries, wanted, self.cut)
        encoding = Encoding(made, self._queries, most)
        encoding.want(wanted)
        found = solver.answer_set(encoding.text, _names(encoding))
        if found is None:
            return Determined(state) if not made.is_cut else Open(_CIRCLES)
        return self._pair(view, first, [real_database(encoding, found, at) for at in range(_ATTEMPTS)])

    def _pair(self, view: View, first: Rows, others: Sequence[Rows | None]) -> Answer:
        """The first database and one of some others, if both explain all that is known."""
        if self.cut is not None:
            return Open(_left_open(self.known.catalog, first, others), "rows")
        if why_not(self.known, first):
            return Open(_NO_VALUES)
        catalog, less = self.known.catalog, self._state(view, first)
        for other in others:
            if other is None or why_not(self.known, other):
                continue
            more = self._state(view, other)
            if more - less:
                return TwoDatabases.of(catalog, view, first, other, min(more - less, key=repr))
            if less - more:
                return TwoDatabases.of(catalog, view, other, first, min(less - more, key=repr))
        return Open(_NO_VALUES)

    def _state(self, view: View, database: Rows) -> frozenset[Row]:
        """The view's rows after the update; without those of before that are not at hand."""
        state = self.known.state(view, self.known.after(database))
        assert state is not None
        if self.cut is None:
            return state
        before = self.known.state(view, database)
        assert before is not None
        return state - (before - self.stored(view))


MAY_REPEAT = "whether a row of it stands twice is not told"
TOO_MANY_LOST = "more rows of it could be lost than are searched"
TOO_MANY_LIKE = "more rows of it are like those gained than are searched"
_NO_VALUES = "the databases found do not explain what is known of views of other classes, or of types"
_CIRCLES = "foreign keys go in circles"


def _left_open(catalog: Catalog, first: Rows, others: Sequence[Rows | None]) -> str:
    """That what is at hand does not decide between two databases, and what would."""
    names = {n for other in others if other is not None for n in first if first[n] != other.get(n)}
    told = ", ".join(f"`{n}`" for n in sorted(names)) or "the base relations"
    keyless = ", ".join(f"`{n}`" for n in sorted(names) if not catalog.relations[n].unique)
    key = f", or a key of {keyless} to be declared" if keyless else ""
    return (
        f"the rows near the update leave two states open: rows of {told} decide between them, which a read finds{key}; "
        "rows of views farther away may decide, too"
    )


def _names(encoding: Encoding) -> list[str]:
    return [f"{BEFORE}{number}" for number in encoding.numbers.values()]


__all__ = ["Answer", "Determined", "NewStates", "Open", "TwoDatabases"]
