"""Where things stand in a text, and what was found wrong on the way."""

from __future__ import annotations

from typing import TypeAlias

from lark import Token, Tree
from msgspec import Struct, field

from datalog.diagnostics import Code, Diagnostic
from datalog.model.spans import Span

Node: TypeAlias = Tree[Token]


class Places(Struct):
    """A text's name and lines, and the diagnostics collected while it is read."""

    source: str
    lines: list[str]
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def span(self, node: Node | Token) -> Span | None:
        """The place of a node, up to the end of its first line."""
        if isinstance(node, Token):
            return Span(node.line or 1, node.column or 1, max(1, len(node)), self.source)
        meta = node.meta
        if meta.empty:
            return None
        end = meta.end_column if meta.end_line == meta.line else len(self.lines[meta.line - 1]) + 1
        return Span(meta.line, meta.column, max(1, end - meta.column), self.source)

    def report(
        self,
        code: Code,
        message: str,
        span: Span | None,
        label: str = "",
        *,
        note: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Add an error."""
        self.diagnostics.append(Diagnostic(code, message, span, label, note=note, hint=hint))
