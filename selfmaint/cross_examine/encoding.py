"""A question as an answer-set program: a database before the update, the views on it, and on what it becomes.

A predicate for each base relation before (`b0`) and after the update (`a0`), rules for each view as written, over
both, and constraints: what is stored is what is derived before, keys and foreign keys hold before and after. Values are
numbers, 0 is null; comparisons, filters and computed columns are computed while the program is ground, by the reference
evaluation. Counts, sums, minima and maxima of groups are aggregates of the solver, held against the stored values.

What cannot be encoded is left out, and named: then more databases are found than there are, and the definition refuses
those that are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from datalog.model import Row, Version
from selfmaint.cross_examine.bodies import Bodies
from selfmaint.cross_examine.candidates import Candidates
from selfmaint.cross_examine.question import Question
from selfmaint.cross_examine.symbols import AFTER, BEFORE, NULL, Symbols
from selfmaint.cross_examine.views import NotEncodableError, ViewRules, rules_of
from selfmaint.warehouse.catalog import BaseRelation, reads


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
