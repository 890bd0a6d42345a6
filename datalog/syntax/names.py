"""Reading names: bare or quoted."""

from __future__ import annotations

from lark import Token

from datalog.diagnostics import Code
from datalog.model.spans import Span
from datalog.syntax.places import Places
from datalog.syntax.quoting import RESERVED, EscapeError, unquote


def read_name(token: Token, places: Places) -> str:
    """The name of a relation or column, bare or in backticks."""
    if token.startswith("`"):
        return read_quoted(token, places)
    if token.lower() in RESERVED:
        places.report(
            Code.RESERVED_WORD,
            f"reserved word `{token}` used as a name",
            places.span(token),
            "a word of the language",
            hint="put the name in backticks",
        )
    return str(token)


def read_quoted(token: Token, places: Places, start: int = 0) -> str:
    """The text in the quotes that begin at `start` in the token; a bad escape is reported."""
    try:
        return unquote(token[start:])
    except EscapeError as error:
        report_escape(token, start + error.offset, error.escape, places)
        return str(token)


def report_escape(token: Token, offset: int, escape: str, places: Places) -> None:
    """Report a backslash at a 0-based offset in a token that starts no escape."""
    span = Span(token.line or 1, (token.column or 1) + offset, len(escape), places.source)
    places.report(
        Code.BAD_ESCAPE,
        f"unknown escape `{escape}`",
        span,
        "a backslash starts an escape",
        note=r"escapes: `\n`, `\t`, `\r`, `\0`, `\xHH`, `\uHHHH`, `\UHHHHHHHH`, and a quote after `\`",
        hint=r"write `\\` for a backslash",
    )
