"""A query that looks at all rows as two: a helper with the rows, or groups, that it looks at, and the query over these.

    SELECT id, rank() OVER (ORDER BY amount DESC) AS place FROM sale WHERE day > '2026-01-01'

    SELECT id AS value_1, amount AS value_2 FROM sale WHERE day > '2026-01-01'
    SELECT value_1 AS id, rank() OVER (ORDER BY value_2 DESC) AS place FROM helper

So a window without PARTITION BY, and the first rows by an order, are computed anew from what is stored.

Conditions of soundness:

1. The helper's FROM, WHERE and GROUP BY are the query's own text, which come before windows, ORDER BY and LIMIT; HAVING
   comes before these, too, and is the WHERE of the query over the helper.
2. Columns, or of a query that groups its aggregates and what it groups by, are columns of the helper. A name that may
   mean a column of the select list is no such column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from datalog.sql.views.as_written import parsed
from datalog.sql.views.splitting import NOT_SPLIT, NoSplitError, Split, Tokens, quoted

_PARTS = frozenset({"with_", "expressions", "from_", "joins", "where", "group", "having", "order", "limit"})
_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
_CLAUSES = (TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT)


def split_rows(text: str, helper: str, tables: Mapping[str, Sequence[str]]) -> Split | None:
    """A query with windows, or of the first rows by an order, as a helper and the query over it; None of another.

    Args:
        text: the query in Spark SQL.
        helper: the helper's name.
        tables: the columns of tables, which `*` of one of them alone stands for.

    >>> found = split_rows("SELECT a, sum(sum(b)) OVER (ORDER BY a) AS n FROM r GROUP BY a", "h", {})
    >>> print(found.helper)
    SELECT a AS value_1, sum(b) AS value_2, count(b) AS value_3, count(*) AS value_4 FROM r GROUP BY a
    >>> print(found.rest)
    SELECT value_1 AS `a`, sum(value_2) OVER (ORDER BY value_1) AS n FROM `h`
    """
    try:
        return _Splitting(_without_star(text, tables), helper).split()
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


@dataclass
class _Splitting:
    text: str
    helper: str
    _values: dict[str, tuple[str, str]] = field(default_factory=dict)
    _changes: list[tuple[int, int, str]] = field(default_factory=list)

    def split(self) -> Split:
        self.tokens = Tokens(self.text)
        tree = parsed(self.text)
        if not isinstance(tree, exp.Select) or any(v and part not in _PARTS for part, v in tree.args.items()):
            raise NoSplitError
        if tree.args.get("limit") is None and not any(one.find(exp.Window) for one in tree.expressions):
            raise NoSplitError
        self._taken = {one.name.casefold() for one in tree.find_all(exp.Identifier)}
        self._read_items(tree)
        self.groups = self._groups(tree)
        for start, item in self.items:
            self._item(start, item)
        having, order = tree.args.get("having"), tree.args.get("order")
        if having is not None:
            self._over(having.this)
        for one in order.expressions if order is not None else ():
            self._ordered(one.this)
        return Split(self._below(tree), self._above())

    def _read_items(self, tree: exp.Select) -> None:
        select, end = self.tokens.first(TokenType.SELECT), self.tokens.first(TokenType.FROM)
        if select is None or end is None:
            raise NoSplitError
        self.select, self.end = select, end
        texts = list(self.tokens.parts(select + 1, end))
        its = [item.alias_or_name.casefold() for item in tree.expressions]
        named = all(isinstance(one, exp.Alias | exp.Column) and not one.is_star for one in tree.expressions)
        if len(texts) != len(its) or not named or len(set(its)) < len(its):
            raise NoSplitError
        starts, place = list[int](), self.tokens.all[select].end
        for text in texts:
            place = self.text.index(text, place)
            starts.append(place)
            place += len(text)
        self.texts, self.items = texts, list(zip(starts, tree.expressions, strict=True))
        self.aliases = {
            one.alias.casefold(): one.this for one in tree.expressions if isinstance(one, exp.Alias)
        }

    def _groups(self, tree: exp.Select) -> dict[str, str]:
        """What is grouped by: texts, by what they are read as."""
        group = tree.args.get("group")
        if group is None:
            if any(self._aggregates(one) for one in tree.expressions) or tree.args.get("having") is not None:
                raise NoSplitError
            return {}
        texts = self._listed(TokenType.GROUP_BY)
        if any(v and part != "expressions" for part, v in group.args.items()) or len(texts) != len(
            group.expressions
        ):
            raise NoSplitError
        found = {}
        for text, one in zip(texts, group.expressions, strict=True):
            if isinstance(one, exp.Literal):
                if one.is_string or not 1 <= int(one.name) <= len(self.items):
                    raise NoSplitError
                _, item = self.items[int(one.name) - 1]
                written = self.texts[int(one.name) - 1]
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

    def _listed(self, clause: TokenType) -> list[str]:
        place = self.tokens.first(clause, self.end)
        assert place is not None
        return list(self.tokens.parts(place + 1, self._next(place)))

    def _next(self, place: int) -> int:
        """Where the clause ends that begins at a token."""
        places = (self.tokens.first(kind, place + 1) for kind in _CLAUSES)
        return min((one for one in places if one is not None), default=len(self.tokens.all))

    def _is_alias(self, one: exp.Expr) -> bool:
        """Whether something names a column of the select list, or may."""
        columns = (c for c in one.find_all(exp.Column) if not c.table)
        return any(self.aliases.get(c.name.casefold(), c) != c for c in columns)

    def _aggregates(self, one: exp.Expr) -> bool:
        """Whether an aggregate stands in something that is no window."""
        return any(not _is_of_window(call) for call in one.find_all(exp.AggFunc))

    def _item(self, start: int, item: exp.Expr) -> None:
        inside = item.unalias()
        if self._is_alias(inside):
            raise NoSplitError
        if inside.sql() in self.groups:
            text = self.groups[inside.sql()]
            if not self.text.startswith(text, start):
                raise NoSplitError
            self._put(start, start + len(text), inside.sql(), text)
        else:
            self._over(inside)
        if isinstance(item, exp.Column):
            self._changes.append((_end(item), _end(item), f" AS {quoted(item.name)}"))

    def _ordered(self, one: exp.Expr) -> None:
        """A place of the order: by a column of the select list, which stays, or by others."""
        if isinstance(one, exp.Column) and not one.table and one.name.casefold() in self.aliases:
            return
        same = next((item for _, item in self.items if _names(item.unalias()) == _names(one)), None)
        if isinstance(one, exp.Column) and same is not None:
            self._changes.append((_start(one), _end(one), quoted(same.alias_or_name)))
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
            start, end = _start(node), _end(node)
            self._put(start, end, node.sql(), self.text[start:end])
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
        if self._is_alias(inside):
            raise NoSplitError
        call = self.tokens.call(node)
        start = node.meta["start"]
        self._put(start, start + len(call), node.sql(), call)
        argument = call[call.index("(") :]
        for name, kinds in (("sum", exp.Avg), ("count", (exp.Avg, exp.Sum))):
            if isinstance(node, kinds):
                self._value(parsed(f"SELECT {name}{argument}").expressions[0].sql(), f"{name}{argument}")

    def _put(self, start: int, end: int, sql: str, text: str) -> None:
        self._changes.append((start, end, self._value(sql, text)))

    def _value(self, sql: str, text: str) -> str:
        if sql not in self._values:
            number = len(self._values) + 1
            while f"value_{number}" in self._taken:
                number += 1
            self._taken.add(f"value_{number}")
            self._values[sql] = f"value_{number}", text
        return self._values[sql][0]

    def _below(self, tree: exp.Select) -> str:
        """The helper's query."""
        for sql, text in self.groups.items():
            self._value(sql, text)
        if self.groups:
            self._value(exp.Count(this=exp.Star(), big_int=True).sql(), "count(*)")
        columns = ", ".join(f"{text} AS {name}" for name, text in self._values.values())
        if not columns:
            raise NoSplitError
        group = self.tokens.first(TokenType.GROUP_BY, self.end)
        places = [self.tokens.first(kind, self.end) for kind in _CLAUSES[1:]]
        until = min((one for one in places if one is not None), default=None)
        end = len(self.text) if until is None else self.tokens.all[until].start
        above = self.text[: self.tokens.all[self.select].end + 1]
        query = f"{above} {columns} {self.text[self.tokens.all[self.end].start : end].rstrip()}"
        if group is not None:
            query += f" GROUP BY {', '.join(self.groups.values())}"
        made = parsed(query)
        kept = ("with_", "from_", "joins", "where")
        same = isinstance(made, exp.Select) and all(made.args.get(p) == tree.args.get(p) for p in kept)
        if not same or [one.unalias().sql() for one in made.expressions] != list(self._values):
            raise NoSplitError
        return query

    def _above(self) -> str:
        """The query over the helper."""
        all_, first = self.tokens.all, self.tokens.all[self.select + 1].start
        rest = f"SELECT {self._changed(first, all_[self.end].start).rstrip()} FROM {quoted(self.helper)}"  # noqa: S608
        having = self.tokens.first(TokenType.HAVING, self.end)
        if having is not None:
            until = self._next(having)
            end = all_[until].start if until < len(all_) else len(self.text)
            rest += f" WHERE {self._changed(all_[having].end + 1, end).strip()}"
        places = (self.tokens.first(kind, self.end) for kind in (TokenType.ORDER_BY, TokenType.LIMIT))
        behind = min((one for one in places if one is not None), default=None)
        return rest if behind is None else f"{rest} {self._changed(all_[behind].start, len(self.text))}"

    def _changed(self, start: int, end: int) -> str:
        """A part of the text with the helper's columns in place of what they are."""
        text, at = "", start
        for since, until, new in sorted(self._changes):
            if start <= since and until <= end:
                text, at = f"{text}{self.text[at:since]}{new}", until
        return f"{text}{self.text[at:end]}"


def _start(column: exp.Column) -> int:
    return _places(column)[0]


def _end(column: exp.Column) -> int:
    return _places(column)[1]


def _names(one: exp.Expr) -> Sequence[str] | exp.Expr:
    """The parts of a column's name, as Spark finds it; anything else as it is."""
    return [part.name.casefold() for part in one.parts] if isinstance(one, exp.Column) else one


def _places(column: exp.Column) -> tuple[int, int]:
    """Where a column stands in the text."""
    parts: Sequence[exp.Expr] = column.parts
    if any("start" not in part.meta for part in parts):
        raise NoSplitError
    return parts[0].meta["start"], parts[-1].meta["end"] + 1


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
