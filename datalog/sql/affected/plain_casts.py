"""Casts of columns to their own types, or to wider whole numbers: they say nothing of which rows matter.

    WITH stg AS (SELECT cast(id AS bigint) AS stop_id, cast(note AS string) AS note FROM stop) SELECT .. FROM stg

As staging models have them. A column that is cast so has the same values, by which rows are found.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from datalog.model import ColumnType
from datalog.sql.affected.plan import Table
from datalog.sql.views.declared.column_types import column_type


def without_plain_casts(tree: exp.Expr, tables: Mapping[str, Table]) -> exp.Expr:
    """A query without such casts of columns of tables, by name, where they are selected from these alone."""
    for node in list(tree.find_all(exp.Cast)):
        select = node.find_ancestor(exp.Select)
        inside = node.this
        if not isinstance(inside, exp.Column) or select is None:
            continue
        kind, to = _type(inside, select, tables), column_type(node.to)
        if kind is not None and to is not None and _has_all(to, kind):
            node.replace(inside)
    return tree


def _type(column: exp.Column, select: exp.Select, tables: Mapping[str, Table]) -> ColumnType | None:
    """The type of a column of one of some tables; None if it may be of anything else."""
    start = select.args.get("from_")
    sources = [] if start is None else [start.this, *(join.this for join in select.args.get("joins") or ())]
    name, of = column.name.casefold(), column.table.casefold()
    if of:
        sources = [one for one in sources if one.alias_or_name.casefold() == of]
    if any(
        not isinstance(one, exp.Table) or one.name not in tables or one.alias_column_names for one in sources
    ):
        return None
    found = [
        kind
        for table in (tables[source.name] for source in sources)
        for its, kind in zip(table.columns, table.types, strict=False)  # of a view no types are known
        if its.casefold() == name
    ]
    return found[0] if len(found) == 1 else None


def _has_all(to: ColumnType, kind: ColumnType) -> bool:
    """Whether a type is another one, or has all its whole numbers."""
    if kind.is_open:
        return False
    return to == kind or bool(to.name.bits and kind.name.bits and to.name.bits >= kind.name.bits)
