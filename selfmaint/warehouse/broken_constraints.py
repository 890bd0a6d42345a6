"""What speaks against a key or a foreign key among a base relation's rows: nothing where it holds."""

from __future__ import annotations

from collections.abc import Sequence

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
    Rule,
    Variable,
    Version,
    ViewDefinition,
    block,
)
from selfmaint.warehouse.base_relations import BaseRelation, row_atom
from selfmaint.warehouse.constraints import Reference


def twins(relation: BaseRelation, key: Sequence[int], *, nulls: bool) -> ViewDefinition:
    """The values of some columns that stand in several rows, and in how many; with `nulls` null is a value."""
    row = row_atom(relation, Version.STORED)
    columns, number = [row.terms[i] for i in key], Aggregate(AggregateFunction.COUNT)
    body: list[Literal] = [row, *(() if nulls else map(NullTest, columns))]
    more = Compared(">", number, Constant(1))
    one = block("twins", 0, body, [*columns, number], groups=columns, having=[more])
    return ViewDefinition("twins", (*(relation.columns[i] for i in key), "rows"), (one,))


def dangling(relation: BaseRelation, reference: Reference, target: BaseRelation) -> Rule:
    """The values of a reference's columns that no row of the other relation has; null references nothing."""
    row = row_atom(relation, Version.STORED)
    values = reference.key_of(row)
    referenced = dict(zip(reference.target_columns, values, strict=True))
    other = Atom(
        Predicate(target.name), tuple(referenced.get(i, Variable(f"Y{i}")) for i in range(target.arity))
    )
    tests = (NullTest(row.terms[i]) for i in reference.columns if i in relation.nullable)
    return Rule(Atom(Predicate(relation.name, Version.PROBLEM), values), (row, *tests, Negation((other,))))
