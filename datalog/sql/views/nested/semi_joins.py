"""Subqueries in conditions: EXISTS and IN as joins whose rows stand once.

    SELECT id, name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)
    SELECT id, name FROM customers WHERE id IN (SELECT customer FROM orders)

are both

    SELECT DISTINCT c.id, c.name FROM customers c JOIN orders o ON o.customer = c.id

where a row of the result comes from one row of what is outside of the subquery: the columns determine it through keys
without nulls. Then DISTINCT takes nothing away but what the subquery's several rows would add.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from sqlglot import exp

from datalog.copies import replace
from datalog.model import Atom, Condition, block
from datalog.rewrite import undetermined
from datalog.rewrite.numbered import numbered
from datalog.sql.views.conditions import compared, condition
from datalog.sql.views.expressions import Reader
from datalog.sql.views.joins import Declared, Piece
from datalog.sql.views.limits import parts_of
from datalog.sql.views.scope import Draft, Query
from datalog.sql.views.select import is_grouped
from datalog.sql.views.source import Problems

_HINT = "join the tables, with DISTINCT if rows would repeat"


class SemiJoins(Struct, frozen=True):
    """The subqueries in a query's WHERE, and the query without them."""

    tree: exp.Select
    subqueries: tuple[exp.Expr, ...]


def taken_out(tree: exp.Select) -> SemiJoins:
    """A SELECT without the subqueries that are conjuncts of its WHERE."""
    where = tree.args.get("where")
    parts = [] if where is None else list(parts_of(where.this, exp.And))
    found = tuple(part for part in parts if _is_subquery(part))
    if not found:
        return SemiJoins(tree, ())
    rest = [part for part in parts if not _is_subquery(part)]
    plain = tree.copy()
    plain.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    return SemiJoins(plain, found)


def _is_subquery(node: exp.Expr) -> bool:
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None)


def with_semi_join(
    piece: Piece,
    node: exp.Expr,
    read: Callable[[exp.Select], list[Piece]],
    reader: Reader,
) -> Piece:
    """A FROM joined with that of a subquery, whose columns nobody names.

    Raises:
        UnreadableError: what is wrong is among the problems.
    """
    query = node.args["query"] if isinstance(node, exp.In) else node.this
    while isinstance(query, exp.Subquery | exp.Paren):
        query = query.this
    plain = (
        isinstance(query, exp.Select)
        and not is_grouped(query)
        and not any(query.args.get(part) for part in ("with_", "limit", "offset"))
    )
    if not plain or query.args.get("from_") is None:
        raise reader.problems.outside("a grouped subquery in a condition", node, _HINT)
    alternatives = read(query)
    inner = alternatives[0]
    if (
        len(alternatives) > 1
        or inner.distinct
        or inner.draft.groups is not None
        or piece.draft.groups is not None
    ):
        raise reader.problems.outside("a subquery in a condition, with a union or DISTINCT,", node, _HINT)
    reader = reader.within(replace(inner.scope, around=piece.scope))
    conditions: list[Condition] = [*piece.conditions, *inner.conditions]
    if query.args.get("where") is not None:
        conditions.append(condition(reader, query.args["where"].this))
    items = [item.this if isinstance(item, exp.Alias) else item for item in query.expressions]
    values = [reader.expression(item) for item in items if not item.is_star]
    if isinstance(node, exp.In):
        sought = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        if not len(values) == len(items) == len(sought):
            raise reader.problems.outside("IN with a subquery of other columns", node, _HINT)
        around = reader.within(piece.scope)
        pairs = zip(map(around.expression, sought), values, strict=True)
        conditions += [compared(reader, node, outside, inside, "=") for outside, inside in pairs]
    body = (*piece.draft.body, *inner.draft.body)
    filters = (*piece.draft.filters, *inner.draft.filters)
    return replace(piece, draft=Draft(body, filters=filters), conditions=tuple(conditions))


def once(query: Query, outside: int, tree: exp.Expr, declared: Declared, problems: Problems) -> Query:
    """The query of a FROM with subqueries joined to it, equal rows once.

    The first `outside` of its atoms are not of the subqueries.

    Raises:
        UnreadableError: its columns do not determine the rows that they come from.
    """
    (draft,) = query.drafts
    kept = tuple(literal for literal in draft.body if isinstance(literal, Atom))[:outside]
    others = (literal for literal in draft.body if not isinstance(literal, Atom))
    tables = {a.predicate.name: declared(a.predicate.name) for a in kept}
    known = {name: its for name, its in tables.items() if its is not None}
    # Of a table without a key no columns tell equal rows apart, nor of the rows of a view.
    twice = len(known) < len(tables) or any(numbered(its).is_numbered for its in known.values())
    if twice or undetermined(block("query", 0, (*kept, *others), draft.outputs), known) is not None:
        hint = "select the key, or DISTINCT"
        raise problems.outside("a subquery in a condition, of rows that may stand twice,", tree, hint)
    return replace(query, distinct=True)
