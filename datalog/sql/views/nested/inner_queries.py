"""The queries inside a query that mean the same alone: those that may be kept as views of their own.

    WITH t AS (SELECT b, sum(c) AS n FROM r GROUP BY b) SELECT max(n) AS m FROM t

Inside stands `SELECT b, sum(c) AS n FROM r GROUP BY b`; in its place may stand `SELECT b, n FROM helper`.

What is looked up in an expression is kept as a helper that follows changes without reading rows:

    customer IN (SELECT c FROM blocked WHERE day > '2026-01-01')

    SELECT c AS value_1, count(*) AS count_1 FROM blocked WHERE day > '2026-01-01' GROUP BY c
    customer IN (SELECT value_1 FROM helper)

Conditions of soundness:

1. A query in parentheses, or a side of UNION, EXCEPT or INTERSECT, that can be read alone has no column of a query
   around: a name means what it means inside before it means anything around.
2. It names no common table expression of what is around it, which may hide a table; or those of the whole query, which
   stand before it then.
3. Its columns have names, of their own, and are handed on by these in the same order; behind the first side of UNION,
   EXCEPT or INTERSECT names do not matter, and those that have none are given one.
4. It groups, removes duplicates, or looks at all its rows: else what is kept would be a copy.
5. ORDER BY and LIMIT behind the last side are those of all sides, and stay.
6. Whether a value is among others, or not, or unknown, depends on which others there are, null being one; not on how
   often each stands. So of a query behind IN the groups of its values say the same, and behind EXISTS the number of
   all rows does. A query that is a value has one row, or it is an error: it is kept as it is. There condition 4 does
   not matter, where it is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Literal as OneOf
from typing import TypeAlias

import sqlglot
from msgspec import Struct, field
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from datalog.sql.views.split.row_helpers import alias_behind, looks_at_all_rows
from datalog.sql.views.split.written_parts import NOT_SPLIT, Clauses, NoSplitError, Split, Tokens, quoted
from datalog.sql.views.written_out.as_written import looked_at

Asked: TypeAlias = OneOf["in", "exists", "value"]
_SIDES = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
_ENDING = (TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.SORT_BY)
_NOTHING = "SELECT 1 AS nothing"
_ASKED: Mapping[TokenType, Asked] = {
    TokenType.IN: "in",
    TokenType.EXISTS: "exists",
    **dict.fromkeys((TokenType.EQ, TokenType.NEQ, TokenType.GT, TokenType.GTE, TokenType.LT), "value"),
    **dict.fromkeys(
        (TokenType.LTE, TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH), "value"
    ),
}
"""What is asked of a query in an expression, by what stands before it."""
_FAILED = (sqlglot.errors.SqlglotError, RecursionError)


class Helpers(Struct, frozen=True):
    """A query over helpers.

    Attributes:
        queries: by name, the query of each helper.
        rest: the query over them.
        placed: by helper, the queries that stand in place of queries inside.
        in_place: whether the view is read as the query over them.
    """

    queries: Mapping[str, str]
    rest: str
    placed: Mapping[str, Collection[str]] = field(default_factory=dict)
    in_place: bool = True


def replaced(
    text: str,
    keep: Callable[[str], Split | None],
    name: Callable[[int], str],
    look_up: Callable[[str, Asked], Split | None] | None = None,
) -> Helpers:
    """A query over helpers, in place of queries inside it; without any if it is not understood.

    `keep` gives what is kept of an inner query, None to look further inside; `look_up` the same of one in an expression
    that does not group.
    """
    try:
        return _Replacing(text, keep, name, look_up).done()
    except _FAILED:
        return Helpers({}, text)


class _Replacing(Struct, dict=True):
    text: str
    keep: Callable[[str], Split | None]
    name: Callable[[int], str]
    look_up: Callable[[str, Asked], Split | None] | None
    helpers: dict[str, str] = field(default_factory=dict)
    placed: dict[str, set[str]] = field(default_factory=dict)

    def done(self) -> Helpers:
        """First what stands behind the common table expressions, then what is left of these."""
        self._read()
        if self.main:
            at = next(i for i, one in enumerate(self.tokens.all) if one.start == self.main)
            self._inside(at, len(self.tokens.all))
            self._replace()
            self._drop_unused()
        self._inside(0, len(self.tokens.all))
        self._replace()
        if self.main:
            self._drop_unused()
        return Helpers(self.helpers, self.text, self.placed)

    def _read(self) -> None:
        self.tokens = Tokens(self.text)
        self.ctes = _ctes(looked_at(self.text))
        select = self.tokens.first(TokenType.SELECT)
        has_ctes = self.tokens.all[0].token_type is TokenType.WITH and select is not None
        self.main = self.tokens.all[select].start if has_ctes and select is not None else 0
        self.changes: list[tuple[int, int, str]] = []
        self.bodies: list[tuple[int, int]] | None = None

    def _replace(self) -> None:
        for start, end, new in sorted(self.changes, reverse=True):
            self.text = f"{self.text[:start]}{new}{self.text[end:]}"
        self._read()

    def _drop_unused(self) -> None:
        """Leaves nothing in the common table expressions that nobody reads any more."""
        while True:
            tree = looked_at(self.text)
            read = {one.name.casefold() for one in tree.find_all(exp.Table)}
            bodies = self._bodies()
            names = [one.alias.casefold() for one in tree.args["with_"].expressions]
            if len(names) != len(bodies):
                return
            empty = {name: body for name, body in zip(names, bodies, strict=True) if name not in read}
            self.changes = [
                (*body, _NOTHING) for body in empty.values() if self.text[slice(*body)] != _NOTHING
            ]
            if not self.changes:
                return
            self._replace()

    def _before(self, start: int) -> int:
        """Where the common table expressions end that may be read at some place; 0 if there are none."""
        if start >= self.main:
            return self.main
        body = next((one for one, (s, e) in enumerate(self._bodies()) if s <= start < e), 0)
        return self._bodies()[body - 1][1] + 1 if body else 0

    def _bodies(self) -> list[tuple[int, int]]:
        """Where the queries of the common table expressions of the whole query stand."""
        if self.bodies is None:
            self.bodies = self._found_bodies()
        return self.bodies

    def _found_bodies(self) -> list[tuple[int, int]]:
        tokens, found = self.tokens, list[tuple[int, int]]()
        for i, one in enumerate(tokens.all):
            opens = one.token_type is TokenType.L_PAREN and tokens.all[i - 1].token_type is TokenType.ALIAS
            if one.start < self.main and tokens.depths[i] == 0 and opens:
                found.append((one.end + 1, tokens.all[tokens.closing(i)].start))
        return found

    def _inside(self, since: int, until: int) -> None:
        """Looks at the sides of a query between two tokens, then at those in parentheses."""
        sides = list(self._sides(since, until))
        for number, (start, end) in enumerate(sides if len(sides) > 1 else ()):
            if not self._is_kept(start, end, is_named=number == 0):
                self._parentheses(start, end)
        if len(sides) < 2:  # noqa: PLR2004 - one query
            self._parentheses(since, until)
        else:
            self._parentheses(since, sides[0][0])

    def _parentheses(self, since: int, until: int) -> None:
        i = since
        while i < until:
            if self.tokens.all[i].token_type is not TokenType.L_PAREN:
                i += 1
                continue
            closing = self.tokens.closing(i)
            starts = self.tokens.all[i + 1].token_type in (TokenType.SELECT, TokenType.WITH)
            if not (starts and self._is_kept(i + 1, closing)):
                self._inside(i + 1, closing) if starts else self._parentheses(i + 1, closing)
            i = closing + 1

    def _sides(self, since: int, until: int) -> Iterator[tuple[int, int]]:
        """The sides of UNION, EXCEPT and INTERSECT, as places of tokens."""
        tokens, depth = self.tokens, self.tokens.depths[since]
        outer = [i for i in range(since, until) if tokens.depths[i] == depth]
        kinds = {i: tokens.all[i].token_type for i in outer}
        start = next((i for i in outer if kinds[i] is TokenType.SELECT), None)
        for i in outer:
            if start is not None and i > start and kinds[i] in (*_SIDES, *_ENDING):
                yield start, i
                if kinds[i] in _ENDING:
                    return
                words = (TokenType.ALL, TokenType.DISTINCT)
                start = i + 2 if tokens.all[i + 1].token_type in words else i + 1
        if start is not None:
            yield start, until

    def _is_kept(self, since: int, until: int, *, is_named: bool = True) -> bool:
        """Whether a query between two tokens is kept as a helper; whether the names of its columns matter."""
        start, end = self.tokens.all[since].start, self.tokens.all[until - 1].end + 1
        text = self.text[start:end] if is_named else _named(self.text[start:end])
        found = _closed(text, self.ctes)
        before = self._before(start)
        if found is None and before:
            found = _closed(f"{self.text[:before]} {text}", self.ctes)
        kept = self._looked_up(since, until) if found is None else self.keep(found)
        if kept is None:
            return False
        same = next((name for name, query in self.helpers.items() if query == kept.helper), None)
        name = same or self.name(len(self.helpers) + 1)
        self.helpers[name] = kept.helper
        self.placed.setdefault(name, set()).add(kept.over(name))
        self.changes.append((start, end, kept.over(name)))
        return True

    def _looked_up(self, since: int, until: int) -> Split | None:
        """What is kept of a query of an expression (condition 6)."""
        before = self.tokens.all[since - 2].token_type if since > 1 else None
        text = self.text[self.tokens.all[since].start : self.tokens.all[until - 1].end + 1]
        asked = _ASKED.get(before) if before is not None else None
        if self.look_up is None or asked is None:
            return None
        tree = looked_at(text)
        tables = {one.name.casefold() for one in tree.find_all(exp.Table)}
        if not isinstance(tree, exp.Select) or not tables or tree.args.get("with_"):
            return None
        if tables & self.ctes.keys():  # condition 2
            text = f"{self.text[: self._before(self.tokens.all[since].start)]} {text}"
        return self.look_up(text, asked)


def whole(text: str) -> Split:
    """All of a query as a helper."""
    tree = looked_at(text)
    columns = ", ".join(map(quoted, _names(tree)))
    return Split(text, f"SELECT {columns} FROM ")  # noqa: S608


def _names(tree: exp.Expr) -> list[str]:
    """The names of a query's columns; empty where there is none, `*` for those of a table."""
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    return [one.alias_or_name if isinstance(one, exp.Alias | exp.Column) else "" for one in tree.expressions]


def _named(text: str) -> str:
    """A query with names for the items of its select list that have none."""
    tree, tokens = looked_at(text), Tokens(text)
    select = tokens.first(TokenType.SELECT)
    end = None if select is None else tokens.first(TokenType.FROM, select)
    if not isinstance(tree, exp.Select) or select is None or end is None or tree.args.get("with_"):
        return text
    places = list(tokens.parts(select + 1, end))
    if len(places) != len(tree.expressions):
        return text
    for number, (place, name) in reversed([*enumerate(zip(places, _names(tree), strict=True), 1)]):
        if not name:
            text = f"{text[: place.stop]} AS value_{number}{text[place.stop :]}"
    return text


def _groups(tree: exp.Expr) -> bool:
    """Condition 4."""
    if isinstance(tree, exp.SetOperation):
        return bool(tree.args.get("distinct")) or (_groups(tree.this) and _groups(tree.expression))
    if isinstance(tree, exp.Subquery):
        return _groups(tree.this)
    parts = ("group", "having", "distinct")
    return any(tree.args.get(part) for part in parts) or any(
        one.find(exp.AggFunc) for one in tree.expressions
    )


def _ctes(tree: exp.Expr) -> Counter[str]:
    return Counter(one.alias.casefold() for one in tree.find_all(exp.CTE))


def _closed(text: str, around: Counter[str]) -> str | None:
    """An inner query as one that can stand alone (conditions 2 and 3); None if it is none."""
    tree = looked_at(text)
    if not isinstance(tree, exp.Select | exp.SetOperation):
        return None
    tables = {one.name.casefold() for one in tree.find_all(exp.Table)}
    if tables & (around - _ctes(tree)).keys():
        return None
    if not (_groups(tree) or looks_at_all_rows(tree)):
        return None
    names = [name.casefold() for name in _names(tree)]
    if len(names) == 1 and not names[0] and isinstance(tree, exp.Select) and tree.args.get("from_"):
        tokens = Tokens(text)
        end = tokens.first(TokenType.FROM)
        assert end is not None
        place = tokens.all[end - 1].end + 1
        return _closed(f"{text[:place]} AS value_1{text[place:]}", around)
    return text if all(names) and "*" not in names and len(set(names)) == len(names) else None


_LOOKED_UP = frozenset({"with_", "expressions", "from_", "joins", "where"})


def split_look_up(text: str, asked: Asked) -> Split | None:
    """A query of an expression as a helper and a query over it; None if it is another than of rows one by one.

    >>> print(split_look_up("SELECT c FROM blocked", "in").helper)
    SELECT c AS value_1, count(*) AS count_1 FROM blocked GROUP BY c
    """
    try:
        return _split_look_up(text, asked)
    except NOT_SPLIT:
        return None


def _split_look_up(text: str, asked: Asked) -> Split:
    its = Clauses(text, _LOOKED_UP)
    if its.tree.find(exp.AggFunc, exp.Window) is not None:
        raise NoSplitError
    number = exp.Count(this=exp.Star(), big_int=True)
    if asked == "exists":
        made, found = its.selecting(["count(*) AS count_1"], without=())
        columns, rest = [number], ("SELECT 1 AS one FROM ", " WHERE count_1 > 0")
    else:
        (item,) = its.tree.expressions if len(its.tree.expressions) == 1 else (None,)
        value, *others = (text[place] for place in its.tokens.parts(its.select + 1, its.start))
        if item is None or others or item.is_star or item.find(exp.Column) is None:
            raise NoSplitError
        if isinstance(item, exp.Alias):
            value = value[: -len(alias_behind(value))].rstrip()
        columns, rest = [item.unalias()], ("SELECT value_1 FROM ", "")
        more, behind = [], ""
        if asked == "in":
            more, behind = ["count(*) AS count_1"], f" GROUP BY {value}"
            columns.append(number)
        made, found = its.selecting([f"{value} AS value_1", *more], without=(), behind=behind)
    if [one.unalias() for one in found.expressions] != columns:
        raise NoSplitError
    return Split(made, *rest)
