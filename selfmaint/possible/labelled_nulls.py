"""Facts with labelled nulls: what the databases that the search looks at are made of.

A database that explains what is known contains, for each stored row of each view, the facts of one match of one of
the view's rules, and for each fact the rows that its foreign keys ask for. Views are monotone. So of a database
with a row too many, or too few, the following part has that row too many, or too few as well, and explains what is
known: the facts of these matches, what is known to be there, the facts of one match for the row too many, and what
their foreign keys ask for. The values of these facts that nothing tells are *labelled nulls*; the search gives each a
constant of its class, or the value of another null, or one of its own.

- *Rows*. A stored row that certain facts derive needs no match of its own. Of the others each has its rules as choices.
- *Goals*. For a row too many: a rule of the view, and an inserted row for one of its subgoals, or a stored row that
  the view has after the update on one database only. The other subgoals' facts may be added to the database.
- *Partners*. For each fact and each of its foreign keys a row that may be there to be referenced, unless one is there
  anyway. Where foreign keys go in circles these are cut off after some steps, and nothing certain follows (`is_cut`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from msgspec import Struct, field

from datalog.model import Atom, ColumnType, Constant, Row, Term, Variable, Version
from selfmaint.countermodel.model_check import Given
from selfmaint.possible.cut import Cut
from selfmaint.possible.queries import Query
from selfmaint.possible.value_classes import ValueClass, ValueClasses, fits
from selfmaint.warehouse.catalog import BaseRelation, Reference

_DEEPEST = 6
"""So many foreign keys are followed one after the other."""


class TooManyFactsError(Exception):
    """There are too many facts with labelled nulls."""


class LabelledNull(Struct, frozen=True, eq=False):
    """A value that nothing known tells.

    Attributes:
        number: tells nulls apart; a null may take the value of one before it.
        value_class: the class of its columns.
        nullable: whether it may be null in the sense of SQL.
        where: what it is the value of, if that is part of a database at all.
    """

    number: int
    value_class: ValueClass
    types: frozenset[ColumnType]
    nullable: bool
    where: str

    @property
    def may_be_fresh(self) -> bool:
        """Whether it may have a value of its own."""
        return not any(its.is_finite for its in self.types)

    def admits(self, constant: Constant) -> bool:
        """Whether it may be a constant, by its types."""
        return all(fits(constant.value, its) for its in self.types)


Part = Constant | LabelledNull
"""A value of a fact: told, or a labelled null."""


class Fact(Struct, frozen=True):
    """A fact that a database has where `where` holds.

    Attributes:
        where: an atom of the solver's program; empty if it is always there.
        is_inserted: whether it is there after the update only, and stands here for what it references.
    """

    relation: str
    parts: tuple[Part, ...]
    where: str
    is_inserted: bool = False

    @property
    def row(self) -> Row | None:
        """The row, if all its values are told."""
        found = tuple(p.value for p in self.parts if isinstance(p, Constant))
        return found if len(found) == len(self.parts) else None


class Choice(Struct, frozen=True):
    """A stored row with the rules that may give it, each under a name of its own."""

    names: tuple[str, ...]


class Test(Struct, frozen=True):
    """A filter of a match with labelled nulls: holds where `where` does."""

    query: Query
    binding: Mapping[Variable, Part]
    where: str


class Instance(Struct):
    """The facts, choices and tests that a program is made of.

    Attributes:
        facts: what a database may have.
        asked: facts of goals that are there or not, whatever the goal.
        choices: one name of each is true.
        options: facts that may or may not be there, by the name of that.
        tests: what matches must satisfy.
        nulls: all labelled nulls, in order.
        is_cut: whether foreign keys were not followed to the end.
        cut: which stored rows are at hand; all of them if None.
        unexplained: a stored row that no rule of its view can give.
    """

    known: Given
    classes: ValueClasses
    facts: list[Fact] = field(default_factory=list)
    asked: list[Fact] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    tests: list[Test] = field(default_factory=list)
    nulls: list[LabelledNull] = field(default_factory=list)
    is_cut: bool = False
    cut: Cut | None = None
    unexplained: tuple[str, Row] | None = None
    _names: Iterator[int] = field(default_factory=lambda: count(1))

    def name(self, kind: str) -> str:
        """A new name of something that may be true."""
        return f"{kind}{next(self._names)}"

    def null(self, atoms: Sequence[tuple[ValueClass, ColumnType, bool]], where: str) -> LabelledNull:
        """A labelled null of some columns: their class, types, and whether they may hold null.

        Raises:
            TooManyFactsError: there are too many.
        """
        if self.cut is not None and len(self.nulls) >= self.cut.nulls:
            raise TooManyFactsError
        made = LabelledNull(
            len(self.nulls) + 1,
            atoms[0][0],
            frozenset(its for _, its, _ in atoms),
            all(nullable for _, _, nullable in atoms),
            where,
        )
        self.nulls.append(made)
        return made

    def numbers_of_nulls(self) -> Counter[int]:
        """How many nulls may have a value of their own, by the number of their class."""
        return Counter(null.value_class.number for null in self.nulls if null.may_be_fresh)

    def column(self, relation: BaseRelation, column: int) -> tuple[ValueClass, ColumnType, bool]:
        """What a labelled null has to know of a column."""
        its_class = self.classes.of_column(relation.name, column)
        return its_class, relation.types[column], column in relation.nullable

    def bind(self, query: Query, binding: Mapping[Variable, Part], where: str) -> dict[Variable, Part]:
        """A binding with a labelled null for each variable of the body that has no value."""
        found = dict(binding)
        places: dict[Variable, list[tuple[ValueClass, ColumnType, bool]]] = {}
        for atom in query.body:
            relation = self.known.catalog.relations[atom.predicate.name]
            for i, term in enumerate(atom.terms):
                if isinstance(term, Variable) and term not in found:
                    places.setdefault(term, []).append(self.column(relation, i))
        for variable, its in places.items():
            never_null = variable in query.not_null
            found[variable] = self.null([(c, t, n and not never_null) for c, t, n in its], where)
        return found

    def add_partners(self) -> None:
        """Adds the rows that facts may reference, and those that these may; one for equal keys that go together."""
        there = self._always_there()
        shared: set[tuple[object, ...]] = set()
        depths = dict.fromkeys(self.facts, 0)
        waiting = list(depths)
        for fact in waiting:
            for reference in self.known.catalog.relations[fact.relation].references:
                keys = tuple(fact.parts[i] for i in reference.columns)
                target = self.known.catalog.relations[reference.target]
                asked = (reference, keys)
                if (
                    target.name in self.known.situation.readable
                    or not _may_be_referenced(target, reference, keys)
                    or asked in there
                    or (*asked, fact.where) in shared
                ):
                    continue
                if depths[fact] >= _DEEPEST:
                    self.is_cut = True
                    continue
                shared.add((*asked, fact.where))
                partner = self._partner(target, reference, keys, fact.where)
                if partner not in depths:
                    depths[partner] = depths[fact] + 1
                    waiting.append(partner)
                    self.facts.append(partner)

    def _partner(self, target: BaseRelation, reference: Reference, keys: Sequence[Part], where: str) -> Fact:
        """A row that may be there to be referenced."""
        name = self.name("p")
        self.options[name] = where
        given = dict(zip(reference.target_columns, keys, strict=True))
        parts = tuple(
            given[i] if i in given else self.null([self.column(target, i)], name) for i in range(target.arity)
        )
        return Fact(target.name, parts, name)

    def _always_there(self) -> set[tuple[Reference, tuple[Part, ...]]]:
        """What is referenced by foreign keys and always there, before the update and after it."""
        found: set[tuple[Reference, tuple[Part, ...]]] = set()
        references = {r for each in self.known.catalog.relations.values() for r in each.references}
        deleted = {
            r: {tuple(row[i] for i in r.target_columns) for row in self.known.of(r.target, Version.DELETED)}
            for r in references
        }
        for fact in self.facts:
            if fact.where or fact.is_inserted:
                continue
            for reference in (r for r in references if r.target == fact.relation):
                keys = tuple(fact.parts[i] for i in reference.target_columns)
                told = tuple(key.value for key in keys if isinstance(key, Constant))
                gone = deleted[reference]
                if not gone or (len(told) == len(keys) and told not in gone):
                    found.add((reference, keys))
        return found


def _may_be_referenced(target: BaseRelation, reference: Reference, keys: Sequence[Part]) -> bool:
    """Whether a row can be referenced by values at all: none is null, and the columns can hold them."""
    return all(
        may_hold(target, i, key) and not (isinstance(key, Constant) and key.value is None)
        for i, key in zip(reference.target_columns, keys, strict=True)
    )


def may_hold(relation: BaseRelation, column: int, part: Part) -> bool:
    """Whether a column may hold a value: by its type, and whether it may be null."""
    if isinstance(part, LabelledNull):
        return True
    if part.value is None:
        return column in relation.nullable
    return fits(part.value, relation.types[column])


def part_of(term: Term, binding: Mapping[Variable, Part]) -> Part:
    """A constant, or what a variable stands for."""
    return term if isinstance(term, Constant) else binding[term]


def matched(terms: Sequence[Term], row: Row) -> dict[Variable, Part] | None:
    """What a row tells of the variables of some terms; None if it does not fit."""
    found: dict[Variable, Part] = {}
    for term, value in zip(terms, row, strict=True):
        given = Constant(value)
        if (term if isinstance(term, Constant) else found.setdefault(term, given)) != given:
            return None
    return found


def facts_of(query: Query, binding: Mapping[Variable, Part], where: str) -> Iterator[Fact]:
    """The facts of a match."""
    for atom in query.body:
        yield fact_of(atom, binding, where)


def fact_of(atom: Atom, binding: Mapping[Variable, Part], where: str) -> Fact:
    """The fact of one subgoal of a match."""
    return Fact(atom.predicate.name, tuple(part_of(t, binding) for t in atom.terms), where)


def given_facts(known: Given) -> Iterator[Fact]:
    """The facts that are known to be there, apart from views; then those that may be, whatever else is."""
    situation = known.situation
    for name in known.catalog.relations:
        rows = known.of(name, Version.PRESENT) | known.of(name, Version.BEFORE)
        if situation.effective:
            rows |= known.of(name, Version.DELETED)
        for row in sorted(rows, key=repr):
            yield Fact(name, tuple(map(Constant, row)), "")
