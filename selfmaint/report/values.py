"""Values and rows as text that is safe to print, and as values that JSON has."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TypeAlias

from rich.table import Table
from rich.text import Text

from datalog.model import Constant, Row, Value
from datalog.syntax import show

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
"""What JSON can hold."""


def json_value(value: Value) -> Json:
    """A value for JSON: decimals, dates and timestamps as their text.

    >>> json_value(Decimal("1.50")), json_value(None), json_value(dt.date(2026, 1, 31))
    ('1.50', None, '2026-01-31')
    """
    match value:
        case dt.date() | dt.datetime():
            return value.isoformat()
        case Decimal():
            return str(value)
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value


def json_row(row: Row) -> Json:
    """A row for JSON."""
    return [json_value(value) for value in row]


def json_rows(rows: Iterable[Row]) -> Json:
    """Rows for JSON, in a stable order."""
    return [json_row(row) for row in sorted(rows, key=repr)]


def shown_row(row: Row) -> str:
    """A row as the language writes it.

    >>> shown_row((1, "it's", None))
    "(1, 'it''s', null)"
    """
    return f"({', '.join(show(Constant(value)) for value in row)})"


def shown_rows(rows: Iterable[Row], limit: int = 3) -> str:
    """A few rows, one a line."""
    lines = sorted(shown_row(row) for row in rows)
    more = [f"and {len(lines) - limit} more"] if len(lines) > limit else []
    return "\n".join([*lines[:limit], *more])


def cell(text: str, style: str = "") -> Text:
    """Text for a table: no markup in it counts, and nothing in it moves the cursor."""
    safe = "".join(
        char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text
    )
    return Text(safe, style=style)


def table(
    title: str,
    texts: Sequence[str],
    numbers: Sequence[str],
    rows: Iterable[Iterable[str | int | Text]],
    *,
    lines: bool = False,
) -> Table:
    """A table for a terminal: columns of text, then columns of numbers; with `lines` one between its rows."""
    found = Table(title=title, title_justify="left", show_lines=lines)
    for name in texts:
        found.add_column(name, overflow="fold")
    for name in numbers:
        found.add_column(name, justify="right")
    for row in rows:
        found.add_row(
            *(f"{x:,}" if isinstance(x, int) else cell(x) if isinstance(x, str) else x for x in row)
        )
    return found
