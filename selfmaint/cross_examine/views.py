"""Views in the solver's language: rows that stand once, rows that are counted, groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from datalog.model import (
    Aggregate,
    AggregateFunction,
    Block,
    Constant,
    Row,
    Value,
    Variable,
    aggregates_of,
    expression_variables,
)
from selfmaint.cross_examine.bodies import Bodies, Body, NotEncodableError
from selfmaint.cross_examine.question import Part, Question
from selfmaint.cross_examine.symbols import NULL
from selfmaint.warehouse.catalog import View

Candidates = Mapping[str, Sequence[Row]]


DOUBLES = "it adds up doubles, whose last digits depend on the order"
"""Why a view's new state is compared with none."""


class ViewRules(Protocol):
    """The rules of one view."""

    @property
    def number(self) -> int:
        """The view's number."""
        ...

    @property
    def derived(self) -> Mapping[str, int]:
        """The view's name and number, if the program has its rows as atoms."""
        ...

    @property
    def left_out(self) -> str:
        """What of the view is not encoded; empty if nothing."""
        ...

    def text(self, time: str) -> Iterator[str]:
        """What is derived at one time."""
        ...

    def facts(self, prefix: str, state: frozenset[Row]) -> list[str]:
        """Some stored rows, under predicates that begin so."""
        ...

    def unlike(self, time: str, prefix: str, state: frozenset[Row]) -> Iterator[str]:
        """Bodies, one of which holds where what is derived is not these rows."""
        ...


def rules_of(view: View, number: int, bodies: Bodies, candidates: Candidates) -> ViewRules:
    """The rules of a view.

    Raises:
        NotEncodableError: why there are none.
    """
    question = bodies.question
    parts = question.parts(view)
    if not parts:
        raise NotEncodableError("only its text is known")
    if adds_doubles(question, view):
        raise NotEncodableError(DOUBLES)
    blocks = [part.block for part in parts]
    grouped = [block for block in blocks if block is not None and block.groups is not None]
    if not grouped:
        kind = _Counted if question.keeps_duplicates(view) else _Distinct
        return kind(view, number, parts, bodies)
    if len(blocks) > 1 or question.keeps_duplicates(view):
        raise NotEncodableError("it is a union of groups")
    return _Groups(view, number, grouped[0], bodies, candidates)


def adds_doubles(question: Question, view: View) -> bool:
    """Whether a view shows sums of doubles: their last digits depend on the order."""
    stored = question.stored(view) | (question.promised.get(view.name) or frozenset())
    for part in question.parts(view):
        types = question.types(part.body)
        for i, output in enumerate(part.outputs):
            sums = [
                a
                for a in aggregates_of([output])
                if a.function in (AggregateFunction.SUM, AggregateFunction.AVG)
            ]
            used = expression_variables([a.operand for a in sums if a.operand is not None])
            if any(v in types and types[v].name.is_floating for v in used):
                return True
            is_sum = isinstance(output, Aggregate) and output.function is AggregateFunction.SUM
            if is_sum and any(isinstance(row[i], float) for row in stored):
                return True
    return False


class _Distinct:
    """Rows that stand once."""

    left_out = ""

    def __init__(self, view: View, number: int, parts: Sequence[Part], bodies: Bodies) -> None:
        self.number = number
        self.derived = {view.name: number}
        self._parts = parts
        self._bodies = bodies
        self._width = len(parts[0].outputs)

    def text(self, time: str) -> Iterator[str]:
        for part in self._parts:
            body, outputs = _core(part, self._bodies, time)
            yield from body.helpers
            yield f"v{time}{self.number}({','.join(outputs)}) :- {body.text}."

    def facts(self, prefix: str, state: frozenset[Row]) -> list[str]:
        symbols = self._bodies.symbols
        return [f"{prefix}{self.number}({_listed(symbols.of_row(row))})." for row in state]

    def unlike(self, time: str, prefix: str, state: frozenset[Row]) -> Iterator[str]:
        row = f"({','.join(f'X{i}' for i in range(self._width))})"
        derived, given = f"v{time}{self.number}{row}", f"{prefix}{self.number}{row}"
        yield f"{derived}, not {given}"
        yield f"{given}, not {derived}"


class _Counted:
    """Rows with their numbers of copies: the matches of all bodies are counted."""

    left_out = ""
    derived: Mapping[str, int] = {}

    def __init__(self, view: View, number: int, parts: Sequence[Part], bodies: Bodies) -> None:
        self.number = number
        self._parts = parts
        self._bodies = bodies
        self._width = len(parts[0].outputs)
        self._matched = [0] * len(parts)

    def text(self, time: str) -> Iterator[str]:
        row = ",".join(f"X{i}" for i in range(self._width))
        for at, part in enumerate(self._parts):
            body, outputs = _core(part, self._bodies, time)
            match = [*body.variables.values()]
            self._matched[at] = len(match)
            yield from body.helpers
            yield f"m{time}{self.number}_{at}({','.join([*match, *outputs])}) :- {body.text}."
            any_match = ",".join([*(f"M{i}" for i in range(len(match))), row])
            yield f"k{time}{self.number}({row}) :- m{time}{self.number}_{at}({any_match})."

    def facts(self, prefix: str, state: frozenset[Row]) -> list[str]:
        symbols = self._bodies.symbols
        return [f"{prefix}{self.number}({_listed(symbols.of_row(row[:-1]))})." for row in state]

    def unlike(self, time: str, prefix: str, state: frozenset[Row]) -> Iterator[str]:
        row = ",".join(f"X{i}" for i in range(self._width))
        yield f"k{time}{self.number}({row}), not {prefix}{self.number}({row})"
        for stored in state:
            its = _listed(self._bodies.symbols.of_row(stored[:-1]))
            elements = []
            for at, width in enumerate(self._matched):
                match = ",".join(f"M{i}" for i in range(width))
                whole = ",".join(filter(None, [match, its]))
                elements.append(
                    f"{','.join(filter(None, [str(at), match]))} : m{time}{self.number}_{at}({whole})"
                )
            yield f"not #count {{ {'; '.join(elements)} }} = {stored[-1]}"


class _Groups:
    """Groups of one body's matches, each shown by what it groups by."""

    derived: Mapping[str, int] = {}

    def __init__(self, view: View, number: int, block: Block, bodies: Bodies, candidates: Candidates) -> None:
        if block.having:
            raise NotEncodableError("it has a HAVING")
        assert block.groups is not None
        self.number = number
        self.left_out = ""
        self._block = block
        self._bodies = bodies
        self._candidates = candidates
        self._types = bodies.question.types(block.core.body)
        shown = {repr(output): i for i, output in enumerate(block.outputs)}
        if any(repr(group) not in shown for group in block.groups):
            raise NotEncodableError("it does not show what it groups by")
        self._places = [shown[repr(group)] for group in block.groups]
        self._aggregates: list[tuple[int, Aggregate]] = []
        for i, output in enumerate(block.outputs):
            if isinstance(output, Aggregate):
                if output.function is AggregateFunction.AVG:
                    self.left_out = "an average"
                else:
                    self._aggregates.append((i, output))
            elif i not in self._places and not isinstance(output, Constant):
                self.left_out = "a column computed from aggregates"
        self._width = 0

    def text(self, time: str) -> Iterator[str]:
        body = self._bodies.of(self._block.core.body, time)
        tests = [self._bodies.test(f, body, self._types) for f in self._block.filters]
        groups = [self._bodies.value(g, body, self._types) for g in self._block.groups or ()]
        values = [
            "0" if one.operand is None else self._bodies.value(one.operand, body, self._types)
            for _, one in self._aggregates
        ]
        given = [f"G{i} = {text}" for i, text in enumerate(groups)]
        given += [f"A{i} = {text}" for i, text in enumerate(values)]
        match = list(body.variables.values())
        self._width = len(match)
        heads = [*match, *(f"G{i}" for i in range(len(groups))), *(f"A{i}" for i in range(len(values)))]
        yield from body.helpers
        yield f"m{time}{self.number}({','.join(heads)}) :- {', '.join([body.text, *tests, *given])}."
        key = ",".join(["0", *(f"G{i}" for i in range(len(groups)))])
        yield f"k{time}{self.number}({key}) :- m{time}{self.number}({','.join(heads)})."

    def facts(self, prefix: str, state: frozenset[Row]) -> list[str]:
        return [f"{prefix}{self.number}({self._key(row)})." for row in state]

    def unlike(self, time: str, prefix: str, state: frozenset[Row]) -> Iterator[str]:
        key = ",".join(["0", *(f"G{i}" for i in range(len(self._places)))])
        yield f"k{time}{self.number}({key}), not {prefix}{self.number}({key})"
        if self._places:
            yield f"{prefix}{self.number}({key}), not k{time}{self.number}({key})"
        elif len(state) != 1:
            yield "0 = 0"
        for at, (column, one) in enumerate(self._aggregates):
            unit = self._unit(column, one, state)
            for row in state:
                yield from self._wrong(time, row, at, one, row[column], unit)

    def _key(self, row: Row) -> str:
        return _listed([0, *self._bodies.symbols.of_row(tuple(row[i] for i in self._places))])

    def _unit(self, column: int, one: Aggregate, state: frozenset[Row]) -> int | None:
        if one.function is not AggregateFunction.SUM:
            return None
        values: list[Value] = [row[column] for row in state]
        exact = isinstance(one.operand, Variable)
        if isinstance(one.operand, Variable):
            for atom in self._block.core.atoms:
                for i, term in enumerate(atom.terms):
                    if term == one.operand:
                        values += [row[i] for row in self._candidates.get(atom.predicate.name, ())]
        unit = self._bodies.symbols.unit(values, exact=exact)
        if unit is None:
            self.left_out = "a sum that is too large for the solver"
        return unit

    def _wrong(
        self, time: str, row: Row, at: int, one: Aggregate, value: Value, unit: int | None
    ) -> Iterator[str]:
        """Bodies, one of which holds where an aggregate of a stored row's group is another value."""
        symbols = self._bodies.symbols
        match = [f"M{i}" for i in range(self._width)]
        key = _listed(symbols.of_row(tuple(row[i] for i in self._places)))
        others = [f"A{i}" if i == at else f"B{i}" for i in range(len(self._aggregates))]
        atom = f"m{time}{self.number}({','.join(filter(None, [*match, key, *others]))})"
        own = ",".join(["0", *match])
        some = f"{atom}, A{at} != {NULL}"
        if one.function is AggregateFunction.COUNT:
            what = own if not one.distinct else f"A{at}"
            where = atom if one.operand is None else some
            yield f"not #count {{ {what} : {where} }} = {value}"
        elif value is None:
            yield some
        elif one.function is AggregateFunction.SUM:
            if unit is not None:
                weight = f"@weight({unit},A{at})"
                what = f"{weight},{own}" if not one.distinct else f"{weight},A{at}"
                total = symbols.weight(unit, symbols.of(value))
                yield f"not #sum {{ {what} : {some} }} = {total}"
                yield f"not 1 #count {{ {own} : {some} }}"
        else:
            beyond = "<" if one.function is AggregateFunction.MIN else ">"
            yield f'{some}, @compares("{beyond}",A{at},{symbols.of(value)}) = 1'
            yield f"not 1 #count {{ {own} : {atom}, A{at} = {symbols.of(value)} }}"


def _core(part: Part, bodies: Bodies, time: str) -> tuple[Body, list[str]]:
    """A body with its filters and its outputs as variables."""
    body = bodies.of(part.body, time)
    types = bodies.question.types(part.body)
    literals = list(body.literals)
    if part.block is not None:
        literals += [bodies.test(f, body, types) for f in part.block.filters]
    outputs = []
    for i, output in enumerate(part.outputs):
        text = bodies.value(output, body, types)
        if text.startswith("@"):
            literals.append(f"O{i} = {text}")
            text = f"O{i}"
        outputs.append(text)
    return Body(tuple(literals), body.variables, body.helpers), outputs


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


__all__ = ["NotEncodableError", "ViewRules", "adds_doubles", "rules_of"]
