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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from datalog.sql.errors import EmissionError
from datalog.sql.text import text as sql_text
from datalog.sql.views.as_written import parsed

_PARTS = frozenset({"with_", "expressions", "from_", "joins", "where", "group", "having", "order"})
_AGGREGATES = (exp.Sum, exp.Count, exp.Avg, exp.Min, exp.Max)
_COMPUTING = (
    *(exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.And, exp.Or, exp.Not, exp.Is, exp.Between),
    *(exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Sqrt),
)
"""What is written again as it was read: operators whose meaning is the same wherever they stand."""
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


@dataclass(frozen=True, slots=True)
class Split:
    """A query in two.

    Attributes:
        helper: the query of the helper.
        rest: the query over the helper.
    """

    helper: str
    rest: str


class NoSplitError(Exception):
    """A query is not split."""


NOT_SPLIT = (NoSplitError, EmissionError, sqlglot.errors.SqlglotError, RecursionError)


def split(text: str, helper: str) -> Split | None:
    """A query that groups as a helper and a query over its rows; None if it is no such query.

    Args:
        text: the query in Spark SQL.
        helper: the helper's name.

    >>> print(split("SELECT d, sum(a) / count(*) AS m FROM r WHERE b > 0 GROUP BY d", "h").helper)
    SELECT d, sum(a) AS sum_1, count(a) AS count_2, count(*) AS count_3 FROM r WHERE b > 0 GROUP BY d
    """
    try:
        return _Splitting(text, helper).split()
    except NOT_SPLIT:
        return None


def split_first_groups(text: str, helper: str) -> Split | None:
    """A query of the first groups by an order as a helper with all groups, and the first of these; None for another.

    >>> print(split_first_groups("SELECT a, sum(b) AS n FROM r GROUP BY a ORDER BY n DESC LIMIT 3", "h").rest)
    SELECT `a`, `n` FROM `h` ORDER BY n DESC LIMIT 3
    """
    try:
        return _of_first_groups(text, helper)
    except NOT_SPLIT:
        return None


def _of_first_groups(text: str, helper: str) -> Split | None:
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
    return Split(above, f"SELECT {', '.join(map(quoted, names))} FROM {quoted(helper)} {text[start:]}")  # noqa: S608


class Tokens:
    """A text's tokens, and how deep each stands in parentheses."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.all = list(sqlglot.tokenize(text, read="spark"))
        self.depths: list[int] = []
        depth = 0
        for one in self.all:
            depth -= one.token_type in _CLOSING
            self.depths.append(depth)
            depth += one.token_type in _OPENING

    def closing(self, opening: int) -> int:
        """The place of the parenthesis that closes one."""
        depth = self.depths[opening]
        return next(i for i in range(opening + 1, len(self.all)) if self.depths[i] == depth)

    def first(self, kind: TokenType, since: int = 0) -> int | None:
        """The first token of a kind that stands in no parentheses."""
        places = range(since, len(self.all))
        return next((i for i in places if self.depths[i] == 0 and self.all[i].token_type is kind), None)

    def parts(self, since: int, until: int) -> Iterator[str]:
        """The texts between commas."""
        start = since
        for i in range(since, until + 1):
            if i == until or (self.depths[i] == 0 and self.all[i].token_type is TokenType.COMMA):
                if i == start:
                    raise NoSplitError
                yield self.text[self.all[start].start : self.all[i - 1].end + 1]
                start = i + 1

    def groups(self) -> list[str]:
        """The texts of what a query is grouped by."""
        place = self.first(TokenType.GROUP_BY)
        if place is None:
            return []
        ends = (self.first(kind, place) for kind in (TokenType.HAVING, TokenType.ORDER_BY))
        return list(self.parts(place + 1, min((i for i in ends if i is not None), default=len(self.all))))

    def call(self, node: exp.Expr) -> str:
        """The text of a call in the text that is written as a name and arguments in parentheses."""
        start = node.meta.get("start")
        place = next((i for i, one in enumerate(self.all) if one.start == start), None)
        if place is None or place + 1 >= len(self.all) or self.all[place + 1].token_type is not _OPENING[0]:
            raise NoSplitError
        return self.text[self.all[place].start : self.all[self.closing(place + 1)].end + 1]


@dataclass
class _Splitting:
    text: str
    helper: str
    _columns: dict[str, tuple[str, str]] = field(default_factory=dict)
    _plain: dict[str, str] = field(default_factory=dict)

    def split(self) -> Split:
        self.tokens = Tokens(self.text)
        tree = parsed(self.text)
        if not isinstance(tree, exp.Select) or any(v and part not in _PARTS for part, v in tree.args.items()):
            raise NoSplitError
        self._taken = {one.name.casefold() for one in tree.find_all(exp.Identifier)}
        items = self._items(tree)
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
        if not self._columns:
            raise NoSplitError
        self._column("count(*)", "count")
        columns = [*plain, *(f"{call} AS {name}" for call, name in self._columns.values())]
        self._require_known_numbers(tree, [_groups(item) or _is_constant(item) for _, item in items])
        helper = self._around(", ".join(columns))
        self._require_same(tree, helper, len(plain))
        return Split(helper, f"SELECT {', '.join(rest)} FROM {quoted(self.helper)}{where}")  # noqa: S608

    def _items(self, tree: exp.Select) -> list[tuple[str, exp.Expr]]:
        """The select list: texts and trees, each with a name of its own."""
        start, end = self.tokens.first(TokenType.SELECT), self.tokens.first(TokenType.FROM)
        if start is None or end is None:
            raise NoSplitError
        texts = list(self.tokens.parts(start + 1, end))
        names = [item.alias_or_name.casefold() for item in tree.expressions]
        named = all(
            isinstance(item, exp.Alias | exp.Column) and not item.is_star for item in tree.expressions
        )
        if len(texts) != len(names) or not named or len(set(names)) < len(names):
            raise NoSplitError
        return list(zip(texts, tree.expressions, strict=True))

    def _hidden_groups(self, tree: exp.Select, items: Sequence[tuple[str, exp.Expr]]) -> list[str]:
        """What is grouped by and not shown, as columns of the helper: its groups are told apart by these."""
        group, texts = tree.args.get("group"), self.tokens.groups()
        keys = [] if group is None else group.expressions
        if len(texts) != len(keys):
            raise NoSplitError
        named = {item.alias_or_name.casefold() for _, item in items}
        shown = {item.unalias().sql() for _, item in items}
        found = []
        for text, one in zip(texts, keys, strict=True):
            names = {column.name.casefold() for column in one.find_all(exp.Column)}
            if one.sql() not in shown and names and not names & named:
                found.append(f"{text} AS {self._unused('group')}")
        return found

    def _unused(self, word: str, number: int = 1) -> str:
        while f"{word}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{word}_{number}")
        return f"{word}_{number}"

    def _around(self, columns: str) -> str:
        """The text with another select list, without HAVING and ORDER BY."""
        tokens = self.tokens
        start, end = tokens.first(TokenType.SELECT), tokens.first(TokenType.FROM)
        assert start is not None
        assert end is not None
        kinds = (TokenType.HAVING, TokenType.ORDER_BY)
        behind = [i for kind in kinds if (i := tokens.first(kind, end)) is not None]
        until = tokens.all[min(behind)].start if behind else tokens.all[-1].end + 1
        return f"{self.text[: tokens.all[start].end + 1]} {columns} {self.text[tokens.all[end].start : until]}".rstrip()

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
        made = node.copy()
        for name, value in node.args.items():
            if isinstance(value, list):
                made.set(name, [self._changed(one) if isinstance(one, exp.Expr) else one for one in value])
            elif isinstance(value, exp.Expr):
                made.set(name, self._changed(value))
        return made

    def _aggregate(self, node: exp.Expr) -> str:
        """The helper's column for an aggregate; beside it those that it is followed by."""
        inside = node.this
        more = [value for part, value in node.args.items() if part not in ("this", "big_int") and value]
        if more or inside is None or inside.find(exp.Distinct, exp.Query, exp.Window) is not None:
            raise NoSplitError
        call = self.tokens.call(node)
        name = self._column(call, type(node).__name__.lower())
        argument = call[call.index("(") :]
        if isinstance(node, exp.Avg):
            self._column(f"sum{argument}", "sum")
        if isinstance(node, exp.Avg | exp.Sum):
            self._column(f"count{argument}", "count")
        return name

    def _column(self, call: str, function: str) -> str:
        key = parsed(call).sql()
        if key not in self._columns:
            self._columns[key] = call, self._unused(function, len(self._columns) + 1)
        return self._columns[key][1]

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

    def _require_same(self, tree: exp.Select, helper: str, plain: int) -> None:
        """Condition 2."""
        made = parsed(helper)
        kept = ("with_", "from_", "joins", "where", "group")
        same = isinstance(made, exp.Select) and all(made.args.get(p) == tree.args.get(p) for p in kept)
        calls = [one.unalias().sql() for one in made.expressions[plain:]]
        if not same or made.args.get("having") or calls != list(self._columns):
            raise NoSplitError


def _is_constant(item: exp.Expr) -> bool:
    """Whether an item is a value that is written out: a column of nulls alone has no type to be stored with."""
    return isinstance(item, exp.Alias) and isinstance(item.this, exp.Literal | exp.Null | exp.Boolean)


def _is_simple(literal: exp.Literal) -> bool:
    """Whether a literal is written alike everywhere."""
    return not literal.is_string or not set("\\'\"") & set(literal.this)


def _groups(item: exp.Expr) -> bool:
    return item.find(exp.AggFunc) is not None


def quoted(name: str) -> str:
    """A name as an identifier."""
    return sql_text(exp.to_identifier(name), pretty=False)
