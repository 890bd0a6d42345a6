"""Queries that only read all of another one."""

from __future__ import annotations

from sqlglot import exp

from datalog.copies import replace
from datalog.sql.views.query import QueryReader


def innermost(tree: exp.Expr, reader: QueryReader) -> tuple[exp.Expr, QueryReader]:
    """A query without what only reads all of another one: `WITH last AS (...) SELECT * FROM last`."""
    while True:
        while isinstance(tree, exp.Subquery | exp.Paren) and _is_plain(tree):
            tree, reader = tree.this, reader.within(tree)
        reader = reader.within(tree)
        source = tree.args["from_"].this if isinstance(tree, exp.Select) and tree.args.get("from_") else None
        parts = {name for name, value in tree.args.items() if value} - {"with_", "from_", "expressions"}
        if source is None or parts or list(tree.expressions) != [exp.Star()] or not _is_plain(source):
            return tree, reader
        if isinstance(source, exp.Subquery):
            tree = source.this
            continue
        known = reader.expressions.get(source.name.casefold()) if isinstance(source, exp.Table) else None
        if known is None or known.columns:
            return tree, reader
        tree, reader = known.tree, replace(reader, expressions=known.expressions)


def _is_plain(source: exp.Expr) -> bool:
    """Whether a query in brackets, or a name in FROM, is that and nothing else: its rows, and columns, all of them."""
    alias = source.args.get("alias")
    parts = {name for name, value in source.args.items() if value}
    return parts <= {"this", "with_", "alias"} and not (alias is not None and alias.columns)
