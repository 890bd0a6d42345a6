"""Where the keys of a TOML text stand: `tomllib` says what a text means, not where."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from datalog.model import Span

KeyPath: TypeAlias = tuple[str, ...]
"""A key below its tables' keys, such as `("views", "v1", "path")`."""


def key_places(text: str, source: str) -> dict[KeyPath, Span]:
    r"""The place of each table and key of a text that is valid TOML.

    Args:
        text: the text.
        source: its name, for the spans.

    Returns:
        By path, the first place: a table's header, or a key, in an inline table too.

    Complexity:
        Linear in the text; a value over several lines costs the square of its number of lines.

    Example:
        >>> found = key_places('[views."v 1"]\npath = "x"', "w.toml")
        >>> {".".join(path): str(span) for path, span in found.items()}
        {'views': 'w.toml:1:1', 'views.v 1': 'w.toml:1:1', 'views.v 1.path': 'w.toml:2:1'}
        >>> str(key_places('views = { v1 = { path = "a, pth = b", pth = "x" } }', "w.toml")["views", "v1", "pth"])
        'w.toml:1:39'
    """
    found: dict[KeyPath, Span] = {}
    header: KeyPath = ()
    for line, statement, meaning in _statements(text):
        first = statement.split("\n", 1)[0]
        column = len(first) - len(first.lstrip()) + 1
        is_header = first.lstrip().startswith("[")
        written = first.strip() if is_header else first.split("=", 1)[0].strip()
        span = Span(line, column, max(len(written), 1), source)
        paths = list(_paths(meaning, () if is_header else header))
        at = 0
        for path in paths:
            inside = None if is_header else _inside(statement, path[-1], at)
            if inside is not None:
                at = inside.end()
            found.setdefault(path, span if inside is None else _span(statement, inside, line, source))
        if is_header and paths:
            header = paths[-1]
    return found


def _inside(statement: str, key: str, at: int) -> re.Match[str] | None:
    """The next place of a key in the inline tables of a statement; None if it stands in none."""
    spellings = "|".join(re.escape(spelt) for spelt in (key, f"'{key}'", json.dumps(key, ensure_ascii=False)))
    return re.compile(rf"(?<=[{{,])\s*({spellings})(?=\s*[=.])").search(_without_strings(statement), at)


def _span(statement: str, found: re.Match[str], line: int, source: str) -> Span:
    before = statement[: found.start(1)]
    return Span(line + before.count("\n"), found.start(1) - before.rfind("\n"), len(found[1]), source)


def _without_strings(statement: str) -> str:
    """The statement with the text of its values blanked out, every character in its place."""
    return re.sub(
        r"""(=\s*)("(?:\\.|[^"\\])*"|'[^']*')""", lambda found: found[1] + " " * len(found[2]), statement
    )


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The headers and key-value pairs of a text: 1-based first line, text, meaning."""
    lines: list[str] = []
    start = 1
    for number, line in enumerate(text.split("\n"), 1):
        if not lines:
            start = number
        lines.append(line)
        statement = "\n".join(lines)
        try:
            meaning = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        lines = []
        if meaning:
            yield start, statement, meaning


def _paths(meaning: Mapping[str, Any], above: KeyPath) -> Iterator[KeyPath]:
    """Every path in a statement's meaning, outer ones first."""
    for key, value in meaning.items():
        path = (*above, key)
        yield path
        inner = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(inner, dict):
            yield from _paths(inner, path)
