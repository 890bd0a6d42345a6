"""The read-set of a query: which stored tables it may read."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope


def read_set(tree: exp.Query) -> frozenset[tuple[str, ...]]:
    """The tables that a query reads, in subqueries too; names of common table expressions are not tables.

    Errs on the safe side: a table that scope analysis does not resolve counts as read.

    Args:
        tree: a query.

    Returns:
        The parts of each table's identifier, as in `Table.name`.

    Source: sqlglot, `optimizer/scope.py`.

    >>> from sqlglot import parse_one
    >>> query = parse_one("with a as (select 1 from r) select 1 from a where exists (select 1 from db.s, a)")
    >>> sorted(read_set(query))
    [('db', 's'), ('r',)]
    """
    return frozenset(tuple(part.name for part in table.parts) for table in stored_tables(tree))


def stored_tables(tree: exp.Query) -> list[exp.Table]:
    """The places in a query where stored tables are read: see `read_set`."""
    defined = {
        id(node)
        for scope in traverse_scope(tree)
        for alias, node in scope.references
        if isinstance(node, exp.Table) and _is_defined(node, alias, scope)
    }
    return [table for table in tree.find_all(exp.Table) if id(table) not in defined]


def _is_defined(table: exp.Table, alias: str, scope: Scope) -> bool:
    """Whether a table is a common table expression; its alias alone does not tell, for two may share one."""
    return not table.db and table.name in scope.cte_sources and isinstance(scope.sources.get(alias), Scope)
