"""Reading TOML with every problem collected: unknown keys, missing entries, wrong types; with places.

`tomllib` says what a text means, not where its keys stand: that is read here.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct, field

from datalog.diagnostics import Diagnostic, in_text_order
from datalog.model import Span
from selfmaint.errors import Code, InputError, input_error
from selfmaint.warehouse.near import near_miss

KeyPath: TypeAlias = tuple[str, ...]
"""A key below its tables' keys, such as `("views", "v1", "path")`."""


def key_places(text: str, source: str) -> dict[KeyPath, Span]:
    r"""The place of each table and key of a text that is valid TOML.

    Returns:
        By path, the first place: a table's header, or a key, in an inline table too.

    Complexity:
        Linear in the text; a value over several lines costs the square of its number of lines.

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


DEEPEST = 64
"""How many tables and lists may stand inside one another."""
_KINDS = {
    str: "a string",
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    dict: "a table",
    list: "a list",
}


class TomlFile(Struct, dict=True):
    """A TOML file that is being read, and what is wrong with it so far.

    Attributes:
        unknown: the unknown keys that were found, which may explain what else is wrong.
    """

    path: Path
    text: str
    data: Mapping[str, Any]
    problems: list[Diagnostic] = field(default_factory=list)
    unknown: list[Diagnostic] = field(default_factory=list)

    @property
    def all_problems(self) -> tuple[Diagnostic, ...]:
        """Everything found: unknown keys, then the rest, each in the order of the text."""
        return (*in_text_order(self.unknown), *in_text_order(self.problems))

    @classmethod
    def read(cls, path: Path) -> TomlFile:
        """The file, parsed.

        Raises:
            InputError: SM103 no such file; SM101 one that cannot be read, or is not TOML.
        """
        text = read_text(path, "warehouse file")
        try:
            data = tomllib.loads(text)
        except ValueError as error:  # besides TOMLDecodeError for a number of thousands of digits
            raise InputError([_not_toml(path, str(error))]) from None
        except RecursionError:
            raise InputError([_not_toml(path, "tables or lists nested too deeply")]) from None
        if is_deep(data):
            raise InputError([_not_toml(path, "tables or lists nested too deeply")])
        return cls(path, text, data)

    @cached_property
    def _places(self) -> dict[KeyPath, Span]:
        return key_places(self.text, str(self.path))

    def in_place(self, key: str, text: str) -> str:
        """A text of the file, moved to where it stands there, so that messages about it point at the file."""
        span, start = self.place((key,)), self.text.find(text)
        if span is None or start < 0:
            return text
        before = self.text[:start]
        return "\n" * before.count("\n") + " " * (start - before.rfind("\n") - 1) + text

    def place(self, path: KeyPath) -> Span | None:
        """Where a key stands; for one that is missing, where its table does."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._places:
                return self._places[path[:length]]
        return None

    def report(
        self,
        path: KeyPath,
        message: str,
        label: str = "",
        hint: str | None = None,
        code: Code = Code.WAREHOUSE_FILE,
    ) -> None:
        """Notes a problem at a key; what its line holds of a secret is starred out when it is shown."""
        self.problems.append(Diagnostic(code, message, self._span(path), label=label, hint=hint))

    def report_unknown(self, path: KeyPath, message: str, hint: str | None) -> None:
        """Notes a key that means nothing."""
        self.unknown.append(Diagnostic(Code.WAREHOUSE_FILE, message, self._span(path), hint=hint))

    def _span(self, path: KeyPath) -> Span:
        return self.place(path) or Span(1, 1, 1, str(self.path))

    def root(self, allowed: Sequence[str]) -> TomlTable:
        """The whole file as a table."""
        return TomlTable(self, (), self.data, allowed)


class TomlTable(Struct):
    """A table of a file, with typed access to its entries; what does not fit is reported, not raised."""

    file: TomlFile
    path: KeyPath
    data: Mapping[str, Any]
    allowed: Sequence[str]

    def __post_init__(self) -> None:
        for key in self.data:
            if key not in self.allowed:
                message = f"unknown key `{key}` in {self.shown}"
                hint = near_miss(key, self.allowed, "key")
                self.file.report_unknown((*self.path, key), message, hint)

    @property
    def shown(self) -> str:
        """The table's name for messages."""
        return f"`[{dotted(self.path)}]`" if self.path else "the warehouse file"

    def report(self, key: str, message: str, hint: str | None = None, label: str = "") -> None:
        """Notes a problem at a key, or at the table if it is missing."""
        self.file.report((*self.path, key), message, label, hint)

    def refuse(self, keys: Sequence[str], message: str) -> None:
        """Notes those of some keys that are there; in the message `{}` stands for a key."""
        for key in (one for one in keys if one in self.data):
            self.report(key, message.replace("{}", key))

    def required(self, key: str, hint: str) -> str | None:
        """A string that has to be there."""
        if key not in self.data:
            self.report(key, f"{self.shown} has no `{key}`", hint)
        return self.text(key)

    def among(self, key: str, names: Iterable[str], message: str, kind: str) -> str | None:
        """A string that is one of some names, of a kind; in the message `{}` stands for one that is not."""
        text, known = self.text(key), list(names)
        if text is not None and text not in known:
            self.report(key, message.replace("{}", text), near_miss(text, known, kind))
            return None
        return text

    def text(self, key: str) -> str | None:
        """A string that is not empty."""
        value = self._typed(key, str)
        if value == "":
            self.report(key, f"`{key}` in {self.shown} is empty")
            return None
        return value if isinstance(value, str) else None

    def flag(self, key: str) -> bool | None:
        """True or false."""
        value = self._typed(key, bool)
        return value if isinstance(value, bool) else None

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings; empty if it is missing."""
        value = self._typed(key, list) or []
        for entry in value:
            if not isinstance(entry, str):
                self.report(key, f"`{key}` in {self.shown} has {_kind(entry)} in it")
        return tuple(entry for entry in value if isinstance(entry, str))

    def number(self, key: str) -> float | None:
        """A number, not negative."""
        value = self._typed(key, float)
        if value is None:
            return None
        if not 0 <= value < float("inf"):
            self.report(key, f"`{key}` in {self.shown} is {value}", label="not a cost")
            return None
        return float(value)

    def seconds(self, key: str) -> float | None:
        """A length of time; infinite where it has no end."""
        value = self._typed(key, float)
        if value is not None and not value > 0:
            self.report(key, f"`{key}` in {self.shown} is {value}", "give a number of seconds, or `inf`")
            return None
        return None if value is None else float(value)

    def whole(self, key: str) -> int | None:
        """A whole number above 0."""
        value = self._typed(key, int)
        if value is not None and value <= 0:
            self.report(key, f"`{key}` in {self.shown} is {value}", label="give a number above 0")
            return None
        return value if isinstance(value, int) else None

    def tables(self, key: str, allowed: Sequence[str]) -> dict[str, TomlTable]:
        """The tables below a table: `[key.name]` for each name."""
        outer = self._typed(key, dict)
        found: dict[str, TomlTable] = {}
        for name, value in (outer or {}).items():
            path = (*self.path, key, name)
            if isinstance(value, dict):
                found[name] = TomlTable(self.file, path, value, allowed)
            else:
                shown = dotted(path)
                hint = f"write `[{shown}]`, and below it {' or '.join(f'`{k} = ...`' for k in allowed)}"
                self.file.report(path, f"`{shown}` is {_kind(value)}, not a table", hint=hint)
        return found

    def table(self, key: str, allowed: Sequence[str]) -> TomlTable:
        """One table, empty if it is missing."""
        data = self._typed(key, dict)
        return TomlTable(self.file, (*self.path, key), data or {}, allowed)

    def one_of(self, *keys: str) -> tuple[str, str] | None:
        """Which of some strings is given, and its value; several or none are reported."""
        given = [key for key in keys if key in self.data]
        listed = " or ".join(f"`{key}`" for key in keys)
        if not given:
            self.file.report(self.path, f"{self.shown} has no {listed}")
        if len(given) > 1:
            self.report(given[1], f"{self.shown} has several of {listed}", label="leave one out")
        if len(given) != 1:
            return None
        value = self.text(given[0])
        return None if value is None else (given[0], value)

    def _typed(self, key: str, wanted: type[Any]) -> Any:
        value = self.data.get(key)
        numbers = {float: int | float, int: int}
        is_number = isinstance(value, numbers.get(wanted, float)) and not isinstance(value, bool)
        if value is None or (is_number if wanted in numbers else isinstance(value, wanted)):
            return value
        path = (*self.path, key)
        self.file.report(path, f"`{dotted(path)}` is {_kind(value)}, not {_KINDS[wanted]}")
        return None


def is_deep(value: object) -> bool:
    """Whether more than DEEPEST tables and lists of a parsed text stand inside one another."""
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        if depth > DEEPEST:
            return True
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        waiting += [(part, depth + 1) for part in inner]
    return False


def dotted(path: KeyPath) -> str:
    """A key's path as it is written in TOML.

    >>> dotted(("views", "v 1"))
    'views."v 1"'
    """
    plain = re.compile(r"[A-Za-z0-9_-]+")
    quoted = {key: json.dumps(key, ensure_ascii=False).replace("\x7f", "\\u007f") for key in path}
    return ".".join(key if plain.fullmatch(key) else quoted[key] for key in path)


def read_text(path: Path, kind: str) -> str:
    """The text of a file.

    Raises:
        InputError: SM103 no such file, SM101 one that cannot be read as text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise input_error(Code.MISSING_CONTENTS, f"there is no {kind} `{path}`") from None
    except UnicodeDecodeError as error:
        message = f"the {kind} `{path}` is not UTF-8 text: byte {error.start} cannot be read"
        raise input_error(Code.WAREHOUSE_FILE, message) from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise input_error(Code.WAREHOUSE_FILE, f"the {kind} `{path}` cannot be read: {reason}") from None


def _kind(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case dict():
            return "a table"
        case list():
            return "a list"
        case _:
            return "a date or time"


def _not_toml(path: Path, message: str) -> Diagnostic:
    found = re.search(r"^(.*) \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    span = None
    if found is not None:
        message = found.group(1)
        if found.group(2):
            span = Span(int(found.group(2)), int(found.group(3)), 1, str(path))
    return Diagnostic(
        code=Code.WAREHOUSE_FILE,
        message=f"the warehouse file `{path}` is not TOML: {message[:1].lower()}{message[1:]}",
        span=span,
    )
