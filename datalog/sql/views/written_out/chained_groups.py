"""Groups over several LEFT JOINs, one behind the other, as LEFT JOINs of grouped queries.

    SELECT c.id, count(DISTINCT o.id) AS orders, sum(l.price) AS total
    FROM customer c LEFT JOIN orders o ON o.customer = c.id LEFT JOIN line l ON l.orders = o.id GROUP BY c.id

is

    SELECT c.id, coalesce(o.v0, 0) AS orders, l.v0 AS total FROM customer c
    LEFT JOIN (SELECT o.customer AS k0, count(o.id) AS v0 FROM orders o GROUP BY o.customer) o ON o.k0 = c.id
    LEFT JOIN (SELECT o.customer AS k0, sum(l.price) AS v0
               FROM orders o JOIN line l ON l.orders = o.id GROUP BY o.customer) l ON l.k0 = c.id

Conditions of soundness:

1. The query groups by columns of the table that stands first, a key of it among them: a group is a row of it. WHERE
   asks of these columns alone.
2. Each other table is joined with one before it, by `=` of columns, and besides by conditions on its own columns. The
   first row has, of the tables on the way to one, all that the joins find from it; what has none is left out of
   aggregates that are of that table, for what they aggregate is null then.
3. Where every table is on the way to the last one each row of that stands once: any aggregate of it is that over the
   inner join. Of the others, and where the joins branch, rows stand several times: then these are extrema, and the
   number of different values of a key.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field
from sqlglot import exp

from datalog.model import Declaration
from datalog.sql.views.limits import parts_of
from datalog.sql.views.query import QueryReader
from datalog.sql.views.select import default_name
from datalog.sql.views.written_out.scalar_subqueries import free_start

_PARTS = frozenset({"kind", "expressions", "from_", "joins", "where", "group"})
_STRICT = (exp.Column, exp.Literal, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Identifier)
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)


class _NotChainedError(Exception):
    """The query is something else."""


class _Table(Struct):
    """A table of FROM.

    Attributes:
        name: what it is called, in lower case.
        tree: where it stands.
        parent: the place of the table that it is joined with; of the first one its own.
        pairs: its columns that are compared, each with one of that table.
        own: the conditions of its join on its own columns.
        values: the aggregates that are asked of it.
    """

    name: str
    tree: exp.Table
    declared: Declaration
    parent: int = 0
    pairs: list[tuple[exp.Column, exp.Column]] = field(default_factory=list)
    own: list[exp.Expr] = field(default_factory=list)
    values: list[exp.Expr] = field(default_factory=list)

    @property
    def condition(self) -> exp.Expr:
        """The condition of its join."""
        equal = (exp.EQ(this=mine.copy(), expression=its.copy()) for mine, its in self.pairs)
        return exp.and_(*equal, *(one.copy() for one in self.own))


def join_chains(select: exp.Select, reader: QueryReader) -> None:
    """Puts joins of grouped queries in place of the joins of such a query; another one stays as it is."""
    joins = select.args.get("joins") or []
    if len(joins) < 2 or select.args.get("group") is None:  # noqa: PLR2004 - one alone is read as it stands
        return
    made = select.copy()
    try:
        _Chained(made, reader).rewrite()
    except _NotChainedError:
        return
    for part in ("expressions", "joins", "group"):
        select.set(part, made.args.get(part))


class _Chained:
    def __init__(self, select: exp.Select, reader: QueryReader) -> None:
        self.select = select
        if any(value for part, value in select.args.items() if part not in _PARTS):
            raise _NotChainedError
        if any(node is not select for node in select.find_all(exp.Query, exp.Window)):
            raise _NotChainedError
        joins = select.args["joins"]
        trees = [select.args["from_"].this, *(join.this for join in joins)]
        self.tables = [self._table(tree, reader) for tree in trees]
        self.places = {one.name: i for i, one in enumerate(self.tables)}
        if len(self.places) < len(self.tables):
            raise _NotChainedError
        for column in select.find_all(exp.Column):
            column.set("table", exp.to_identifier(self.tables[self._place(column)].name))
        for number, join in enumerate(joins, 1):
            self._read_join(number, join)

    def _table(self, tree: exp.Expr, reader: QueryReader) -> _Table:
        named = reader.expressions.get(tree.name.casefold()) if isinstance(tree, exp.Table) else None
        declared = reader.relations.declared(tree.name) if isinstance(tree, exp.Table) else None
        if named is not None or declared is None or not isinstance(tree, exp.Table) or len(tree.parts) > 1:
            raise _NotChainedError
        if any(value for part, value in tree.args.items() if part not in ("this", "alias")):
            raise _NotChainedError
        if tree.alias_column_names:
            raise _NotChainedError
        return _Table(tree.alias_or_name.casefold(), tree, declared)

    def _place(self, column: exp.Column) -> int:
        """The table that a column is of."""
        if column.table:
            place = self.places.get(column.table.casefold())
            found = [] if place is None else [place]
        else:
            name = column.name.casefold()
            found = [
                i for i, one in enumerate(self.tables) if name in map(str.casefold, one.declared.column_names)
            ]
        if len(found) != 1 or column.args.get("db"):
            raise _NotChainedError
        return found[0]

    def _of(self, tree: exp.Expr) -> set[int]:
        """The tables that an expression has columns of."""
        return {self._place(column) for column in tree.find_all(exp.Column)}

    def _read_join(self, number: int, join: exp.Join) -> None:
        """Condition 2."""
        its, on = self.tables[number], join.args.get("on")
        if join.side != "LEFT" or join.method or join.args.get("using") or on is None:
            raise _NotChainedError
        parents = set[int]()
        for part in parts_of(on, exp.And):
            others = self._of(part) - {number}
            if not others:
                its.own.append(part)
                continue
            sides = [part.this, part.expression] if isinstance(part, exp.EQ) else []
            if len(sides) != 2 or not all(isinstance(one, exp.Column) for one in sides):  # noqa: PLR2004 - both
                raise _NotChainedError
            mine, other = sides if self._place(sides[0]) == number else sides[::-1]
            parents |= others
            its.pairs.append((mine, other))
        if len(parents) != 1 or max(parents) >= number:
            raise _NotChainedError
        its.parent = parents.pop()

    def _way(self, number: int) -> list[int]:
        """The tables from the first one to one, that one last, without the first."""
        way = list[int]()
        while number:
            way.append(number)
            number = self.tables[number].parent
        return way[::-1]

    def rewrite(self) -> None:
        """Puts the joins in place."""
        select = self.select
        groups = self._groups()
        where = select.args.get("where")
        if where is not None and self._of(where) - {0}:
            raise _NotChainedError
        names = {one.name.casefold() for one in select.find_all(exp.Identifier)}
        key, value = (free_start(first, names) for first in "kv")
        items = [self._item(item, groups, value) for item in select.expressions]
        select.set("expressions", items)
        asked = [i for i, one in enumerate(self.tables) if one.values]
        if not asked:
            raise _NotChainedError
        select.set("joins", [self._join(i, key, value) for i in asked])
        select.set("group", None)

    def _groups(self) -> list[exp.Column]:
        """Condition 1."""
        group = self.select.args["group"]
        if any(value for part, value in group.args.items() if part != "expressions"):
            raise _NotChainedError
        found = list[exp.Column]()
        for one in group.expressions:
            its = one
            if (
                isinstance(one, exp.Literal)
                and not one.is_string
                and 0 < int(one.name) <= len(self.select.expressions)
            ):
                its = self.select.expressions[int(one.name) - 1].unalias()
            if not isinstance(its, exp.Column) or self._place(its):
                raise _NotChainedError
            found.append(its)
        shown, first = {one.name.casefold() for one in found}, self.tables[0].declared
        key = {name.casefold() for name in first.key or ()}
        may_be_null = {n.casefold() for i, n in enumerate(first.column_names) if not first.is_not_null(i)}
        if not key or not shown >= key or key & may_be_null:
            raise _NotChainedError
        return found

    def _item(self, item: exp.Expr, groups: Sequence[exp.Column], start: str) -> exp.Expr:
        """A column of the query, over the columns of what is joined."""
        held = exp.Paren(this=item.copy())
        for one in list(held.find_all(exp.AggFunc)):
            one.replace(self._aggregate(one, start))
        plain = {one.name.casefold() for one in groups}
        for column in item.find_all(exp.Column):
            if column.find_ancestor(exp.AggFunc) is None and (
                self._place(column) or column.name.casefold() not in plain
            ):
                raise _NotChainedError
        made = held.this
        return made if isinstance(item, exp.Alias | exp.Column) else exp.alias_(made, default_name(item))

    def _aggregate(self, one: exp.AggFunc, start: str) -> exp.Expr:
        """An aggregate, as a column of what is joined: conditions 2 and 3."""
        operand = one.this
        if not isinstance(one, _AGGREGATES) or any(
            value for part, value in one.args.items() if part not in ("this", "big_int")
        ):
            raise _NotChainedError
        is_distinct = isinstance(operand, exp.Distinct)
        if is_distinct:
            operand = operand.expressions[0] if len(operand.expressions) == 1 else None
        if operand is None or not all(isinstance(node, _STRICT) for node in operand.walk()):
            raise _NotChainedError
        places = self._of(operand)
        number = max(places, default=0, key=lambda place: len(self._way(place)))
        its = self.tables[number]
        if not number or not places.issubset(self._way(number)):
            raise _NotChainedError
        made = one.copy()
        if is_distinct:
            if not isinstance(one, exp.Count) or its.declared.key != (self._column(operand, its),):
                raise _NotChainedError
            made = exp.Count(this=operand.copy())
        elif not isinstance(one, exp.Min | exp.Max) and len(self._way(number)) < len(self.tables) - 1:
            raise _NotChainedError
        if made not in its.values:
            its.values.append(made)
        column: exp.Expr = exp.column(f"{start}{its.values.index(made)}", its.name)
        if isinstance(one, exp.Count):
            column = exp.Coalesce(this=column, expressions=[exp.Literal.number(0)])
        return column

    def _column(self, operand: exp.Expr, its: _Table) -> str | None:
        """The name of a column as its table declares it."""
        names = (name for name in its.declared.column_names if name.casefold() == operand.name.casefold())
        return next(names, None) if isinstance(operand, exp.Column) else None

    def _join(self, number: int, key: str, value: str) -> exp.Join:
        """The join of the aggregates that are asked of a table."""
        its = self.tables[number]
        first, *others = [self.tables[i] for i in self._way(number)]
        query = exp.Select(
            expressions=[
                *(exp.alias_(mine.copy(), f"{key}{i}") for i, (mine, _) in enumerate(first.pairs)),
                *(exp.alias_(one.copy(), f"{value}{i}") for i, one in enumerate(its.values)),
            ],
            from_=exp.From(this=first.tree.copy()),
            joins=[exp.Join(this=one.tree.copy(), on=one.condition) for one in others],
            where=exp.Where(this=exp.and_(*(one.copy() for one in first.own))) if first.own else None,
            group=exp.Group(expressions=[mine.copy() for mine, _ in first.pairs]),
        )
        on = (
            exp.EQ(this=exp.column(f"{key}{i}", its.name), expression=other.copy())
            for i, (_, other) in enumerate(first.pairs)
        )
        name = exp.TableAlias(this=exp.to_identifier(its.name))
        return exp.Join(this=exp.Subquery(this=query, alias=name), side="LEFT", on=exp.and_(*on))
