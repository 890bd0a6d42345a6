"""Statements for a table that holds rows several times, and has no key to tell equal rows apart.

    CREATE OR REPLACE TEMPORARY VIEW v_counted AS SELECT a, b, count(*) AS copies FROM v GROUP BY a, b
    CREATE TABLE v_changes AS SELECT a, b, ... AS copies, ... AS is_there FROM ... v_counted ...
    DELETE FROM v WHERE EXISTS (SELECT 1 FROM v_changes AS changes WHERE changes.a IS NOT DISTINCT FROM v.a AND ...)
    INSERT INTO v SELECT a, b FROM v_changes AS changes JOIN LATERAL explode(sequence(1, changes.copies)) ...

MERGE can neither add nor remove some of several equal rows. So the rows that change are deleted, all copies, and
inserted again as often as they stand afterwards; what they are must be held in a table meanwhile.
"""

from __future__ import annotations

from sqlglot import exp

from datalog.sql.names import casefolded, unique
from datalog.sql.tables import Table

_CHANGES = "changes"


def counted_view(bag: Table, counted: Table) -> exp.Create:
    """The temporary view of a table's distinct rows with their numbers of copies.

    Args:
        bag: the table.
        counted: the view's name; its columns are the table's, and one for the number of copies.
    """
    columns = [_column(name, bag.name[-1]) for name in bag.columns]
    copies = exp.alias_(exp.Count(this=exp.Star()), counted.columns[-1], quoted=True)
    query = exp.Select(expressions=[*(c.copy() for c in columns), copies])
    query.set("from_", exp.From(this=bag.tree(bag.name[-1])))
    query.set("group", exp.Group(expressions=columns))
    temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
    return exp.Create(
        this=counted.tree(counted.name[-1]), kind="VIEW", replace=True, expression=query, properties=temporary
    )


def changes_table(changes: Table, query: exp.Query) -> exp.Create:
    """The table of the rows that change, each with its new number of copies, and a 0 at the end if there are none."""
    return exp.Create(this=changes.tree(changes.name[-1]), kind="TABLE", expression=query)


def delete_changed(bag: Table, changes: Table) -> exp.Delete:
    """Deletes every copy of the rows that change.

    In the subquery a column stands before the name of the table around.
    """
    alias = unique(bag.name[-1], casefolded(changes.columns))
    rows = exp.Select(expressions=[exp.Literal.number(1)])
    rows.set("from_", exp.From(this=changes.tree(_CHANGES)))
    same = []
    for i, name in enumerate(bag.columns):
        kind = exp.EQ if i in bag.not_null else exp.NullSafeEQ
        same.append(kind(this=_column(name, _CHANGES), expression=_column(name, alias)))
    rows.set("where", exp.Where(this=exp.and_(*same, copy=False)))
    return exp.Delete(this=bag.tree(alias), where=exp.Where(this=exp.Exists(this=rows)))


def insert_copies(bag: Table, changes: Table) -> exp.Insert:
    """Inserts each row that changes as often as it stands afterwards."""
    *_, copies, there = changes.columns
    rows = exp.Select(expressions=[_column(name, _CHANGES) for name in bag.columns])
    rows.set("from_", exp.From(this=changes.tree(_CHANGES)))
    numbers = exp.GenerateSeries(start=exp.Literal.number(1), end=_column(copies, _CHANGES))
    alias = exp.TableAlias(
        this=exp.to_identifier("each", quoted=True), columns=[exp.to_identifier("copy", quoted=True)]
    )
    rows.append("joins", exp.Join(this=exp.Lateral(this=exp.Explode(this=numbers), alias=alias)))
    rows.set("where", exp.Where(this=exp.EQ(this=_column(there, _CHANGES), expression=exp.Literal.number(1))))
    names = exp.Schema(
        this=bag.tree(bag.name[-1]),
        expressions=[exp.to_identifier(name, quoted=True) for name in bag.columns],
    )
    return exp.Insert(this=names, expression=rows)


def _column(name: str, table: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True))
