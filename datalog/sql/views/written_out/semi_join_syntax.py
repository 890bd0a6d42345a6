"""Semi joins and anti joins, of which every query is one with EXISTS or NOT EXISTS.

    SELECT c.id FROM customers c LEFT ANTI JOIN orders o ON o.customer = c.id
    SELECT c.id FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)

A name without its table is in ON one of the tables joined so far, and inside of EXISTS one of all: where others are
joined behind, such names are left as they are.
"""

from __future__ import annotations

from sqlglot import exp

_KINDS = ("SEMI", "ANTI")


def with_exists(tree: exp.Expr) -> exp.Expr:
    """A tree with EXISTS in place of semi joins, NOT EXISTS in place of anti joins; changed where it stands.

    >>> from sqlglot import parse_one
    >>> with_exists(parse_one("select a from r left anti join s on s.b = r.a where a > 1", read="spark")).sql("spark")
    'SELECT a FROM r WHERE a > 1 AND NOT EXISTS(SELECT 1 FROM s WHERE s.b = r.a)'
    """
    for select in list(tree.find_all(exp.Select)):
        joins: list[exp.Join] = select.args.get("joins") or []
        if any(join.side in ("RIGHT", "FULL") for join in joins):
            continue
        for join in list(joins):
            test = (
                _match(select, join, joins.index(join)) if join.kind in _KINDS and not join.method else None
            )
            if test is not None:
                query = exp.Select(expressions=[exp.Literal.number(1)]).from_(join.this, copy=False)
                exists = exp.Exists(this=query.where(test, copy=False))
                select.where(exp.Not(this=exists) if join.kind == "ANTI" else exists, copy=False)
                join.pop()
    return tree


def _match(select: exp.Select, join: exp.Join, number: int) -> exp.Expr | None:
    """What a join compares; None if it does not say of which table a column is."""
    columns, test = join.args.get("using"), join.args.get("on") or exp.true()
    if not columns:
        is_last = all(other.kind in _KINDS for other in select.args["joins"][number:])
        return test if is_last or all(column.table for column in test.find_all(exp.Column)) else None
    one, other = select.args["from_"].this.alias_or_name, join.this.alias_or_name
    if number or not one or not other:
        return None
    return exp.and_(
        *(exp.EQ(this=exp.column(c.copy(), one), expression=exp.column(c.copy(), other)) for c in columns)
    )
