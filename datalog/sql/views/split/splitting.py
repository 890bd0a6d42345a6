"""A view that groups as two: a helper with the groups' counts and sums, and a query over each of its rows alone.

    SELECT day, sum(a) / sum(b) AS rate FROM r GROUP BY day HAVING sum(b) > 0

    SELECT day, sum(a) AS sum_1, count(a) AS count_1, ..., count(*) AS rows_1 FROM r GROUP BY day
    SELECT day, sum_1 / sum_2 AS rate FROM helper WHERE sum_2 > 0

Of a quotient of sums nobody can tell the sums; of the sums everybody can tell the quotient. So the helper is kept
beside the view, its groups follow from the rows that they gain and lose, and each of its rows that changes changes
one row of the view.

Conditions of soundness:

1. A row of the view is computed from its group alone: the aggregates and the items without aggregates are columns of
   the helper, and what is computed with them is operators and literals. So the view is the query over the helper, row
   by row, as often as rows stand.
2. The helper's FROM, WHERE and GROUP BY are the view's own text, and so are its aggregates: that is checked.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from datalog.sql.text import text as sql_text
from datalog.sql.views.split.written_parts import (
    NOT_SPLIT,
    Clauses,
    NoSplitError,
    Replacing,
    Split,
    Tokens,
    quoted,
)
from datalog.sql.views.written_out.as_written import parsed, with_parts

_PARTS = frozenset({"with_", "expressions", "from_", "joins", "where", "group", "having", "order"})
_AGGREGATES = (exp.Sum, exp.Count, exp.Avg, exp.Min, exp.Max)
_COMPUTING = (
    *(exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.And, exp.Or, exp.Not, exp.Is, exp.Between),
    *(exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Sqrt),
)
"""What is written again as it was read: operators whose meaning is the same wherever they stand."""


def split(text: str) -> Split | None:
    """A query that groups as a helper and a query over its rows; None if it is no such query.

    >>> print(split("SELECT d, sum(a) / count(*) AS m FROM r WHERE b > 0 GROUP BY d").helper)
    SELECT d, sum(a) AS sum_1, count(a) AS count_2, count(*) AS count_3 FROM r WHERE b > 0 GROUP BY d
    """
    try:
        return _Splitting(text).split()
    except NOT_SPLIT:
        return None


def split_first_groups(text: str) -> Split | None:
    """A query of the first groups by an order as a helper with all groups, and the first of these; None for another.

    >>> print(split_first_groups("SELECT a, sum(b) AS n FROM r GROUP BY a ORDER BY n DESC LIMIT 3").over("h"))
    SELECT `a`, `n` FROM `h` ORDER BY n DESC LIMIT 3
    """
    try:
        return _of_first_groups(text)
    except NOT_SPLIT:
        return None


def _of_first_groups(text: str) -> Split | None:
    tree, tokens = parsed(text), Tokens(text)
    place = tokens.first(TokenType.ORDER_BY)
    parts = ("order", "limit", "group")
    if not isinstance(tree, exp.Select) or place is None or any(not tree.args.get(p) for p in parts):
        return None
    names = [item.alias_or_name for item in tree.expressions]
    by = [one.this for one in tree.args["order"].expressions]
    own = all(isinstance(one, exp.Column) and not one.table and one.name in names for one in by)
    if tree.args.get("offset") is not None or not own or not all(names) or "*" in names:
        return None
    start = tokens.all[place].start
    above = text[:start].rstrip()
    cut = tree.copy()
    cut.set("order", None)
    cut.set("limit", None)
    if parsed(above) != cut:
        return None
    return Split(above, f"SELECT {', '.join(map(quoted, names))} FROM ", f" {text[start:]}")  # noqa: S608


class _Splitting:
    def __init__(self, text: str) -> None:
        self.its = Clauses(text, _PARTS)
        self.new = Replacing(text, self.its.tree)
        self._plain: dict[str, str] = {}

    def split(self) -> Split:
        tree = self.its.tree
        items = [(self.its.text[place], item) for place, item in self.its.items()]
        self._require_own_names(tree, items)
        rest, plain = list[str](), list[str]()
        for written, item in items:
            if not _groups(item) and not _is_constant(item):
                plain.append(written)
                self._plain.setdefault(item.unalias().sql(), quoted(item.alias_or_name))
        plain += self._hidden_groups(tree, items)
        for written, item in items:
            name = quoted(item.alias_or_name)
            if _is_constant(item):
                rest.append(written)
            else:
                rest.append(f"{self._over(item.unalias())} AS {name}" if _groups(item) else name)
        having = tree.args.get("having")
        where = "" if having is None else f" WHERE {self._over(having.this)}"
        if not self.new.values:
            raise NoSplitError
        self._column("count(*)", "count")
        self._require_known_numbers(tree, [_groups(item) or _is_constant(item) for _, item in items])
        return Split(self._helper(plain), f"SELECT {', '.join(rest)} FROM ", where)  # noqa: S608

    def _hidden_groups(self, tree: exp.Select, items: Sequence[tuple[str, exp.Expr]]) -> list[str]:
        """What is grouped by and not shown, as columns of the helper: its groups are told apart by these."""
        group, texts = tree.args.get("group"), self.its.groups()
        keys = [] if group is None else group.expressions
        if len(texts) != len(keys):
            raise NoSplitError
        named = {item.alias_or_name.casefold() for _, item in items}
        shown = {item.unalias().sql() for _, item in items}
        found = []
        for text, one in zip(texts, keys, strict=True):
            names = {column.name.casefold() for column in one.find_all(exp.Column)}
            if one.sql() not in shown and names and not names & named:
                found.append(f"{text} AS {self.new.unused('group', 1)}")
        return found

    def _helper(self, plain: Sequence[str]) -> str:
        """The helper's query (condition 2)."""
        behind = (TokenType.HAVING, TokenType.ORDER_BY)
        helper, made = self.its.selecting([*plain, *self.new.columns], without=behind)
        calls = [one.unalias().sql() for one in made.expressions[len(plain) :]]
        same = made.args.get("group") == self.its.tree.args.get("group") and not made.args.get("having")
        if not same or calls != list(self.new.values):
            raise NoSplitError
        return helper

    def _over(self, tree: exp.Expr) -> str:
        """An expression over the helper's columns."""
        made = self._changed(tree)
        written = sql_text(made, pretty=False)
        if sql_text(parsed(written), pretty=False) != written:
            raise NoSplitError
        return written

    def _changed(self, node: exp.Expr) -> exp.Expr:
        if node.sql() in self._plain:
            return exp.to_column(self._plain[node.sql()], dialect="spark")
        if isinstance(node, _AGGREGATES):
            return exp.column(self._aggregate(node))
        if not isinstance(node, _COMPUTING) or (isinstance(node, exp.Literal) and not _is_simple(node)):
            raise NoSplitError
        return with_parts(node, self._changed)

    def _aggregate(self, node: exp.Expr) -> str:
        """The helper's column for an aggregate; beside it those that it is followed by."""
        inside = node.this
        more = [value for part, value in node.args.items() if part not in ("this", "big_int") and value]
        if more or inside is None or inside.find(exp.Distinct, exp.Query, exp.Window) is not None:
            raise NoSplitError
        call = self.its.tokens.call(node)
        name = self._column(call, type(node).__name__.lower())
        argument = call[call.index("(") :]
        if isinstance(node, exp.Avg):
            self._column(f"sum{argument}", "sum")
        if isinstance(node, exp.Avg | exp.Sum):
            self._column(f"count{argument}", "count")
        return name

    def _column(self, call: str, function: str) -> str:
        return self.new.value(parsed(call).sql(), call, function)

    def _require_known_numbers(self, tree: exp.Select, grouping: Sequence[bool]) -> None:
        """Refuses `GROUP BY 2` where the second column would be another one, and more than one set of groups."""
        group = tree.args.get("group")
        if group is None:
            return
        if any(value for part, value in group.args.items() if part != "expressions"):
            raise NoSplitError
        for one in group.expressions:
            if isinstance(one, exp.GroupingSets | exp.Rollup | exp.Cube | exp.Tuple):
                raise NoSplitError
            if isinstance(one, exp.Literal) and (one.is_string or any(grouping[: int(one.name)])):
                raise NoSplitError

    def _require_own_names(self, tree: exp.Select, items: Sequence[tuple[str, exp.Expr]]) -> None:
        """Refuses names that may mean a column of the select list, or another one: the helper has not all of these."""
        aliases = {item.alias.casefold(): item for _, item in items if isinstance(item, exp.Alias)}
        grouped = {name for name, item in aliases.items() if _groups(item)}
        plain = [item.unalias() for _, item in items if not _groups(item)]
        group, having = tree.args.get("group"), tree.args.get("having")
        for one in (*plain, *(group.expressions if group is not None else ())):
            if any(not c.table and c.name.casefold() in grouped for c in one.find_all(exp.Column)):
                raise NoSplitError
        for c in having.find_all(exp.Column) if having is not None else ():
            its = aliases.get(c.name.casefold())
            if not c.table and its is not None and its.this != c:
                raise NoSplitError


def _is_constant(item: exp.Expr) -> bool:
    """Whether an item is a value that is written out: a column of nulls alone has no type to be stored with."""
    return isinstance(item, exp.Alias) and isinstance(item.this, exp.Literal | exp.Null | exp.Boolean)


def _is_simple(literal: exp.Literal) -> bool:
    """Whether a literal is written alike everywhere."""
    return not literal.is_string or not set("\\'\"") & set(literal.this)


def _groups(item: exp.Expr) -> bool:
    return item.find(exp.AggFunc) is not None
