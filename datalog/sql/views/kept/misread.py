r"""Literals and types that Spark reads otherwise than other databases do, and that nobody writes on purpose.

"name"          a text and no column, unless the session says otherwise
'\d+'           the text `d+`: Spark takes single backslashes away
x :: numeric    a decimal(10, 0), which has no digits behind the point
'YYYY-MM-DD'    no pattern of a time, and in 'yyyy-mm-dd' minutes stand in the middle
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from datalog.diagnostics import Code, Diagnostic, Severity
from datalog.sql.dialect import SPARK
from datalog.sql.views.source import SqlText

_CLASS = re.compile(r"(?<!\\)(?:\\\\)*\\([dDwWsS])")
"""A class of characters of a pattern, behind one backslash."""

_PATTERN = re.compile("YYYY|yyyy.?mm|HH24|hh24")
"""What patterns of times have in other databases alone: `mm` are minutes."""

_SIZED = frozenset({"dec", "decimal", "numeric"})

_QUOTED = "`{0}` in double quotes is a text, and not the column"
_TAKEN_AWAY = "`\\{0}` in a text is the letter `{0}`: a single backslash goes"
_WITHOUT_PLACES = "`{0}` without a size is decimal(10, 0): digits behind the point are lost"
_OTHER_PATTERN = "the pattern '{0}' is read otherwise by Spark"
_HINTS = {
    _OTHER_PATTERN: "the letters are those of 'yyyy-MM-dd HH:mm:ss'",
    _QUOTED: "backticks quote names",
    _TAKEN_AWAY: "write two backslashes, or a raw text: `r'\\d'`",
    _WITHOUT_PLACES: "say the size: `decimal(18, 2)`",
}


def misread(source: SqlText, columns: Collection[str]) -> Iterator[Diagnostic]:
    """Warnings (DL408) of a text; `columns` are those of all tables, in lower case."""
    for what, name, start, end in _suspicious(source.text):
        if what is not _QUOTED or name.casefold() in columns:
            message, span = what.format(name), source.span(start, end)
            hint = _HINTS[what]
            yield Diagnostic(Code.SQL_MISREAD, message, span, hint=hint, severity=Severity.WARNING)


@lru_cache(maxsize=10_000)
def _suspicious(text: str) -> tuple[tuple[str, str, int, int], ...]:
    """What is written so: what it is, its name, and where it stands. Texts are read again and again."""
    if not re.search(r"""["\\]|numeric|decimal|yyyy|hh24""", text, re.IGNORECASE):
        return ()
    try:
        tokens = SPARK.tokenize(text)
    except TokenError:
        return ()
    found = list[tuple[str, str, int, int]]()
    chunk = list[Token]()
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            chunk.append(token)
            continue
        found += _in_query(text, chunk)
        chunk = []
    return (*found, *_in_query(text, chunk))


def _in_query(text: str, tokens: Sequence[Token]) -> Iterator[tuple[str, str, int, int]]:
    """The same of one statement; none of one without a query, as a table's declaration."""
    kinds = [token.token_type for token in tokens]
    if TokenType.SELECT not in kinds:
        return
    for token, before, behind in zip(tokens, [None, *kinds], [*kinds[1:], None], strict=False):
        start, end = token.start, token.end + 1
        if token.token_type is TokenType.STRING:
            if text[start] == '"' and before not in (TokenType.ALIAS, TokenType.DOT):
                yield _QUOTED, token.text, start, end
            elif its := _CLASS.search(text[start:end]):
                yield _TAKEN_AWAY, its[1], start, end
            elif _PATTERN.search(token.text):
                yield _OTHER_PATTERN, token.text, start, end
        is_in_cast = before is TokenType.ALIAS and behind is TokenType.R_PAREN
        is_cast = is_in_cast or (before is TokenType.DCOLON and behind is not TokenType.L_PAREN)
        if is_cast and token.text.lower() in _SIZED:
            yield _WITHOUT_PLACES, token.text.lower(), start, end
