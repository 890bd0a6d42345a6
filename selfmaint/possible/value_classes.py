"""Which values meet: the classes of columns, and the numbers that the solver has for their values.

Two columns are in one *class* if a variable, a comparison or a foreign key connects them, be it through others. Values
of different classes never meet, so one class's values can be renamed without the others. Null is 0
in all of them.

Each value of a database that is no constant of its class can be renamed to any other one that is none either: only
which of them are equal matters, and where values are compared, what they are compared with. So a class has its
constants, and places for values that nothing mentions:

- *Not compared by size*: one region, in which each labelled null has a place of its own.
- *Compared with constants*, the landmarks: a region below the first, between any two neighbours, above the last, with
  a place for each labelled null. What is in one region passes the same tests.
- *Compared with each other*, or with less room in some region than there are nulls: a region between any two
  constants, with so many places as there are nulls, or as there are values if these are fewer; any null may take any
  place. Numbers follow the order in all of these, so that the solver compares numbers.

Condition of exactness: steps between values are known where all columns of the class have one declared type; else the
class is taken for dense, which adds databases: a "yes" stays sound, and a "no" is shown by real values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise

from msgspec import Struct, field

from datalog.model import (
    ANY,
    ColumnType,
    Comparison,
    Constant,
    Row,
    Term,
    Value,
    Variable,
    Version,
    value_kind,
)
from datalog.order import satisfiable
from datalog.order.domains import Grid, domain_of
from datalog.order.points import point_of
from selfmaint.countermodel.model_check import Given
from selfmaint.possible.queries import Query
from selfmaint.warehouse.catalog import Catalog

_COLUMN = Variable("Column")


@lru_cache(maxsize=100_000, typed=True)
def fits(value: Value, column_type: ColumnType) -> bool:
    """Whether a column of a type can hold a value that is not null."""
    if not column_type.accepts(value):
        return False
    if column_type == ANY or isinstance(value, float):
        return True
    return satisfiable([Comparison("=", _COLUMN, Constant(value))], {_COLUMN: column_type})


class NotComparableError(Exception):
    """Values of several families are compared, or values without a place in an order."""


class ValueClass(Struct, eq=False, dict=True):
    """The columns that share values.

    Attributes:
        types: of the base columns.
        landmarks: those of them that rules compare with.
        is_ordered: whether values are compared by size.
        is_related: whether they are compared with each other, or have to be looked at as if they were.
        regions: the numbers of places.
    """

    number: int
    types: frozenset[ColumnType]
    values: frozenset[Constant]
    landmarks: frozenset[Constant]
    is_ordered: bool
    is_related: bool
    constants: dict[Constant, int] = field(default_factory=dict)
    regions: list[list[int]] = field(default_factory=list)

    @property
    def is_shared(self) -> bool:
        """Whether a labelled null may take any place."""
        return self.is_ordered and self.is_related

    @cached_property
    def places(self) -> frozenset[int]:
        """All places."""
        return frozenset(place for region in self.regions for place in region)

    @cached_property
    def in_order(self) -> list[Constant]:
        """The constants in order.

        Raises:
            NotComparableError: there is none.
        """
        if len({value_kind(c.value) for c in self.values}) > 1:
            raise NotComparableError
        try:
            return sorted(self.values, key=lambda c: point_of(c.value))
        except ValueError as error:
            raise NotComparableError from error

    def give_numbers(self, nulls: int, fresh: Callable[[], int]) -> None:
        """Gives the constants their numbers, and the labelled nulls their places.

        `nulls` is how many labelled nulls may have a value that is no constant; `fresh` makes numbers, each greater
        than the last.

        Raises:
            NotComparableError: the class is compared by size and has no order.
        """
        if not self.is_ordered:
            for constant in sorted(self.values, key=repr):
                self.constants[constant] = fresh()
            self.regions.append([fresh() for _ in range(nulls)])
            return
        marks = [c for c in self.in_order if c in self.landmarks]
        if not self.is_related and any(room < nulls for room in self._rooms(marks)):
            self.is_related = True
        ends = self.in_order if self.is_related else marks
        rooms = iter(self._rooms(ends))
        for constant in self.in_order:
            if constant in ends:
                self._add_region(nulls, rooms, fresh)
            self.constants[constant] = fresh()
        self._add_region(nulls, rooms, fresh)

    def _add_region(self, nulls: int, rooms: Iterator[float], fresh: Callable[[], int]) -> None:
        self.regions.append([fresh() for _ in range(int(min(nulls, next(rooms))))])

    def _rooms(self, ends: Sequence[Constant]) -> Iterator[float]:
        """How many values are no constants: below the first of some constants, between any two, above the last."""
        grid = self._grid()
        points = [point_of(c.value) for c in self.values]
        for low, high in pairwise([None, *(point_of(c.value) for c in ends), None]):
            if grid is None:
                yield float("inf")
                continue
            first = grid.low - grid.step if low is None else low
            last = grid.high + grid.step if high is None else high
            assert not isinstance(first, str)
            assert not isinstance(last, str)
            taken = sum(first < point < last for point in points if not isinstance(point, str))
            yield max(0, int((Fraction(last) - Fraction(first)) / grid.step) - 1 - taken)

    def _grid(self) -> Grid | None:
        """The steps between its values, where the types agree on them."""
        if len(self.types) != 1:
            return None
        (its,) = self.types
        if its.family in ("any", "string"):
            return None
        domain = domain_of(its, its.family)
        if not isinstance(domain, Grid):
            return None
        whole = all((Fraction(point_of(c.value)) - domain.low) % domain.step == 0 for c in self.values)
        return domain if whole else None


NULL = 0
"""The number of null."""

Column = tuple[str, int]
"""A column of a base relation or of a view."""

GIVEN = frozenset(
    {
        Version.STORED,
        Version.INSERTED,
        Version.DELETED,
        Version.PRESENT,
        Version.ABSENT,
        Version.BEFORE,
        Version.REGION,
    }
)
"""The kinds of rows that the search is about; what else is learnt from them is implied."""

_IN_ORDER = frozenset({"<", "<=", ">", ">="})


class ValueClasses:
    """The classes of all columns and variables, and the numbers of their constants."""

    def __init__(
        self,
        known: Given,
        queries: Mapping[str, Sequence[Query]],
        more: Mapping[str, Iterable[Row]] | None = None,
    ) -> None:
        """The classes of what is known, with the values of some more rows of views as constants."""
        self._parents: dict[Hashable, Hashable] = {}
        self._constants: dict[Hashable, set[Constant]] = {}
        self._landmarks: dict[Hashable, set[Constant]] = {}
        self._related: set[Hashable] = set()
        self._ordered: set[Hashable] = set()
        self._names = {*known.catalog.relations, *queries}
        for relation in known.catalog.relations.values():
            for reference in relation.references:
                for one, other in zip(reference.columns, reference.target_columns, strict=True):
                    self._connect((relation.name, one), (reference.target, other))
        for rules in queries.values():
            for query in rules:
                self._read(query)
        self._read_rows(known)
        for view, rows in (more or {}).items():
            for row in rows:
                for i, value in enumerate(row):
                    self._add((view, i), value)
        self._made = self._classes(known)
        self._next = 1

    def _root(self, node: Hashable) -> Hashable:
        while (parent := self._parents.get(node, node)) != node:
            node = parent
        return node

    def _connect(self, one: Hashable, other: Hashable) -> None:
        self._parents[self._root(one)] = self._root(other)

    def _add(self, node: Hashable, value: Value) -> None:
        if value is not None:
            self._constants.setdefault(node, set()).add(Constant(value))

    def _read(self, query: Query) -> None:
        places = [((query.view, i), t) for i, t in enumerate(query.head)]
        places += [((a.predicate.name, i), t) for a in query.body for i, t in enumerate(a.terms)]
        for place, term in places:
            if isinstance(term, Constant):
                self._add(place, term.value)
            else:
                self._connect(place, (query.view, query.number, term))
        for comparison in (f for f in query.filters if isinstance(f, Comparison)):
            ends = [t for t in (comparison.left, comparison.right) if isinstance(t, Variable)]
            nodes = [(query.view, query.number, t) for t in ends]
            for node in nodes[1:]:
                self._connect(nodes[0], node)
            for term in (comparison.left, comparison.right):
                if isinstance(term, Constant) and nodes:
                    self._add(nodes[0], term.value)
                    self._landmarks.setdefault(nodes[0], set()).add(term)
            if len(nodes) > 1:
                self._related.update(nodes)
            if comparison.operator in _IN_ORDER:
                self._ordered.update(nodes)

    def _read_rows(self, known: Given) -> None:
        for predicate, rows in known.rows.items():
            if predicate.name in self._names and predicate.version in GIVEN:
                columns = predicate.columns if predicate.version is Version.REGION else None
                for row in rows:
                    for i, value in enumerate(row):
                        self._add((predicate.name, i if columns is None else columns[i]), value)
        for name, rows in known.known.items():
            for row in rows:
                for i, value in enumerate(row):
                    self._add((name, i), value)

    def _classes(self, known: Given) -> dict[Hashable, ValueClass]:
        types: dict[Hashable, set[ColumnType]] = {}
        for relation in known.catalog.relations.values():
            for i, its in enumerate(relation.types):
                types.setdefault(self._root((relation.name, i)), set()).add(its)
        values: dict[Hashable, set[Constant]] = {}
        for node, found in self._constants.items():
            values.setdefault(self._root(node), set()).update(found)
        related, ordered = (set(map(self._root, nodes)) for nodes in (self._related, self._ordered))
        landmarks: dict[Hashable, set[Constant]] = {}
        for node, found in self._landmarks.items():
            landmarks.setdefault(self._root(node), set()).update(found)
        roots = dict.fromkeys([*types, *values, *map(self._root, self._parents)])
        made = {}
        for number, root in enumerate(roots):
            its_types = frozenset(types.get(root, ()))
            constants = values.get(root, set())
            if any(t.is_finite for t in its_types):
                constants |= {Constant(value=False), Constant(value=True)}
            marks = frozenset(landmarks.get(root, ())) - {Constant(None)}
            made[root] = ValueClass(
                number, its_types, frozenset(constants), marks, root in ordered, root in related
            )
        return made

    @property
    def every(self) -> tuple[ValueClass, ...]:
        """All classes."""
        return tuple(self._made.values())

    def of_column(self, name: str, column: int) -> ValueClass:
        """The class of a column."""
        return self._made[self._root((name, column))]

    def of_variable(self, query: Query, variable: Variable) -> ValueClass:
        """The class of a variable of a query."""
        return self._made[self._root((query.view, query.number, variable))]

    def number_constants(self, nulls: Counter[int]) -> None:
        """Gives the constants their numbers, and classes that are compared their places.

        `nulls` tells of each class, by its number, how many labelled nulls with a value of their own there may be in
        it.

        Raises:
            NotComparableError: a class has no order.
        """
        for one in self.every:
            one.give_numbers(nulls[one.number], self.fresh_number)

    def fresh_number(self) -> int:
        """A number that stands for nothing yet."""
        self._next += 1
        return self._next - 1

    def number(self, name: str, column: int, value: Value) -> int:
        """The number of a value in a column."""
        return NULL if value is None else self.of_column(name, column).constants[Constant(value)]

    def numbers(self, name: str, row: Row, columns: Iterable[int] | None = None) -> tuple[int, ...]:
        """The numbers of a row's values."""
        places = range(len(row)) if columns is None else columns
        return tuple(self.number(name, i, value) for i, value in zip(places, row, strict=True))


def joined(rules: Mapping[str, Sequence[Query]], classes: ValueClasses) -> frozenset[int]:
    """The classes of variables by which rules join."""
    found: set[ValueClass] = set()
    for query in (query for its in rules.values() for query in its):
        seen: set[Term] = set()
        for term in (t for atom in query.body for t in atom.terms):
            if isinstance(term, Variable) and term in seen:
                found.add(classes.of_variable(query, term))
            seen.add(term)
    return frozenset(one.number for one in found)


def meeting(catalog: Catalog, joined: frozenset[int], classes: ValueClasses) -> frozenset[int]:
    """The classes of keys and foreign keys; of a relation without such a column or a join, those of all its columns."""
    found: set[int] = set()
    relations = catalog.relations
    for relation in relations.values():
        columns = [i for key in relation.unique for i in key]
        columns += [i for reference in relation.references for i in reference.columns]
        found.update(classes.of_column(relation.name, i).number for i in columns)
    for relation in relations.values():
        numbers = {classes.of_column(relation.name, i).number for i in range(relation.arity)}
        if numbers.isdisjoint(found | joined):
            found |= numbers
    return frozenset(found)
