"""Variances and standard deviations of exact numbers, from exact counts and sums.

    var_samp(x)    CASE WHEN n > 1 THEN CAST(n * q - s * s AS DOUBLE) / CAST(n * (n - 1) AS DOUBLE) END
    var_pop(x)     CASE WHEN n > 0 THEN CAST(n * q - s * s AS DOUBLE) / CAST(n * n AS DOUBLE) END

Here n counts the values, s is their sum and q the sum of their squares: all whole numbers, for of decimals the digits
are taken, and the quotient is divided by 1e4 where they have two places. A standard deviation is the root of that.

Spark goes from row to row with rounded means, so its last digits depend on the order of rows. This depends on nothing
but the values, and is rounded five times at most, so it differs from the true value by less than 1e-15 of it. What does
not fit in 38 digits on the way is an error.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from datalog.model import MAX_PRECISION, ColumnType, TypeName
from datalog.sql.text import text as sql_text
from datalog.sql.views.split.written_parts import NOT_SPLIT, NoSplitError, Tokens
from datalog.sql.views.written_out.as_written import parsed

_OF_SAMPLES = (exp.Stddev, exp.StddevSamp, exp.Variance)
_ROOTS = (exp.Stddev, exp.StddevSamp, exp.StddevPop)
MOMENTS = (exp.Stddev, exp.StddevSamp, exp.StddevPop, exp.Variance, exp.VariancePop)
"""The aggregates of which this tells the value."""
_DIGITS = {TypeName.TINYINT: 3, TypeName.SMALLINT: 5, TypeName.INT: 10, TypeName.BIGINT: 19}


def is_moment(node: exp.Expr) -> bool:
    """Whether something is one of these aggregates; `std` has no kind of its own."""
    named = isinstance(node, exp.Anonymous) and node.name.lower() == "std" and len(node.expressions) == 1
    return named or isinstance(node, MOMENTS)


def moment(node: exp.Expr, kind: ColumnType) -> exp.Expr | None:
    """What an aggregate is, from counts and sums; None where the sums are not exact."""
    value = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
    if isinstance(value, exp.Distinct):
        return None
    if kind.name in _DIGITS:
        digits, places = _DIGITS[kind.name], 0
    elif kind.name is TypeName.DECIMAL and not kind.is_open:
        digits, places = kind.decimal_size
    else:
        return None
    if digits + places + 2 > MAX_PRECISION:
        return None
    return parsed(_formula(node, sql_text(exp.paren(value), pretty=False), digits, places))


def _formula(node: exp.Expr, value: str, digits: int, places: int) -> str:
    whole = f"CAST({value}{f' * {10**places}' if places else ''} AS DECIMAL({digits}, 0))"
    number, total, squares = f"count({value})", f"sum({whole})", f"sum({whole} * {whole})"
    samples = isinstance(node, (*_OF_SAMPLES, exp.Anonymous))
    pairs = f"{number} * ({number} - 1)" if samples else f"{number} * {number}"
    quotient = f"CAST({number} * {squares} - {total} * {total} AS DOUBLE) / CAST({pairs} AS DOUBLE)"
    if places:
        quotient = f"{quotient} / 1e{2 * places}"
    if isinstance(node, (*_ROOTS, exp.Anonymous)):
        quotient = f"sqrt({quotient})"
    return f"CASE WHEN {number} > {int(samples)} THEN {quotient} END"


def moments_written_out(text: str, kind: Callable[[str], ColumnType | None]) -> str:
    """A query in which these aggregates are written out; the text itself where there are none, or not all can be."""
    try:
        tokens, tree = Tokens(text), parsed(text)
        found = []
        for node in tree.find_all(*MOMENTS, exp.Anonymous):
            if not is_moment(node) or isinstance(node.parent, exp.Window | exp.Filter):
                continue
            call = tokens.call(node)
            its = kind(call[call.index("(") :])
            made = None if its is None else moment(node, its)
            if made is None:
                return text
            start = node.meta["start"]
            found.append((start, start + len(call), sql_text(made, pretty=False)))
    except NOT_SPLIT:
        return text
    for start, end, new in sorted(found, reverse=True):
        text = f"{text[:start]}({new}){text[end:]}"
    return text


def around(text: str, value: str) -> str:
    """The query of a value over the rows that a query groups.

    >>> around("WITH t AS (SELECT 1 AS a) SELECT max(a) AS m FROM t WHERE a > 0 GROUP BY a", "(a)")
    'WITH t AS (SELECT 1 AS a) SELECT (a) AS value_1 FROM t WHERE a > 0'

    Raises:
        NoSplitError: it has no SELECT and FROM.
    """
    tokens = Tokens(text)
    select, start = tokens.first(TokenType.SELECT), tokens.first(TokenType.FROM)
    if select is None or start is None:
        raise NoSplitError
    kinds = (TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT)
    behind = [place for kind in kinds if (place := tokens.first(kind, start)) is not None]
    until = tokens.all[min(behind)].start if behind else len(text)
    before = text[: tokens.all[select].end + 1]
    return f"{before} {value} AS value_1 {text[tokens.all[start].start : until]}".rstrip()


def columns_of_moments(text: str) -> frozenset[int]:
    """0-based positions of the columns of a query that have such aggregates in them, as they are written.

    >>> sorted(columns_of_moments("SELECT a, stddev(b) AS s, round(var_pop(b), 2) AS v FROM r GROUP BY a"))
    [1, 2]
    """
    try:
        tree = parsed(text)
    except NOT_SPLIT:
        return frozenset()
    return frozenset(
        place
        for select in tree.find_all(exp.Select)
        for place, item in enumerate(select.expressions)
        if any(map(is_moment, item.walk())) and _is_shown(select, tree)
    )


def _is_shown(select: exp.Select, tree: exp.Expr) -> bool:
    """Whether a SELECT's columns are those of the whole query: it is the query, or a side of a union."""
    node: exp.Expr | None = select
    while node is not tree and isinstance(node, exp.Query):
        node = node.parent
    return node is tree
