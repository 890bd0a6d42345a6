"""Which values meet: the classes of columns, and the numbers that the solver has for their values.

Two columns are in one *class* if a variable, a comparison or a foreign key connects them, be it through others. Values
of different classes never meet, so one class's values can be renamed without the others (`value_class.py`). Null is 0
in all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from datalog.model import ColumnType, Comparison, Constant, Row, Value, Variable, Version
from selfmaint.countermodel.model_check import Given
from selfmaint.possible.queries import Query
from selfmaint.possible.value_class import ValueClass

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

        Args:
            nulls: how many labelled nulls with a value of their own there may be in each class, by its number.

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
