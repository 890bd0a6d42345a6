"""Evaluation of rules a set at a time: all bindings of a body at once, joined through hash tables.

What it finds is what the reference finds (`evaluator.py`) where all values that meet are of one type: here `true` and 1
are equal, and a value is compared with another one as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias, assert_never

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

_Cut: TypeAlias = Callable[[Row], Row]
_Index: TypeAlias = Mapping[Row, set[Row]]

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
            keyed, rest = _cut(key), _cut(more)
            found: dict[Row, set[Row]] = {}
            for row in self.rows:
                if all(row[one] == row[other] for one, other in equal):
                    found.setdefault(keyed(row), set()).add(rest(row))
            if len(self._indexes) >= MOST_INDEXES:
                self._indexes.clear()
            self._indexes[shape] = found
        return self._indexes[shape]


Facts: TypeAlias = Mapping[Predicate, Indexed]


@dataclass(frozen=True)
class _Bindings:
    """Values of some variables, each row once, and where in a row each is."""

    places: Mapping[Variable, int]
    rows: set[Row]

    def of(self, term: Term) -> Callable[[Row], Any]:
        """A term's value in a row."""
        if isinstance(term, Constant):
            value = term.value
            return lambda _: value
        return itemgetter(self.places[term])

    def values(self, terms: Sequence[Term]) -> _Cut:
        """The values of some terms in a row."""
        if not any(isinstance(term, Constant) for term in terms):
            return _cut([self.places[term] for term in terms if isinstance(term, Variable)])
        values = [self.of(term) for term in terms]
        return lambda row: tuple(value(row) for value in values)

    def filtered(self, test: Callable[[Row], bool]) -> _Bindings:
        """Those of which something holds."""
        return _Bindings(self.places, set(filter(test, self.rows)))


def derived(rules: Sequence[Rule], facts: Facts, most: int) -> frozenset[Row]:
    """The rows of one predicate.

    Args:
        rules: its rules, safe; what they read has rows in `facts`.
        facts: rows by predicate.
        most: how many rows a join may have on the way.

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
            found.update(map(bindings.values(rule.head.terms), bindings.rows))
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
    index = facts[atom.predicate].by(key, [new[variable] for variable in added], equal)
    asked, old = bindings.values([atom.terms[place] for place in key]), bindings.values(kept)
    met = [(old(row), index[k]) for row in bindings.rows if (k := asked(row)) in index]
    if sum(len(extensions) for _, extensions in met) > most:
        raise TooManyRowsError
    found = {row + extension for row, extensions in met for extension in extensions}
    return _Bindings({variable: place for place, variable in enumerate((*kept, *added))}, found)


def _cut(places: Sequence[int]) -> _Cut:
    """Some values of a row."""
    match places:
        case []:
            return lambda _: ()
        case [only]:
            return lambda row: (row[only],)
        case _:
            return itemgetter(*places)


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
    return bindings.filtered(lambda row: (value(row) is None) != literal.negated)


def _without(body: Sequence[Literal], bindings: _Bindings, facts: Facts, most: int) -> _Bindings:
    """The bindings for which a body has no row: it is solved for all their keys at once."""
    shared = [variable for variable in variables_of(body) if variable in bindings.places]
    key = bindings.values(shared)
    keys = _Bindings({variable: place for place, variable in enumerate(shared)}, set(map(key, bindings.rows)))
    found = _solved(body, keys, shared, facts, most)
    if not found.rows:
        return bindings
    met = set(map(found.values(shared), found.rows))
    return bindings.filtered(lambda row: key(row) not in met)
