"""How names and strings are quoted: what needs quoting, quoting it, and reading it back.

In every kind of quotes a quote is doubled or has a backslash before it, and a backslash starts an escape.
What cannot be printed is written as an escape, so quoted text never spans lines.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from datalog.diagnostics import Code
from datalog.model.spans import Span

if TYPE_CHECKING:
    from lark import Token

    from datalog.syntax.places import Places

RESERVED = frozenset({"not", "is", "null", "true", "false"})
"""Words of the language that no bare name may be, in any case: `NULL` would be a variable."""

_PLAIN_NAME = re.compile(r"[^\W\d_A-Z]\w*")
_PLAIN_VARIABLE = re.compile(r"[A-Z_]\w*")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", "'": "'", '"': '"', "`": "`"}
_WRITTEN = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\0": r"\0", "\\": r"\\"}
_MOST_IN_FOUR_DIGITS = 0xFFFF
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)


class EscapeError(ValueError):
    """A backslash that starts no escape.

    Attributes:
        offset: where the backslash stands in the quoted text, 0-based.
        escape: the backslash and the character after it.
    """

    def __init__(self, offset: int, escape: str) -> None:
        self.offset = offset
        self.escape = escape
        super().__init__(f"`{escape}` is no escape")


def is_plain_name(name: str) -> bool:
    """Whether a relation's or column's name needs no backticks.

    >>> is_plain_name("o_orderkey"), is_plain_name("Orders"), is_plain_name("not"), is_plain_name("a b")
    (True, False, False, False)
    """
    return _PLAIN_NAME.fullmatch(name) is not None and name.lower() not in RESERVED


def is_plain_variable(name: str) -> bool:
    """Whether a variable's name needs no quoting.

    >>> is_plain_variable("X"), is_plain_variable("_1"), is_plain_variable("_"), is_plain_variable("NULL")
    (True, True, False, False)
    """
    return _PLAIN_VARIABLE.fullmatch(name) is not None and name != "_" and name.lower() not in RESERVED


def quote(text: str, mark: str) -> str:
    r"""The text in quotes.

    >>> print(quote("it's\n", "'"), quote("a`b", "`"))
    'it''s\n' `a``b`
    """
    return mark + "".join(char * 2 if char == mark else _written(char) for char in text) + mark


def unquote(quoted: str) -> str:
    r"""The text that some quotes hold; the quotes are the first and last characters.

    Raises:
        EscapeError: at a backslash that starts no escape.

    >>> unquote(r"'it''s \u00e9'")
    "it's é"
    """
    mark = quoted[0]
    if "\\" not in quoted:
        return quoted[1:-1].replace(mark * 2, mark)
    parts: list[str] = []
    position, end = 1, len(quoted) - 1
    while position < end:
        char = quoted[position]
        if char == mark:
            parts.append(mark)
            position += 2
        elif char == "\\":
            text, width = _escaped(quoted, position)
            parts.append(text)
            position += width
        else:
            parts.append(char)
            position += 1
    return "".join(parts)


def _escaped(quoted: str, position: int) -> tuple[str, int]:
    """What the escape at a backslash stands for, and its width."""
    found = _ESCAPE.match(quoted, position)
    if found is None:  # pragma: no cover - the lexer never ends quoted text with a backslash
        raise EscapeError(position, "\\")
    digits = found[1] or found[2] or found[3]
    if digits is None and found[4] in _ESCAPES:
        return _ESCAPES[found[4]], found.end() - position
    if digits is None or int(digits, 16) > sys.maxunicode:
        raise EscapeError(position, found[0])
    return chr(int(digits, 16)), found.end() - position


def _written(char: str) -> str:
    """A character inside quotes that are not its own."""
    if char in _WRITTEN:
        return _WRITTEN[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\u{code:04x}" if code <= _MOST_IN_FOUR_DIGITS else f"\\U{code:08x}"


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
