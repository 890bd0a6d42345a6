"""What is declared of base relations, held against all their rows where these are read.

A key that is none makes a "yes" wrong, and nothing that is stored shows it: it is found here, before views are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic

from datalog.diagnostics import Diagnostic
from datalog.model import (
    Aggregate,
    AggregateFunction,
    Atom,
    Compared,
    Constant,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Rule,
    Variable,
    Version,
    ViewDefinition,
    block,
)
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.errors import Code, InputError
from selfmaint.warehouse.base_relations import BaseRelation, shown_rows

_SHOWN = 3
"""So many values that break a declaration are shown."""

_HINT = "correct the rows, or take back the declaration"


def require_as_declared(
    engine: Engine[D], relations: Mapping[str, BaseRelation], rows: Mapping[str, D]
) -> None:
    """Refuses rows of base relations that break what is declared of them.

    Args:
        engine: holds the rows.
        relations: what is declared, by name.
        rows: all rows of some relations. A foreign key is held against those of its target, if they are here.

    Raises:
        InputError: SM303, all that is broken.
    """
    held = _Held(engine, relations, Facts({Predicate(name): its for name, its in rows.items()}))
    messages = (message for name in rows if name in relations for message in held.broken(relations[name]))
    found = [Diagnostic(Code.BREAKS_CONSTRAINT, message, hint=_HINT) for message in messages]
    if found:
        raise InputError(found)


@dataclass(frozen=True)
class _Held(Generic[D]):
    engine: Engine[D]
    relations: Mapping[str, BaseRelation]
    facts: Facts[D]

    def broken(self, relation: BaseRelation) -> Iterator[str]:
        """What the rows of a relation break, in words."""
        rows = f"rows of `{relation.name}`"
        every = tuple(range(relation.given))
        asked: dict[str, tuple[tuple[int, ...], list[Literal]]] = {}
        for i in every:
            if i not in relation.nullable:
                message = f"{rows} have null in `{relation.columns[i]}`, which is declared never to be null"
                asked[message] = every, [NullTest(_column(i), negated=False)]
        for reference in relation.references:
            target = self.relations[reference.target]
            if Predicate(target.name) in self.facts.relations:
                message = f"{rows} reference ({relation.names(reference.columns)}) no row of `{target.name}`"
                image = dict(zip(reference.target_columns, map(_column, reference.columns), strict=True))
                its = tuple(image.get(i, Variable(f"Y{i}")) for i in range(self._width(target)))
                tests = (NullTest(_column(i)) for i in reference.columns)
                asked[message] = reference.columns, [*tests, Negation((Atom(Predicate(target.name), its),))]
        for message, found in self._breaking(relation, asked).items():
            yield f"{message}: {found}"
        for key in relation.unique:
            found = "" if max(key) >= relation.given else self._twice(relation, key)
            if found:
                yield f"several {rows} have one value of the key ({relation.names(key)}): {found}"

    def _width(self, relation: BaseRelation) -> int:
        """The number of columns here: rows of a table without a key may have a number, too."""
        return len(self.engine.columns(self.facts.relations[Predicate(relation.name)]))

    def _breaking(
        self, relation: BaseRelation, asked: Mapping[str, tuple[tuple[int, ...], list[Literal]]]
    ) -> dict[str, str]:
        """Some columns of rows that satisfy what none should, by what is asked."""
        row = Atom(Predicate(relation.name), tuple(_column(i) for i in range(self._width(relation))))
        heads = {
            message: Atom(Predicate("broken", Version.STEP, (number,)), tuple(map(_column, places)))
            for number, (message, (places, _)) in enumerate(asked.items())
        }
        program = Program(tuple(Rule(heads[message], (row, *tests)) for message, (_, tests) in asked.items()))
        goals = {message: head.predicate for message, head in heads.items()}
        some = self.engine.nonempty(program, list(goals.values()), self.facts) if goals else ()
        found = {}
        for message, goal in goals.items():
            if goal in some:
                names = tuple(relation.columns[i] for i in asked[message][0])
                rows = self.engine.evaluate(program, goal, self.facts, names)
                found[message] = shown_rows(names, self.engine.sample(rows, _SHOWN))
        return found

    def _twice(self, relation: BaseRelation, key: tuple[int, ...]) -> str:
        """Values of a key that several rows have."""
        row = tuple(_column(i) for i in range(self._width(relation)))
        mine, names = [row[i] for i in key], tuple(relation.columns[i] for i in key)
        body: list[Literal] = [Atom(Predicate(relation.name), row), *map(NullTest, mine)]
        more = Compared(">", Aggregate(AggregateFunction.COUNT), Constant(1))
        one = block("twice", 0, body, mine, groups=mine, having=[more])
        types = {Predicate(relation.name): relation.types[: len(row)]}
        rows = self.engine.evaluate_view(ViewDefinition("twice", names, (one,)), self.facts, types)
        return shown_rows(names, self.engine.sample(rows, _SHOWN)) if self.engine.count(rows) else ""


def _column(place: int) -> Variable:
    return Variable(f"X{place}")
