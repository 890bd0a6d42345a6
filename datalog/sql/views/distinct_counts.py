"""A view that counts different values as two: a helper with a row for each value of a group, and a count of its rows.

    SELECT to_date(at) AS day, count(DISTINCT account) AS accounts, count(*) AS n FROM event GROUP BY to_date(at)

    SELECT to_date(at) AS day, account AS value_1, count(*) AS count_1 FROM event GROUP BY to_date(at), account
    SELECT day, count(value_1) AS accounts, sum(count_1) AS n FROM helper GROUP BY day

A value is gone from a group when its last row is, which the helper's counts tell.

Conditions of soundness:

1. All DISTINCT aggregates are counts of one and the same value; the others are counts, minima and maxima, which those
   of a group's values make. (A sum of decimals has more digits each time that it is added up.)
2. What is shown besides is what is grouped by. Where nothing is, there is a row even of no rows: a count of them is 0.
3. The helper's FROM and WHERE are the view's own text, and so is what it groups by and aggregates: that is checked. No
   name in these is one that the select list gives to something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from datalog.sql.views.splitting import Split, Tokens, quoted

_PARTS = frozenset({"with_", "expressions", "from_", "joins", "where", "group"})


class _NoSplitError(Exception):
    """A query is not split."""


def split_distinct(text: str, helper: str) -> Split | None:
    """A query that counts different values as a helper and a query over its rows; None if it is no such query.

    Args:
        text: the query in Spark SQL.
        helper: the helper's name.

    >>> found = split_distinct("SELECT d, count(DISTINCT a) AS n, count(*) AS m FROM r GROUP BY d", "h")
    >>> print(found.helper)
    SELECT d, a AS value_1, count(*) AS count_1 FROM r GROUP BY d, a
    >>> print(found.rest)
    SELECT `d`, count(value_1) AS `n`, sum(count_1) AS `m` FROM `h` GROUP BY `d`
    """
    try:
        return _Splitting(text, sqlglot.parse_one(text, read="spark"), Tokens(text)).split(helper)
    except (_NoSplitError, sqlglot.errors.SqlglotError, RecursionError, StopIteration):
        return None


@dataclass
class _Splitting:
    text: str
    tree: exp.Expr
    tokens: Tokens
    _columns: dict[str, tuple[str, str]] = field(default_factory=dict)

    def split(self, helper: str) -> Split:
        items, groups = self._items(), self._groups()
        plain = {one.unalias().sql(): (written, one) for written, one in items if not _aggregates(one)}
        values = {value.sql(): value for _, one in items for value in _distinct(one)}
        if plain.keys() != {one.sql() for _, one in groups} or len(values) != 1:
            raise _NoSplitError
        (value,) = values.values()
        self._require_own_names(items, value)
        self._taken = {one.name.casefold() for one in self.tree.find_all(exp.Identifier)}
        name, operand = self._unused("value"), self._operand()
        rest = [
            f"{self._over(one.unalias(), name, is_total=not groups)} AS {quoted(one.alias_or_name)}"
            if _aggregates(one)
            else quoted(one.alias_or_name)
            for _, one in items
        ]
        self._column("count(*)", "count")
        calls = [f"{call} AS {column}" for call, column in self._columns.values()]
        listed = ", ".join((*(written for written, _ in plain.values()), f"{operand} AS {name}", *calls))
        by = ", ".join((*(written for written, _ in groups), operand))
        made = f"{self._before} {listed} {self._between} GROUP BY {by}"
        self._require_same(made, value, [one.sql() for _, one in groups])
        above = (
            f" GROUP BY {', '.join(quoted(one.alias_or_name) for _, one in plain.values())}" if groups else ""
        )
        return Split(made, f"SELECT {', '.join(rest)} FROM {quoted(helper)}{above}")  # noqa: S608

    def _items(self) -> list[tuple[str, exp.Expr]]:
        """The select list: texts and trees, each with a name of its own."""
        tree, tokens = self.tree, self.tokens
        if not isinstance(tree, exp.Select) or any(v and part not in _PARTS for part, v in tree.args.items()):
            raise _NoSplitError
        start, end = tokens.first(TokenType.SELECT), tokens.first(TokenType.FROM)
        if start is None or end is None:
            raise _NoSplitError
        group = tokens.first(TokenType.GROUP_BY, end)
        stop = len(self.text) if group is None else tokens.all[group].start
        self._before = self.text[: tokens.all[start].end + 1]
        self._between = self.text[tokens.all[end].start : stop].rstrip()
        texts, names = (
            list(tokens.parts(start + 1, end)),
            [one.alias_or_name.casefold() for one in tree.expressions],
        )
        named = all(isinstance(one, exp.Alias | exp.Column) and not one.is_star for one in tree.expressions)
        if len(texts) != len(names) or not named or len(set(names)) < len(names):
            raise _NoSplitError
        return list(zip(texts, tree.expressions, strict=True))

    def _groups(self) -> list[tuple[str, exp.Expr]]:
        """What is grouped by: texts and trees."""
        group, place = self.tree.args.get("group"), self.tokens.first(TokenType.GROUP_BY)
        if group is None or place is None:
            return []
        texts = list(self.tokens.parts(place + 1, len(self.tokens.all)))
        other = any(value for part, value in group.args.items() if part != "expressions")
        odd = (exp.Literal, exp.GroupingSets, exp.Rollup, exp.Cube, exp.Tuple)
        if (
            other
            or len(texts) != len(group.expressions)
            or any(isinstance(one, odd) for one in group.expressions)
        ):
            raise _NoSplitError
        return list(zip(texts, group.expressions, strict=True))

    def _require_own_names(self, items: Sequence[tuple[str, exp.Expr]], value: exp.Expr) -> None:
        """The last part of condition 3: Spark looks for a name among columns first, and they are not known here."""
        given = {one.alias.casefold(): one.this for _, one in items if isinstance(one, exp.Alias)}
        operands = [value, *(one.unalias() for _, one in items)]
        for column in (column for one in operands for column in one.find_all(exp.Column)):
            its = given.get(column.name.casefold())
            if its is not None and not column.table and its != column:
                raise _NoSplitError

    def _operand(self) -> str:
        """The text of the value that is counted."""
        place = next(i for i, one in enumerate(self.tokens.all) if one.token_type is TokenType.DISTINCT)
        end = self.tokens.closing(place - 1)
        return self.text[self.tokens.all[place].end + 1 : self.tokens.all[end].start].strip()

    def _over(self, node: exp.Expr, value: str, *, is_total: bool) -> str:
        """An aggregate over the helper's rows."""
        more = [its for part, its in node.args.items() if part not in ("this", "big_int") and its]
        if more or node.find(exp.Query, exp.Window) is not None:
            raise _NoSplitError
        if list(_distinct(node)):
            return f"count({value})"
        if isinstance(node, exp.Count):
            found = f"sum({self._column(self.tokens.call(node), 'count')})"
            return f"coalesce({found}, 0)" if is_total else found
        if isinstance(node, exp.Min | exp.Max):
            function = type(node).__name__.lower()
            return f"{function}({self._column(self.tokens.call(node), function)})"
        raise _NoSplitError

    def _column(self, call: str, function: str) -> str:
        key = sqlglot.parse_one(call, read="spark").sql()
        if key not in self._columns:
            self._columns[key] = call, self._unused(function)
        return self._columns[key][1]

    def _unused(self, word: str) -> str:
        number = 1
        while f"{word}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{word}_{number}")
        return f"{word}_{number}"

    def _require_same(self, made: str, value: exp.Expr, groups: Sequence[str]) -> None:
        """Condition 3."""
        tree = sqlglot.parse_one(made, read="spark")
        group = tree.args.get("group")
        if not isinstance(tree, exp.Select) or group is None:
            raise _NoSplitError
        same = all(
            tree.args.get(part) == self.tree.args.get(part) for part in ("with_", "from_", "joins", "where")
        )
        by = [one.sql() for one in group.expressions]
        calls = [one.unalias().sql() for one in tree.selects[-len(self._columns) :]]
        if not same or by != [*groups, value.sql()] or calls != list(self._columns):
            raise _NoSplitError


def _aggregates(item: exp.Expr) -> bool:
    return item.find(exp.AggFunc) is not None


def _distinct(item: exp.Expr) -> Iterator[exp.Expr]:
    """The value that an item of a select list counts each of once."""
    node = item.unalias()
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct) and not node.this.args.get("on"):
        values = node.this.expressions
        if len(values) != 1:
            raise _NoSplitError
        yield values[0]
    elif node.find(exp.Distinct) is not None:
        raise _NoSplitError
