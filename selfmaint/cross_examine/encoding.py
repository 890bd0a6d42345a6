"""A question as an answer-set program: a database before the update, the views on it, and on what it becomes.

A predicate for each base relation before (`b0`) and after the update (`a0`), rules for each view as written, over
both, and constraints: what is stored is what is derived before, keys and foreign keys hold before and after. Values are
numbers, 0 is null; comparisons, filters and computed columns are computed while the program is ground, by the reference
evaluation. Counts, sums, minima and maxima of groups are aggregates of the solver, held against the stored values.

What cannot be encoded is left out, and named: then more databases are found than there are, and the definition refuses
those that are none.

Rows of views stand once, or are counted. Groups that are held against stored ones aggregate by aggregate are in
`groups.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from datalog.model import Row, Version
from selfmaint.cross_examine.bodies import Bodies, Body, Derived, NotEncodableError
from selfmaint.cross_examine.groups import Groups, as_rows, inexact_columns
from selfmaint.cross_examine.matches import Candidates
from selfmaint.cross_examine.question import Part, Question
from selfmaint.cross_examine.symbols import AFTER, BEFORE, NULL, Symbols
from selfmaint.warehouse.catalog import BaseRelation, View
from selfmaint.warehouse.reads import reads


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


def rules_of(view: View, number: int, bodies: Bodies, candidates: Mapping[str, Sequence[Row]]) -> ViewRules:
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
        self,
        view: View,
        number: int,
        parts: Sequence[Part],
        bodies: Bodies,
        candidates: Mapping[str, Sequence[Row]],
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
        """The columns of a stored row, without its number of copies."""
        return _listed(self._bodies.symbols.of_row(row[: self._width], self._inexact))

    def facts(self, prefix: str, state: frozenset[Row]) -> list[str]:
        return [f"{prefix}{self.number}({self._numbers(row)})." for row in state]


class _Distinct(_Rows):
    """Rows that stand once."""

    def text(self, time: str) -> Iterator[str]:
        for body, outputs in self._encoded(time):
            yield from body.helpers
            yield f"v{time}{self.number}({','.join(outputs)}) :- {body.text}."

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

    def unlike(self, time: str, prefix: str, state: frozenset[Row]) -> Iterator[str]:
        row = ",".join(f"X{i}" for i in range(self._width))
        match = ",".join(f"M{i}" for i in range(self.derived[self._view.name].hidden))
        yield f"v{time}{self.number}({row},{match}), not {prefix}{self.number}({row})"
        for stored in state:
            its = self._numbers(stored)
            yield f"not #count {{ {match} : v{time}{self.number}({its},{match}) }} = {stored[-1]}"


def _encoded(
    part: Part, name: str, time: str, bodies: Bodies, candidates: Mapping[str, Sequence[Row]]
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


class Encoding:
    """The program for a question, and its parts for single views.

    Attributes:
        left_out: by view, what of it is not encoded.
    """

    def __init__(self, question: Question, candidates: Candidates) -> None:
        self.question = question
        self.symbols = Symbols()
        self.left_out: dict[str, str] = {}
        self._candidates = candidates
        self._numbers = {name: n for n, name in enumerate(question.catalog.relations)}
        self._rows: dict[tuple[int, tuple[int, ...]], Row] = {}
        self._views: dict[str, ViewRules] = {}
        self._bodies = Bodies(question, self.symbols, self._numbers)
        self._text = "\n".join([*self._databases(), *self._constraints(), *self._of_views()])

    @property
    def text(self) -> str:
        """The part of all databases that explain what is known."""
        return self._text

    def differing(self, view: str, state: frozenset[Row]) -> str | None:
        """The part of those on which a view's new state is not a given one, if `ask(view's number)` is true."""
        rules = self._views.get(view)
        if rules is None:
            return None
        number = rules.number
        goal = f"differs({number})"
        lines = [f"{goal} :- {body}." for body in rules.unlike(AFTER, "e", state)]
        lines += rules.facts("e", state)
        return "\n".join([*lines, f"#external ask({number}).", f":- ask({number}), not {goal}."])

    def number(self, view: str) -> int:
        """The number of a view."""
        return self._views[view].number

    def database(self, atoms: Iterable[tuple[str, tuple[int, ...]]]) -> dict[str, frozenset[Row]]:
        """The database before the update that some true atoms are."""
        found: dict[str, set[Row]] = {name: set() for name in self._numbers}
        names = {f"{BEFORE}{n}": name for name, n in self._numbers.items()}
        for symbol, arguments in atoms:
            if symbol in names:
                name = names[symbol]
                found[name].add(self._rows[self._numbers[name], arguments])
        return {name: frozenset(rows) for name, rows in found.items()}

    def _databases(self) -> Iterator[str]:
        question = self.question
        for name, n in self._numbers.items():
            relation = question.catalog.relations[name]
            variables = ",".join(f"X{i}" for i in range(relation.arity))
            for row in self._candidates.rows[name]:
                key = self.symbols.of_row(row)
                self._rows[n, key] = row
                atom = f"{BEFORE}{n}({_listed(key)})"
                yield f"{atom}." if question.is_certain(name, row) else f"{{{atom}}}."
            for version, prefix in ((Version.INSERTED, "i"), (Version.DELETED, "d")):
                for row in question.of(name, version):
                    yield f"{prefix}{n}({_listed(self.symbols.of_row(row))})."
            yield f"{AFTER}{n}({variables}) :- {BEFORE}{n}({variables}), not d{n}({variables})."
            yield f"{AFTER}{n}({variables}) :- i{n}({variables})."

    def _constraints(self) -> Iterator[str]:
        for name, n in self._numbers.items():
            relation = self.question.catalog.relations[name]
            for time in (BEFORE, AFTER):
                for k, key in enumerate(relation.unique):
                    yield from _unique(relation, f"{time}{n}", f"k{time}{n}_{k}", key)
                for k, reference in enumerate(relation.references):
                    target = self.question.catalog.relations[reference.target]
                    there = f"t{time}{n}_{k}"
                    its = _variables(target)
                    wanted = ",".join(its[j] for j in reference.target_columns)
                    head = f"{time}{self._numbers[reference.target]}"
                    yield f"{there}({wanted}) :- {head}({','.join(its)})."
                    mine = [_variables(relation)[i] for i in reference.columns]
                    some = "".join(f", {v} != {NULL}" for v in mine)
                    row = f"{time}{n}({','.join(_variables(relation))})"
                    yield f":- {row}{some}, not {there}({','.join(mine)})."

    def _of_views(self) -> Iterator[str]:
        below = reads(self.question.catalog)
        # Those that others read come before these, wherever they are defined.
        for number, view in enumerate(sorted(self.question.catalog.views, key=lambda v: len(below[v.name]))):
            try:
                rules = rules_of(view, number, self._bodies, self._candidates.rows)
                text = [line for time in (BEFORE, AFTER) for line in rules.text(time)]
            except NotEncodableError as error:
                self.left_out[view.name] = str(error)
                continue
            self._views[view.name] = rules
            self._bodies.derived.update(rules.derived)
            stored = self.question.stored(view)
            yield from text
            yield from rules.facts("s", stored)
            yield from (f":- {body}." for body in rules.unlike(BEFORE, "s", stored))
            if rules.left_out:
                self.left_out[view.name] = rules.left_out


def _variables(relation: BaseRelation) -> list[str]:
    return [f"X{i}" for i in range(relation.arity)]


def _listed(key: Sequence[int]) -> str:
    return ",".join(map(str, key))


def _unique(relation: BaseRelation, atom: str, name: str, key: Sequence[int]) -> Iterator[str]:
    """No two rows with the same values, none of them null, in some columns."""
    variables = _variables(relation)
    others = [v for i, v in enumerate(variables) if i not in key]
    wanted = ",".join(variables[i] for i in key)
    some = "".join(f", {variables[i]} != {NULL}" for i in key)
    if others:
        yield f"{name}({wanted}) :- {atom}({','.join(variables)}){some}."
        yield f":- {name}({wanted}), 2 #count {{ {','.join(others)} : {atom}({','.join(variables)}) }}."
