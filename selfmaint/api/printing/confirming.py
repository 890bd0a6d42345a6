"""Queries for proposals: what confirms a key or foreign key on the data, and what fills a new view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from datalog.model import Predicate, Program, Variable
from datalog.sql import Table, select, select_view, text
from selfmaint.audit.proposals import NewForeignKey, NewKey, NewView, Proposal
from selfmaint.warehouse.broken_constraints import dangling, twins
from selfmaint.warehouse.catalog import BaseRelation, Catalog, Reference


def proposal_sql(catalog: Catalog, proposal: Proposal) -> str:
    """The query for a proposal, over tables named like the base relations.

    For a key or foreign key its rows are what speaks against it: none confirm it. For a view they are its rows.

    Raises:
        EmissionError: a name that Spark cannot take.
    """
    tables = _tables(catalog)
    match proposal:
        case NewKey():
            relation = catalog.relations[proposal.relation]
            against = twins(relation, _places(relation, proposal.columns), nulls=True)
            return text(select_view(against, tables))
        case NewForeignKey():
            relation, target = catalog.relations[proposal.relation], catalog.relations[proposal.target]
            mine, its = _places(relation, proposal.columns), _places(target, proposal.target_columns)
            rule = dangling(relation, Reference(mine, target.name, its), target)
            return text(select(Program((rule,)), rule.head.predicate, tables, columns=proposal.columns))
        case NewView(rule=rule):
            columns = tuple(t.name.lower() for t in rule.head.terms if isinstance(t, Variable))
            return text(select(Program((rule,)), rule.head.predicate, tables, columns=columns))
        case _:
            assert_never(proposal)


def _tables(catalog: Catalog) -> Mapping[Predicate, Table]:
    return {
        Predicate(r.name): Table((r.name,), r.columns, frozenset(range(r.arity)) - r.nullable)
        for r in catalog.relations.values()
    }


def _places(relation: BaseRelation, names: Sequence[str]) -> tuple[int, ...]:
    return tuple(relation.columns.index(name) for name in names)
