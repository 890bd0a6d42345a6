"""When two databases of a closed neighbourhood are the near part of two databases that explain everything known.

Let N be the rows at hand, all that have a value of another one in the classes that are followed (`neighbourhood.py`),
and C their values, and the update's, in these classes. Let A1 and A2 explain N, give nothing else, and differ after the
update. There is a database D that explains everything, since the warehouse has one. E is the part of it that
explains the rows not in N: a match for each, and what these reference. Rename in E each value of C in a followed class
to one of its own. Then E and A1, E and A2 explain everything, and differ after the update, if:

1. The neighbourhood is closed; what was read for some keys, and what is known to be absent, is not there; all
   views are unions of conjunctive queries; classes by which rules join are followed; followed classes have no
   order, no comparison, and no type of few values. Others are not renamed: E and A1 may share their values.
2. No constant of the rules is in C, and none is a followed value of A1, A2 or the update. So E has no value of theirs.
3. The subgoals of each rule are connected by variables, which are followed. So no match needs facts of both E and A1,
   A2 or the update.
4. Where a fact of E has a value that its view's row does not tell, in a followed class, each view that shows it shows
   also a value that the row tells, not null, in a followed class. So no row that E gives has a value of C before it is
   renamed: with one it is in N, and then so is the value that was told, which no row outside N has. What is renamed is
   shown nowhere, and E gives the rows that it gave in D.
5. Each row of the update, and each key of A1 and A2, has a followed value, not null: no row of E is deleted, none was
   inserted, and none has their key. Foreign keys lead from E into E, and from A1 into A1, before the update and after.
6. The row that makes the difference has one, too: E does not give it.

The search has asserted the rest of A1 and A2, and `countermodel.model_check` has held them against N.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from datalog.model import ColumnType, Comparison, Constant, Row, TypeName, Value, Variable, Version
from selfmaint.decide.neighbourhood import Neighbourhood
from selfmaint.possible.new_state import TwoDatabases
from selfmaint.possible.queries import Query
from selfmaint.possible.value_classes import ValueClasses
from selfmaint.warehouse.catalog import Catalog

_CHANGES = (Version.INSERTED, Version.DELETED)

_MANY_VALUES = frozenset(
    {TypeName.ANY, TypeName.STRING, TypeName.INT, TypeName.BIGINT, TypeName.DOUBLE, TypeName.TIMESTAMP}
)
"""Types with more values than any warehouse holds."""

_DIGITS = 10
"""Decimals of so many digits have, too."""


class _FarFact(Struct, frozen=True):
    """A kind of fact far away: the columns that its view's row tells, and those in which it has a rule's constant."""

    relation: str
    told: frozenset[int]
    constant: frozenset[int]


class Separation(Struct, frozen=True, dict=True):
    """A neighbourhood, asked whether what is far from it can be as it is."""

    near: Neighbourhood

    def may_allow(self) -> bool:
        """Whether a larger neighbourhood may: conditions 1 and 3 as far as they do not come with more rows."""
        situation = self.near.known.situation
        others = {view.name for view in self._catalog.views} - {*self.near.rules}
        if not self.near.may_close or situation.regions or situation.absent or others:
            return False
        return self.near.joined <= self.followed and all(map(_is_connected, self._queries))

    def allows(self) -> bool:
        """Whether conditions 1, 3 and 4 hold, and 2 and 5 of the update and the rows at hand."""
        return (
            self.near.is_closed
            and self.may_allow()
            and all(map(self._is_joined_plainly, self._queries))
            and all(map(self._is_told, self._far_facts()))
            and self._has_values()
        )

    def is_a_no(self, found: TwoDatabases, view: str) -> bool:
        """Whether conditions 2, 5 and 6 hold of two databases, which hold what was read."""
        relations = self._catalog.relations
        known = self.near.known
        for database in (found.first, found.second):
            for name, rows in database.items():
                keys = relations[name].unique
                if any(self._has_constant(name, row) for row in rows) or not all(
                    self._has_value(name, row, key) for key in keys for row in rows
                ):
                    return False
            for name, copy in self.near.copies.items():
                if database.get(name, frozenset()) != known.of(copy, Version.STORED):
                    return False
        return self._has_value(view, found.row, range(len(found.row)))

    @property
    def _catalog(self) -> Catalog:
        return self.near.known.catalog

    @property
    def _classes(self) -> ValueClasses:
        return self.near.classes

    @cached_property
    def followed(self) -> frozenset[int]:
        """The numbers of the classes without an order and with many values of whose values all rows are at hand."""
        return self.near.followed & {
            one.number
            for one in self._classes.every
            if not (one.is_ordered or one.is_related) and all(map(_has_many, one.types))
        }

    @property
    def _queries(self) -> Iterator[Query]:
        return (query for rules in self.near.rules.values() for query in rules)

    def _is_joined_plainly(self, query: Query) -> bool:
        compared = {t for f in query.filters if isinstance(f, Comparison) for t in (f.left, f.right)}
        seen: set[Variable] = set()
        for atom in query.body:
            its = {t for t in atom.terms if isinstance(t, Variable)}
            if not all(self._is_followed_variable(query, v) for v in its if v in seen):
                return False
            seen |= its
        return not any(isinstance(t, Variable) and self._is_followed_variable(query, t) for t in compared)

    def _is_followed_variable(self, query: Query, variable: Variable) -> bool:
        return self._classes.of_variable(query, variable).number in self.followed

    def _is_followed(self, name: str, column: int) -> bool:
        return self._classes.of_column(name, column).number in self.followed

    def _far_facts(self) -> Iterator[_FarFact]:
        """The kinds of facts of matches, and those that they reference, one after the other."""
        waiting = [
            _FarFact(
                atom.predicate.name,
                frozenset(i for i, t in enumerate(atom.terms) if isinstance(t, Variable) and t in query.head),
                frozenset(i for i, t in enumerate(atom.terms) if isinstance(t, Constant)),
            )
            for query in self._queries
            for atom in query.body
        ]
        seen: set[_FarFact] = set()
        while waiting:
            fact = waiting.pop()
            if fact in seen:
                continue
            seen.add(fact)
            yield fact
            for reference in self._catalog.relations[fact.relation].references:
                pairs = list(zip(reference.columns, reference.target_columns, strict=True))
                told, constant = (
                    frozenset(target for source, target in pairs if source in some)
                    for some in (fact.told, fact.constant)
                )
                waiting.append(_FarFact(reference.target, told, constant))

    def _is_told(self, fact: _FarFact) -> bool:
        """Condition 4."""
        relation = self._catalog.relations[fact.relation]
        followed = {i for i in range(relation.arity) if self._is_followed(relation.name, i)}
        hidden = followed - fact.told - fact.constant
        sure = (followed & fact.told) - relation.nullable
        for query in self._queries:
            for atom in query.body:
                if atom.predicate.name == fact.relation:
                    shown = {i for i, t in enumerate(atom.terms) if t in query.head}
                    if shown & hidden and not shown & sure:
                        return False
        return True

    def _has_values(self) -> bool:
        """Conditions 2 and 5 of the update and the rows at hand."""
        known = self.near.known
        changed = [(n, row) for n in self._catalog.relations for v in _CHANGES for row in known.of(n, v)]
        stored = [(n, row) for n in self.near.rules for row in known.of(n, Version.STORED)]
        return all(self._has_value(n, row, range(len(row))) for n, row in changed) and not any(
            self._has_constant(n, row) for n, row in (*changed, *stored)
        )

    def _has_value(self, name: str, row: Row, columns: Iterable[int]) -> bool:
        """Whether a row has a followed value in some columns, not null and no constant of the rules."""
        return any(
            row[i] is not None and self._is_followed(name, i) and not self._is_constant(name, i, row[i])
            for i in columns
        )

    def _has_constant(self, name: str, row: Row) -> bool:
        return any(self._is_followed(name, i) and self._is_constant(name, i, v) for i, v in enumerate(row))

    def _is_constant(self, name: str, column: int, value: Value) -> bool:
        return Constant(value) in self._constants.get(self._classes.of_column(name, column).number, ())

    @cached_property
    def _constants(self) -> Mapping[int, frozenset[Constant]]:
        """The constants of the rules, by class."""
        found: dict[int, set[Constant]] = {}
        for query in self._queries:
            places = [(query.view, i, t) for i, t in enumerate(query.head)]
            places += [(a.predicate.name, i, t) for a in query.body for i, t in enumerate(a.terms)]
            for name, i, term in places:
                if isinstance(term, Constant):
                    found.setdefault(self._classes.of_column(name, i).number, set()).add(term)
        return {number: frozenset(its) for number, its in found.items()}


def _is_connected(query: Query) -> bool:
    """Condition 3."""
    first, *others = [{t for t in atom.terms if isinstance(t, Variable)} for atom in query.body]
    while others:
        near = [its for its in others if its & first]
        if not near:
            return False
        first = first.union(*near)
        others = [its for its in others if not any(its is one for one in near)]
    return True


def _has_many(its: ColumnType) -> bool:
    if its.name is TypeName.DECIMAL:
        return (its.precision or _DIGITS) >= _DIGITS
    return its.name in _MANY_VALUES
