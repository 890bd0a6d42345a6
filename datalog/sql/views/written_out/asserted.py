"""What dbt writes for Spark around dates that it counts between: an assertion that cannot fail.

    coalesce(date(a), nvl2(date(a), assert_true(date(a) is not null), null))     is `date(a)`

`nvl2` evaluates its second argument only where the first one is not null, so that it is null at any rate, and the
whole is its first value. Source: dbt-spark, the macro `assert_not_null`, which `datediff` calls.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot.tokenizer_core import Token

from datalog.sql.dialect import SPARK
from datalog.sql.views.written_out.as_written import arguments

_ASSERTS = "assert_true"


def without_assertions(sql: str) -> str:
    """The SQL with the values alone.

    >>> without_assertions("select coalesce(date(a), nvl2(date(a), assert_true(date(a) is not null), null)) from t")
    'select (date(a)) from t'
    >>> without_assertions("select coalesce(a, nvl2(b, assert_true(b is not null), null)) from t")
    'select coalesce(a, nvl2(b, assert_true(b is not null), null)) from t'
    """
    if _ASSERTS not in sql.casefold():
        return sql
    try:
        tokens = sqlglot.tokenize(sql, read=SPARK)
    except sqlglot.errors.TokenError:  # said where it is read
        return sql
    for at, token in reversed(list(enumerate(tokens[:-1]))):  # what stands within others first
        if token.text.casefold() != "coalesce" or tokens[at + 1].text != "(":
            continue
        found = _value(tokens[at + 2 :])
        if found is not None:
            value, end = found
            text = sql[value[0].start : value[-1].end + 1]
            return without_assertions(f"{sql[: token.start]}({text}){sql[end.end + 1 :]}")
    return sql


def _value(tokens: Sequence[Token]) -> tuple[Sequence[Token], Token] | None:
    """The value of such a call, of the tokens behind its parenthesis, and its last token."""
    given = arguments(tokens)
    if given is None or len(given) != 2 or not given[0]:  # noqa: PLR2004 - the value, and what asserts
        return None
    value, asserting = given
    words = [token.text for token in value]
    before, between, behind = (
        ["nvl2", "("],
        [",", _ASSERTS, "("],
        ["is", "not", "null", ")", ",", "null", ")"],
    )
    if [token.text for token in asserting] != [*before, *words, *between, *words, *behind]:
        return None
    return value, tokens[len(value) + 1 + len(asserting)]
