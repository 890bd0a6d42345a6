"""A view definition as one query: what recomputes the view from the relations that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from sqlglot import exp

from datalog.model import Block, Predicate, Semantics, ViewDefinition
from datalog.rewrite.guards import guard_joins
from datalog.sql.conditions import Writer
from datalog.sql.expressions import condition_tree, expression_tree
from datalog.sql.tables import Table


def select_view(definition: ViewDefinition, tables: Mapping[Predicate, Table]) -> exp.Query:
    """The query whose rows are a view's.

    Args:
        definition: the view.
        tables: where the rows of what it reads are.

    Returns:
        A query with the view's columns, in order.

    Raises:
        EmissionError: a relation without a table, or an unsafe body.

    Semantics:
        Those of `datalog.model.views`: bags, unless the definition says that rows stand once.

    Example:
        >>> from datalog.model import Aggregate, AggregateFunction, Atom, Variable, block
        >>> from datalog.sql.text import text
        >>> x, y = Variable("X"), Variable("Y")
        >>> total = [x, Aggregate(AggregateFunction.SUM, y)]
        >>> body = [Atom(Predicate("r"), (x, y))]
        >>> view = ViewDefinition("v", ("x", "s"), (block("v", 0, body, total, groups=[x]),))
        >>> text(select_view(view, {Predicate("r"): Table(("r",), ("a", "b"))}), pretty=False)
        'SELECT `r`.`a` AS `x`, SUM(`r`.`b`) AS `s` FROM `r` GROUP BY `r`.`a`'
    """
    once = definition.semantics is Semantics.SET
    single = len(definition.blocks) == 1
    queries: list[exp.Query] = [
        _block_query(one, definition, tables, distinct=once and single) for one in definition.blocks
    ]
    return reduce(lambda left, right: exp.Union(this=left, expression=right, distinct=once), queries)


def _block_query(
    one: Block, definition: ViewDefinition, tables: Mapping[Predicate, Table], *, distinct: bool
) -> exp.Select:
    body = Writer(tables).block(guard_joins(one.core).body)
    frame = body.frame
    filters = tuple(condition_tree(condition, frame) for condition in one.filters)
    items = [
        exp.alias_(expression_tree(output, frame), name, quoted=True)
        for output, name in zip(one.outputs, definition.columns, strict=True)
    ]
    wrapped = tuple(exp.Paren(this=condition) for condition in filters)
    query = replace(body, where=(*body.where, *wrapped)).query(items, distinct=False, hint=False)
    if distinct:
        query.set("distinct", exp.Distinct())
    if one.groups:
        query.set("group", exp.Group(expressions=[expression_tree(group, frame) for group in one.groups]))
    having = [exp.Paren(this=condition_tree(condition, frame)) for condition in one.having]
    if having:
        query.set("having", exp.Having(this=exp.and_(*having, copy=False)))
    return query
