"""Places in a source text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a source text: 1-based line and column of its first character, and its length.

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

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"
