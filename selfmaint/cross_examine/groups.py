"""Groups in the solver's language: held against stored ones, or with their values as rows.

Where a view shows what it groups by, and aggregates, it is held against its stored rows one by one: a sum need not be
known to be told from a given one (`Groups`). Else the values of all aggregates are derived, for HAVING and computed
columns, for unions, and for views over the view (`as_rows`); so many values may make a program too large, which fewer
candidates do not.

Doubles are added up as the decimals that their shortest texts are, to `DIGITS` digits: last digits, which depend on the
order, are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from datalog.analysis.expression_types import expression_type
from datalog.model import (
    ANY,
    Aggregate,
    AggregateFunction,
    Block,
    Constant,
    Expression,
    Row,
    Value,
    Variable,
    aggregates_of,
)
from selfmaint.cross_examine.bodies import Bodies, Body, Derived
from selfmaint.cross_examine.question import Part, Question
from selfmaint.cross_examine.symbols import BEFORE, NULL
from selfmaint.warehouse.catalog import View

Candidates = Mapping[str, Sequence[Row]]

TOO_LARGE = "a sum that is too large for the solver"
_ADDED_UP = (AggregateFunction.SUM, AggregateFunction.AVG)


def inexact_columns(question: Question, view: View) -> frozenset[int]:
    """The columns that sums or averages of doubles go into."""
    rows = question.stored(view) | (question.promised.get(view.name) or frozenset())
    found = set()
    for part in question.parts(view):
        types = question.types(part.body)
        for i, output in enumerate(part.outputs):
            sums = [a for a in aggregates_of([output]) if a.function in _ADDED_UP and a.operand is not None]
            kinds = [expression_type(a.operand, types) for a in sums if a.operand is not None]
            declared = any(kind is not None and kind.name.is_floating for kind in kinds)
            if declared or (sums and any(isinstance(row[i], float) for row in rows)):
                found.add(i)
    return frozenset(found)


class _Matches:
    """The matches of a grouped block at one time, with what they are grouped by and what is aggregated."""

    def __init__(
        self, block: Block, aggregates: Sequence[Aggregate], name: str, time: str, bodies: Bodies
    ) -> None:
        body = bodies.of(block.core.body, time)
        types = bodies.question.types(block.core.body)
        tests = [bodies.test(f, body, types) for f in block.filters]
        groups = [bodies.value(g, body, types) for g in block.groups or ()]
        values = [
            "0" if one.operand is None else bodies.value(one.operand, body, types) for one in aggregates
        ]
        self.groups = [f"G{i}" for i in range(len(groups))]
        self.values = [f"A{i}" for i in range(len(values))]
        self.key = ",".join(["0", *self.groups])
        self.match = [f"M{i}" for i in range(len(body.match))]
        given = [f"G{i} = {text}" for i, text in enumerate(groups)]
        given += [f"A{i} = {text}" for i, text in enumerate(values)]
        heads = [*body.match, *self.groups, *self.values]
        self._name = name
        self.rules = [
            *body.helpers,
            f"m{name}({','.join(heads)}) :- {', '.join([body.text, *tests, *given])}.",
            f"g{name}({self.key}) :- m{name}({','.join(heads)}).",
        ]

    def atom(self, group: Sequence[str], at: int, value: str) -> str:
        """A match of a group with the value of one aggregate's operand."""
        others = [value if i == at else f"B{i}" for i in range(len(self.values))]
        return f"m{self._name}({','.join([*self.match, *group, *others])})"

    @property
    def own(self) -> str:
        """What tells matches apart."""
        return ",".join(["0", *self.match])


def as_rows(
    block: Block, name: str, time: str, bodies: Bodies, candidates: Candidates
) -> tuple[Body, list[str], str]:
    """The groups as rows: one match each, the columns, and what is not encoded."""
    aggregates = block.aggregates
    types = bodies.question.types(block.core.body)
    matches = _Matches(block, aggregates, name, time, bodies)
    rules, left_out = list(matches.rules), ""
    key = matches.key
    literals = [f"g{name}({key})"]
    if not block.groups:
        rules.append(f"g{name}(0).")
    inputs: dict[Expression, str] = dict(zip(block.groups or (), matches.groups, strict=True))
    for at, one in enumerate(aggregates):
        value, its = f"y{name}_{at}", matches.atom(matches.groups, at, f"A{at}")
        some = f"{its}, A{at} != {NULL}"
        literals.append(f"{value}({key},Y{at})")
        inputs[one] = f"Y{at}"
        counted = f"{'A' + str(at) if one.distinct else matches.own} : {its if one.operand is None else some}"
        if one.function is AggregateFunction.COUNT:
            rules.append(f"{value}({key},@number(N)) :- g{name}({key}), N = #count {{ {counted} }}.")
            continue
        rules += [
            f"h{value}({key}) :- {some}.",
            f"{value}({key},{NULL}) :- g{name}({key}), not h{value}({key}).",
        ]
        if one.function in (AggregateFunction.MIN, AggregateFunction.MAX):
            beyond = "<" if one.function is AggregateFunction.MIN else ">"
            rules += [
                f"a{value}({key},A{at}) :- {some}.",
                f'b{value}({key},V) :- a{value}({key},V), a{value}({key},W), @compares("{beyond}",W,V) = 1.',
                f"{value}({key},V) :- a{value}({key},V), not b{value}({key},V).",
            ]
            continue
        unit = unit_of(one, block, (), bodies, candidates)
        if unit is None:
            left_out = TOO_LARGE
            unit = 0
        element = f"W,{'A' + str(at) if one.distinct else matches.own} : {some}, W = @weight({unit},A{at})"
        total = f"h{value}({key}), N = #sum {{ {element} }}"
        if one.function is AggregateFunction.SUM:
            rules.append(f"{value}({key},@total({unit},N)) :- {total}.")
        else:
            assert one.operand is not None
            average = bodies.symbols.average(one, expression_type(one.operand, types))
            rules += [
                f"s{value}({key},N) :- {total}.",
                f"n{value}({key},N) :- h{value}({key}), N = #count {{ {counted} }}.",
                f"{value}({key},@average({average},{unit},S,N)) :- s{value}({key},S), n{value}({key},N).",
            ]
    literals += [bodies.of_group(h, inputs, types, is_test=True) for h in block.having]
    outputs = [bodies.of_group(output, inputs, types) for output in block.outputs]
    return Body(tuple(literals), {}, tuple(rules), tuple(matches.groups)), outputs, left_out


def unit_of(
    one: Aggregate, block: Block, totals: Sequence[Value], bodies: Bodies, candidates: Candidates
) -> int | None:
    """A unit that an aggregate adds up in; None if the solver's numbers are too small for it."""
    question, operand = bodies.question, one.operand
    assert operand is not None
    its = expression_type(operand, question.types(block.core.body)) or ANY
    values = list(totals)
    exact = isinstance(operand, Variable)
    for atom in block.core.atoms:
        for i, term in enumerate(atom.terms):
            if term == operand:
                exact &= atom.predicate.name in question.catalog.relations
                values += [row[i] for row in candidates.get(atom.predicate.name, ())]
    return bodies.symbols.unit(values, its, exact=exact)


class Groups:
    """Groups of one body's matches, each shown by what it groups by, held against stored ones.

    Where other views read them, the rows before the update are the stored ones, and those after it are derived.
    """

    def __init__(self, view: View, number: int, block: Block, bodies: Bodies, candidates: Candidates) -> None:
        self.number = number
        self.left_out = ""
        self.derived: dict[str, Derived] = {}
        self._view = view
        self._block = block
        self._bodies = bodies
        self._candidates = candidates
        self._inexact = inexact_columns(bodies.question, view)
        self._aggregates = [(i, o) for i, o in enumerate(block.outputs) if isinstance(o, Aggregate)]
        self._matches: dict[str, _Matches] = {}

    @classmethod
    def of(
        cls, view: View, number: int, parts: Sequence[Part], bodies: Bodies, candidates: Candidates
    ) -> Groups | None:
        """The rules of a view; None of one that shows something else than aggregates and what it groups by."""
        block = parts[0].block
        if len(parts) > 1 or block is None or block.groups is None or block.having:
            return None
        made = cls(view, number, block, bodies, candidates)
        plain = all(
            isinstance(o, Constant | Aggregate) or i in made._places for i, o in enumerate(block.outputs)
        )
        if plain and len(made._places) == len(block.groups):
            return made
        return None

    @cached_property
    def _places(self) -> list[int]:
        shown = {repr(output): i for i, output in enumerate(self._block.outputs)}
        return [shown[repr(group)] for group in self._block.groups or () if repr(group) in shown]

    def text(self, time: str) -> Iterator[str]:
        """What is derived at one time."""
        aggregates = [one for _, one in self._aggregates]
        name = f"{time}{self.number}"
        its = self._matches[time] = _Matches(self._block, aggregates, name, time, self._bodies)
        yield from its.rules
        if self._view.name not in self._bodies.question.read_by_views:
            return
        self.derived[self._view.name] = Derived(self.number, 0)
        if time == BEFORE:
            for stored in self._bodies.question.stored(self._view):
                numbers = self._bodies.symbols.of_row(stored, self._inexact)
                yield f"v{name}({','.join(map(str, numbers))})."
            return
        body, outputs, left_out = as_rows(self._block, f"{name}_0", time, self._bodies, self._candidates)
        self.left_out = self.left_out or left_out
        given = [f"O{i} = {f'@rounded({o})' if i in self._inexact else o}" for i, o in enumerate(outputs)]
        yield from body.helpers
        row = ",".join(f"O{i}" for i in range(len(outputs)))
        yield f"v{name}({row}) :- {', '.join([body.text, *given])}."

    def facts(self, prefix: str, state: frozenset[Row]) -> list[str]:
        """Some stored rows, under predicates that begin so."""
        return [f"{prefix}{self.number}({','.join(['0', *self._key(row)])})." for row in state]

    def unlike(self, time: str, prefix: str, state: frozenset[Row]) -> Iterator[str]:
        """Bodies, one of which holds where what is derived is not these rows."""
        key = ",".join(["0", *(f"G{i}" for i in range(len(self._places)))])
        yield f"g{time}{self.number}({key}), not {prefix}{self.number}({key})"
        if self._places:
            yield f"{prefix}{self.number}({key}), not g{time}{self.number}({key})"
        elif len(state) != 1:
            yield "0 = 0"
        for at, (column, one) in enumerate(self._aggregates):
            unit = None
            if one.function in _ADDED_UP:
                totals = [row[column] for row in state if one.function is AggregateFunction.SUM]
                unit = unit_of(one, self._block, totals, self._bodies, self._candidates)
                if unit is None:
                    self.left_out = TOO_LARGE
                    continue
            for row in state:
                yield from self._wrong(time, row, at, row[column], unit)

    def _key(self, row: Row) -> list[str]:
        return [str(self._bodies.symbols.of(row[i])) for i in self._places]

    def _wrong(self, time: str, row: Row, at: int, value: Value, unit: int | None) -> Iterator[str]:
        """Bodies, one of which holds where an aggregate of a stored row's group is another value."""
        symbols = self._bodies.symbols
        one = self._aggregates[at][1]
        matches = self._matches[time]
        atom, own = matches.atom(self._key(row), at, f"A{at}"), matches.own
        some = f"{atom}, A{at} != {NULL}"
        what = own if not one.distinct else f"A{at}"
        if one.function is AggregateFunction.COUNT:
            yield f"not #count {{ {what} : {atom if one.operand is None else some} }} = {value}"
        elif value is None:
            yield some
        elif unit is not None:
            if one.function is AggregateFunction.SUM:
                weight, total = f"@weight({unit},A{at})", symbols.weight(unit, symbols.of(value))
            else:
                weight, total = f"@beyond({unit},{symbols.of(value)},A{at})", 0
            yield f"not #sum {{ {weight},{what} : {some} }} = {total}"
            yield f"not 1 #count {{ {own} : {some} }}"
        else:
            beyond = "<" if one.function is AggregateFunction.MIN else ">"
            yield f'{some}, @compares("{beyond}",A{at},{symbols.of(value)}) = 1'
            yield f"not 1 #count {{ {own} : {atom}, A{at} = {symbols.of(value)} }}"
