"""Queries as trees in which what sqlglot reads loosely is as it is written.

    date_trunc('MM', at)             its unit is taken for a name: that of a column looks alike
    date_format(at, 'yyyy-MM')       its pattern is translated into another language
    percentile(a, 0.5, n)            its third argument is lost: then no percentile is taken for one of two

Such calls become calls by name with the arguments that stand there. SQL of other dialects gets Spark's quotes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from datalog.sql.dialect import SPARK

_LOOSELY = (exp.TimestampTrunc, exp.DateTrunc, exp.TimeToStr, exp.Quantile)
_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET)


def parsed(text: str) -> exp.Expr:
    """The tree of a query of Spark SQL.

    >>> parsed("select date_trunc('MM', a)").sql("spark")
    "SELECT DATE_TRUNC('MM', a)"
    """
    tree = sqlglot.parse_one(text, read=SPARK)
    return as_written(tree, text, None)


@lru_cache(256)
def looked_at(text: str) -> exp.Expr:
    """The same, one tree for all who ask, and leave it as it is."""
    return parsed(text)


def as_written(tree: exp.Expr, text: str, tokens: Sequence[Token] | None) -> exp.Expr:
    """A tree with such calls as they are written."""
    found = list(tree.find_all(*_LOOSELY))
    if not found:
        return tree
    every = sqlglot.tokenize(text, read=SPARK) if tokens is None else tokens
    places = {token.start: number for number, token in enumerate(every)}
    counts_rows = _counts_rows(every)

    for node in found:
        place = places.get(node.meta.get("start", -1))
        if isinstance(node, exp.Quantile):
            if not counts_rows or isinstance(node, exp.ApproxQuantile):
                continue
            made = exp.Anonymous(this="percentile", expressions=[node.this, node.args["quantile"]])
        elif place is None:
            continue
        else:
            made = exp.Anonymous(
                this=every[place].text.lower(), expressions=_given(node, every[place + 2 :], text)
            )
        made.meta.update(node.meta)
        node.replace(made)
        tree = made if node is tree else tree
    return tree


def _counts_rows(tokens: Sequence[Token]) -> bool:
    """Whether some percentile has a third argument: of which call it was is not known any more."""
    calls = (i for i, one in enumerate(tokens[:-1]) if one.text.lower() == "percentile")
    return any(tokens[i + 1].token_type in _OPEN and len(_arguments(tokens[i + 2 :])) > 2 for i in calls)  # noqa: PLR2004


def _given(node: exp.Expr, tokens: Sequence[Token], text: str) -> list[exp.Expr]:
    """The arguments of a call with two, of the tokens behind its parenthesis."""
    first, second = _arguments(tokens)
    kept = node.this.this if isinstance(node.this, exp.TimeStrToTime) else node.this
    return [_tree(first, text), kept] if isinstance(node, exp.TimestampTrunc) else [kept, _tree(second, text)]


def without_comments(text: str) -> str:
    r"""A query, or a piece of one, without comments and with one space between its tokens.

    >>> without_comments("f(a)  -- b\n + 'c  d'")
    "f ( a ) + 'c  d'"
    """
    return " ".join(text[one.start : one.end + 1] for one in sqlglot.tokenize(text, read=SPARK))


def _arguments(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    found = arguments(tokens)
    assert found is not None, "a call that was parsed is closed"
    return found


def arguments(tokens: Sequence[Token]) -> list[Sequence[Token]] | None:
    """The tokens of each argument of a call, of those behind its parenthesis; None if it is not closed."""
    depth, since = 0, 0
    found: list[Sequence[Token]] = []
    for number, token in enumerate(tokens):
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth < 0:
            return [*found, tokens[since:number]]
        if token.token_type is TokenType.COMMA and not depth:
            found.append(tokens[since:number])
            since = number + 1
    return None


def _tree(tokens: Sequence[Token], text: str) -> exp.Expr:
    if len(tokens) == 1 and tokens[0].token_type is TokenType.STRING:
        return exp.Literal.string(tokens[0].text)
    return sqlglot.parse_one(text[tokens[0].start : tokens[-1].end + 1], read=SPARK)


def in_backticks(sql: str, dialect: str) -> str:
    r"""SQL with its names in backticks: in Spark double quotes hold a text. As it is in a dialect that is not known.

    >>> in_backticks("select \"a b\", '\"c\"' from \"t\"", "duckdb")
    'select `a b`, \'"c"\' from `t`'
    """
    if dialect not in {one.value for one in sqlglot.Dialects}:
        return sql
    try:
        tokens = sqlglot.tokenize(sql, read=dialect)
    except sqlglot.errors.SqlglotError:
        return sql
    parts, end = list[str](), 0
    for token in tokens:
        if token.token_type is TokenType.IDENTIFIER and sql[token.start] == '"':
            parts += [sql[end : token.start], "`", token.text.replace("`", "``"), "`"]
            end = token.end + 1
    return "".join((*parts, sql[end:]))


def with_parts(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A node with its parts changed, one by one; the node itself is left as it is."""

    def changed(value: object) -> object:
        if isinstance(value, list):
            return [changed(one) for one in value]
        return change(value) if isinstance(value, exp.Expr) else value

    made = type(node)(**{name: changed(value) for name, value in node.args.items()})
    made.comments = node.comments
    made.meta.update(node.meta)
    return made


_LONGEST_START = 16
"""So many words a CREATE has up to the end of its name, at most."""


def defined_name(chunk: list[Token]) -> Iterator[str]:
    """The name that a CREATE VIEW or CREATE TABLE defines, in lower case, without database."""
    words = [token.text.casefold() for token in chunk[:_LONGEST_START]]
    kind = next((i for i, word in enumerate(words) if word in ("view", "table")), None)
    if kind is None or words[0] != "create":
        return
    name = kind + (4 if words[kind + 1 : kind + 4] == ["if", "not", "exists"] else 1)
    while words[name + 1 : name + 2] == ["."]:
        name += 2
    yield from words[name : name + 1]
