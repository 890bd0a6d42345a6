"""Where the rows of a predicate are."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct
from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from datalog.errors import EmissionError

Query: TypeAlias = exp.Query
"""A query as a tree."""

_PARTS = ("this", "db", "catalog")
"""The parts of a table's name, the last one first."""


class Table(Struct, frozen=True):
    """A stored table, a temporary view or a common table expression.

    Rows may repeat: a predicate's extension is the set of them.

    Attributes:
        name: the parts of its identifier, such as `('spark_catalog', 'db', 'v1')` or `('v1',)`, unquoted.
        columns: names of its columns, in the order of the predicate's terms.
        not_null: 0-based positions that never hold null.
        broadcast: whether it is so small that a join should broadcast it (with `hints=True`).
    """

    name: tuple[str, ...]
    columns: tuple[str, ...]
    not_null: frozenset[int] = frozenset()
    broadcast: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= len(_PARTS):
            raise EmissionError(f"a table's name has one to three parts, not {len(self.name)}")

    def tree(self, alias: str) -> exp.Table:
        """The table in a FROM clause; the alias is left out where it is the table's own name."""
        parts = [exp.to_identifier(part, quoted=True) for part in reversed(self.name)]
        table = exp.Table(**dict(zip(_PARTS, parts, strict=False)))
        if alias != self.name[-1]:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
        return table


def read_set(tree: exp.Query) -> frozenset[tuple[str, ...]]:
    """The tables that a query reads, in subqueries too; names of common table expressions are not tables.

    Errs on the safe side: a table that scope analysis does not resolve counts as read.

    Source: sqlglot, `optimizer/scope.py`.

    >>> from sqlglot import parse_one
    >>> query = parse_one("with a as (select 1 from r) select 1 from a where exists (select 1 from db.s, a)")
    >>> sorted(read_set(query))
    [('db', 's'), ('r',)]
    """
    return frozenset(tuple(part.name for part in table.parts) for table in stored_tables(tree))


def stands_alone(query: exp.Query) -> bool:
    """Whether a query has no common table expressions."""
    return query.args.get("with_") is None


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
