"""Views in the solver's language: rows that stand once, and rows that are counted.

Groups that are held against stored ones aggregate by aggregate are in `groups.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from datalog.model import Row
from selfmaint.cross_examine.bodies import Bodies, Body, Derived, NotEncodableError
from selfmaint.cross_examine.groups import Candidates, Groups, as_rows, inexact_columns
from selfmaint.cross_examine.question import Part
from selfmaint.warehouse.catalog import View


class ViewRules(Protocol):
    """The rules of one view."""

    @property
    def number(self) -> int:
        """The view's number."""
        ...

    @property
    def derived(self) -> Mapping[str, Derived]:
        """The view's name and its atoms, if the program has its rows as such."""
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

    Args:
        view: the view.
        number: its number.
        bodies: encodes bodies.
        candidates: the rows of base relations.

    Raises:
        NotEncodableError: why there are none.
    """
    question = bodies.question
    parts = question.parts(view)
    if not parts:
        raise NotEncodableError("only its text is known")
    if question.keeps_duplicates(view):
        return _Counted(view, number, parts, bodies, candidates)
    groups = Groups.of(view, number, parts, bodies, candidates)
    return groups or _Distinct(view, number, parts, bodies, candidates)


class _Rows:
    """What is derived for the rows of all parts of a view."""

    def __init__(
        self, view: View, number: int, parts: Sequence[Part], bodies: Bodies, candidates: Candidates
    ) -> None:
        self.number = number
        self.left_out = ""
        self.derived = {view.name: Derived(number, 0)}
        self._view = view
        self._parts = parts
        self._bodies = bodies
        self._candidates = candidates
        self._width = len(parts[0].outputs)
        self._inexact = inexact_columns(bodies.question, view)

    def _encoded(self, time: str) -> list[tuple[Body, list[str]]]:
        """For each part its matches, and the view's columns."""
        found = []
        for at, part in enumerate(self._parts):
            name = f"{time}{self.number}_{at}"
            body, outputs, left_out = _encoded(part, name, time, self._bodies, self._candidates)
            literals = list(body.literals)
            for i, text in enumerate(outputs):
                if i in self._inexact or text.startswith("@"):
                    literals.append(f"O{i} = {f'@rounded({text})' if i in self._inexact else text}")
                    outputs[i] = f"O{i}"
            found.append((Body(tuple(literals), body.variables, body.helpers, body.match), outputs))
            self.left_out = self.left_out or left_out
        return found

    def _numbers(self, row: Row) -> str:
        symbols = self._bodies.symbols
        return _listed(
            [symbols.of_rounded(v) if i in self._inexact else symbols.of(v) for i, v in enumerate(row)]
        )


class _Distinct(_Rows):
    """Rows that stand once."""

    def text(self, time: str) -> Iterator[str]:
        for body, outputs in self._encoded(time):
            yield from body.helpers
            yield f"v{time}{self.number}({','.join(outputs)}) :- {body.text}."

    def facts(self, prefix: str, state: frozenset[Row]) -> list[str]:
        return [f"{prefix}{self.number}({self._numbers(row)})." for row in state]

    def unlike(self, time: str, prefix: str, state: frozenset[Row]) -> Iterator[str]:
        row = f"({','.join(f'X{i}' for i in range(self._width))})"
        derived, given = f"v{time}{self.number}{row}", f"{prefix}{self.number}{row}"
        yield f"{derived}, not {given}"
        yield f"{given}, not {derived}"


class _Counted(_Rows):
    """Rows with their numbers of copies: atoms of a row have the match behind it, too, and these are counted."""

    def text(self, time: str) -> Iterator[str]:
        encoded = self._encoded(time)
        width = max(len(body.match) for body, _ in encoded)
        self.derived[self._view.name] = Derived(self.number, width + 1)
        for at, (body, outputs) in enumerate(encoded):
            match = [str(at), *body.match, *["0"] * (width - len(body.match))]
            yield from body.helpers
            yield f"v{time}{self.number}({','.join([*outputs, *match])}) :- {body.text}."

    def facts(self, prefix: str, state: frozenset[Row]) -> list[str]:
        return [f"{prefix}{self.number}({self._numbers(row[:-1])})." for row in state]

    def unlike(self, time: str, prefix: str, state: frozenset[Row]) -> Iterator[str]:
        row = ",".join(f"X{i}" for i in range(self._width))
        match = ",".join(f"M{i}" for i in range(self.derived[self._view.name].hidden))
        yield f"v{time}{self.number}({row},{match}), not {prefix}{self.number}({row})"
        for stored in state:
            its = self._numbers(stored[:-1])
            yield f"not #count {{ {match} : v{time}{self.number}({its},{match}) }} = {stored[-1]}"


def _encoded(
    part: Part, name: str, time: str, bodies: Bodies, candidates: Candidates
) -> tuple[Body, list[str], str]:
    """The matches of a part, the columns of its rows, and what is not encoded."""
    if part.block is not None and part.block.groups is not None:
        return as_rows(part.block, name, time, bodies, candidates)
    body = bodies.of(part.body, time)
    types = bodies.question.types(part.body)
    filters = () if part.block is None else part.block.filters
    literals = (*body.literals, *(bodies.test(f, body, types) for f in filters))
    outputs = [bodies.value(output, body, types) for output in part.outputs]
    return Body(literals, body.variables, body.helpers, body.match), outputs, ""


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


__all__ = ["NotEncodableError", "ViewRules", "rules_of"]
