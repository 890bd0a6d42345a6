"""The clauses of a SELECT, what its FROM reads and its common table expressions, with the places of their texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from datalog.sql.views.as_written import parsed
from datalog.sql.views.splitting import NoSplitError, Tokens

_PARTS = frozenset(
    {"with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "order", "limit"}
)
_CLAUSES = (TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT)
_JOINING = (
    *(TokenType.NATURAL, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.INNER, TokenType.OUTER),
    *(TokenType.CROSS, TokenType.SEMI, TokenType.ANTI),
)


@dataclass(frozen=True, slots=True)
class Item:
    """What FROM reads, with the places of its text.

    Attributes:
        node: its tree.
        before: where the words begin that join it to what stands before.
        start, end: where it stands itself.
        last: where what belongs to it ends, its ON too.
        join: how it is joined; None of the first.
    """

    node: exp.Expr
    before: int
    start: int
    end: int
    last: int
    join: exp.Join | None

    @property
    def name(self) -> str:
        """The name by which its columns are found."""
        return self.node.alias_or_name.casefold()


@dataclass
class Written:
    """A SELECT and the places of its parts.

    Attributes:
        text: the query.
        tokens: its tokens.
        tree: what it was parsed to.
        select, start: the tokens SELECT and FROM.
        end: the token behind FROM's part.
        clauses: by kind, the token that begins a clause.
        items: what FROM reads.
        ctes: the texts of common table expressions, with their names.
    """

    text: str
    tokens: Tokens = field(init=False)
    tree: exp.Select = field(init=False)
    ctes: dict[str, str] = field(default_factory=dict)
    _leaves: dict[str, frozenset[str]] = field(default_factory=dict)
    _uses: dict[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tokens, tree = Tokens(self.text), parsed(self.text)
        if not isinstance(tree, exp.Select) or any(v and part not in _PARTS for part, v in tree.args.items()):
            raise NoSplitError
        self.tree = tree
        self._read_places()
        self._read_ctes()
        self.items = list(self._items_of_from())

    def _read_places(self) -> None:
        """Where the clauses stand, as numbers of tokens."""
        select = self.tokens.first(TokenType.SELECT)
        start = None if select is None else self.tokens.first(TokenType.FROM, select)
        if select is None or start is None:
            raise NoSplitError
        self.select, self.start = select, start
        found = {kind: self.tokens.first(kind, start) for kind in _CLAUSES}
        self.clauses = {kind: place for kind, place in found.items() if place is not None}
        self.end = min(self.clauses.values(), default=len(self.tokens.all))

    def at(self, token: int) -> int:
        """Where a token begins; the end of the text behind the last one."""
        return self.tokens.all[token].start if token < len(self.tokens.all) else len(self.text)

    def until(self, token: int) -> int:
        """Where the text before a token ends."""
        return self.tokens.all[token - 1].end + 1

    def next(self, kind: TokenType) -> int:
        """The token behind a clause."""
        behind = [place for place in self.clauses.values() if place > self.clauses[kind]]
        return min(behind, default=len(self.tokens.all))

    def _items_of_from(self) -> Iterator[Item]:
        all_, outer = self.tokens.all, range(self.start + 1, self.end)
        apart = (TokenType.COMMA, TokenType.JOIN)
        cuts = [self.start]
        cuts += [i for i in outer if not self.tokens.depths[i] and all_[i].token_type in apart]
        nodes = [(self.tree.args["from_"].this, None)]
        nodes += [(join.this, join) for join in self.tree.args.get("joins") or ()]
        if len(nodes) != len(cuts):
            raise NoSplitError
        words = []
        for i in cuts:
            first = i
            while all_[first - 1].token_type in _JOINING and all_[i].token_type is TokenType.JOIN:
                first -= 1
            words.append(first)
        for (node, join), cut, word, until in zip(nodes, cuts, words, [*words[1:], self.end], strict=True):
            ends = (TokenType.ON, TokenType.USING)
            inside = (
                i for i in range(cut, until) if not self.tokens.depths[i] and all_[i].token_type in ends
            )
            end = next(inside, until)
            yield Item(node, self.at(word), self.at(cut + 1), self.until(end), self.until(until), join)

    def _read_ctes(self) -> None:
        given = self.tree.args.get("with_")
        every = list(self.tree.find_all(exp.With))
        if given is None and every:
            raise NoSplitError
        if given is None:
            return
        if every != [given] or given.args.get("recursive"):
            raise NoSplitError
        texts = list(self.tokens.parts(1, self.select))
        if len(texts) != len(given.expressions):
            raise NoSplitError
        for text, one in zip(texts, given.expressions, strict=True):
            name = one.alias.casefold()
            if name in self.ctes:
                raise NoSplitError
            self._uses[name] = frozenset(t.name.casefold() for t in one.this.find_all(exp.Table)) & set(
                self.ctes
            )
            self._leaves[name] = self.reads(one.this)
            self.ctes[name] = text

    def reads(self, node: exp.Expr) -> frozenset[str]:
        """The relations and helpers that a part reads."""
        names = (one.name.casefold() for one in node.find_all(exp.Table))
        return frozenset(leaf for name in names for leaf in self._leaves.get(name, {name}))

    def with_before(self, parts: Sequence[exp.Expr]) -> str:
        """The common table expressions that some parts read, as a text to stand before them."""
        used = {one.name.casefold() for part in parts for one in part.find_all(exp.Table)}
        for name in reversed(self.ctes):
            if name in used:
                used |= self._uses[name]
        texts = [text for name, text in self.ctes.items() if name in used]
        return f"WITH {', '.join(texts)} " if texts else ""


def columns_outside(node: exp.Expr) -> Iterator[exp.Column]:
    """The columns of an expression, without those of queries in it."""
    for one in node.walk(prune=lambda part: isinstance(part, exp.Query | exp.Column)):
        if isinstance(one, exp.Column):
            yield one


def are_joined(
    items: Sequence[Item], known: Mapping[str, Sequence[str]], conditions: Sequence[exp.Expr]
) -> bool:
    """Whether equal columns join all of some tables, so that not all pairs of two tables' rows are rows.

    Args:
        items: the tables, in order.
        known: by table, its columns.
        conditions: what holds of all rows.
    """
    groups = [{one.name} for one in items]
    pairs = [{before.name, one.name} for before, one in pairwise(items) if one.join and _by_names(one.join)]
    tests = [one.join.args["on"] for one in items if one.join is not None and one.join.args.get("on")]
    for test in (*tests, *conditions):
        parts = test.flatten(unnest=True) if isinstance(test, exp.And) else [test.unnest()]
        sides = [{_table(c, known) for c in columns_outside(one)} for one in parts if isinstance(one, exp.EQ)]
        pairs += [side for side in sides if len(side) > 1]
    for pair in pairs:
        touched = [group for group in groups if group & pair]
        groups = [group for group in groups if not group & pair]
        groups.append(set[str]().union(*touched))
    return len([group for group in groups if group]) == 1


def _by_names(join: exp.Join) -> bool:
    return bool(join.args.get("using") or join.args.get("method"))


def _table(column: exp.Column, known: Mapping[str, Sequence[str]]) -> str:
    """The name of the table that a column is of."""
    name = column.name.casefold()
    if column.table:
        return column.table.casefold()
    return next((table for table, its in known.items() if name in map(str.casefold, its)), "")
