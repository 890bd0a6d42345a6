"""Databases that explain everything known, from the canonical database and perhaps some new facts.

Foreign keys may ask for rows of which only the key is known. Their other columns are chosen: null or a fresh value
first, values at hand in later attempts. Whether a database explains what is known is asked afterwards, by the
definition; so a bad choice costs an attempt and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from msgspec import Struct, field

from datalog.budget import check
from datalog.model import AggregateFunction, Atom, Constant, Row, Term, Value, Variable, Version
from selfmaint.countermodel.databases import Rows, missing
from selfmaint.countermodel.model_check import Given, why_not
from selfmaint.countermodel.values import NUMBER, fresh_value
from selfmaint.warehouse.catalog import BaseRelation, GroupedView
from selfmaint.warehouse.constraints import Reference

_AT_HAND = 0.7
"""How often a later attempt takes a value at hand."""

_ATTEMPTS = 24
"""How many ways of completing a database are tried."""

_MOST_ADDED = 500
"""How many rows are added in each of them."""
_ROWS = 12
"""At most so many rows are made up for one group."""

_GUESSED = 0.3
"""How often a value at hand is taken where nothing tells which."""

_REUSED = 0.85
"""How often a row that is there is used where one fits."""


def explaining(known: Given, added: Mapping[str, frozenset[Row]]) -> Iterator[Rows]:
    """Databases with the canonical database and some more facts that explain everything known."""
    seen = []
    for attempt in range(_ATTEMPTS):
        rows = {
            name: set(known.known[name] | added.get(name, frozenset())) for name in known.catalog.relations
        }
        random = Random(attempt)  # noqa: S311 - choices, no secret
        _fill(known, rows, random, attempt)
        _complete(known, rows, random, attempt)
        database = {name: frozenset(found) for name, found in rows.items()}
        if database not in seen:
            seen.append(database)
            if not why_not(known, database):
                yield database


def _complete(known: Given, rows: dict[str, set[Row]], random: Random, attempt: int) -> None:
    """Adds the rows that are referenced and not there; ends after a few rounds where references go in circles.

    Several circles would double them in each round: it ends after `_MOST_ADDED` rows, too.
    """
    added = 0
    for _ in range(2 * len(rows) + 2):
        changed = False
        for relation in known.catalog.relations.values():
            for reference in relation.references:
                for value in _wanted(known, relation, reference, rows):
                    added += 1
                    if added > _MOST_ADDED:
                        return
                    check()
                    target = known.catalog.relations[reference.target]
                    rows[target.name].add(_row(known, rows, target, reference, value, random, attempt))
                    changed = True
        if not changed:
            return


def _wanted(
    known: Given, relation: BaseRelation, reference: Reference, rows: Mapping[str, set[Row]]
) -> list[Row]:
    """The keys that rows reference, before the update, and inserted rows after it."""
    there = frozenset(rows[reference.target])
    before = missing(reference, frozenset(rows[relation.name]), there)
    arriving = known.of(reference.target, Version.INSERTED)
    after = missing(reference, known.of(relation.name, Version.INSERTED), there | arriving)
    return sorted(before | after, key=repr)


def _row(
    known: Given,
    rows: Mapping[str, set[Row]],
    target: BaseRelation,
    reference: Reference,
    value: Row,
    random: Random,
    attempt: int,
) -> Row:
    """A row of the target with a certain key."""
    at = dict(zip(reference.target_columns, value, strict=True))

    def chosen(column: int) -> Value:
        if column in at:
            return at[column]
        here = sorted({row[column] for row in rows[target.name]} - {None}, key=repr)
        pointed = [
            {row[r.target_columns[r.columns.index(column)]] for row in rows[r.target]}
            for r in target.references
            if column in r.columns
        ]
        at_hand = [*here, *sorted(set().union(*pointed), key=repr)] if pointed else here
        if attempt > 1 and at_hand and random.random() < _AT_HAND:
            return random.choice(at_hand)
        if column in target.nullable and attempt % 2 == 0:
            return None
        number = 1000 * (attempt + 1) + 101 * column + sum(len(found) for found in rows.values())
        its = NUMBER if (target.name, column) in known.catalog.number_columns else target.types[column]
        return fresh_value(its, number, high=attempt % 3 == 1)

    return tuple(chosen(column) for column in range(target.arity))


def _fill(known: Given, rows: dict[str, set[Row]], random: Random, attempt: int) -> None:
    """Adds facts to a database so that it may have the rows of all stored groups.

    A database that explains what is known needs core rows for every stored group. They are made up: group columns
    from the stored row, aggregated columns so that sums and extrema come out, everything else fresh or at hand.
    Whether the result explains what is known is asked afterwards, by the definition; so a bad choice costs an
    attempt and nothing else.
    """
    work = _Work(known, rows, random, attempt)
    for view in random.sample(known.catalog.grouped_views, len(known.catalog.grouped_views)):
        work.fill(view)


class _Operand(Struct):
    """What is to be made up of one aggregated variable in one group."""

    left: Any = None
    """What is missing of the sum; None if it is not stored."""
    wanted: list[Any] = field(default_factory=list)
    """Extrema that are not reached."""
    range: list[Any] = field(default_factory=list)
    """The extrema."""


class _Work(Struct):
    known: Given
    rows: dict[str, set[Row]]
    random: Random
    attempt: int
    number: int = 0

    def fill(self, view: GroupedView) -> None:
        """Rows for the groups of one view that do not come out."""
        grouped, core = view.grouped, view.core
        assert grouped is not None
        assert core is not None
        now = self.known.state(view, {name: frozenset(found) for name, found in self.rows.items()})
        if now is None:
            return
        current = {tuple(row[c] for c in grouped.columns): row for row in now}
        made_new = self.random.randrange(len(core.body))
        for row in sorted(self.known.of(view.name, Version.STORED) - now, key=repr):
            check()
            old = current.get(tuple(row[c] for c in grouped.columns))
            binding = {t: row[c] for c, t in grouped.group_terms.items() if isinstance(t, Variable)}
            operands = self._operands(view, row, old)
            count = grouped.count_column
            number = 1 if count is None else _number(row[count]) - (0 if old is None else _number(old[count]))
            for left in range(min(number, _ROWS), 0, -1):
                values = {v: self._value(o, last=left == 1) for v, o in operands.items()}
                self._add(core.body, made_new, {**values, **binding})

    def _operands(self, view: GroupedView, row: Row, old: Row | None) -> dict[Variable, _Operand]:
        found: dict[Variable, _Operand] = {}
        for measure in view.grouped.measures:
            operand, stored = view.grouped.operand(measure), row[measure.column]
            if not isinstance(operand, Variable) or stored is None:
                continue
            one = found.setdefault(operand, _Operand())
            before: Any = None if old is None else old[measure.column]
            match measure.aggregate.function:
                case AggregateFunction.SUM:
                    one.left = stored if before is None else stored - before
                case AggregateFunction.MIN | AggregateFunction.MAX:
                    one.range.append(stored)
                    if before != stored:
                        one.wanted.append(stored)
        return {v: one for v, one in found.items() if one.left is not None or one.range}

    def _value(self, operand: _Operand, *, last: bool) -> Any:
        if operand.wanted:
            value = operand.wanted.pop()
        elif operand.left is not None and last:
            value = operand.left
        elif operand.range:
            value = self.random.choice(operand.range)
        else:
            value = self.random.choice((operand.left, operand.left - operand.left, 1))
        if operand.left is not None:
            operand.left = operand.left - value
        return value

    def _add(self, body: Sequence[Atom], made_new: int, binding: dict[Variable, Value]) -> None:
        """The facts of one core row: one of them new, the others there where they fit."""
        order = sorted(
            range(len(body)), key=lambda i: (i == made_new, -sum(t in binding for t in body[i].terms))
        )
        for index in order:
            atom = body[index]
            fitting = [row for row in self.rows[atom.predicate.name] if _fits(atom, row, binding)]
            if fitting and index != made_new and self.random.random() < _REUSED:
                row = self.random.choice(sorted(fitting, key=repr))
            else:
                row = tuple(self._chosen(atom, i, binding) for i in range(atom.arity))
                self.rows[atom.predicate.name].add(row)
            binding.update({t: v for t, v in zip(atom.terms, row, strict=True) if isinstance(t, Variable)})

    def _chosen(self, atom: Atom, column: int, binding: Mapping[Variable, Value]) -> Value:
        term: Term = atom.terms[column]
        if isinstance(term, Constant):
            return term.value
        if term in binding:
            return binding[term]
        relation = self.known.catalog.relations[atom.predicate.name]
        here = sorted({row[column] for row in self.rows[relation.name]} - {None}, key=repr)
        if here and (column,) not in relation.unique and self.random.random() < _GUESSED:
            return self.random.choice(here)
        self.number += 1
        its = (
            NUMBER if (relation.name, column) in self.known.catalog.number_columns else relation.types[column]
        )
        return fresh_value(its, 10_000 * (self.attempt + 1) + self.number)


def _number(value: Value) -> int:
    return value if isinstance(value, int) else 0


def _fits(atom: Atom, row: Row, binding: Mapping[Variable, Value]) -> bool:
    """Whether a row can be an atom's under a binding."""
    more = dict(binding)
    for term, value in zip(atom.terms, row, strict=True):
        if (term.value if isinstance(term, Constant) else more.setdefault(term, value)) != value:
            return False
    return True
