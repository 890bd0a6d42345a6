"""Aggregates of the rows that belong to a row, in the select list, as LEFT JOINs of grouped queries.

    SELECT c.id, (SELECT count(*) FROM orders o WHERE o.customer = c.id) AS n FROM customer c

is

    SELECT c.id, coalesce(x.v0, 0) AS n FROM customer c
    LEFT JOIN (SELECT o.customer AS k0, count(*) AS v0 FROM orders o GROUP BY o.customer) x ON x.k0 = c.id

Conditions of soundness:

1. What a subquery asks of the row around it is `=` of a column, each qualified by a table's name, and nothing else. Its
   own columns may have any name: what is none of its tables' is not read then.
2. It gives one row, for it aggregates, and does not group.
3. A row to which nothing belongs has of the joined query nulls: so an aggregate of no rows is, and a count is 0.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import count

from msgspec import Struct, field
from sqlglot import exp

from datalog.sql.views.limits import parts_of
from datalog.sql.views.select import is_grouped

_OTHERS = (
    "group",
    "having",
    "distinct",
    "qualify",
    "limit",
    "offset",
    "order",
    "windows",
    "laterals",
    "with_",
)


class _Joined(Struct):
    """A query to be joined.

    Attributes:
        name: what it is called.
        key, value: how the names of its columns begin: no name in the query does.
        keys: its columns that are compared, each with that of the row around it.
        rest: its other conditions.
        values: the aggregates that are asked for.
    """

    name: str
    key: str
    value: str
    source: exp.Select
    keys: list[tuple[exp.Column, exp.Column]]
    rest: list[exp.Expr]
    values: list[exp.Expr] = field(default_factory=list)

    def is_of(self, other: _Joined) -> bool:
        """Whether it reads the same rows, by the same columns."""
        return (self.source, self.keys, self.rest) == (other.source, other.keys, other.rest)

    def tree(self) -> exp.Join:
        """The join of it."""
        made = self.source.copy()
        groups = [mine.copy() for mine, _ in self.keys]
        named = [exp.alias_(one.copy(), f"{self.key}{i}") for i, one in enumerate(groups)]
        named += [exp.alias_(one.copy(), f"{self.value}{i}") for i, one in enumerate(self.values)]
        made.set("expressions", named)
        made.set("where", exp.Where(this=exp.and_(*(one.copy() for one in self.rest))) if self.rest else None)
        made.set("group", exp.Group(expressions=groups))
        on = (
            exp.EQ(this=exp.column(f"{self.key}{i}", self.name), expression=other.copy())
            for i, (_, other) in enumerate(self.keys)
        )
        query = exp.Subquery(this=made, alias=exp.TableAlias(this=exp.to_identifier(self.name)))
        return exp.Join(this=query, side="LEFT", on=exp.and_(*on))


def join_scalars(select: exp.Select) -> None:
    """Puts such joins in place of the subqueries of a select list; those that are something else stay."""
    if is_grouped(select) or select.args.get("distinct") or select.args.get("from_") is None:
        return
    around, found = _names(select), list[_Joined]()
    names = {one.name.casefold() for one in select.find_all(exp.Identifier)}
    if not all(around) or any(isinstance(item, exp.Star) for item in select.expressions):
        return
    for item in select.expressions:
        for node in [one for one in item.find_all(exp.Subquery) if one.find_ancestor(exp.Select) is select]:
            one = _read(node, around, names) if item.alias else None  # else its name is Spark's
            if one is None:
                continue
            its = next((other for other in found if other.is_of(one)), one)
            if its is one:
                one.name = _free_name(one.name, [*around, *(other.name for other in found)])
                found.append(one)
            value = _value(node.this.expressions[0].unalias().copy(), its)
            node.replace(exp.alias_(value, node.alias) if node is item else value)
    for its in found:
        select.append("joins", its.tree())


def free_start(start: str, names: Collection[str]) -> str:
    """Letters that no name begins with: a name that is no column outside may be one of the select list."""
    while any(name.startswith(start) for name in names):
        start += start[0] + "_"
    return start


def _free_name(name: str, taken: Collection[str]) -> str:
    names = (name if number == 1 else f"{name}_{number}" for number in count(1))
    return next(one for one in names if one.casefold() not in taken)


def _names(select: exp.Select) -> list[str]:
    """What the sources of a query are called, in lower case; an empty one of what has no name."""
    trees = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())]
    return [tree.alias_or_name.casefold() for tree in trees]


def _read(node: exp.Subquery, around: Sequence[str], names: Collection[str]) -> _Joined | None:
    """A subquery as what is joined; None if it is something else. `names` are all that the query around uses."""
    query = node.this
    if not isinstance(query, exp.Select) or query.args.get("from_") is None or len(query.expressions) != 1:
        return None
    value = query.expressions[0].unalias()
    if any(query.args.get(part) for part in _OTHERS) or not is_grouped(query):
        return None
    if value.find(exp.Subquery, exp.Window) is not None:
        return None
    own, where = _names(query), query.args.get("where")
    outside = {*around} - {*own}
    if not all(own) or _reads(value, outside):
        return None
    keys, rest = list[tuple[exp.Column, exp.Column]](), list[exp.Expr]()
    for part in [] if where is None else parts_of(where.this, exp.And):
        if not _reads(part, outside):
            rest.append(part)
            continue
        sides = [part.this, part.expression] if isinstance(part, exp.EQ) else []
        if len(sides) != 2 or not all(isinstance(one, exp.Column) for one in sides):  # noqa: PLR2004 - both
            return None
        mine, other = sides if _reads(sides[1], outside) else sides[::-1]
        if mine.table.casefold() not in ("", *own):
            return None
        keys.append((mine if mine.table or len(own) > 1 else exp.column(mine.name, own[0]), other))
    if not keys:
        return None
    source = query.copy()
    source.set("expressions", [])
    source.set("where", None)
    key, value = (free_start(first, names) for first in "kv")
    return _Joined(own[0], key, value, source, keys, rest)


def _reads(tree: exp.Expr, names: set[str]) -> bool:
    return any(one.table.casefold() in names for one in tree.find_all(exp.Column))


def _value(tree: exp.Expr, its: _Joined) -> exp.Expr:
    """What a subquery gives, over the columns of what is joined."""
    holder = exp.Paren(this=tree)
    for one in list(holder.find_all(exp.AggFunc)):
        if one not in its.values:
            its.values.append(one.copy())
        column: exp.Expr = exp.column(f"{its.value}{its.values.index(one)}", its.name)
        if isinstance(one, exp.Count):
            column = exp.Coalesce(this=column, expressions=[exp.Literal.number(0)])
        one.replace(column)
    return holder.this if isinstance(holder.this, exp.Column | exp.Coalesce) else holder
