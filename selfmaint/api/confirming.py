"""Queries for proposals: what confirms a key or foreign key on the data, and what fills a new view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from datalog.model import (
    Aggregate,
    AggregateFunction,
    Atom,
    Compared,
    Constant,
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
from datalog.sql import Table, select, select_view, text
from selfmaint.audit.proposals import NewForeignKey, NewKey, NewView, Proposal
from selfmaint.warehouse.catalog import BaseRelation, Catalog


def proposal_sql(catalog: Catalog, proposal: Proposal) -> str:
    """The query for a proposal, over tables named like the base relations.

    For a key or foreign key its rows are what speaks against it: none confirm it. For a view they are its rows.

    Raises:
        EmissionError: a name that Spark cannot take.
    """
    tables = _tables(catalog)
    match proposal:
        case NewKey():
            return text(select_view(_twins(catalog, proposal), tables))
        case NewForeignKey():
            rule = _dangling(catalog, proposal)
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


def _row(relation: BaseRelation, prefix: str) -> Atom:
    return Atom(Predicate(relation.name), tuple(Variable(f"{prefix}{i}") for i in range(relation.arity)))


def _twins(catalog: Catalog, key: NewKey) -> ViewDefinition:
    """The values of the columns that stand in several rows."""
    relation = catalog.relations[key.relation]
    row = _row(relation, "X")
    columns = [row.terms[relation.columns.index(name)] for name in key.columns]
    number = Aggregate(AggregateFunction.COUNT)
    one = block(
        "twins", 0, (row,), [*columns, number], groups=columns, having=[Compared(">", number, Constant(1))]
    )
    return ViewDefinition("twins", (*key.columns, "rows"), (one,))


def _dangling(catalog: Catalog, key: NewForeignKey) -> Rule:
    """The values of the columns that the other relation does not have."""
    relation, target = catalog.relations[key.relation], catalog.relations[key.target]
    row = _row(relation, "X")
    values = [row.terms[relation.columns.index(name)] for name in key.columns]
    terms = list(_row(target, "Y").terms)
    for name, value in zip(key.target_columns, values, strict=True):
        terms[target.columns.index(name)] = value
    tests = tuple(
        NullTest(value)
        for name, value in zip(key.columns, values, strict=True)
        if relation.columns.index(name) in relation.nullable
    )
    head = Atom(Predicate(key.relation, Version.PROBLEM), tuple(values))
    return Rule(head, (row, *tests, Negation((Atom(Predicate(key.target), tuple(terms)),))))
