"""A query that looks at all rows as two: a helper with the rows, or groups, that it looks at, and the query over these.

    SELECT id, rank() OVER (ORDER BY amount DESC) AS place FROM sale WHERE day > '2026-01-01'

    SELECT id AS value_1, amount AS value_2 FROM sale WHERE day > '2026-01-01'
    SELECT value_1 AS id, rank() OVER (ORDER BY value_2 DESC) AS place FROM helper

So a window without PARTITION BY, and the first rows by an order, are computed anew from what is stored.

Conditions of soundness:

1. The helper's FROM, WHERE and GROUP BY are the query's own text, which come before windows, ORDER BY and LIMIT; HAVING
   comes before these, too, and is the WHERE of the query over the helper.
2. Columns, or of a query that groups its aggregates and what it groups by, are columns of the helper. A name that may
   mean a column of the select list is no such column; in an aggregate of an item it cannot mean one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from datalog.sql.views.split.written_parts import (
    NOT_SPLIT,
    Clauses,
    NoSplitError,
    Replacing,
    Split,
    Tokens,
    place_of,
    quoted,
)
from datalog.sql.views.written_out.as_written import parsed

_PARTS = frozenset({"with_", "expressions", "from_", "joins", "where", "group", "having", "order", "limit"})
_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


def split_rows(text: str, tables: Mapping[str, Sequence[str]]) -> Split | None:
    """A query with windows, or of the first rows by an order, as a helper and the query over it; None of another.

    `tables` has the columns that `*` of one of them alone stands for.

    >>> found = split_rows("SELECT a, sum(sum(b)) OVER (ORDER BY a) AS n FROM r GROUP BY a", {})
    >>> print(found.helper)
    SELECT a AS value_1, sum(b) AS value_2, count(b) AS value_3, count(*) AS value_4 FROM r GROUP BY a
    >>> print(found.over("h"))
    SELECT value_1 AS `a`, sum(value_2) OVER (ORDER BY value_1) AS n FROM `h`
    """
    try:
        return _Splitting(_without_star(text, tables)).split()
    except NOT_SPLIT:
        return None


def _without_star(text: str, tables: Mapping[str, Sequence[str]]) -> str:
    """The query with the columns of its only table in place of `*`."""
    tree, tokens = parsed(text), Tokens(text)
    start = tree.args.get("from_") if isinstance(tree, exp.Select) else None
    if (
        start is None
        or tree.args.get("joins")
        or tree.args.get("with_")
        or not isinstance(start.this, exp.Table)
    ):
        return text
    columns = tables.get(start.this.name.casefold())
    first, end = tokens.first(TokenType.SELECT), tokens.first(TokenType.FROM)
    if columns is None or start.this.db or first is None or end is None:
        return text
    around = (TokenType.SELECT, TokenType.COMMA, TokenType.FROM)
    for i in range(end - 1, first, -1):
        ends = {tokens.all[i - 1].token_type, tokens.all[i + 1].token_type}
        if tokens.depths[i] == 0 and tokens.all[i].token_type is TokenType.STAR and ends <= set(around):
            place = tokens.all[i].start
            text = f"{text[:place]}{', '.join(map(quoted, columns))}{text[place + 1 :]}"
    return text


class _Splitting:
    def __init__(self, text: str) -> None:
        self.text, self.its = text, Clauses(text, _PARTS)
        self.new = Replacing(text, self.its.tree)

    def split(self) -> Split:
        tree = self.its.tree
        if tree.args.get("limit") is None and not any(one.find(exp.Window) for one in tree.expressions):
            raise NoSplitError
        self.items = self.its.items()
        self.aliases = {
            one.alias.casefold(): one.this for one in tree.expressions if isinstance(one, exp.Alias)
        }
        self.groups = self._groups(tree)
        self.is_item = True
        for place, item in self.items:
            self._item(place.start, item)
        self.is_item = False
        having, order = tree.args.get("having"), tree.args.get("order")
        if having is not None:
            self._over(having.this)
        for one in order.expressions if order is not None else ():
            self._ordered(one.this)
        return Split(self._below(), *self._above())

    def _groups(self, tree: exp.Select) -> dict[str, str]:
        """What is grouped by: texts, by what they are read as."""
        group = tree.args.get("group")
        if group is None:
            if any(self._aggregates(one) for one in tree.expressions) or tree.args.get("having") is not None:
                raise NoSplitError
            return {}
        texts = self.its.groups()
        if any(v and part != "expressions" for part, v in group.args.items()) or len(texts) != len(
            group.expressions
        ):
            raise NoSplitError
        found = {}
        for text, one in zip(texts, group.expressions, strict=True):
            if isinstance(one, exp.Literal):
                if one.is_string or not 1 <= int(one.name) <= len(self.items):
                    raise NoSplitError
                place, item = self.items[int(one.name) - 1]
                written = self.text[place]
                if isinstance(item, exp.Alias):
                    written = written[: -len(alias_behind(written))].rstrip()
                found[item.unalias().sql()] = written
            elif isinstance(one, exp.GroupingSets | exp.Rollup | exp.Cube | exp.Tuple) or self._is_alias(one):
                raise NoSplitError
            else:
                found[one.sql()] = text
        if not found or any(
            parsed(f"SELECT {text}").expressions[0].sql() != sql for sql, text in found.items()
        ):
            raise NoSplitError
        return found

    def _is_alias(self, one: exp.Expr) -> bool:
        """Whether something names a column of the select list, or may."""
        columns = (c for c in one.find_all(exp.Column) if not c.table)
        return any(self.aliases.get(c.name.casefold(), c) != c for c in columns)

    def _aggregates(self, one: exp.Expr) -> bool:
        """Whether an aggregate stands in something that is no window."""
        return any(not _is_of_window(call) for call in one.find_all(exp.AggFunc))

    def _item(self, start: int, item: exp.Expr) -> None:
        inside = item.unalias()
        if inside.sql() in self.groups:
            text = self.groups[inside.sql()]
            if self._is_alias(inside) or not self.text.startswith(text, start):
                raise NoSplitError
            self.new.put(start, start + len(text), inside.sql())
        else:
            self._over(inside)
        if isinstance(item, exp.Column):
            _, end = place_of(item)
            self.new.changes.append((end, end, f" AS {quoted(item.name)}"))

    def _ordered(self, one: exp.Expr) -> None:
        """A place of the order: by a column of the select list, which stays, or by others."""
        if isinstance(one, exp.Column) and not one.table and one.name.casefold() in self.aliases:
            return
        same = next((item for _, item in self.items if _names(item.unalias()) == _names(one)), None)
        if isinstance(one, exp.Column) and same is not None:
            self.new.changes.append((*place_of(one), quoted(same.alias_or_name)))
            return
        if self._is_alias(one):
            raise NoSplitError
        self._over(one)

    def _over(self, node: exp.Expr) -> None:
        """Notes what of an expression is a column of the helper."""
        if isinstance(node, exp.Star) and isinstance(node.parent, exp.Count):
            return
        if isinstance(node, exp.Query | exp.Exists | exp.Star) or (
            isinstance(node, exp.In) and node.args.get("query")
        ):
            raise NoSplitError
        if isinstance(node, exp.AggFunc) and not _is_of_window(node):
            self._aggregate(node)
            return
        if isinstance(node, exp.Column):
            if node.is_star or self._is_alias(node) or (self.groups and node.sql() not in self.groups):
                raise NoSplitError
            self.new.put(*place_of(node), node.sql())
            return
        for one in node.iter_expressions():
            if not isinstance(one, exp.Identifier | exp.DataType):
                self._over(one)

    def _aggregate(self, node: exp.Expr) -> None:
        """An aggregate, and those that it is followed by."""
        inside = node.this
        if not isinstance(node, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max) or inside is None:
            raise NoSplitError
        if isinstance(node.parent, _AROUND) or inside.find(exp.Distinct, exp.Query, exp.Window) is not None:
            raise NoSplitError
        if not self.is_item and self._is_alias(inside):
            raise NoSplitError
        call = self.its.tokens.call(node)
        start = node.meta["start"]
        self.new.put(start, start + len(call), node.sql())
        argument = call[call.index("(") :]
        for name, kinds in (("sum", exp.Avg), ("count", (exp.Avg, exp.Sum))):
            if isinstance(node, kinds):
                self.new.value(parsed(f"SELECT {name}{argument}").expressions[0].sql(), f"{name}{argument}")

    def _below(self) -> str:
        """The helper's query."""
        for sql, text in self.groups.items():
            self.new.value(sql, text)
        if self.groups:
            self.new.value(exp.Count(this=exp.Star(), big_int=True).sql(), "count(*)")
        by = f" GROUP BY {', '.join(self.groups.values())}" if self.groups else ""
        behind = (TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT)
        query, made = self.its.selecting(self.new.columns, without=behind, behind=by)
        if [one.unalias().sql() for one in made.expressions] != list(self.new.values):
            raise NoSplitError
        return query

    def _above(self) -> tuple[str, str]:
        """The query over the helper, before and behind its name."""
        its, changed = self.its, self.new.changed
        above = f"SELECT {changed(its.at(its.select + 1), its.at(its.start)).rstrip()} FROM "  # noqa: S608
        where, having = "", TokenType.HAVING
        if having in its.clauses:
            where = f" WHERE {changed(its.until(its.clauses[having] + 1), its.at(its.next(having))).strip()}"
        rest = its.at(its.before((TokenType.ORDER_BY, TokenType.LIMIT)))
        return above, f"{where} {changed(rest, len(self.text))}".rstrip()


def _names(one: exp.Expr) -> Sequence[str] | exp.Expr:
    """The parts of a column's name, as Spark finds it; anything else as it is."""
    return [part.name.casefold() for part in one.parts] if isinstance(one, exp.Column) else one


def alias_behind(written: str) -> str:
    """The alias of an item, with AS, as it stands at the end of its text."""
    tokens = Tokens(written)
    count = 2 if len(tokens.all) > 1 and tokens.all[-2].token_type is TokenType.ALIAS else 1
    return written[tokens.all[-count].start :]


def _is_of_window(call: exp.Expr) -> bool:
    """Whether a call is a window's function."""
    outer = call
    while isinstance(outer.parent, _AROUND):
        outer = outer.parent
    return isinstance(outer.parent, exp.Window) and outer.parent.this is outer


def looks_at_all_rows(tree: exp.Expr) -> bool:
    """Whether a query is one that may look at all rows: it has windows, or LIMIT."""
    is_one = isinstance(tree, exp.Select)
    return is_one and (bool(tree.args.get("limit")) or any(one.find(exp.Window) for one in tree.expressions))
