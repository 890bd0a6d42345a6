"""Evaluation of rules a set at a time: all bindings of a body at once, joined through hash tables.

What it finds is what the reference finds (`evaluator.py`) where all values that meet are of one type: here `true` and 1
are equal, and a value is compared with another one as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from types import NoneType
from typing import Any, TypeAlias, assert_never

from msgspec import Struct

from datalog.budget import check
from datalog.evaluate.order import COMPARISONS, is_ready
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Row,
    Rule,
    Term,
    Variable,
    variables_of,
)

_Index: TypeAlias = Mapping[Row, Sequence[Row]]

MOST_INDEXES = 16
"""So many indexes of a relation are kept."""


class TooManyRowsError(Exception):
    """A join has more rows than it may have."""


class Indexed:
    """The rows of a relation, with the indexes that joins have used."""

    def __init__(self, rows: frozenset[Row]) -> None:
        self.rows = rows
        self._indexes: dict[object, _Index] = {}

    def by(self, key: Sequence[int], more: Sequence[int], equal: Sequence[tuple[int, int]]) -> _Index:
        """By the values of some columns the distinct values of others, of the rows that have two columns equal."""
        shape = tuple(key), tuple(more), tuple(equal)
        if shape not in self._indexes:
            if len(self._indexes) >= MOST_INDEXES:
                self._indexes.clear()
            self._indexes[shape] = self._index(*shape)
        return self._indexes[shape]

    def _index(
        self, key: tuple[int, ...], more: tuple[int, ...], equal: tuple[tuple[int, int], ...]
    ) -> _Index:
        rows = self._with(equal)
        if not more:
            return dict.fromkeys(_cut(key, rows), ((),))
        pairs: Iterable[tuple[Row, Row]] = zip(_cut(key, rows), _cut(more, rows), strict=True)
        if rows and len({*key, *more}) < len(next(iter(rows))):
            pairs = set(pairs)
        found: dict[Row, list[Row]] = {}
        for keyed, rest in pairs:
            held = found.get(keyed)
            if held is None:
                found[keyed] = [rest]
            else:
                held.append(rest)
        return found

    def cut(self, places: Sequence[int], equal: Sequence[tuple[int, int]]) -> set[Row]:
        """The distinct values of some columns, of the rows that have two columns equal."""
        return set(_cut(places, self._with(equal)))

    def _with(self, equal: Sequence[tuple[int, int]]) -> Collection[Row]:
        if not equal:
            return self.rows
        return [row for row in self.rows if all(row[one] == row[other] for one, other in equal)]


Facts: TypeAlias = Mapping[Predicate, Indexed]


class _Bindings(Struct, frozen=True):
    """Values of some variables, each row once, and where in a row each is."""

    places: Mapping[Variable, int]
    rows: set[Row]

    def of(self, term: Term) -> Callable[[Row], Any]:
        """A term's value in a row."""
        if isinstance(term, Constant):
            value = term.value
            return lambda _: value
        return itemgetter(self.places[term])

    def values(self, terms: Sequence[Term]) -> Iterable[Row]:
        """The values of some terms, of one row after the other."""
        if not any(isinstance(term, Constant) for term in terms):
            return _cut([self.places[term] for term in terms if isinstance(term, Variable)], self.rows)
        return zip(
            *(
                repeat(term.value, len(self.rows))
                if isinstance(term, Constant)
                else map(itemgetter(self.places[term]), self.rows)
                for term in terms
            ),
            strict=True,
        )

    def filtered(self, test: Callable[[Row], bool]) -> _Bindings:
        """Those of which something holds."""
        return _Bindings(self.places, set(filter(test, self.rows)))


def derived(rules: Sequence[Rule], facts: Facts, most: int) -> frozenset[Row]:
    """The rows of one predicate.

    No join may have more than `most` rows on the way.

    Raises:
        TooManyRowsError: one has more.
        ValueError: an unsafe rule.

    >>> x, y = Variable("X"), Variable("Y")
    >>> e, p = Predicate("e"), Predicate("p")
    >>> rule = Rule(Atom(p, (x,)), (Atom(e, (x, y)), Negation((Atom(e, (y, x)),))))
    >>> sorted(derived([rule], {e: Indexed(frozenset({(1, 2), (2, 1), (2, 3)}))}, 100))
    [(2,)]
    """
    found: set[Row] = set()
    for rule in rules:
        bindings = _solved(rule.body, _Bindings({}, {()}), variables_of([rule.head]), facts, most)
        if bindings.rows:
            found.update(bindings.values(rule.head.terms))
    return frozenset(found)


def _solved(
    body: Sequence[Literal], start: _Bindings, wanted: Iterable[Variable], facts: Facts, most: int
) -> _Bindings:
    """The bindings of a body, cut to the variables that are wanted."""
    bindings, waiting = start, list(body)
    bindable = frozenset(variables_of([li for li in body if isinstance(li, Atom | Comparison)]))
    wanted = frozenset(wanted)
    while waiting and bindings.rows:
        check()
        literal = _next(waiting, bindings, bindable, facts)
        waiting.remove(literal)
        later = wanted.union(variables_of(waiting))
        match literal:
            case Atom():
                bindings = _joined(literal, bindings, later, facts, most)
            case Comparison():
                bindings = _compared(literal, bindings)
            case NullTest():
                bindings = _null_tested(literal, bindings)
            case Negation(inner):
                bindings = _without(inner, bindings, facts, most)
            case _:
                assert_never(literal)
    return bindings


def _next(
    waiting: Sequence[Literal], bindings: _Bindings, bindable: frozenset[Variable], facts: Facts
) -> Literal:
    """A filter if one is ready, else the atom that joins, of few rows."""
    ready = next((literal for literal in waiting if is_ready(literal, bindings.places, bindable)), None)
    if ready is not None:
        return ready
    atoms = [literal for literal in waiting if isinstance(literal, Atom)]
    if not atoms:
        raise ValueError("unsafe rule: a filter's variables are never bound")
    return min(
        atoms, key=lambda a: (not any(t in bindings.places for t in a.terms), len(facts[a.predicate].rows))
    )


def _joined(
    atom: Atom, bindings: _Bindings, later: frozenset[Variable], facts: Facts, most: int
) -> _Bindings:
    """The bindings with what the rows of an atom add, cut to what is used later."""
    new: dict[Variable, int] = {}
    key, equal = [], []
    for place, term in enumerate(atom.terms):
        if isinstance(term, Constant) or term in bindings.places:
            key.append(place)
        elif new.setdefault(term, place) != place:
            equal.append((new[term], place))
    added = [variable for variable in new if variable in later]
    kept = [variable for variable in bindings.places if variable in later]
    places = {variable: place for place, variable in enumerate((*kept, *added))}
    if not key and not bindings.places:  # the first atom
        found = facts[atom.predicate].cut([new[variable] for variable in added], equal)
        if len(found) > most:
            raise TooManyRowsError
        return _Bindings(places, found)
    index = facts[atom.predicate].by(key, [new[variable] for variable in added], equal)
    asked, old = bindings.values([atom.terms[place] for place in key]), bindings.values(kept)
    met = [(row, index[k]) for row, k in zip(old, asked, strict=True) if k in index]
    if sum(len(extensions) for _, extensions in met) > most:
        raise TooManyRowsError
    return _Bindings(places, {row + extension for row, extensions in met for extension in extensions})


def _cut(places: Sequence[int], rows: Collection[Row]) -> Iterable[Row]:
    """Some values of each row, one row after the other, without a call in Python for each."""
    match places:
        case []:
            return repeat((), len(rows))
        case [only]:
            return zip(map(itemgetter(only), rows))
        case _:
            return map(itemgetter(*places), rows)


def _compared(literal: Comparison, bindings: _Bindings) -> _Bindings:
    """The bindings that a comparison leaves; an equation may bind a variable. Nothing is compared with null."""
    for variable, term in ((literal.left, literal.right), (literal.right, literal.left)):
        if isinstance(variable, Variable) and variable not in bindings.places:
            value = bindings.of(term)
            found = {(*row, value(row)) for row in bindings.rows if value(row) is not None}
            return _Bindings({**bindings.places, variable: len(bindings.places)}, found)
    holds = COMPARISONS[literal.operator]
    left, right = bindings.of(literal.left), bindings.of(literal.right)
    return bindings.filtered(
        lambda row: left(row) is not None and right(row) is not None and holds(left(row), right(row))
    )


def _null_tested(literal: NullTest, bindings: _Bindings) -> _Bindings:
    value = bindings.of(literal.term)
    if NoneType not in set(map(type, map(value, bindings.rows))):
        return bindings if literal.negated else _Bindings(bindings.places, set())
    return bindings.filtered(lambda row: (value(row) is None) != literal.negated)


def _without(body: Sequence[Literal], bindings: _Bindings, facts: Facts, most: int) -> _Bindings:
    """The bindings for which a body has no row: it is solved for all their keys at once."""
    shared = [variable for variable in variables_of(body) if variable in bindings.places]
    keys = _Bindings({variable: place for place, variable in enumerate(shared)}, set(bindings.values(shared)))
    found = _solved(body, keys, shared, facts, most)
    if not found.rows:
        return bindings
    met = set(found.values(shared))
    left = (row for row, key in zip(bindings.rows, bindings.values(shared), strict=True) if key not in met)
    return _Bindings(bindings.places, set(left))
