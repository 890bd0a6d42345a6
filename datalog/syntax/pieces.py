"""A text cut into pieces without the grammar: for explaining errors, and for reading on behind them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from enum import Enum, unique

from msgspec import Struct

from datalog.syntax.quoting import RESERVED

_HINTS = {
    "==": "equality is written `=`",
    "=<": "write `<=`",
    "=>": "write `>=`",
    ";": "there is no `or`: write one rule for each alternative",
    "|": "there is no `or`: write one rule for each alternative",
    "||": "there is no `or`: write one rule for each alternative",
    "or": "there is no `or`: write one rule for each alternative",
    "and": "subgoals are joined by `,`",
    "&&": "subgoals are joined by `,`",
    "+": "there is no arithmetic in rules",
    "-": "there is no arithmetic in rules; a negative number has its sign directly before it",
    "*": "there is no arithmetic in rules",
    "/": "there is no arithmetic in rules; comments start with `%`, `//` or `#`",
    "--": "comments start with `%`, `//` or `#`",
    "/*": "comments start with `%`, `//` or `#` and end with the line",
    "[": "there are no lists; arguments stand in `(` and `)`",
    "{": "there are no sets; arguments stand in `(` and `)`",
    "is": "a null test is written `X is null` or `X is not null`",
    "\N{LEFT SINGLE QUOTATION MARK}": "strings stand in plain quotes `'`",
    "\N{RIGHT SINGLE QUOTATION MARK}": "strings stand in plain quotes `'`",
    "\N{LEFT DOUBLE QUOTATION MARK}": "strings stand in plain quotes `'`",
    "\N{RIGHT DOUBLE QUOTATION MARK}": "strings stand in plain quotes `'`",
}
_NOT_ARROWS = frozenset({"=", ":=", "->", "=>", "<=", ":", "if"})
_LOWER_CASE_KEYWORDS = RESERVED | {"key", "unique", "foreign", "references"}


def hint_for(around: Surroundings, expected: Collection[str]) -> str | None:
    """What to do about unexpected text, if it is a known mistake."""
    found, previous = around.found, around.previous
    word = found.text.lower()
    if "_ARROW" in expected and found.text in _NOT_ARROWS:
        return "a rule is written `head :- body.`"
    if found.text in (":-", "<-"):
        return "a rule has one head, before the arrow; end the rule before with a full stop"
    if found.text == "." and previous is not None and previous.text in (":-", "<-"):
        return "a fact is written without an arrow: `head.`"
    if found.kind is PieceKind.WORD and found.text != word and word in _LOWER_CASE_KEYWORDS:
        return f"write `{word}` in lower case"
    if found.text == "(" and "VARIABLE" in expected:
        return "parentheses stand only around the terms of an atom and behind `not`"
    if "COLON" in expected and found.kind is PieceKind.WORD:
        name = "" if previous is None else previous.text
        return f"a column's type stands behind a colon: `{name}: {found.text}`"
    if found.kind is PieceKind.END and "RPAR" in expected:
        return "a parenthesis is not closed"
    return _HINTS.get(word)


@unique
class PieceKind(Enum):
    """What a piece of text is."""

    QUOTED = "quoted"
    UNCLOSED = "unclosed"
    WORD = "word"
    NUMBER = "number"
    STOP = "stop"
    SIGN = "sign"
    END = "end"


class Piece(Struct, frozen=True):
    """A piece of a text; `start` is its 0-based offset."""

    kind: PieceKind
    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset behind the piece."""
        return self.start + len(self.text)


_PIECE = re.compile(
    r"""
    (?P<blank>\s+|[%\#][^\n]*|//[^\n]*|\ufeff)
    |(?P<quoted>'(?:[^'\\\r\n]|''|\\[^\r\n])*'|"(?:[^"\\\r\n]|""|\\[^\r\n])*"|`(?:[^`\\\r\n]|``|\\[^\r\n])*`)
    |(?P<unclosed>['"`][^\r\n]*)
    |(?P<word>[^\W\d]\w*|\.(?:decl|view)\b)
    |(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    |(?P<stop>\.)
    |(?P<sign>:-|<-|:=|->|=>|=<|==|<=|>=|<>|!=|&&|\|\||--|/\*|.)
    """,
    re.VERBOSE | re.DOTALL,
)


def _pieces(text: str, start: int = 0) -> Iterator[Piece]:
    """The pieces of a text from an offset on, without blanks and comments, and last the end.

    >>> [piece.text for piece in _pieces("p(X) :- 'a.b'. % no")]
    ['p', '(', 'X', ')', ':-', "'a.b'", '.', '']
    """
    for found in _PIECE.finditer(text, start):
        if found.lastgroup not in (None, "blank"):
            yield Piece(PieceKind(found.lastgroup), found[0], found.start())
    yield Piece(PieceKind.END, "", len(text))


class Surroundings(Struct, frozen=True):
    """What stands around an offset of a text.

    Attributes:
        statement: the pieces of the statement before the offset.
        found: the piece at the offset.
        following: the piece behind that.
    """

    statement: tuple[Piece, ...]
    found: Piece
    following: Piece

    @property
    def previous(self) -> Piece | None:
        """The piece before the offset, if it belongs to the same statement."""
        return self.statement[-1] if self.statement else None


def surroundings(text: str, offset: int) -> Surroundings:
    """What stands around the first piece that ends behind the offset."""
    statement: list[Piece] = []
    ahead = _pieces(text)
    end = Piece(PieceKind.END, "", len(text))
    for piece in ahead:
        if piece.end > offset or piece.kind is PieceKind.END:
            return Surroundings(tuple(statement), piece, next(ahead, end))
        if piece.kind is PieceKind.STOP:
            statement.clear()
        else:
            statement.append(piece)
    return Surroundings(tuple(statement), end, end)


def next_statement(text: str, offset: int) -> int | None:
    """The offset behind the next full stop, or none if the text ends before.

    An unclosed quote hides the rest of its line, so a stop at the line's end counts.
    """
    for piece in _pieces(text, offset):
        if piece.kind is PieceKind.STOP:
            return piece.end
        if piece.kind is PieceKind.UNCLOSED and piece.text.rstrip().endswith("."):
            return piece.end
    return None
