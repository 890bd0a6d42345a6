"""Evaluation from bound values outwards, sets of bindings at a time: query-subquery evaluation (Vieille 1986).

A body is solved literal by literal. An atom is asked only for the rows that agree with the bindings so far, in the
columns that they bind: of a predicate with rules this is a subquery, of a given relation a look-up. So a relation of
any size costs what is looked up in it, and a program whose rules start at few rows is evaluated in this process.

Conditions of soundness:

1. A look-up gives every row that agrees with a key, and may give others; what is given is joined on all bound columns.
2. Every intermediate result is below a limit; else `OutOfReachError`, and no result.
3. Null is a value like another for atoms; a boolean is not a number (`encoded`).
4. A timestamp in a rule is a wall-clock time, one that is given may be an instant: programs that name one are left.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from datalog.budget import check
from datalog.evaluate.comparing import compares
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Row,
    Rule,
    Term,
    Variable,
    WallClock,
    variables_of,
)

Index: TypeAlias = Mapping[Row, Collection[Row]]
"""By the values of some columns, the values of some others."""


class OutOfReachError(Exception):
    """What is asked for cannot be had by looking up few rows."""


class Given(Protocol):
    """The relations that a program reads, by what is looked up in them."""

    @property
    def limit(self) -> int:
        """How many rows an intermediate result may have."""
        ...

    def is_near(self, predicate: Predicate) -> bool:
        """Whether a look-up costs nothing but what is done in this process."""
        ...

    def size(self, predicate: Predicate) -> int:
        """The number of rows of a relation that is near."""
        ...

    def is_at_hand(self, predicate: Predicate, columns: Collection[int]) -> bool:
        """Whether look-ups by these columns have been made before, so that another costs less."""
        ...

    def look_up(
        self, predicate: Predicate, columns: tuple[int, ...], keys: Collection[Row], wanted: tuple[int, ...]
    ) -> Index:
        """For each key, as values of `columns`, the values of `wanted` in the rows that have it; maybe more keys.

        Raises:
            OutOfReachError: there are too many.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Bindings:
    """Distinct values of some variables."""

    variables: tuple[Variable, ...]
    rows: Collection[Row]


@dataclass
class _Answers:
    """What a subquery has found: the keys asked for so far, and the answers to each."""

    asked: set[Row] = field(default_factory=set)
    found: dict[Row, set[Row]] = field(default_factory=dict)


class TopDown:
    """One program over given relations; subqueries are answered once."""

    def __init__(self, program: Program, given: Given) -> None:
        self._given = given
        self._rules: dict[Predicate, list[Rule]] = {}
        for rule in program.rules:
            self._rules.setdefault(rule.head.predicate, []).append(rule)
        self._answers: dict[tuple[Predicate, tuple[int, ...], tuple[int, ...]], _Answers] = {}
        self._near: dict[Predicate, bool] = {}
        self._sizes: dict[Predicate, int] = {}

    def extension(self, goal: Predicate, arity: int) -> frozenset[Row]:
        """All rows of a predicate.

        Raises:
            OutOfReachError: too many rows on the way, or a large relation that nothing restricts.
        """
        found = self._look_up(goal, (), [()], tuple(range(arity)))
        return frozenset(decoded(found.get((), ())))

    def _look_up(
        self, predicate: Predicate, columns: tuple[int, ...], keys: Collection[Row], wanted: tuple[int, ...]
    ) -> Index:
        if predicate not in self._rules:
            return self._given.look_up(predicate, columns, keys, wanted)
        known = self._answers.setdefault((predicate, columns, wanted), _Answers())
        new = [key for key in keys if key not in known.asked]
        if new:
            for rule in self._rules[predicate]:
                self._ask(rule, columns, new, wanted, known.found)
            known.asked.update(new)  # only now: what is out of reach is not answered
        return known.found

    def _ask(
        self,
        rule: Rule,
        columns: tuple[int, ...],
        keys: Collection[Row],
        wanted: tuple[int, ...],
        found: dict[Row, set[Row]],
    ) -> None:
        """Adds what one rule answers to some keys."""
        asked = [rule.head.terms[c] for c in columns]
        start = _matched(asked, keys)
        terms = [rule.head.terms[c] for c in wanted]
        keep = tuple(dict.fromkeys(t for t in (*asked, *terms) if isinstance(t, Variable)))
        solved = self._solve(rule.body, start, keep)
        key, value = _getter(asked, keep), _getter(terms, keep)
        for row in solved.rows:
            found.setdefault(key(row), set()).add(value(row))

    def _solve(self, body: Sequence[Literal], start: _Bindings, keep: tuple[Variable, ...]) -> _Bindings:
        """The values of `keep` for which the body holds, from bindings of some variables."""
        waiting = list(body)
        bindable = set(variables_of([li for li in body if isinstance(li, Atom | Comparison)]))
        current = start
        while waiting and current.rows:
            literal = self._next(waiting, set(current.variables), bindable)
            waiting.remove(literal)
            later = {*keep, *variables_of(waiting)}
            current = self._step(literal, current, later)
            if len(current.rows) > self._given.limit:
                raise OutOfReachError
        if not current.rows:
            return _Bindings(keep, ())
        return _Bindings(keep, set(map(_getter(keep, current.variables), current.rows)))

    def _step(self, literal: Literal, current: _Bindings, later: set[Variable]) -> _Bindings:
        check()
        match literal:
            case Atom():
                return self._join(literal, current, later)
            case Comparison(operator="=", left=left, right=right) if new := _open(
                [left, right], current.variables
            ):
                value = _getter([right if new[0] == left else left], current.variables)
                rows = [(*row, *v) for row in current.rows if (v := value(row)) != (None,)]
                return _Bindings((*current.variables, new[0]), rows)
            case Comparison(operator=name, left=left, right=right):
                sides = _getter([left, right], current.variables)
                return _Bindings(
                    current.variables, [r for r in current.rows if compares(name, *decode(sides(r)))]
                )
            case NullTest(term=term, negated=negated):
                value = _getter([term], current.variables)
                return _Bindings(
                    current.variables, [r for r in current.rows if (value(r) == (None,)) != negated]
                )
            case Negation():
                return self._without(literal, current)

    def _join(self, atom: Atom, current: _Bindings, later: set[Variable]) -> _Bindings:
        bound = {*current.variables}
        columns = _bound(atom, bound)
        new = [i for i, t in enumerate(atom.terms) if i not in columns]
        repeated = [i for i in new if atom.terms.index(atom.terms[i]) != i]
        fresh = [i for i in new if atom.terms[i] in later and i not in repeated]
        wanted = tuple(sorted({*fresh, *repeated, *(atom.terms.index(atom.terms[i]) for i in repeated)}))
        key = _getter([atom.terms[i] for i in columns], current.variables)
        index = self._look_up(atom.predicate, columns, set(map(key, current.rows)), wanted)
        kept = tuple(v for v in current.variables if v in later)
        old = _getter(kept, current.variables)
        equal = [(wanted.index(atom.terms.index(atom.terms[i])), wanted.index(i)) for i in repeated]
        take = [wanted.index(i) for i in fresh]
        rows: set[Row] = set()
        for row in current.rows:
            for found in index.get(key(row), ()):
                if all(found[a] == found[b] for a, b in equal):
                    rows.add((*old(row), *[found[i] for i in take]))
            if len(rows) > self._given.limit:
                raise OutOfReachError
        variables = [t for i in fresh if isinstance(t := atom.terms[i], Variable)]
        return _Bindings((*kept, *variables), rows)

    def _without(self, negation: Negation, current: _Bindings) -> _Bindings:
        inside = variables_of(negation.body)
        shared = tuple(v for v in inside if v in current.variables)
        project = _getter(shared, current.variables)
        hits = self._solve(negation.body, _Bindings(shared, set(map(project, current.rows))), shared).rows
        return _Bindings(current.variables, [r for r in current.rows if project(r) not in hits])

    def _next(self, waiting: Sequence[Literal], bound: set[Variable], bindable: set[Variable]) -> Literal:
        """Tests first, then what costs no look-up far away, then what the bindings restrict most; products last."""
        ready = [li for li in waiting if self._is_ready(li, bound, bindable)]
        if not ready:
            raise ValueError("unsafe rule: a filter's variables are never bound")
        return min(ready, key=lambda li: self._effort(li, bound))

    def _is_ready(self, literal: Literal, bound: set[Variable], bindable: set[Variable]) -> bool:
        match literal:
            case Atom():
                return True
            case Comparison(operator="=", left=left, right=right):
                return len(_open([left, right], bound)) < len(("left", "right"))
            case Negation():
                return all(v in bound or v not in bindable for v in variables_of([literal]))
            case _:
                return not _open(variables_of([literal]), bound)

    def _effort(self, literal: Literal, bound: set[Variable]) -> tuple[int, int]:
        match literal:
            case Atom():
                free = [t for t in literal.terms if isinstance(t, Variable) and t not in bound]
                known = literal.arity - len(free)
                if not self._is_near(literal.predicate):
                    return (4 if known else 7), len(free)
                if known:
                    return 1, len(free)
                size = self._size(literal.predicate)
                return (3 if not bound or size <= 1 else 6), size
            case Negation():
                near = all(self._is_near(p) for p in _predicates(literal.body))
                return (2 if near else 5), 0 if near else self._far(literal.body, bound)
            case _:
                return 0, 0

    def _far(self, body: Sequence[Literal], bound: set[Variable]) -> int:
        """How much of a negation is to be looked up that was not before."""
        atoms = [li for li in body if isinstance(li, Atom) and not self._is_near(li.predicate)]
        return len(atoms) + len(body) * sum(
            not self._given.is_at_hand(atom.predicate, _bound(atom, bound))
            for atom in atoms
            if atom.predicate not in self._rules
        )

    def _size(self, predicate: Predicate) -> int:
        """How many rows a near predicate may have; of one with rules a guess, from its rules' largest relations."""
        if predicate not in self._sizes:
            rules = self._rules.get(predicate)
            self._sizes[predicate] = (
                self._given.size(predicate)
                if rules is None
                else sum(max((self._size(p) for p in _positive(rule.body)), default=1) for rule in rules)
            )
        return self._sizes[predicate]

    def _is_near(self, predicate: Predicate) -> bool:
        if predicate not in self._near:
            rules = self._rules.get(predicate)
            self._near[predicate] = (
                self._given.is_near(predicate)
                if rules is None
                else all(self._is_near(p) for rule in rules for p in _predicates(rule.body))
            )
        return self._near[predicate]


def _predicates(body: Iterable[Literal]) -> Iterable[Predicate]:
    for literal in body:
        if isinstance(literal, Atom):
            yield literal.predicate
        elif isinstance(literal, Negation):
            yield from _predicates(literal.body)


def _positive(body: Iterable[Literal]) -> Iterable[Predicate]:
    return (literal.predicate for literal in body if isinstance(literal, Atom))


def _bound(atom: Atom, bound: Collection[Variable]) -> tuple[int, ...]:
    return tuple(i for i, t in enumerate(atom.terms) if isinstance(t, Constant) or t in bound)


def _open(terms: Iterable[Term], bound: Collection[Variable]) -> list[Variable]:
    return [t for t in terms if isinstance(t, Variable) and t not in bound]


def _matched(terms: Sequence[Term], keys: Collection[Row]) -> _Bindings:
    """The bindings of the variables among some terms that make them equal to one of the keys."""
    variables = tuple(dict.fromkeys(t for t in terms if isinstance(t, Variable)))
    if len(variables) == len(terms):
        return _Bindings(variables, keys)
    take = [terms.index(v) for v in variables]
    fixed = [(i, _constant(t)) for i, t in enumerate(terms) if isinstance(t, Constant)]
    equal = [(terms.index(t), i) for i, t in enumerate(terms) if terms.index(t) != i]
    rows = {
        tuple([key[i] for i in take])
        for key in keys
        if all(key[i] == value for i, value in fixed) and all(key[a] == key[b] for a, b in equal)
    }
    return _Bindings(variables, rows)


def _getter(terms: Sequence[Term], variables: Sequence[Variable]) -> Callable[[Row], Row]:
    """What gives the terms' values from a row of the variables' values."""
    if tuple(terms) == tuple(variables):
        return lambda row: row
    places: list[int] = []
    constants: list[Any] = []
    for term in terms:
        if isinstance(term, Constant):
            places.append(-1 - len(constants))
            constants.append(_constant(term))
        else:
            places.append(variables.index(term))
    if constants:
        backwards = constants[::-1]
        return lambda row: tuple([(*row, *backwards)[i] for i in places])
    if not places:
        return lambda _row: ()
    if len(places) == 1:
        only = places[0]
        return lambda row: (row[only],)
    return operator.itemgetter(*places)


def _constant(term: Constant) -> Any:
    """Condition 4."""
    if isinstance(term.value, dt.datetime) and not isinstance(term.value, WallClock):
        raise OutOfReachError
    return encode(term.value)


@dataclass(frozen=True, slots=True)
class _Truth:
    """A boolean that is no number."""

    value: bool


_ENCODED: Mapping[Any, Any] = {True: _Truth(True), False: _Truth(False)}


def encode(value: Any) -> Any:
    """A value such that a boolean differs from every number (condition 3)."""
    return _ENCODED[value] if value.__class__ is bool else value


def encoded(rows: Iterable[Row]) -> list[Row]:
    """Rows of encoded values."""
    return [tuple([encode(value) for value in row]) for row in rows]


def decode(row: Sequence[Any]) -> Row:
    """A row of the values that were encoded."""
    return tuple([value.value if value.__class__ is _Truth else value for value in row])


def decoded(rows: Iterable[Row]) -> list[Row]:
    """Rows of the values that were encoded."""
    return [decode(row) for row in rows]
