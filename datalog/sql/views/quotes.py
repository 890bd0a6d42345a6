"""SQL of other dialects with its names in the quotes of Spark's."""

from __future__ import annotations

import sqlglot
from sqlglot.tokenizer_core import TokenType


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
