"""Whether an order leaves no two rows equal, as keys tell.

    SELECT *, row_number() OVER (PARTITION BY customer ORDER BY placed DESC, id) AS n FROM orders      `id` is a key

Conditions of soundness, for the rows that one SELECT orders:

1. It has no groups, and reads relations by name: one row of each makes a row, or no row of it. Two of its rows differ
   in a key of one of these, or only one of them has a row of it.
2. Or it groups, and its rows differ in what it groups by.
3. What a partition or an order is by includes such columns, each alone. A name without a relation's is a column if one
   relation is read, and no column of the result that is something else is called so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlglot import exp

from datalog.model import TextQuery

Keys = Mapping[str, Sequence[Collection[str]]]
"""For each relation, sets of columns in each of which its rows differ."""

_Name = tuple[str, str]
"""A column in lower case: the relation that it is of, empty if that is not said, and its own."""


def tells_all_apart(select: exp.Select, by: Iterable[exp.Expr], query: TextQuery, keys: Keys) -> bool:
    """Whether the rows of a SELECT differ in some expressions.

    Args:
        select: the SELECT.
        by: what they are told apart by.
        query: what the SELECT is a part of.
        keys: those of what the query reads.
    """
    given = {_name(one) for one in by if isinstance(one, exp.Column)} - _other_outputs(select)
    if (group := select.args.get("group")) is not None:
        by_columns = [_name(one) for one in group.expressions if isinstance(one, exp.Column)]
        is_plain = len(by_columns) == len(group.expressions) and _given(group) <= {"expressions"}
        return is_plain and bool(by_columns) and given.issuperset(by_columns)
    if select.args.get("distinct") or _aggregates(select):
        return False
    read = _read(select, query)
    if read is None:
        return False
    alone = len(read) == 1
    return all(
        any(
            all((name, one) in given or (alone and ("", one) in given) for one in map(str.casefold, key))
            for key in keys.get(relation, ())
        )
        for name, relation in read
    )


def _aggregates(select: exp.Select) -> bool:
    """Whether a SELECT has one row of aggregates."""
    found = (one for output in select.expressions for one in output.find_all(exp.AggFunc))
    return any(one.find_ancestor(exp.Window, exp.Select) is select for one in found)


def _read(select: exp.Select, query: TextQuery) -> list[tuple[str, str]] | None:
    """What a SELECT calls each of the relations that it reads, and their names; None if it reads something else."""
    names = {query.text[read.start : read.end].casefold(): read for read in query.reads}
    within = {one.alias.casefold() for one in select.root().find_all(exp.CTE)}
    source, joins = select.args.get("from_"), select.args.get("joins") or ()
    found = []
    for table in [] if source is None else [source.this, *(join.this for join in joins)]:
        is_plain = (
            isinstance(table, exp.Table)
            and _given(table) <= {"this", "alias"}
            and not table.alias_column_names
        )
        read = names.get(table.name.casefold()) if is_plain and table.name.casefold() not in within else None
        if read is None or not isinstance(read.of, str):
            return None
        found.append((table.alias_or_name.casefold(), read.of))
    called = {name for name, _ in found}
    return found if found and len(called) == len(found) and not select.args.get("laterals") else None


def _given(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value}


def _name(column: exp.Column) -> _Name:
    return column.table.casefold(), column.name.casefold()


def _other_outputs(select: exp.Select) -> set[_Name]:
    """The names of the result's columns that are something else than the columns called so."""
    found = (one for output in select.expressions for one in output.find_all(exp.Alias))
    return {
        ("", one.alias.casefold())
        for one in found
        if not (isinstance(one.this, exp.Column) and one.this.name.casefold() == one.alias.casefold())
    }
