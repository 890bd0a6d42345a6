"""A view definition as one query for DuckDB, with the types of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from datalog.model import (
    Block,
    Constant,
    Expression,
    Predicate,
    Rule,
    Semantics,
    Variable,
    ViewDefinition,
    map_condition,
    map_expression,
)
from datalog.rewrite.guards import guard_joins
from datalog.sql.conditions import Writer
from datalog.sql.duckdb.expressions import Trees
from datalog.sql.duckdb.rules import Derived, Types, require_comparable, term_type, without_void
from datalog.sql.duckdb.types import SqlType, as_type, cast, common
from datalog.sql.tables import Table


def view(
    definition: ViewDefinition, tables: Mapping[Predicate, Table], types: Types, *, distinct: bool
) -> tuple[exp.Query, tuple[SqlType, ...]]:
    """The query whose rows are a view's, columns `c0`, `c1`, ..., and their types.

    With `distinct` each row comes once, whatever the definition says.

    Raises:
        UnlikeSparkError: DuckDB would compute another value for some rows.
        EmissionError: a relation without a table, or an unsafe body.
    """
    blocks = [_query(one, tables, types) for one in definition.blocks]
    width = len(definition.columns)
    united = tuple(common(made.types[i] for made in blocks) for i in range(width))
    queries = [_named(made, united) for made in blocks]
    once = distinct or definition.semantics is Semantics.SET
    if len(queries) == 1:
        if once:
            queries[0].set("distinct", exp.Distinct())
        return queries[0], united
    return exp.union(*queries, distinct=once, copy=False), united


def _named(made: Derived, united: tuple[SqlType, ...]) -> exp.Select:
    (query,) = made.queries
    items = zip(query.expressions, made.types, united, strict=True)
    query.set(
        "expressions",
        [
            exp.alias_(as_type(tree, kind, to), f"c{i}", quoted=True)
            for i, (tree, kind, to) in enumerate(items)
        ],
    )
    return query


def _query(one: Block, tables: Mapping[Predicate, Table], types: Types) -> Derived:
    """The rows of a block, each as often as it stands, the outputs not yet named."""
    one = _without_void(replace(one, core=guard_joins(one.core)), types)
    require_comparable(one.core.body, types, {})
    body = Writer(tables).block(one.core.body)
    kinds = {v: term_type(body, v, types) for v in one.variables}
    trees = Trees(body.frame, kinds)
    outputs = [trees.typed(output) for output in one.outputs]
    filters = tuple(exp.Paren(this=trees.condition(condition)) for condition in one.filters)
    query = replace(body, where=(*body.where, *filters)).query(
        [tree for tree, _ in outputs], distinct=False, hint=False
    )
    if one.groups:
        query.set("group", exp.Group(expressions=[_group(trees, group) for group in one.groups]))
    having = [exp.Paren(this=trees.condition(condition)) for condition in one.having]
    if having:
        query.set("having", exp.Having(this=exp.and_(*having, copy=False)))
    return Derived((query,), tuple(kind for _, kind in outputs))


def _group(trees: Trees, group: Expression) -> exp.Expr:
    """A grouping expression; a bare constant in its place would be the number of a column."""
    tree, kind = trees.typed(group)
    return cast(tree, kind) if isinstance(tree, exp.Null | exp.Literal | exp.Boolean) else tree


def _without_void(one: Block, types: Types) -> Block:
    """The block with null for the variables that columns of nothing but nulls bind."""
    core: Rule = without_void(one.core, types)
    pairs = zip(one.core.head.terms, core.head.terms, strict=True)
    nulls = {old for old, new in pairs if isinstance(old, Variable) and isinstance(new, Constant)}
    if not nulls:
        return replace(one, core=core)

    def change(expression: Expression) -> Expression | None:
        return Constant(None) if expression in nulls else None

    return replace(
        one,
        core=core,
        outputs=tuple(map_expression(change, output) for output in one.outputs),
        filters=tuple(map_condition(change, condition) for condition in one.filters),
        groups=None if one.groups is None else tuple(map_expression(change, group) for group in one.groups),
        having=tuple(map_condition(change, condition) for condition in one.having),
    )
