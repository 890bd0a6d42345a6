"""Diagnostics: what is wrong with a program, where, why, and what to do about it.

A diagnostic is a value. Checks collect as many as they can find and raise one `ProgramError` with all.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, unique
from functools import lru_cache
from typing import Protocol

from msgspec import Struct

from datalog.errors import DatalogError
from datalog.model.spans import Span

_LINE_WIDTH = 160
_TAIL_AFTER_SPAN = 40


class CodeLike(Protocol):
    """What a diagnostic needs of a code: any enum with text values fits, such as `Code`."""

    @property
    def name(self) -> str:
        """The code's name in its enum."""

    @property
    def value(self) -> str:
        """The code as people see it, such as `DL201`."""


@unique
class Code(Enum):
    """What can be wrong with a program. Each code has a page in `docs/codes`."""

    UNEXPECTED_TEXT = "DL001"
    """Text that cannot stand where it stands."""
    MISSING_STOP = "DL002"
    """A rule, fact or declaration that does not end with a full stop."""
    LOWER_CASE_TERM = "DL003"
    """A bare lower-case word where a variable or a constant belongs."""
    UPPER_CASE_RELATION = "DL004"
    """A relation name that starts with a capital letter and is not in backticks."""
    UNCLOSED_QUOTE = "DL005"
    """A string or quoted name that does not end on its line."""
    SQL_TEXT = "DL006"
    """A statement of SQL where a rule belongs."""
    BAD_ESCAPE = "DL007"
    """A backslash followed by something that is no escape."""
    BAD_CONSTANT = "DL008"
    """A date, timestamp or number that does not exist or cannot be held."""
    UNKNOWN_VERSION = "DL009"
    """A version after `@` that no relation has."""
    UNKNOWN_TYPE = "DL010"
    """A column type that does not exist, or a size that the type does not take."""
    RESERVED_WORD = "DL011"
    """A word of the language used as a name."""
    SECOND_KEY = "DL012"
    """A declaration with more than one `key`."""
    TOO_DEEP = "DL013"
    """Negations, expressions or queries nested so deeply that they cannot be read."""
    TOO_LARGE = "DL014"
    """A text that is too long, or a body or query with too many subgoals."""

    UNKNOWN_RELATION = "DL101"
    """A subgoal's relation that is neither declared nor defined."""
    ARITY_DIFFERS = "DL102"
    """A relation used with a number of terms other than it has."""
    DECLARED_TWICE = "DL103"
    """Two declarations of one relation."""
    DUPLICATE_COLUMN = "DL104"
    """A column named twice in one declaration or one constraint."""
    UNKNOWN_COLUMN = "DL105"
    """A key, unique or foreign key constraint on a column that is not there."""
    UNKNOWN_TARGET = "DL106"
    """A foreign key that references a relation that is not declared."""
    FOREIGN_KEY_WIDTH = "DL107"
    """A foreign key with another number of columns than it references."""
    FOREIGN_KEY_TYPE = "DL108"
    """A foreign key's column that can never equal the column it references."""
    FOREIGN_KEY_TARGET = "DL109"
    """A foreign key to columns that are no key."""
    CONSTANT_TYPE = "DL110"
    """A constant in a column of another type family."""
    VARIABLE_TYPE = "DL111"
    """A variable in columns of different type families."""
    COMPARISON_TYPE = "DL112"
    """A comparison of values that never compare."""
    HEAD_TYPE = "DL113"
    """Rules that give one column of a relation different type families."""
    NULL_COMPARISON = "DL114"
    """A comparison with null, which is never true."""
    EMPTY_RULE = "DL115"
    """A rule whose comparisons contradict each other, so that it never has a row."""

    UNSAFE_HEAD = "DL201"
    """A head variable that no positive subgoal binds."""
    UNSAFE_COMPARISON = "DL202"
    """A variable of a comparison that no positive subgoal binds."""
    UNSAFE_NULL_TEST = "DL203"
    """A variable of a null test that no positive subgoal binds."""
    SHARED_BY_NEGATIONS = "DL204"
    """A variable that several negations share but nothing binds: each has its own."""

    RECURSION = "DL301"
    """A relation that depends on itself."""

    SQL_SYNTAX = "DL401"
    """SQL that cannot be read."""
    SQL_UNSUPPORTED = "DL402"
    """A construct of SQL that no view definition can hold: the view is kept as text."""
    SQL_AMBIGUOUS = "DL403"
    """A name in a query that fits several columns or tables."""
    SQL_UNKNOWN_COLUMN = "DL404"
    """A column in a query that no table in its FROM has."""
    SQL_GROUPING = "DL405"
    """A column that is neither grouped nor aggregated, or an aggregate where none can be."""
    SQL_WIDTH = "DL406"
    """Another number of columns than belongs there: in a union, or in a view's list of columns."""
    SQL_SKIPPED = "DL407"
    """A statement that defines no view and no table: it is passed over."""
    SQL_MISREAD = "DL408"
    """A literal or type that means something else in Spark's SQL than it looks."""
    SQL_NOT_READ = "DL409"
    """A column of a table that is not read, for its type: one of a key, or of a type that is not known."""


@unique
class Severity(Enum):
    """How bad it is: a program with an error is refused, one with warnings only is accepted."""

    ERROR = "error"
    WARNING = "warning"


class ContextSpan(Struct, frozen=True):
    """A second place that a diagnostic refers to, and what is there."""

    span: Span
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Diagnostic:
    """One finding.

    Attributes:
        code: the kind of finding; its page says more.
        message: what is wrong, in one line: lower case, no final stop, identifiers in backticks.
        span: the place, if it is known.
        label: what to say at the place.
        context: further places, each with its label.
        note: the rule of the theory that is broken.
        severity: whether the program is refused for it.
    """

    code: CodeLike
    message: str
    span: Span | None = None
    label: str = ""
    context: tuple[ContextSpan, ...] = ()
    note: str | None = None
    hint: str | None = None
    severity: Severity = Severity.ERROR

    def __eq__(self, other: object) -> bool:
        return self._told() == other._told() if isinstance(other, Diagnostic) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._told())

    def _told(self) -> tuple[object, ...]:
        """All of it, with the places, which spans leave out of comparisons."""
        spans = (self.span, *(one.span for one in self.context))
        places = tuple(None if span is None else span.place for span in spans)
        labels = (self.label, *(one.label for one in self.context))
        return self.code, self.message, places, labels, self.note, self.hint, self.severity

    def __str__(self) -> str:
        place = "" if self.span is None else f"{self.span}: "
        return f"{place}{self.severity.value}[{self.code.value}]: {_one_line(self.message)}"


class ProgramError(DatalogError):
    """A program is refused. `diagnostics` holds everything that was found, in the order of the text.

    >>> error = ProgramError([Diagnostic(Code.RECURSION, "`p` depends on itself")])
    >>> str(error)
    'error[DL301]: `p` depends on itself'
    """

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = in_text_order(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n".join(str(diagnostic) for diagnostic in self.diagnostics)


def in_text_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The distinct diagnostics, by source, line and column; those without a place come first."""

    def place(diagnostic: Diagnostic) -> tuple[str, int, int, str]:
        span = diagnostic.span
        if span is None:
            return ("", 0, 0, diagnostic.code.value)
        return (span.source, span.line, span.column, diagnostic.code.value)

    return tuple(sorted(dict.fromkeys(diagnostics), key=place))


def render(diagnostic: Diagnostic, sources: Mapping[str, str]) -> str:
    r"""The diagnostic as text for people, with the lines of source that it is about.

    Of a source that is missing the place alone is shown.

    >>> text = "v(S, C) :- sale(S).\n"
    >>> found = Diagnostic(Code.UNSAFE_HEAD, "unsafe variable `C` in rule head",
    ...                    Span(1, 6, 1, "views.dl"), "`C` is not bound by any positive subgoal",
    ...                    hint="add a positive subgoal that binds `C`")
    >>> print(render(found, {"views.dl": text}))
    error[DL201]: unsafe variable `C` in rule head
      --> views.dl:1:6
       | v(S, C) :- sale(S).
       |      ^ `C` is not bound by any positive subgoal
       = hint: add a positive subgoal that binds `C`
    """
    lines = [f"{diagnostic.severity.value}[{diagnostic.code.value}]: {_one_line(diagnostic.message)}"]
    if diagnostic.span is not None:
        lines += _place("-->", "^", diagnostic.span, diagnostic.label, sources)
    shown = diagnostic.span
    for context in diagnostic.context:
        place = list(_place(":::", "-", context.span, context.label, sources))
        if shown is not None and place[1:2] and _same_line(shown, context.span) and place[1] in lines:
            place = place[2:]
        lines += place
        shown = context.span
    if diagnostic.note is not None:
        lines.append(f"   = note: {_one_line(diagnostic.note)}")
    if diagnostic.hint is not None:
        lines.append(f"   = hint: {_one_line(diagnostic.hint)}")
    return "\n".join(lines)


def _same_line(span: Span, other: Span) -> bool:
    return (span.source, span.line) == (other.source, other.line)


def _place(arrow: str, mark: str, span: Span, label: str, sources: Mapping[str, str]) -> Iterator[str]:
    """The lines that show one place: where it is, the source line, and what stands there."""
    yield f"  {arrow} {span}"
    text = sources.get(span.source)
    lines = () if text is None else _lines(text)
    if not 1 <= span.line <= len(lines):
        if label:
            yield f"   | {_one_line(label)}"
        return
    before, marked, after = _clip(lines[span.line - 1].removesuffix("\r"), span)
    yield f"   | {_visible(before + marked + after)}".rstrip()
    padding = "".join("\t" if char == "\t" else " " * _width(char) for char in before)
    marks = mark * max(1, sum(_width(char) for char in marked))
    yield f"   | {padding}{marks} {_one_line(label)}".rstrip()


@lru_cache(maxsize=4)
def _lines(text: str) -> tuple[str, ...]:
    """A text's lines, for all diagnostics about it."""
    return tuple(text.split("\n"))


def _clip(line: str, span: Span) -> tuple[str, str, str]:
    """The line before, at and after the span; a very long line is cut on both sides."""
    start = span.column - 1
    end = start + span.length
    before, marked, after = line[:start].ljust(start), line[start:end], line[end:]
    if len(line) <= _LINE_WIDTH:
        return before, marked, after
    if len(marked) > _LINE_WIDTH // 2:
        marked = marked[: _LINE_WIDTH // 2] + "..."
    room = max(_TAIL_AFTER_SPAN, _LINE_WIDTH - len(marked) - _TAIL_AFTER_SPAN)
    if len(before) > room:
        before = "..." + before[-room:]
    if len(after) > _TAIL_AFTER_SPAN:
        after = after[:_TAIL_AFTER_SPAN] + "..."
    return before, marked, after


def _visible(line: str) -> str:
    """The line with every character that would move the cursor replaced; tabs stay."""
    return "".join(
        char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in line
    )


def _one_line(text: str) -> str:
    """Names and values from a program may hold anything: keep a message on its line."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _width(char: str) -> int:
    """How many columns of a terminal a character takes."""
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
