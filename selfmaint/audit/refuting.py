"""Proposals that an example refutes: with them carried out its two databases still explain all that is known.

Held against the definition: the constraints that are proposed hold in both databases, before and after the update, and
the views that are proposed have the same rows in both. What a set of proposals does is what each of them does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from datalog.evaluate import evaluate
from datalog.model import Predicate, Program, Row
from datalog.rewrite import guard_joins
from selfmaint.audit.candidates import Relations
from selfmaint.audit.example import Example
from selfmaint.audit.proposals import NewForeignKey, NewKey, NewView, Proposal
from selfmaint.countermodel.databases import updated
from selfmaint.warehouse.catalog import BaseRelation, Catalog


@dataclass
class Refuting:
    """Whether examples are ones with proposals carried out, too; each is asked for once.

    Attributes:
        catalog: the warehouse as it is.
    """

    catalog: Catalog
    _asked: dict[tuple[int, Proposal], bool] = field(default_factory=dict)
    _examples: dict[int, Example] = field(default_factory=dict)

    def refutes(self, example: Example, chosen: Iterable[Proposal]) -> bool:
        """Whether the example is one with all these proposals carried out."""
        return all(self._withstands(example, proposal) for proposal in chosen)

    def _withstands(self, example: Example, proposal: Proposal) -> bool:
        key = (id(example), proposal)
        if key not in self._asked:
            self._examples[id(example)] = example  # no other one gets its id
            self._asked[key] = self._holds(example, proposal)
        return self._asked[key]

    def _holds(self, example: Example, proposal: Proposal) -> bool:
        databases = (example.first, example.second)
        if isinstance(proposal, NewView):
            one, other = (_rows(proposal, database) for database in databases)
            return one == other
        after = (updated(database, example.inserted, example.deleted) for database in databases)
        return all(self._satisfies(database, proposal) for database in (*databases, *after))

    def _satisfies(self, database: Relations, proposal: NewKey | NewForeignKey) -> bool:
        relation = self.catalog.relations[proposal.relation]
        values = _values(database, relation, proposal.columns)
        if isinstance(proposal, NewKey):
            return len(set(values)) == len(values) and not any(None in value for value in values)
        target = self.catalog.relations[proposal.target]
        there = set(_values(database, target, proposal.target_columns))
        return all(None in value or value in there for value in values)


def _values(database: Relations, relation: BaseRelation, columns: tuple[str, ...]) -> list[Row]:
    places = [relation.columns.index(column) for column in columns]
    return [tuple(row[i] for i in places) for row in database.get(relation.name, frozenset())]


def _rows(proposal: NewView, database: Relations) -> frozenset[Row]:
    facts = {Predicate(name): rows for name, rows in database.items()}
    return evaluate(Program((guard_joins(proposal.rule),)), proposal.rule.head.predicate, facts)
