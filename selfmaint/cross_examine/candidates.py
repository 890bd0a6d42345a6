"""The base rows that a database may be made of: all over the values of its columns, or those that are sketched.

A relation with few possible rows has all of them as candidates. Of another one the rows are tried that `matches.py`
sketches: first with a new value of its own in each hole, then with known ones, as long as there is room.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import prod

from datalog.model import Row, Value
from selfmaint.cross_examine.domains import Domains
from selfmaint.cross_examine.matches import Hole, Sketch, Sketches, Told, holes_of
from selfmaint.cross_examine.question import Question, identity


@dataclass(frozen=True)
class Candidates:
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
    own = {
        hole: domains.own(column, number)
        for number, (hole, column) in enumerate(holes_of(sketches).items(), 1)
    }
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
