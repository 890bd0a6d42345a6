"""The current date and time in a query, as literals: what it says at one moment.

    SELECT id FROM sale WHERE day >= current_date - 30
    SELECT id FROM sale WHERE day >= DATE /* current_date */ '2026-11-24' - 30

Times are those of UTC, as the literals' are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import sqlglot
from msgspec import Struct
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from datalog.sql.dialect import SPARK

_BY_TOKEN = {TokenType.CURRENT_DATE: True, TokenType.CURRENT_TIMESTAMP: False}
_BY_NAME = {"curdate": True, "now": False}
"""What reads the date alone, and what the time as well."""
_DATE, _TIME = "current_date", "current_timestamp"
"""The comments that tell such literals."""
_WRITTEN = re.compile(
    rf"(DATE /\* (?P<date>{_DATE}) \*/ '[\d-]+'|TIMESTAMP /\* {_TIME} \*/ '[\d:. -]+')( /\* ({_DATE}|{_TIME}) \*/)?"
)


class AtMoment(Struct, frozen=True):
    """A text at one moment.

    Attributes:
        text: the text, with literals.
        reads_date: whether it reads the current date.
        reads_time: whether it reads the current time.
    """

    text: str
    reads_date: bool = False
    reads_time: bool = False


def at_moment(text: str, moment: datetime) -> AtMoment:
    """A text of SQL with the date and time of a moment where it reads the current ones.

    A text in which a column is called so is left as it is.

    >>> at_moment("SELECT a FROM r WHERE d = current_date()", datetime(2026, 11, 24, tzinfo=UTC)).text
    "SELECT a FROM r WHERE d = DATE /* current_date */ '2026-11-24' /* current_date */"
    """
    try:
        tokens = sqlglot.tokenize(text, read=SPARK)
    except sqlglot.errors.SqlglotError:
        return AtMoment(text)
    text = _without_such_comments(text, tokens)
    here = moment.astimezone(UTC)
    # Who cuts a text between tokens keeps the comment inside, and who parses it that behind.
    date = f"DATE /* {_DATE} */ '{here:%Y-%m-%d}' /* {_DATE} */"
    time = f"TIMESTAMP /* {_TIME} */ '{here:%Y-%m-%d %H:%M:%S.%f}' /* {_TIME} */"
    found = list(_found(tokens))
    if any(its is None for _, _, its in found):
        return AtMoment(text)
    for start, end, is_date in reversed(found):
        text = f"{text[:start]}{date if is_date else time}{text[end:]}"
    kinds = {is_date for _, _, is_date in found}
    return AtMoment(text, True in kinds, False in kinds)


def written_moments(text: str) -> list[tuple[int, int, bool]]:
    """Where literals stand in a text that are the current date (true) or time (false), with their comments."""
    tokens = sqlglot.tokenize(text, read=SPARK)
    found = [_WRITTEN.match(text, token.start) for token in tokens]
    return [(one.start(), one.end(), one["date"] is not None) for one in found if one is not None]


def without_moments(tree: exp.Expr) -> exp.Expr:
    """A tree that is the same at every moment: calls of the functions in place of such literals."""

    def call(node: exp.Expr) -> exp.Expr:
        comments = {one.strip() for one in getattr(node.this, "comments", None) or ()}
        found = next((name for name in (_DATE, _TIME) if name in comments), None)
        is_literal = isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal)
        return exp.Var(this=f"{found}()") if is_literal and found else node

    return tree.transform(call)


def _without_such_comments(text: str, tokens: list[Token]) -> str:
    """A text of the same length in which no comment of its own tells a literal."""
    gaps = zip(
        [0, *(one.end + 1 for one in tokens)], [*(one.start for one in tokens), len(text)], strict=True
    )
    for start, end in gaps:
        gap = text[start:end]
        if _DATE in gap or _TIME in gap:
            text = f"{text[:start]}{gap.replace('_', ' ')}{text[end:]}"
    return text


def _found(tokens: list[Token]) -> Iterator[tuple[int, int, bool | None]]:
    """Where the current date (true) or time (false) is read, and names that are called so (None)."""
    for i, token in enumerate(tokens):
        if token.token_type is TokenType.IDENTIFIER and token.text.lower() in (_DATE, _TIME):
            yield 0, 0, None  # a column of this name is found before the function
        kind = _BY_TOKEN.get(token.token_type)
        before = tokens[i - 1].token_type if i else None
        behind = [one.token_type for one in tokens[i + 1 : i + 3]]
        is_call = behind == [TokenType.L_PAREN, TokenType.R_PAREN]
        if (word := _word(tokens[i : i + 2])) is not None:
            yield token.start, tokens[i + 1].end + 1, word
        if kind is None and token.token_type is TokenType.VAR and is_call:
            kind = _BY_NAME.get(token.text.lower())
        if kind is None or before in (TokenType.DOT, TokenType.DEFAULT):
            continue
        if before is TokenType.ALIAS or (behind and behind[0] in _TYPES and before in _BEFORE_COLUMNS):
            yield 0, 0, None
        yield token.start, tokens[i + 2].end + 1 if is_call else token.end + 1, kind


def _word(tokens: list[Token]) -> bool | None:
    """Whether a literal is the current date (true), by its word, or the current time (false); None of another one."""
    kinds, word = [one.token_type for one in tokens], tokens[-1].text.strip().lower()
    if kinds == [TokenType.DATE, TokenType.STRING] and word in ("today", "now"):
        return True
    return False if kinds == [TokenType.TIMESTAMPTZ, TokenType.STRING] and word == "now" else None


_TYPES = (TokenType.DATE, TokenType.TIMESTAMP, TokenType.TIMESTAMPLTZ, TokenType.TIMESTAMPNTZ, TokenType.TEXT)
_BEFORE_COLUMNS = (TokenType.L_PAREN, TokenType.COMMA)
