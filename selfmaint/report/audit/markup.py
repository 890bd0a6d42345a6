"""HTML that is safe by its making: whatever is not markup already is escaped when it is put into some.

>>> tag("p", "a < b", class_="x")
Markup('<p class="x">a &lt; b</p>')
"""

from __future__ import annotations

from html import escape
from typing import TypeAlias


class Markup(str):
    """A piece of HTML."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Markup({str(self)!r})"


Part: TypeAlias = str | Markup
_VOID = frozenset({"meta", "input"})
_CLOSED = frozenset({"line", "rect", "path"})
"""Elements of a drawing without content."""


def text(part: Part) -> Markup:
    """A text, escaped; markup as it is. What is not printable is replaced: names are data."""
    if isinstance(part, Markup):
        return part
    safe = "".join(
        char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in part
    )
    return Markup(escape(safe))


def joined(*parts: Part) -> Markup:
    """Pieces, one after another."""
    return Markup("".join(text(part) for part in parts))


def tag(name: str, /, *parts: Part, **attributes: str | float | bool | None) -> Markup:
    """An element; the attribute `aria_label` is `aria-label`; True has no value, None is left out."""
    shown = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        plain = key.rstrip("_").replace("_", "-")
        shown.append(f" {plain}" if value is True else f' {plain}="{text(str(value))}"')
    if name in _CLOSED:
        return Markup(f"<{name}{''.join(shown)}/>")
    opened = f"<{name}{''.join(shown)}>"
    return Markup(opened) if name in _VOID else Markup(f"{opened}{joined(*parts)}</{name}>")
