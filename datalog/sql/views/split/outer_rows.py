"""A query around values that all rows together make, as two: a helper with the rows outside, and the query over these.

    SELECT id, price - h1.mean AS more FROM product CROSS JOIN (SELECT mean FROM h1) AS h1 WHERE price > 5 AND ...

    SELECT id AS value_1, price AS value_2 FROM product WHERE price > 5
    SELECT value_1 AS id, value_2 - h1.mean AS more FROM helper CROSS JOIN (SELECT mean FROM h1) AS h1 WHERE ...

The values inside are kept by helpers already (`inner_queries`). A change of them may change any row, so the query is
computed anew from what is stored, and no base row is read.

Conditions of soundness:

1. The helper's FROM is the part of the query's own FROM that reads no helper: what is joined before all others, or one
   table. Its columns stand in place of these tables' columns; a name that may be another one's is no such column.
2. The helper's WHERE has those of the query's conditions that are about its columns alone, and only where every join
   keeps its rows as they are.
3. Queries in expressions are those that were put in place of queries that can be read alone: they have no column of
   a query around.

The current date or time is such a value, too: the helper has rows of every date, and on another day the query is
computed from what is stored.

    SELECT id, price * 2 AS twice FROM sale WHERE day > DATE /* current_date */ '2026-11-24' AND price > 5

    SELECT id AS value_1, price AS value_2, day AS value_3 FROM sale WHERE price > 5
    SELECT value_1 AS id, value_2 * 2 AS twice FROM helper WHERE value_3 > DATE /* current_date */ '2026-11-24'
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from datalog.sql.views.split.written_parts import (
    NOT_SPLIT,
    NoSplitError,
    Replacing,
    Split,
    Written,
    are_joined,
    columns_outside,
    place_of,
    quoted,
)
from datalog.sql.views.written_out.as_written import looked_at, parsed
from datalog.sql.views.written_out.current_time import written_moments

_STARTS = (TokenType.SELECT, TokenType.WITH)

Columns = Callable[[str], Sequence[str] | None]
"""The names of the columns of a query over base relations, if it can be read."""


def split_outer(text: str, kept: Mapping[str, Collection[str]], columns: Columns) -> Split | None:
    """A query over helpers and base relations as one more helper and a query over helpers alone; None of another.

    `kept` has by helper the texts that stand in place of queries.

    >>> query = "SELECT a FROM r WHERE b > (SELECT m FROM h1) AND c = 1"
    >>> found = split_outer(query, {"h1": ["SELECT m FROM h1"]}, lambda _: ("a", "b", "c"))
    >>> print(found.helper)
    SELECT a AS value_1, b AS value_2 FROM r WHERE c = 1
    >>> print(found.over("h2"))
    SELECT value_1 AS `a` FROM `h2` WHERE value_2 > (SELECT m FROM h1)
    """
    try:
        return _Splitting(text, kept, columns).split()
    except NOT_SPLIT:
        return None


class _Splitting:
    def __init__(self, text: str, kept: Mapping[str, Collection[str]], columns: Columns) -> None:
        self.text, self.kept, self.columns = text, kept, columns
        self.its = Written(text)
        self.tree = self.its.tree
        self.new = Replacing(text, self.tree)

    def split(self) -> Split:
        tree = self.tree
        self._read_run()
        self._require_closed()
        self._read_columns()
        stars = self._stars()
        for item in tree.expressions:
            self._item(item, stars)
        conditions = list(self._conditions())
        for tree_, is_own, _ in conditions:
            if not is_own:
                self._over(tree_)
        for part in ("group", "having", "order"):
            if tree.args.get(part) is not None:
                self._clause(part, tree.args[part])
        for one in self.its.sources:
            if one.join is not None and not (self.is_first and one in self.run):
                self._joined(one.join)
        if not are_joined(self.run, self.known, [tree_ for tree_, is_own, _ in conditions if is_own]):
            raise NoSplitError  # a helper with all pairs of two tables' rows
        own = [self.text[slice(*place)] for _, is_own, place in conditions if is_own]
        return Split(self._below(own), *self._above([place for _, is_own, place in conditions if not is_own]))

    # ------------------------------------------------------------------------------------------------ FROM

    def _read_run(self) -> None:
        """What of FROM is the helper's (condition 1)."""
        helpers = {name.casefold() for name in self.kept}
        sources = self.its.sources
        own = [one for one in sources if (read := self.its.reads(one.node)) and not read & helpers]
        if any(self.its.reads(one.node) - helpers for one in sources if one not in own):
            raise NoSplitError
        first = next((i for i, one in enumerate(sources) if one not in own), len(sources))
        self.run = sources[:first] or own
        if len(self.run) != len(own) or not self.run or (not first and len(self.run) > 1):
            raise NoSplitError
        self.is_first = bool(first)
        if any(not isinstance(one.node, exp.Table | exp.Subquery) for one in self.its.sources):
            raise NoSplitError
        names = [one.name for one in self.its.sources]
        if "" in names or len(set(names)) < len(names):
            raise NoSplitError
        behind = [one.join for one in self.its.sources if one not in self.run and one.join is not None]
        if any(join.args.get("using") or join.args.get("method") for join in behind):
            raise NoSplitError
        joins = [one.join for one in self.run if one.join is not None] if self.is_first else []
        if any(join.find(exp.Query) is not join.this.find(exp.Query) for join in joins):
            raise NoSplitError
        if not self.is_first and (self.run[0].join is None or self.run[0].join.args.get("method")):
            raise NoSplitError
        every = [one.join for one in self.its.sources if one.join is not None]
        inner = all(not join.side and join.kind in ("", "INNER", "CROSS") for join in every)
        kept = all(
            join.side in ("", "LEFT") and join.kind in ("", "INNER", "CROSS", "OUTER") for join in behind
        )
        self.takes_conditions = kept if self.is_first else inner

    def _require_closed(self) -> None:
        """Condition 3."""
        all_ = self.its.tokens.all
        texts = {text for its in self.kept.values() for text in its}
        outside = [*range(self.its.select, self.its.start), *range(self.its.end, len(all_))]
        for one in self.its.sources:
            if not (self.is_first and one in self.run):
                outside += [
                    i for i in range(self.its.start, self.its.end) if one.end <= all_[i].start < one.last
                ]
        queries = [
            (i, self.its.tokens.closing(i))
            for i in outside
            if all_[i].token_type is TokenType.L_PAREN and all_[i + 1].token_type in _STARTS
        ]
        whole = [(i, j) for i, j in queries if not any(a < i and j < b for a, b in queries)]
        if any(self.text[self.its.at(i + 1) : self.its.until(j)] not in texts for i, j in whole):
            raise NoSplitError

    def _read_columns(self) -> None:
        """The columns of what is the helper's, by the names of the tables."""
        self.known: dict[str, Sequence[str]] = {}
        for one in self.run:
            found = self.columns(
                f"{self.its.with_before([one.node])}SELECT * FROM {self.text[one.start : one.end]}"  # noqa: S608
            )
            if not found:
                raise NoSplitError
            self.known[one.name] = found

    # --------------------------------------------------------------------------------------------- columns

    def _stars(self) -> Iterator[tuple[int, int]]:
        """The places of `*` and `t.*` in the select list."""
        its, tokens = self.its, self.its.tokens.all
        before = (TokenType.SELECT, TokenType.DISTINCT, TokenType.COMMA)
        for i in range(its.select + 1, its.start):
            if its.tokens.depths[i] or tokens[i].token_type is not TokenType.STAR:
                continue
            first = i - 2 if tokens[i - 1].token_type is TokenType.DOT else i
            if tokens[first - 1].token_type in before and tokens[i + 1].token_type in (
                TokenType.COMMA,
                TokenType.FROM,
            ):
                yield its.at(first), its.until(i + 1)

    def _item(self, item: exp.Expr, stars: Iterator[tuple[int, int]]) -> None:
        if isinstance(item, exp.Alias):
            self._over(item.this)
        elif item.is_star and isinstance(item, exp.Star | exp.Column):
            start, end = next(stars, (0, 0))
            self.new.changes.append((start, end, ", ".join(self._every(item))))
        elif not isinstance(item, exp.Column):
            raise NoSplitError
        elif self._over(item):
            _, end = place_of(item)
            self.new.changes.append((end, end, f" AS {quoted(item.name)}"))

    def _every(self, star: exp.Expr) -> Iterator[str]:
        """What `*` stands for."""
        joins = [one.join for one in self.its.sources if one.join is not None]
        if any(star.args.get(part) for part in ("except_", "replace", "rename")):
            raise NoSplitError
        if isinstance(star, exp.Star) and any(
            join.args.get("using") or join.args.get("method") or join.kind in ("SEMI", "ANTI")
            for join in joins
        ):
            raise NoSplitError
        for one in self.its.sources:
            if isinstance(star, exp.Column) and one.name != star.table.casefold():
                continue
            name = quoted(one.node.alias_or_name)
            for column in self.known.get(one.name, ()):
                text = f"{name}.{quoted(column)}"
                yield f"{self.new.value(_key(exp.column(column, table=one.name)), text)} AS {quoted(column)}"
            if one.name not in self.known:
                yield f"{name}.*"

    def _clause(self, part: str, clause: exp.Expr) -> None:
        """The columns of a clause; of an order, a name of the select list is its column."""
        named = {one.alias_or_name.casefold(): one.unalias() for one in self.tree.expressions}
        for node in clause.find_all(exp.Column):
            its = None if node.table else named.get(node.name.casefold())
            if part == "having" and its is not None and its != node:
                raise NoSplitError
        if part != "order":
            self._over(clause)
            return
        for one in clause.expressions:
            inside = one.this
            if isinstance(inside, exp.Column) and not inside.table and inside.name.casefold() in named:
                continue
            same = next((name for name, its in named.items() if its == inside), None)
            if isinstance(inside, exp.Column) and same is not None:
                self.new.changes.append((*place_of(inside), quoted(same)))
            elif any(not c.table and c.name.casefold() in named for c in inside.find_all(exp.Column)):
                raise NoSplitError
            else:
                self._over(inside)

    def _joined(self, join: exp.Expr) -> None:
        on = join.args.get("on")
        if on is not None:
            self._over(on)

    def _over(self, node: exp.Expr) -> bool:
        """Puts the helper's columns in place of its tables'; whether there are some."""
        found = False
        for one in columns_outside(node):
            if not self._is_own(one):
                continue
            self.new.put(*place_of(one), _key(one))
            found = True
        return found

    def _is_own(self, column: exp.Column) -> bool:
        if column.is_star or column.args.get("db"):
            raise NoSplitError
        if column.table:
            its = self.known.get(column.table.casefold())
            if its is not None and column.name.casefold() not in map(str.casefold, its):
                raise NoSplitError
            return its is not None
        return any(column.name.casefold() in map(str.casefold, its) for its in self.known.values())

    # ----------------------------------------------------------------------------------------- the two queries

    def _conditions(self) -> Iterator[tuple[exp.Expr, bool, tuple[int, int]]]:
        """The conditions of WHERE, whether each is the helper's (condition 2), and where it stands."""
        where = self.tree.args.get("where")
        if where is None:
            return
        start, end = self.its.clauses[TokenType.WHERE], self.its.next(TokenType.WHERE)
        places = list(self._conjuncts(start + 1, end))
        trees = list(where.this.flatten(unnest=False)) if isinstance(where.this, exp.And) else [where.this]
        written = [parsed(f"SELECT {self.text[slice(*place)]}").expressions[0] for place in places]
        if trees != written:
            yield where.this, False, (self.its.at(start + 1), self.its.until(end))
            return
        for place, tree in zip(places, trees, strict=True):
            own = tree.find(exp.Query) is None and all(map(self._is_own, columns_outside(tree)))
            yield tree, own and self.takes_conditions, place

    def _conjuncts(self, since: int, until: int) -> Iterator[tuple[int, int]]:
        """The places of the texts between AND, but for that of BETWEEN, outside CASE."""
        start, between, cases = since, 0, 0
        for i in range(since, until):
            kind = self.its.tokens.all[i].token_type
            cases += (kind is TokenType.CASE) - (kind is TokenType.END)
            if self.its.tokens.depths[i] or cases:
                continue
            between += kind is TokenType.BETWEEN
            if kind is TokenType.AND and between:
                between -= 1
            elif kind is TokenType.AND:
                yield self.its.at(start), self.its.until(i)
                start = i + 1
        yield self.its.at(start), self.its.until(until)

    def _below(self, conditions: Sequence[str]) -> str:
        """The helper's query, over the same part of FROM."""
        columns = ", ".join(self.new.columns)
        if not columns:
            raise NoSplitError
        source = self._run_text()
        query = f"{self.its.with_before([one.node for one in self.run])}SELECT {columns} FROM {source}"  # noqa: S608
        query += f" WHERE {' AND '.join(conditions)}" if conditions else ""
        made = parsed(query)
        nodes = [made.args["from_"].this, *(join.this for join in made.args.get("joins") or ())]
        if nodes != [one.node for one in self.run] or len(made.expressions) != len(self.new.values):
            raise NoSplitError
        return query

    def _run_text(self) -> str:
        first, last = self.run[0], self.run[-1]
        return self.text[first.start : last.last if self.is_first else last.end]

    def _above(self, conditions: Sequence[tuple[int, int]]) -> tuple[str, str]:
        """The query over helpers, before and behind the name of the new one."""
        first, last = self.run[0], self.run[-1]
        behind = last.last if self.is_first else last.end
        outside = [one.node for one in self.its.sources if one not in self.run]
        outside += [part for name, part in self.tree.args.items() if name == "where" and part is not None]
        around = self.its.with_before([*outside, *self.tree.expressions])
        changed = self.new.changed
        left = " AND ".join(changed(*place) for place in conditions)
        rest = self.its.end if TokenType.WHERE not in self.its.clauses else self.its.next(TokenType.WHERE)
        parts = [changed(behind, self.its.until(self.its.end)), f" WHERE {left}" if left else ""]
        parts.append(f" {changed(self.its.at(rest), len(self.text))}")
        return around + changed(self.its.at(self.its.select), first.start), "".join(parts).rstrip()


def tables_in(text: str) -> frozenset[str]:
    """The names of what a query reads, in lower case.

    >>> sorted(tables_in("WITH t AS (SELECT a FROM R) SELECT * FROM t"))
    ['r', 't']
    """
    return frozenset(one.name.casefold() for one in looked_at(text).find_all(exp.Table))


def tables_if_parsed(text: str) -> frozenset[str] | None:
    """The same; None of what cannot be parsed."""
    try:
        return tables_in(text)
    except (SqlglotError, RecursionError):
        return None


def _key(column: exp.Column) -> str:
    """A column as Spark finds it."""
    return ".".join(part.name.casefold() for part in column.parts)


_CLOCK = "current_moment"
_DATE, _TIME = (f"SELECT {one} FROM {_CLOCK}" for one in ("this_date", "this_time"))  # noqa: S608


def split_dated(text: str, columns: Columns) -> Split | None:
    """A query as a helper that reads no date, and the query over it; None where it reads none, or is no such query."""
    found = written_moments(text)
    if not found or _CLOCK in text:
        return None
    literals = {its: text[start:end] for start, end, its in found}
    for start, end, is_date in reversed(found):
        text = f"{text[:start]}({_DATE if is_date else _TIME}){text[end:]}"
    made = split_outer(text, {_CLOCK: (_DATE, _TIME)}, columns)
    if made is None or _CLOCK in made.helper:
        return None
    above, behind = made.above, made.behind
    for is_date, literal in literals.items():
        query = f"({_DATE if is_date else _TIME})"
        above, behind = above.replace(query, literal), behind.replace(query, literal)
    return Split(made.helper, above, behind)
