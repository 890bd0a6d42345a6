"""A text cut into pieces without the grammar: for explaining errors, and for reading on behind them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, unique


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


@dataclass(frozen=True, slots=True)
class Piece:
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


def pieces(text: str, start: int = 0) -> Iterator[Piece]:
    """The pieces of a text from an offset on, without blanks and comments, and last the end.

    >>> [piece.text for piece in pieces("p(X) :- 'a.b'. % no")]
    ['p', '(', 'X', ')', ':-', "'a.b'", '.', '']
    """
    for found in _PIECE.finditer(text, start):
        if found.lastgroup not in (None, "blank"):
            yield Piece(PieceKind(found.lastgroup), found[0], found.start())
    yield Piece(PieceKind.END, "", len(text))


@dataclass(frozen=True, slots=True)
class Surroundings:
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
    ahead = pieces(text)
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
    for piece in pieces(text, offset):
        if piece.kind is PieceKind.STOP:
            return piece.end
        if piece.kind is PieceKind.UNCLOSED and piece.text.rstrip().endswith("."):
            return piece.end
    return None
