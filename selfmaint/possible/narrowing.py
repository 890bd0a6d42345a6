"""What stored rows leave of the values of labelled nulls: where a view shows a fact whole, its row must be stored.

    dim(K, N) :- d(K, N).      d(n1, "x") is a fact, and the view stores (7, "x") alone with "x": n1 is 7

Of a fact that is there wherever a null is, each view that has a rule of one subgoal, without a test that could fail,
has a row. What it shows of the null is among the rows that agree with what is told. The same holds of rows that a
foreign key asks for, and of readable relations. A null with one value left tells what it is to others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from datalog.budget import check
from datalog.model import Atom, Constant, NullTest, Row, Variable, Version
from selfmaint.countermodel.model_check import Given
from selfmaint.possible.cut import Cut
from selfmaint.possible.labelled_nulls import Fact, Instance, LabelledNull, Part
from selfmaint.possible.queries import Queries, Query

_ROUNDS = 4
"""So often what was narrowed narrows more."""


class _Shown(Struct, frozen=True):
    """Rows of which a fact's must be one, and the columns of the fact that they show: column of the fact to column."""

    of: tuple[object, ...]
    rows: frozenset[Row]
    columns: tuple[tuple[int, int], ...]


class RowsByValues:
    """Rows found by what they have in some columns; the rows of one source are looked through once for these."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], dict[Row, list[Row]]] = {}

    def matching(
        self, of: tuple[object, ...], rows: Iterable[Row], told: Mapping[int, Constant]
    ) -> Sequence[Row]:
        """The rows of a source that have given values in some columns."""
        columns = tuple(sorted(told))
        index = self._found.get((*of, columns))
        if index is None:
            index = self._found[*of, columns] = {}
            for row in rows:
                index.setdefault(tuple(row[i] for i in columns), []).append(row)
        return index.get(tuple(told[i].value for i in columns), ())


class Narrowing(Struct):
    """For labelled nulls the constants that they must be one of; a null that is missing may be anything.

    Attributes:
        cut: which stored rows are at hand; all of them if None.
        left: the constants.
    """

    cut: Cut | None = None
    left: dict[LabelledNull, frozenset[Constant]] = field(default_factory=dict)
    _rows: RowsByValues = field(default_factory=RowsByValues)

    def admits(self, null: LabelledNull, value: Constant) -> bool:
        """Whether a null may be a constant, or null."""
        values = self.left.get(null)
        return values is None or value in values

    def told(self, part: Part) -> Constant | None:
        """The value of a part, if it has but one."""
        if isinstance(part, Constant):
            return part
        values = self.left.get(part)
        return next(iter(values)) if values is not None and len(values) == 1 else None

    def narrow(self, parts: Sequence[Part], where: str, shown: _Shown) -> bool:
        """What some rows leave of the nulls of a fact; whether that is less than before."""
        told = {j: value for i, j in shown.columns if (value := self.told(parts[i])) is not None}
        nulls = [(n, j) for i, j in shown.columns if isinstance(n := parts[i], LabelledNull)]
        mine = [(n, j) for n, j in nulls if n.where == where and j not in told]
        if not mine or not self._has_all(shown, told):
            return False
        rows = self._rows.matching(shown.of, shown.rows, told)
        changed = False
        for null, j in mine:
            values = frozenset(Constant(row[j]) for row in rows)
            old = self.left.get(null)
            new = values if old is None else values & old
            changed |= new != old
            self.left[null] = new
        return changed

    def _has_all(self, shown: _Shown, told: Mapping[int, Constant]) -> bool:
        view, version = shown.of
        return self.cut is None or version is not Version.STORED or self.cut.has_all(str(view), told)


def narrowed(instance: Instance, queries: Queries) -> Narrowing:
    """What is left of the values of an instance's labelled nulls."""
    found = Narrowing(instance.cut)
    facts = [f for f in dict.fromkeys(instance.facts) if any(isinstance(p, LabelledNull) for p in f.parts)]
    shown = {fact: list(_shown(instance.known, queries, fact)) for fact in facts}
    keys = [(f, parts, its) for f in facts for parts, its in _referenced(instance.known, queries, f)]
    for _ in range(_ROUNDS):
        changed = False
        for fact in facts:
            check()
            for one in shown[fact]:
                changed |= found.narrow(fact.parts, fact.where, one)
        for fact, parts, one in keys:
            changed |= found.narrow(parts, fact.where, one)
        if not changed:
            break
    return found


def _shown(known: Given, queries: Queries, fact: Fact) -> Iterator[_Shown]:
    if fact.relation in known.situation.readable:
        rows = known.of(fact.relation, Version.BEFORE)
        yield _Shown((fact.relation, Version.BEFORE), rows, tuple((i, i) for i in range(len(fact.parts))))
    for view, rules in queries.items():
        for query in rules:
            if len(query.body) == 1 and query.body[0].predicate.name == fact.relation:
                columns = _columns(query, query.body[0], fact.parts)
                if columns:
                    yield _Shown((view, Version.STORED), known.of(view, Version.STORED), columns)


def _columns(query: Query, atom: Atom, parts: Sequence[Part]) -> tuple[tuple[int, int], ...]:
    """Which columns of a fact a query of one subgoal certainly shows; none if it may not match the fact."""
    place: dict[Variable, int] = {}
    for i, (term, part) in enumerate(zip(atom.terms, parts, strict=True)):
        if isinstance(term, Constant):
            if part != term:
                return ()
        elif term in place:
            if parts[place[term]] != part:
                return ()
        else:
            place[term] = i
    for test in query.filters:
        if not isinstance(test, NullTest) or not test.negated or not isinstance(test.term, Variable):
            return ()
        part = parts[place[test.term]]
        if part.nullable if isinstance(part, LabelledNull) else part.value is None:
            return ()
    heads = enumerate(query.head)
    return tuple((place[t], j) for j, t in heads if isinstance(t, Variable))


def _referenced(known: Given, queries: Queries, fact: Fact) -> Iterator[tuple[tuple[Part, ...], _Shown]]:
    """What is shown of the rows that a fact references: their keys."""
    for reference in known.catalog.relations[fact.relation].references:
        keys = [fact.parts[i] for i in reference.columns]
        if any(k.nullable if isinstance(k, LabelledNull) else k.value is None for k in keys):
            continue
        given = dict(zip(reference.target_columns, keys, strict=True))
        for one in _of_target(known, queries, reference.target):
            columns = tuple((i, j) for i, j in one.columns if i in given)
            parts = tuple(given.get(i, Constant(None)) for i in range(max(given) + 1))
            yield parts, _Shown(one.of, one.rows, columns)


def _of_target(known: Given, queries: Queries, name: str) -> Iterable[_Shown]:
    """What shows every row of a relation."""
    arity = known.catalog.relations[name].arity
    if name in known.situation.readable:
        rows = known.of(name, Version.BEFORE)
        yield _Shown((name, Version.BEFORE), rows, tuple((i, i) for i in range(arity)))
    for view, rules in queries.items():
        for query in rules:
            atom = query.body[0]
            plain = len(set(atom.terms)) == arity and not query.filters
            plain = plain and all(isinstance(t, Variable) for t in atom.terms)
            if len(query.body) == 1 and atom.predicate.name == name and plain:
                places = {t: i for i, t in enumerate(atom.terms)}
                columns = tuple((places[t], j) for j, t in enumerate(query.head) if isinstance(t, Variable))
                yield _Shown((view, Version.STORED), known.of(view, Version.STORED), columns)
