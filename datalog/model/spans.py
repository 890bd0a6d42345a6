"""Places in a source text."""

from __future__ import annotations

from msgspec import Struct


class Span(Struct, frozen=True, eq=False):
    """A stretch of a source text: 1-based line and column of its first character, and its length.

    Where something stands says nothing of what it is: all spans are equal, and no span is equal to them, so that what
    has one is compared and hashed by the rest. `place` tells two apart.

    Attributes:
        line: 1-based line of the first character.
        column: 1-based column of the first character.
        length: number of characters, at least 1; a span over several lines ends with its first line.
        source: name of the text, such as a file's path.
    """

    line: int
    column: int
    length: int = 1
    source: str = "<program>"

    @property
    def place(self) -> tuple[str, int, int, int]:
        """Its source, line, column and length."""
        return self.source, self.line, self.column, self.length

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, Span)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(None)

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"


class Placed(Struct, frozen=True):
    """What may stand in a text. Where it stands is left out of its representation, too."""

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name != "span")
        return f"{type(self).__name__}({', '.join(shown)})"
