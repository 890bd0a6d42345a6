"""The base rows that a database may be made of: all over the values of its columns, or those that are sketched.

Of a sketch a part is told: by a stored row's rule, by a changed row's joins, by keys and foreign keys. A hole is a
value that is not told; one hole may stand in several rows. Keys make rows that agree on them one row.

A relation with few possible rows has all of them as candidates. Of another one the sketched rows are tried: first
with a new value of its own in each hole, then with known ones, as long as there is room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice, product
from math import prod

from msgspec import Struct, field

from datalog.model import (
    Aggregate,
    AggregateFunction,
    Atom,
    Comparison,
    Constant,
    Expression,
    Literal,
    Row,
    Term,
    Value,
    Variable,
    Version,
    expression_variables,
)
from selfmaint.cross_examine.domains import Domains
from selfmaint.cross_examine.question import Part, Question, identity
from selfmaint.warehouse.catalog import View

MOST_COPIES = 6
"""A row that stands, or a group that has, so many times: no more matches are made for it."""

_ROUNDS = 8
"""How often rows that agree on a key are made one, and referenced rows added."""


class Told(Struct, frozen=True):
    """A value that is told."""

    value: Value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Told) and identity(self.value) == identity(other.value)

    def __hash__(self) -> int:
        return hash(self.value)


class Hole(Struct, frozen=True):
    """A value that is not told."""

    number: int


Slot = Told | Hole
Binding = dict[Variable, Slot]
Sketch = tuple[str, tuple[Slot, ...]]
"""A base relation, and a row with holes."""


class Sketches(Struct):
    """The rows that are sketched, in the order in which they matter."""

    question: Question
    found: dict[Sketch, None] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)
    _filled: dict[Hole, Slot] = field(default_factory=dict)

    def make(self) -> list[Sketch]:
        """All of them."""
        question = self.question
        for name in question.catalog.relations:
            for row in question.known_rows(name):
                self._add(name, tuple(map(Told, row)))
        for view in question.catalog.views:
            for part in question.parts(view):
                for row in sorted(question.stored(view), key=repr):
                    for binding in self._of_row(view, part, row):
                        self._match(part, binding)
        for view in question.catalog.views:
            for part in question.parts(view):
                self._around_update(part)
        for _ in range(_ROUNDS):
            before = len(self.found)
            merged = self._merge_by_keys()
            self._add_referenced()
            if not merged and before == len(self.found):
                break
        return list(self.found)

    def _hole(self) -> Hole:
        return Hole(next(self._numbers))

    def _add(self, name: str, slots: tuple[Slot, ...]) -> None:
        self.found.setdefault((name, slots))

    def _of_row(self, view: View, part: Part, row: Row) -> Iterator[Binding]:
        """What a stored row tells of the variables of matches behind it, one for each that it certainly has."""
        told: Binding = {}
        copies = 1
        extremes: list[Binding] = []
        if self.question.keeps_duplicates(view) and isinstance(row[-1], int):
            copies, row = row[-1], row[:-1]
        for output, value in zip(part.outputs, row, strict=False):
            match output:
                case Variable():
                    if told.setdefault(output, Told(value)) != Told(value):
                        return
                case Constant():
                    if identity(output.value) != identity(value):
                        return
                case Aggregate(function=AggregateFunction.COUNT, operand=None) if isinstance(value, int):
                    copies = value
                case Aggregate(
                    function=AggregateFunction.MIN | AggregateFunction.MAX, operand=Variable() as v
                ):
                    extremes.append({v: Told(value)})
                case _:
                    pass
        for extra in extremes:
            yield {**told, **extra}
        for _ in range(max(1, min(copies, MOST_COPIES) - len(extremes))):
            yield told

    def _around_update(self, part: Part) -> None:
        for atom in (li for li in part.body if isinstance(li, Atom)):
            for version in (Version.INSERTED, Version.DELETED):
                for row in sorted(self.question.of(atom.predicate.name, version), key=repr):
                    binding = _unified(atom.terms, tuple(map(Told, row)))
                    if binding is None:
                        continue
                    self._match(part, binding)
                    if part.block is not None and part.block.groups is not None:
                        groups = expression_variables(part.block.groups)
                        self._match(part, {v: slot for v, slot in binding.items() if v in groups})

    def _match(self, part: Part, binding: Binding) -> None:
        """The rows of one match of a body, through the views that it reads."""
        known = dict(binding)
        self._equate(part.body, known)
        for atom in (li for li in part.body if isinstance(li, Atom)):
            slots = tuple(self._slot(term, known) for term in atom.terms)
            name = atom.predicate.name
            if name in self.question.catalog.relations:
                self._add(name, slots)
                continue
            for view in (v for v in self.question.catalog.views if v.name == name):
                for below in self.question.parts(view):
                    inner = _unified(below.outputs, slots)
                    if inner is not None:
                        self._match(below, inner)

    def _equate(self, body: Sequence[Literal], known: Binding) -> None:
        for literal in body:
            if isinstance(literal, Comparison) and literal.operator == "=":
                for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
                    if isinstance(one, Variable) and one not in known:
                        known[one] = self._slot(other, known)

    def _slot(self, term: Term, known: Binding) -> Slot:
        if isinstance(term, Constant):
            return Told(term.value)
        if term not in known:
            known[term] = self._hole()
        return known[term]

    def _merge_by_keys(self) -> bool:
        """Makes rows that agree on a key one, as far as their values allow; whether some did."""
        changed = False
        relations = self.question.catalog.relations
        there: dict[tuple[str, tuple[int, ...], tuple[Slot, ...]], tuple[Slot, ...]] = {}
        for name, slots in list(self.found):
            for key in relations[name].unique:
                place = (name, key, tuple(self._now(slots[i]) for i in key))
                first = there.setdefault(place, slots)
                if first != slots and Told(None) not in place[2]:
                    changed |= self._unify(first, slots)
        if changed:
            self.found = {(n, tuple(map(self._now, slots))): None for n, slots in self.found}
        return changed

    def _unify(self, one: Sequence[Slot], other: Sequence[Slot]) -> bool:
        sides = [(self._now(x), self._now(y)) for x, y in zip(one, other, strict=True)]
        if any(isinstance(x, Told) and isinstance(y, Told) and x != y for x, y in sides):
            return False
        changed = False
        for x, y in sides:
            left, right = self._now(x), self._now(y)
            if left != right:
                hole, value = (left, right) if isinstance(left, Hole) else (right, left)
                if isinstance(hole, Hole):
                    self._filled[hole] = value
                    changed = True
        return changed

    def _now(self, slot: Slot) -> Slot:
        while isinstance(slot, Hole) and slot in self._filled:
            slot = self._filled[slot]
        return slot

    def _add_referenced(self) -> None:
        relations = self.question.catalog.relations
        there: dict[tuple[str, tuple[int, ...]], set[tuple[Slot, ...]]] = {}
        for name, slots in list(self.found):
            for reference in relations[name].references:
                wanted = tuple(slots[i] for i in reference.columns)
                place = (reference.target, reference.target_columns)
                if place not in there:
                    there[place] = {tuple(s[i] for i in place[1]) for n, s in self.found if n == place[0]}
                if Told(None) in wanted or wanted in there[place]:
                    continue
                there[place].add(wanted)
                row: list[Slot] = [self._hole() for _ in range(relations[reference.target].arity)]
                for i, slot in zip(reference.target_columns, wanted, strict=True):
                    row[i] = slot
                self._add(reference.target, tuple(row))


def _unified(terms: Sequence[Expression], slots: Sequence[Slot]) -> Binding | None:
    """What makes terms these values; None if a constant is another one, or a variable would have two values."""
    binding: Binding = {}
    for term, slot in zip(terms, slots, strict=False):
        if isinstance(term, Constant):
            if isinstance(slot, Told) and Told(term.value) != slot:
                return None
        elif isinstance(term, Variable) and binding.setdefault(term, slot) != slot:
            return None
    return binding


def own_values(domains: Domains, sketches: Iterable[Sketch]) -> Mapping[Hole, Value]:
    """For each hole a value of its own, of the first column that it stands in."""
    found: dict[Hole, tuple[str, int]] = {}
    for name, slots in sketches:
        for i, slot in enumerate(slots):
            if isinstance(slot, Hole):
                found.setdefault(slot, (name, i))
    return {hole: domains.own(column, number) for number, (hole, column) in enumerate(found.items(), 1)}


class Candidates(Struct, frozen=True):
    """Rows that a database before the update may have.

    Attributes:
        rows: by relation, certain ones included, excluded ones not.
        whole: the relations of which all rows over the values are there.
    """

    rows: Mapping[str, tuple[Row, ...]]
    whole: frozenset[str]

    @property
    def number(self) -> int:
        """How many there are."""
        return sum(map(len, self.rows.values()))


def candidates(question: Question) -> Candidates:
    """The candidates of all base relations that some view reads, or that a row of one may reference."""
    domains = Domains(question)
    relations = question.catalog.relations
    room = question.most_candidates
    share = max(room // max(len(relations), 1), 1)
    options = {name: _options(question, domains, name) for name in relations}
    whole = {name for name, its in options.items() if prod(map(len, its)) <= share}
    found: dict[str, dict[tuple[object, ...], Row]] = {name: {} for name in relations}
    for name in relations:
        given = [r for r in question.known_rows(name) if question.is_certain(name, r)]
        _take(question, found[name], name, given)
        if name in whole:
            _take(question, found[name], name, product(*options[name]))
    if len(whole) < len(relations):
        _sketched(question, domains, found, whole)
    return Candidates({name: tuple(rows.values()) for name, rows in found.items()}, frozenset(whole))


def _options(question: Question, domains: Domains, name: str) -> list[list[Value]]:
    relation = question.catalog.relations[name]
    return [
        [*domains.values((name, i)), *([None] if i in relation.nullable else [])]
        for i in range(relation.arity)
    ]


def _take(
    question: Question, rows: dict[tuple[object, ...], Row], name: str, more: Iterator[Row] | Sequence[Row]
) -> None:
    nullable = question.catalog.relations[name].nullable
    for row in more:
        is_stored = all(v is not None or i in nullable for i, v in enumerate(row))
        if is_stored and not question.is_excluded(name, row):
            rows.setdefault(tuple(map(identity, row)), row)


def _sketched(
    question: Question, domains: Domains, found: dict[str, dict[tuple[object, ...], Row]], whole: set[str]
) -> None:
    """Adds rows of the relations that are not whole: each sketch has its turn, until there is no room."""
    sketches = [one for one in Sketches(question).make() if one[0] not in whole]
    own = own_values(domains, sketches)
    waiting = [(name, _filled(question, domains, own, (name, slots))) for name, slots in sketches]
    width = 1
    while waiting and sum(map(len, found.values())) < question.most_candidates:
        left = []
        for name, rows in waiting:
            some = list(islice(rows, width))
            _take(question, found[name], name, some)
            if len(some) == width:
                left.append((name, rows))
            if sum(map(len, found.values())) >= question.most_candidates:
                return
        waiting = left


def _filled(question: Question, domains: Domains, own: Mapping[Hole, Value], sketch: Sketch) -> Iterator[Row]:
    """Rows of a sketch: with own values, with one other value in each hole in turn, then all."""
    name, slots = sketch
    nullable = question.catalog.relations[name].nullable
    base = tuple(s.value if isinstance(s, Told) else own[s] for s in slots)
    yield base
    choices: dict[Hole, list[Value]] = {}
    for i, slot in enumerate(slots):
        if isinstance(slot, Hole):
            choices[slot] = [*domains.values((name, i)), *([None] if i in nullable else [])]
    for hole, values in choices.items():
        for value in values:
            yield tuple(value if s == hole else base[i] for i, s in enumerate(slots))
    for picked in product(*choices.values()):
        chosen = dict(zip(choices, picked, strict=True))
        yield tuple(s.value if isinstance(s, Told) else chosen[s] for s in slots)
