"""What is declared of base relations, held against all their rows where these are read.

A key that is none makes a "yes" wrong, and nothing that is stored shows it: it is found here, before views are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic

from msgspec import Struct

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.model import Atom, NullTest, Predicate, Program, Rule, Version
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.errors import Code, InputError
from selfmaint.warehouse.base_relations import BaseRelation, row_atom, shown_rows
from selfmaint.warehouse.broken_constraints import dangling, twins

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


class _Held(Struct, Generic[D], frozen=True):
    engine: Engine[D]
    relations: Mapping[str, BaseRelation]
    facts: Facts[D]

    def broken(self, relation: BaseRelation) -> Iterator[str]:
        """What the rows of a relation break, in words."""
        rows, asked = f"rows of `{relation.name}`", dict[str, Rule]()
        row = row_atom(relation, Version.STORED)
        head = Atom(Predicate(relation.name, Version.PROBLEM), row.terms)
        for i in range(relation.given):
            if i not in relation.nullable:
                message = f"{rows} have null in `{relation.columns[i]}`, which is declared never to be null"
                asked[message] = Rule(head, (row, NullTest(row.terms[i], negated=False)))
        for reference in relation.references:
            target = self.relations[reference.target]
            if Predicate(target.name) in self.facts.relations:
                message = f"{rows} reference ({relation.names(reference.columns)}) no row of `{target.name}`"
                asked[message] = dangling(relation, reference, target)
        for message, found in self._found(relation, asked).items():
            yield f"{message}: {found}"
        for key in relation.unique:
            if max(key) < relation.given:
                view, types = twins(relation, key, nulls=False), {row.predicate: relation.types}
                several = self.engine.sample(self.engine.evaluate_view(view, self.facts, types), _SHOWN)
                if several:
                    found = shown_rows(view.columns, several)
                    yield f"several {rows} have one value of the key ({relation.names(key)}): {found}"

    def _found(self, relation: BaseRelation, asked: Mapping[str, Rule]) -> dict[str, str]:
        """Some of the rows that rules give, which should give none; all are asked in one job."""
        row, apart = row_atom(relation, Version.STORED), dict[str, Rule]()
        for number, (message, rule) in enumerate(asked.items()):
            goal = rule.head.predicate.of(Version.PROBLEM, (number,))
            apart[message] = replace(rule, head=replace(rule.head, predicate=goal))
        program = Program(tuple(apart.values()))
        goals = [rule.head.predicate for rule in apart.values()]
        some = self.engine.nonempty(program, goals, self.facts) if goals else ()
        found = {}
        for message, rule in apart.items():
            if rule.head.predicate in some:
                names = tuple(relation.columns[row.terms.index(term)] for term in rule.head.terms)
                rows = self.engine.evaluate(program, rule.head.predicate, self.facts, names)
                found[message] = shown_rows(names, self.engine.sample(rows, _SHOWN))
        return found
