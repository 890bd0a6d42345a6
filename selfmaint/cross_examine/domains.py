"""The values that columns are tried with: those that are known, and new ones beside, above, below and between them.

Columns that meet, by a join, a comparison or a foreign key, have the same values. New ones are bounded in number.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from itertools import count, islice, pairwise
from math import isfinite
from typing import Any

from datalog.evaluate.order import is_nan
from datalog.graphs import components
from datalog.model import (
    ANY,
    Aggregate,
    AggregateFunction,
    AllOf,
    AnyOf,
    Atom,
    ColumnType,
    Compared,
    Comparison,
    Condition,
    Constant,
    Expression,
    Literal,
    Negation,
    Predicate,
    TypeName,
    Value,
    Variable,
    Version,
    WallClock,
    value_kind,
)
from selfmaint.cross_examine.question import Part, Question, identity

NEW_VALUES = 2
"""How many new values are tried in each class of columns, besides those in the gaps of an order."""

_WIDE = Context(prec=100)
_MOST_NEW_KEYS = 8
"""How many more new values are tried in columns of keys."""

_MOST_IN_ORDER = 12
"""Where more values are known, not each gap between two is tried."""
_MOST_SUMMANDS = 12
_BASE = 2
"""A column of a base relation is a pair; of other places more is said."""
Column = tuple[str, int]
"""A base relation, and a 0-based position."""


class Domains:
    """The values of each class of columns."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._edges: list[tuple[object, object]] = []
        self._constants: list[tuple[object, Value]] = []
        self._in_order: set[object] = set()
        self._added_up: set[object] = set()
        for relation in question.catalog.relations.values():
            for reference in relation.references:
                for i, j in zip(reference.columns, reference.target_columns, strict=True):
                    self._edges.append(((relation.name, i), (reference.target, j)))
        for view in question.catalog.views:
            for number, part in enumerate(question.parts(view)):
                self._read(view.name, number, part)
        nodes = [(r.name, i) for r in question.catalog.relations.values() for i in range(r.arity)]
        self._class: dict[object, int] = {}
        found = components(nodes, self._edges)
        for number, nodes_ in enumerate(found):
            self._class.update(dict.fromkeys(nodes_, number))
        bases = [sum(isinstance(n, tuple) and len(n) == _BASE for n in nodes_) for nodes_ in found]
        self._joining = {number for number, columns in enumerate(bases) if columns > 1}
        self._keys = {
            self._class[relation.name, i]
            for relation in question.catalog.relations.values()
            for key in relation.unique
            for i in key
        }
        self._known: list[list[Value]] = [[] for _ in found]
        self._types: list[ColumnType] = [self._type(nodes_) for nodes_ in found]
        self._collect()
        self._kinds = [self._kind(number) for number in range(len(found))]
        self._new = [self._made_up(number) for number in range(len(found))]

    def number(self, column: Column) -> int:
        """Which class a column is of."""
        return self._class[column]

    def values(self, column: Column) -> Sequence[Value]:
        """The values to try in a column, without null: the known ones first."""
        number = self._class[column]
        return [*self._known[number], *self._new[number]]

    def of_place(self, predicate: Predicate, position: int) -> int | None:
        """The class of a column of stored rows; None of one that is computed."""
        name = predicate.name
        return self._class.get(
            ("stored", name, position) if predicate.version is Version.STORED else (name, position)
        )

    def type_of(self, number: int) -> ColumnType:
        """The declared type of a class of columns; of several one."""
        return self._types[number]

    def joins(self, number: int) -> bool:
        """Whether several columns of base relations are of a class."""
        return number in self._joining

    def own(self, column: Column, number: int) -> Value:
        """A new value of a column; each number gives another."""
        its = self._class[column]
        made = NEW_VALUES + _MOST_NEW_KEYS
        found: Value = _new_value(self._types[its], self._kinds[its], self._known[its], number + made)
        return found

    def _read(self, view: str, number: int, part: Part) -> None:
        def node(term: object) -> object:
            return ("variable", view, number, term)

        self._literals(part.body, node)
        for i, output in enumerate(part.outputs):
            if isinstance(output, Variable):
                self._edges.append((("stored", view, i), node(output)))
            if isinstance(output, Aggregate) and isinstance(output.operand, Variable):
                operand = node(output.operand)
                if output.function in (AggregateFunction.MIN, AggregateFunction.MAX):
                    self._edges.append((("stored", view, i), operand))
                    self._in_order.add(operand)
                if output.function is AggregateFunction.AVG:
                    self._edges.append((("average", view, i), operand))
                if output.function is AggregateFunction.SUM:
                    self._edges.append((("sum", view, i), operand))
                    self._added_up.add(operand)
        if part.block is not None:
            for condition in (*part.block.filters, *part.block.having):
                self._condition(condition, node)

    def _literals(self, body: Iterable[Literal], node: Any) -> None:
        relations, views = self._question.catalog.relations, {v.name for v in self._question.catalog.views}
        for literal in body:
            if isinstance(literal, Atom):
                name = literal.predicate.name
                for i, term in enumerate(literal.terms):
                    place = (name, i) if name in relations else ("stored", name, i)
                    if name in relations or name in views:
                        self._meet(place, node(term) if isinstance(term, Variable) else None, term)
            elif isinstance(literal, Comparison):
                self._compared(literal.operator, literal.left, literal.right, node)
            elif isinstance(literal, Negation):
                self._literals(literal.body, node)

    def _condition(self, condition: Condition, node: Any) -> None:
        if isinstance(condition, AllOf | AnyOf):
            for one in condition.conditions:
                self._condition(one, node)
        elif isinstance(condition, Compared):
            self._compared(condition.operator, condition.left, condition.right, node)

    def _compared(self, operator: str, left: Expression, right: Expression, node: Any) -> None:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Variable):
                if isinstance(other, Variable | Constant):
                    self._meet(node(one), node(other) if isinstance(other, Variable) else None, other)
                if operator not in ("=", "!="):
                    self._in_order.add(node(one))

    def _meet(self, place: object, node: object, term: object) -> None:
        if isinstance(term, Constant):
            self._constants.append((place, term.value))
        else:
            self._edges.append((place, node))

    def _type(self, nodes: Iterable[object]) -> ColumnType:
        relations = self._question.catalog.relations
        for name, i, *more in (n for n in nodes if isinstance(n, tuple)):
            if not more and name in relations and relations[name].types[i] != ANY:
                return relations[name].types[i]
        return ANY

    def _kind(self, number: int) -> str:
        """The family of a class's new values; of no declared type, and without known values, that of its use."""
        if self._types[number] != ANY:
            return self._types[number].family
        numeric = any(self._class.get(node) == number for node in (*self._in_order, *self._added_up))
        kinds = {value_kind(v) for v in self._known[number]} - {"null", "boolean"}
        return min(kinds, default="number" if numeric else "string")

    def _collect(self) -> None:
        """The values that are known, by class, each once; with what may be missing of stored sums."""
        found: list[dict[tuple[str, Value], Value]] = [{} for _ in self._known]
        for place, value in self._places():
            if place in self._class and value is not None:
                found[self._class[place]].setdefault(identity(value), value)
        for place, number in self._class.items():
            match place:
                case ("average", str(name), int(i)):
                    means = {row[i] for row in self._question.of(name, Version.STORED)}
                    for value in _near_means(means, self._types[number]):
                        found[number].setdefault(identity(value), value)
                case ("sum", str(name), int(i)):
                    sums = {row[i] for row in self._question.of(name, Version.STORED)}
                    for value in _summands(sums, list(found[number].values())):
                        found[number].setdefault(identity(value), value)
        self._known = [list(values.values()) for values in found]

    def _places(self) -> Iterator[tuple[object, Value]]:
        """Where each value stands: in a base relation, in a stored view, in a rule."""
        question = self._question
        for name in question.catalog.relations:
            for row in question.known_rows(name):
                yield from (((name, i), value) for i, value in enumerate(row))
        for view in question.catalog.views:
            for row in sorted(question.stored(view), key=repr):
                yield from ((("stored", view.name, i), value) for i, value in enumerate(row))
        yield from self._constants

    def _rows_needed(self) -> int:
        """How many rows of a relation a view may need, as its groups and copies tell: so many keys are made up."""
        most = 0
        for view in self._question.catalog.views:
            counts = [
                i
                for part in self._question.parts(view)
                for i, output in enumerate(part.outputs)
                if isinstance(output, Aggregate) and output.function is AggregateFunction.COUNT
            ]
            at = -1 if view.is_counted else counts[0] if counts else None
            needs = (1 if at is None else row[at] for row in self._question.stored(view))
            most = max(most, sum(n for n in needs if isinstance(n, int)))
        return min(most, _MOST_NEW_KEYS)

    def _made_up(self, number: int) -> list[Value]:
        type_, known = self._types[number], self._known[number]
        if type_.name is TypeName.BOOLEAN:
            return [v for v in (True, False) if v not in known]
        more = NEW_VALUES + (self._rows_needed() if number in self._keys else 0)
        made = [_new_value(type_, self._kinds[number], known, n) for n in range(1, more + 1)]
        if any(self._class.get(node) == number for node in self._in_order):
            made += _in_gaps(type_, known)
        there = {identity(v) for v in known}
        return list({identity(v): v for v in made if identity(v) not in there}.values())


def _summands(sums: Iterable[Value], known: Sequence[Value]) -> Iterator[Value]:
    """What may be missing of some sums."""
    numbers = [n for v in known if (n := _exactly_read(v)) is not None][:_MOST_SUMMANDS]
    for total in sorted(sums, key=repr)[:_MOST_SUMMANDS]:
        whole = _exactly_read(total)
        if whole is None:
            continue
        yield total
        yield 0.0 if isinstance(total, float) else 0  # rows that add nothing
        for one in numbers:
            missing = whole - one
            if isinstance(total, float):
                yield float(missing)
            else:
                yield int(missing) if isinstance(total, int) and missing == int(missing) else missing


def _near_means(means: Iterable[Value], its: ColumnType) -> Iterator[Value]:
    """What averages may be of: values of a type as near as there are, below and above."""
    for mean in sorted(means, key=repr)[:_MOST_SUMMANDS]:
        whole = _exactly_read(mean)
        if whole is None:
            continue
        if its.name.is_floating:
            yield mean
            continue
        step = Decimal(1).scaleb(-(its.scale or 0))
        for way in (ROUND_FLOOR, ROUND_CEILING):
            near = whole.quantize(step, way)
            yield near if its.name is TypeName.DECIMAL else int(near)


def _exactly_read(value: Value) -> Decimal | None:
    """A number, of a double the decimal that it is written as; None of other values."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | float) or not isfinite(value):
        return None
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _new_value(type_: ColumnType, kind: str, known: Sequence[Value], number: int) -> Any:
    """A value that is not known: above all that are, below where the type ends, or between; each number gives one."""
    alike: list[Any] = [v for v in known if value_kind(v) == kind and not is_nan(v)]
    if kind == "boolean":
        return number % 2 == 0
    if kind == "string":
        return max(alike, default="") + f"~{number}"
    plain, moved = _steps(type_, kind)
    for start, steps in ((max(alike, default=plain), number), (min(alike, default=plain), -number)):
        made = moved(start, steps)
        if made is not None and made != start:
            return made
    others = (made for n in count() if (made := moved(plain, n)) is not None and made not in alike)
    return next(islice(others, number, None))


def _steps(type_: ColumnType, kind: str) -> tuple[Any, Callable[[Any, int], Any]]:
    """A value of a type, and what gives the one that is so many steps from another; None where there is none."""
    if kind == "number" and type_.name.is_floating:
        return 0.0, lambda start, steps: float(start) + steps if isfinite(start) else None
    if kind == "number":
        step = Decimal(1).scaleb(-(type_.scale or 0)) if type_.name is TypeName.DECIMAL else 1
        end = Decimal(_end(type_))

        def moved(start: Any, steps: int) -> Any:
            made = _exactly(start, step) + steps * step
            return made if -end <= made <= end else None

        return 0 * step, moved

    def later(start: Any, steps: int) -> Any:
        try:
            made = start + (dt.timedelta(days=steps) if kind == "date" else dt.timedelta(hours=steps))
        except OverflowError:
            return None
        return WallClock.of(made) if kind == "timestamp_ntz" else made

    return (dt.date(2000, 1, 1) if kind == "date" else dt.datetime(2000, 1, 1)), later


def _exactly(number: Any, step: int | Decimal) -> Any:
    return int(number) if isinstance(step, int) else Decimal(number).quantize(step, context=_WIDE)


def _end(type_: ColumnType) -> Any:
    """The largest number of a type."""
    if type_.name.bits is not None:
        return 2 ** (type_.name.bits - 1) - 1
    if type_.name is TypeName.DECIMAL and not type_.is_open:
        precision, scale = type_.decimal_size
        return Decimal(10**precision - 1).scaleb(-scale)
    return float("inf")


def _in_gaps(type_: ColumnType, known: Sequence[Value]) -> list[Value]:
    """Values below all and between two that are next to each other, where the type has some."""
    found: list[Value] = []
    for kind in ("number", "date", "timestamp", "timestamp_ntz", "string"):
        alike: list[Any] = sorted(v for v in known if value_kind(v) == kind and not is_nan(v))
        if not alike:
            continue
        for low, high in [(None, alike[0]), *pairwise(alike)][:_MOST_IN_ORDER]:
            between = _between(type_, kind, low, high)
            if between is not None and (low is None or low < between) and between < high:
                found.append(between)
    return found


def _between(type_: ColumnType, kind: str, low: Any, high: Any) -> Any:
    if kind == "string":
        return "" if low is None else low + "\x01"
    if kind == "number":
        if low is None:
            return high - 1 if high > -_end(type_) else None
        if type_.name.is_integer:
            return (int(low) + int(high)) // 2
        if isinstance(low, float) or isinstance(high, float):
            return (float(low) + float(high)) / 2
        middle = (Decimal(low) + Decimal(high)) / 2
        scale = type_.scale if type_.name is TypeName.DECIMAL else None
        return middle if scale is None else middle.quantize(Decimal(1).scaleb(-scale))
    step = dt.timedelta(days=1) if kind == "date" else dt.timedelta(microseconds=1)
    try:
        made = (high if low is None else low) + (-step if low is None else step)
    except OverflowError:
        return None
    return WallClock.of(made) if kind == "timestamp_ntz" else made
