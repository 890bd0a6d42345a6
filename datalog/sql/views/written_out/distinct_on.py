"""DISTINCT ON of PostgreSQL and DuckDB, written out as the first row of each partition.

    SELECT DISTINCT ON (a) a, b FROM r ORDER BY a, b DESC
    SELECT a, b FROM r QUALIFY row_number() OVER (PARTITION BY a ORDER BY b DESC) = 1

Both are the same where these conditions hold; else it is said what to write:

1. The order begins with all that stands in ON, and goes on: what follows says which row is taken.
2. What follows is never null, or says itself where nulls come: that differs between databases.
3. A name alone in ON and in the order, or a place, means a column of the select list; in an expression no name does.
4. Nothing is grouped, and there is neither LIMIT nor a window behind the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sqlglot
from msgspec import Struct
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from datalog.copies import replace
from datalog.model import Aggregate, AggregateFunction, Expression, is_some
from datalog.sql.views.kept.other_dialects import in_spark, is_distinct_on
from datalog.sql.views.outside import WRITTEN_AS, report_outside
from datalog.sql.views.query import QueryReader
from datalog.sql.views.scope import Draft, Variables
from datalog.sql.views.source import Problems, UnreadableError, offsets
from datalog.sql.views.split.written_parts import NoSplitError, Tokens
from datalog.sql.views.written_out.as_written import parsed

_PARTS = frozenset({"expressions", "distinct", "from_", "joins", "where", "order", "with_", "hint"})
_WORDS = [TokenType.DISTINCT, TokenType.ON, TokenType.L_PAREN]
_ANY_ROW = "without an ORDER BY that says which row is taken"
_NULLS = ("FIRST", "LAST")
"""What stands behind NULLS: two words."""


class _OtherwiseError(Exception):
    """Why DISTINCT ON is not written out, where, and what to do if that is known."""

    def __init__(self, why: str, node: exp.Expr, hint: str | None = None) -> None:
        super().__init__(why)
        self.node, self.hint = node, hint


class _By(Struct, frozen=True):
    """What is partitioned or ordered by.

    Attributes:
        text: how it is written, with its direction.
        node: as a tree; of an order with its direction, too.
        says: whether it says where nulls come.
    """

    text: str
    node: exp.Expr
    says: bool = False

    @property
    def value(self) -> exp.Expr:
        """The value itself."""
        return self.node.this if isinstance(self.node, exp.Ordered) else self.node

    @property
    def key(self) -> str:
        """What is the same of the same values: Spark ignores case in names."""
        value = self.value.copy()
        for name in value.find_all(exp.Identifier):
            name.set("this", name.name.casefold())
        return value.sql("spark", identify=True)


def with_row_numbers(tree: exp.Expr, text: str, reader: QueryReader) -> tuple[exp.Expr, str]:
    """A query, as a tree and as it is written, without DISTINCT ON; both as they are where it has none.

    Raises:
        UnreadableError: it is something else in Spark; what to write is among the reader's problems.
    """
    first = next(filter(is_distinct_on, tree.find_all(exp.Select)), None)
    if first is None:
        return tree, text
    try:
        return _changed(tree, text, reader)
    except _OtherwiseError as error:
        node, why, hint = error.node, f"DISTINCT ON {error}", error.hint
    except (NoSplitError, StopIteration, ValueError, sqlglot.errors.SqlglotError):
        node, why, hint = first, "DISTINCT ON", None
    raise reader.problems.outside(why, node.args["distinct"], hint or in_spark(node))


def _changed(tree: exp.Expr, text: str, reader: QueryReader) -> tuple[exp.Expr, str]:
    written, tokens = parsed(text), Tokens(text)
    if written != tree:
        raise NoSplitError
    tree = tree.copy()
    pairs = list(zip(tree.find_all(exp.Select), written.find_all(exp.Select), strict=True))
    changes = list[tuple[int, int, str]]()
    for node, its in pairs:
        if is_distinct_on(node):
            changes += _Written(node, its, tokens).changes(reader)
    for start, end, new in sorted(changes, reverse=True):
        text = f"{text[:start]}{new}{text[end:]}"
    if parsed(text) != tree:
        raise NoSplitError
    return tree, text


class _Written:
    """A SELECT with DISTINCT ON, and the places of its text."""

    def __init__(self, node: exp.Select, written: exp.Select, tokens: Tokens) -> None:
        self.node, self.tokens = node, tokens
        if any(value and part not in _PARTS for part, value in node.args.items()):
            raise _OtherwiseError("beside LIMIT, GROUP BY, WINDOW or the like", self.node)
        aggregates = (one for item in node.expressions for one in item.find_all(exp.AggFunc))
        if any(one.find_ancestor(exp.Window, exp.Query) is node for one in aggregates):
            raise _OtherwiseError("of aggregates", self.node)
        if node.args.get("order") is None:
            raise _OtherwiseError(_ANY_ROW, self.node)
        known = offsets(written.args["distinct"].args["on"])
        kinds = [one.token_type for one in tokens.all]
        before = (i for i in range(len(kinds) - 1, -1, -1) if known and tokens.all[i].start < known[0])
        self.start = next(i for i in before if kinds[i : i + 3] == _WORDS)
        self.depth, self.closing = tokens.depths[self.start], tokens.closing(self.start + 2)
        behind = range(self.closing, len(kinds))
        self.end = next((i for i in behind if tokens.depths[i] < self.depth), len(kinds))
        self.order = self._first(TokenType.ORDER_BY)
        self.items = list(self._parts(self.closing + 1, self._first(TokenType.FROM)))

    def changes(self, reader: QueryReader) -> Iterator[tuple[int, int, str]]:
        """Changes the tree; where its text is to be changed, and to what."""
        on, order = self._partition(), self._ordered()
        further = self._further(on, order)
        doubtful = [one for one in further if not one.says]
        if doubtful and not _are_never_null([one.value for one in doubtful], self.node, reader):
            why = "with nulls in its order, which come elsewhere in Spark,"
            hint = f"write `NULLS LAST` or `NULLS FIRST` behind `{doubtful[0].text}`, or declare it NOT NULL"
            raise _OtherwiseError(why, self.node, hint)
        number = exp.Window(
            this=exp.RowNumber(),
            partition_by=[one.node for one in on],
            order=exp.Order(expressions=[one.node for one in further]),
            over="OVER",
        )
        self.node.set("distinct", None)
        self.node.set("order", None)
        first = exp.Qualify(this=exp.EQ(this=number, expression=exp.Literal.number(1)))
        first.meta[WRITTEN_AS] = "DISTINCT ON"
        self.node.set("qualify", first)
        every = self.tokens.all
        yield every[self.start].start, every[self.closing + 1].start, ""
        partition, by = (", ".join(one.text for one in some) for some in (on, further))
        test = f"QUALIFY row_number() OVER (PARTITION BY {partition} ORDER BY {by}) = 1"
        yield every[self.order].start, every[self.end - 1].end + 1, test

    def _first(self, kind: TokenType) -> int:
        its = range(self.closing, self.end)
        return next(
            i for i in its if self.tokens.depths[i] == self.depth and self.tokens.all[i].token_type is kind
        )

    def _parts(self, since: int, until: int) -> Iterator[tuple[int, int]]:
        """The tokens between commas."""
        depth, start = self.tokens.depths[since], since
        for i in range(since, until + 1):
            is_comma = i < until and self.tokens.all[i].token_type is TokenType.COMMA
            if i == until or (is_comma and self.tokens.depths[i] == depth):
                yield start, i
                start = i + 1

    def _text(self, since: int, until: int) -> str:
        return self.tokens.text[self.tokens.all[since].start : self.tokens.all[until - 1].end + 1]

    def _partition(self) -> list[_By]:
        nodes = self.node.args["distinct"].args["on"].expressions
        places = self._parts(self.start + 3, self.closing)
        return [_By(*self._meant(node, *place)) for node, place in zip(nodes, places, strict=True)]

    def _ordered(self) -> list[_By]:
        found = []
        places = self._parts(self.order + 1, self.end)
        for node, (since, until) in zip(self.node.args["order"].expressions, places, strict=True):
            words = [one.text.upper() for one in self.tokens.all[since:until]]
            behind = until
            says = len(words) > len(_NULLS) and words[-2] == "NULLS" and words[-1] in _NULLS
            behind -= len(_NULLS) if says else 0
            behind -= words[behind - since - 1] in ("ASC", "DESC")
            text, value = self._meant(node.this, since, behind)
            direction = f" {self._text(behind, until)}" if behind < until else ""
            by = exp.Ordered(**{**node.args, "this": value})
            found.append(_By(f"{text}{direction}", by, says))
        return found

    def _further(self, on: Sequence[_By], order: Sequence[_By]) -> list[_By]:
        """The order behind what stands in ON."""
        partition = {one.key for one in on}
        first = next((i for i, one in enumerate(order) if one.key not in partition), len(order))
        if order and {one.key for one in order[:first]} != partition:
            raise _OtherwiseError("whose order does not begin with it", self.node)
        further = [one for one in order[first:] if one.key not in partition]
        if not further:
            raise _OtherwiseError(_ANY_ROW, self.node)
        return further

    def _meant(self, node: exp.Expr, since: int, until: int) -> tuple[str, exp.Expr]:
        """What is written at a place, as text and tree: a column of the select list as what that is."""
        items = self.node.expressions
        others = {one.alias.casefold() for one in items if _is_other(one)}
        text = self._text(since, until)
        if isinstance(node, exp.Literal) and node.is_int:
            place = int(node.name) - 1
            if self.node.is_star or not 0 <= place < len(items):
                raise _OtherwiseError("by a place that is no column's", self.node)
            text, node = self._item(place)
        elif isinstance(node, exp.Column) and not node.table:
            named = [i for i, one in enumerate(items) if one.alias_or_name.casefold() == node.name.casefold()]
            if named and (len(named) > 1 or (self.node.is_star and _is_other(items[named[0]]))):
                raise _OtherwiseError(f"by `{node.name}`, which may mean several columns", self.node)
            text, node = self._item(named[0]) if named else (text, node)
        if _is_computed(node):
            raise _OtherwiseError("by an aggregate, a window, a subquery or a constant", self.node)
        if any(not one.table and one.name.casefold() in others for one in node.find_all(exp.Column)):
            raise _OtherwiseError("by a name that may mean a column of the select list", self.node)
        return text, node.copy()

    def _item(self, place: int) -> tuple[str, exp.Expr]:
        """A column of the select list without its alias."""
        (since, until), item = self.items[place], self.node.expressions[place]
        if isinstance(item, exp.Alias):
            until -= 2 if self.tokens.all[until - 2].token_type is TokenType.ALIAS else 1
        return self._text(since, until), item.unalias()


def _is_other(item: exp.Expr) -> bool:
    """Whether a column of a select list is called as something else may be."""
    inside = item.unalias()
    is_same = isinstance(inside, exp.Column) and inside.name.casefold() == item.alias.casefold()
    return isinstance(item, exp.Alias) and not is_same


def _is_computed(node: exp.Expr) -> bool:
    """Whether a value is not one of each row."""
    return node.find(exp.Query, exp.Window, exp.AggFunc, exp.Star) is not None or not node.find(exp.Column)


def _are_never_null(values: Sequence[exp.Expr], select: exp.Select, reader: QueryReader) -> bool:
    """Whether values are null in no row of a SELECT, as far as is declared."""
    query = exp.Select(**{part: _copied(select.args.get(part)) for part in ("from_", "joins", "where")})
    query.set("expressions", [exp.alias_(one.copy(), f"by_{i}") for i, one in enumerate(values)])
    around = _expressions_around(select)
    names = [] if around is None else [one.alias.casefold() for one in around.expressions]
    if len(set(names)) < len(names):
        return False
    query.set("with_", around)
    problems = Problems(reader.problems.source)
    report_outside(query, problems)
    if problems.found:
        return False
    here = replace(reader, problems=problems, variables=Variables(), unfolds=True)
    try:
        drafts = here.query(query).drafts
    except UnreadableError:
        return False
    return not problems.found and all(_is_never_null(one, its, here) for its in drafts for one in its.outputs)


def _is_never_null(value: Expression, draft: Draft, reader: QueryReader) -> bool:
    if isinstance(value, Aggregate):
        return value.function is AggregateFunction.COUNT
    return is_some(value, lambda one: reader.is_never_null(one, draft))


def _expressions_around(select: exp.Expr) -> exp.With | None:
    """The common table expressions that a SELECT may read, those further out first."""
    node: exp.Expr | None = select
    inside, found, is_recursive = select, list[exp.Expr](), False
    while node is not None:
        with_ = node.args.get("with_")
        if with_ is not None:
            every = with_.expressions
            place = next((i for i, one in enumerate(every) if one is inside), len(every))
            found = [*(one.copy() for one in every[:place]), *found]
            is_recursive = is_recursive or bool(with_.args.get("recursive"))
        inside = inside if isinstance(node, exp.With) else node
        node = node.parent
    return exp.With(expressions=found, recursive=is_recursive) if found else None


def _copied(value: object) -> object:
    if isinstance(value, list):
        return [_copied(one) for one in value]
    return value.copy() if isinstance(value, exp.Expr) else value
