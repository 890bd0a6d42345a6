"""A query in two, a helper and the query over it, and the parts of its text that both are made of."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

import sqlglot
from msgspec import Struct
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from datalog.errors import EmissionError
from datalog.graphs import components
from datalog.sql.dialect import SPARK
from datalog.sql.text import text as sql_text
from datalog.sql.views.written_out.as_written import parsed

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_CLAUSES = (TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT)
_PARTS = frozenset(
    {"with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "order", "limit"}
)
_JOINING = (
    *(TokenType.NATURAL, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.INNER, TokenType.OUTER),
    *(TokenType.CROSS, TokenType.SEMI, TokenType.ANTI),
)


class Split(Struct, frozen=True):
    """A query in two.

    Attributes:
        helper: the query of the helper.
        above, behind: the query over the helper, before and behind the helper's name.
    """

    helper: str
    above: str
    behind: str = ""

    def over(self, name: str) -> str:
        """The query over the helper of a name."""
        return f"{self.above}{quoted(name)}{self.behind}"


class NoSplitError(Exception):
    """A query is not split."""


NOT_SPLIT = (NoSplitError, EmissionError, sqlglot.errors.SqlglotError, RecursionError)


def quoted(name: str) -> str:
    """A name as an identifier."""
    return sql_text(exp.to_identifier(name), pretty=False)


class Tokens:
    """A text's tokens, and how deep each stands in parentheses."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.all = list(sqlglot.tokenize(text, read=SPARK))
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

    def parts(self, since: int, until: int) -> Iterator[slice]:
        """Where the texts between commas stand."""
        start = since
        for i in range(since, until + 1):
            if i == until or (self.depths[i] == 0 and self.all[i].token_type is TokenType.COMMA):
                if i == start:
                    raise NoSplitError
                yield slice(self.all[start].start, self.all[i - 1].end + 1)
                start = i + 1

    def call(self, node: exp.Expr) -> str:
        """The text of a call in the text that is written as a name and arguments in parentheses."""
        start = node.meta.get("start")
        place = next((i for i, one in enumerate(self.all) if one.start == start), None)
        if place is None or place + 1 >= len(self.all) or self.all[place + 1].token_type is not _OPENING[0]:
            raise NoSplitError
        return self.text[self.all[place].start : self.all[self.closing(place + 1)].end + 1]


class Clauses:
    """The clauses of a SELECT, with the places of their texts.

    Attributes:
        tree: what it was parsed to.
        select, start: the tokens SELECT and FROM.
        end: the token behind FROM's part.
        clauses: by kind, the token that begins a clause.
        above: the text up to SELECT.
    """

    def __init__(self, text: str, parts: Collection[str]) -> None:
        """Reads a query; one with other parts than those named is not split."""
        self.text, self.tokens, tree = text, Tokens(text), parsed(text)
        if not isinstance(tree, exp.Select) or any(v and part not in parts for part, v in tree.args.items()):
            raise NoSplitError
        self.tree = tree
        select = self.tokens.first(TokenType.SELECT)
        start = None if select is None else self.tokens.first(TokenType.FROM, select)
        if select is None or start is None:
            raise NoSplitError
        self.select, self.start = select, start
        found = {kind: self.tokens.first(kind, start) for kind in _CLAUSES}
        self.clauses = {kind: place for kind, place in found.items() if place is not None}
        self.end = min(self.clauses.values(), default=len(self.tokens.all))
        self.above = text[: self.until(select + 1)]

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

    def before(self, kinds: Collection[TokenType]) -> int:
        """The first token of some clauses; the end if there are none."""
        places = (place for kind, place in self.clauses.items() if kind in kinds)
        return min(places, default=len(self.tokens.all))

    def groups(self) -> list[str]:
        """The texts of what the query is grouped by."""
        if TokenType.GROUP_BY not in self.clauses:
            return []
        places = self.tokens.parts(self.clauses[TokenType.GROUP_BY] + 1, self.next(TokenType.GROUP_BY))
        return [self.text[place] for place in places]

    def items(self) -> list[tuple[slice, exp.Expr]]:
        """The select list: places and trees, each with a name of its own."""
        places = list(self.tokens.parts(self.select + 1, self.start))
        items = self.tree.expressions
        names = {item.alias_or_name.casefold() for item in items}
        named = all(isinstance(item, exp.Alias | exp.Column) and not item.is_star for item in items)
        if len(places) != len(items) or not named or len(names) < len(items):
            raise NoSplitError
        return list(zip(places, items, strict=True))

    def selecting(
        self, columns: Sequence[str], without: Collection[TokenType], behind: str = ""
    ) -> tuple[str, exp.Expr]:
        """The query with another select list, as text and tree.

        Clauses are left out from the first of `without` on; `behind` stands there.

        Raises:
            NoSplitError: what is before these clauses would be read as something else.
        """
        if not columns:
            raise NoSplitError
        source = self.text[self.at(self.start) : self.until(self.before(without))]
        query = f"{self.above} {', '.join(columns)} {source}{behind}"
        made = parsed(query)
        kept = ("with_", "from_", "joins", "where")
        if not isinstance(made, exp.Select) or any(made.args.get(p) != self.tree.args.get(p) for p in kept):
            raise NoSplitError
        return query, made


class Replacing:
    """A query's text, in which columns of a helper come in place of what they are.

    Attributes:
        values: the helper's columns, by what each is read as: its name, and the text of what it is.
        changes: the places of the text where something else is to stand.
    """

    def __init__(self, text: str, tree: exp.Expr) -> None:
        self.text = text
        self.values: dict[str, tuple[str, str]] = {}
        self.changes: list[tuple[int, int, str]] = []
        self._taken = {one.name.casefold() for one in tree.find_all(exp.Identifier)}

    @property
    def columns(self) -> list[str]:
        """The select list of the helper."""
        return [f"{text} AS {name}" for name, text in self.values.values()]

    def unused(self, word: str, number: int) -> str:
        """A name of a word and a number, that or a higher one, which nothing has yet."""
        while f"{word}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{word}_{number}")
        return f"{word}_{number}"

    def value(self, key: str, text: str, word: str = "value") -> str:
        """The name of the helper's column that is something."""
        if key not in self.values:
            self.values[key] = self.unused(word, len(self.values) + 1), text
        return self.values[key][0]

    def put(self, start: int, end: int, key: str) -> None:
        """Puts the helper's column in place of a part of the text that is read as something."""
        self.changes.append((start, end, self.value(key, self.text[start:end])))

    def changed(self, start: int, end: int) -> str:
        """A part of the text with the helper's columns in place of what they are."""
        text, at = "", start
        for since, until, new in sorted(self.changes):
            if start <= since and until <= end:
                text, at = f"{text}{self.text[at:since]}{new}", until
        return f"{text}{self.text[at:end]}"


def place_of(column: exp.Column) -> tuple[int, int]:
    """Where a column stands in the text."""
    parts: Sequence[exp.Expr] = column.parts
    if any("start" not in part.meta for part in parts):
        raise NoSplitError
    return parts[0].meta["start"], parts[-1].meta["end"] + 1


class Item(Struct, frozen=True):
    """What FROM reads, with the places of its text.

    Attributes:
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


class Written(Clauses):
    """A SELECT, what its FROM reads and its common table expressions, with the places of their texts.

    Attributes:
        ctes: the texts of common table expressions, with their names.
    """

    def __init__(self, text: str) -> None:
        """Reads a query."""
        super().__init__(text, _PARTS)
        self.ctes: dict[str, str] = {}
        self._leaves: dict[str, frozenset[str]] = {}
        self._uses: dict[str, frozenset[str]] = {}
        self._read_ctes()
        self.sources = list(self._items_of_from())

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
        texts = [self.text[place] for place in self.tokens.parts(1, self.select)]
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
    """Whether equal columns join all of some tables, so that not all pairs of two tables' rows are rows."""
    names = {one.name for one in items}
    pairs = [{before.name, one.name} for before, one in pairwise(items) if one.join and _by_names(one.join)]
    tests = [one.join.args["on"] for one in items if one.join is not None and one.join.args.get("on")]
    for test in (*tests, *conditions):
        parts = test.flatten(unnest=True) if isinstance(test, exp.And) else [test.unnest()]
        sides = [{_table(c, known) for c in columns_outside(one)} for one in parts if isinstance(one, exp.EQ)]
        pairs += [side for side in sides if len(side) > 1]
    return len(components(names, (edge for pair in pairs for edge in pairwise(pair & names)))) == 1


def _by_names(join: exp.Join) -> bool:
    return bool(join.args.get("using") or join.args.get("method"))


def _table(column: exp.Column, known: Mapping[str, Sequence[str]]) -> str:
    """The name of the table that a column is of."""
    name = column.name.casefold()
    if column.table:
        return column.table.casefold()
    return next((table for table, its in known.items() if name in map(str.casefold, its)), "")
