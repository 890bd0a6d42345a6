"""A text of SQL cut into statements, and the places of trees in it.

What is found while it is read: errors, which refuse the text, and what keeps a view from being read.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeAlias

from msgspec import Struct, field
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from datalog.diagnostics import Code, ContextSpan, Diagnostic, Severity
from datalog.model import Span
from datalog.sql.dialect import OTHER_TABLES, SPARK, SparkSql
from datalog.sql.views.declared.dumps import adds_no_keys, columns_alone, of_tables, with_types_of_spark
from datalog.sql.views.limits import (
    DEEPEST_BRACKETS,
    DEEPEST_TREE,
    MOST_CHARACTERS,
    MOST_DIGITS,
    MOST_TOKENS,
    deep_node,
    long_number,
    too_deep,
)
from datalog.sql.views.written_out.as_written import as_written, defined_name
from datalog.sql.views.written_out.semi_join_syntax import with_exists

_QUOTED = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|(?P<open>/\*|['"`])""", re.DOTALL
)
_PARSER_FAILURES = (TypeError, ValueError, AttributeError, LookupError)
"""What the parser raises besides errors of its own, such as for `and(*)`."""
_MOST_PROBLEMS = 100
"""After so many statements that cannot be read, reading ends."""
_HINTS = {
    "~": "Spark's is `text rlike 'pattern'`",
    "!": "Spark's is `NOT text rlike 'pattern'`, or `a <> b`",
}
"""By what nothing in Spark's SQL stands behind, what to write."""
_BEHIND_NO_COMMA = frozenset(
    {TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM, TokenType.WHERE, TokenType.SEMICOLON}
)
_Trees: TypeAlias = list[exp.Expr | None]
_EXPECTED = re.compile(r"Expect(?:ed|ing) (\S+)$")


class SqlText(Struct, frozen=True):
    """A text of SQL statements.

    Attributes:
        name: its name for diagnostics, such as a file's path.
        parts: the parts of the name of its query, if it is one without a name; the last part first.
        relation: the name of that view; by default the last part.
        outside: why its query cannot be analysed, if that is known before.
        kept: whether what reads that view reads its rows, though its query could be unfolded.
        place: of a text that nobody wrote, where what it stands for is.
    """

    text: str
    name: str = "<sql>"
    parts: tuple[str, ...] = ()
    relation: str | None = None
    outside: str | None = None
    kept: bool = False
    place: Span | None = None

    def span(self, start: int, end: int) -> Span:
        """The place between two 0-based offsets, the end not included, up to the end of its first line."""
        if self.place is not None:
            return self.place
        line_start = self.text.rfind("\n", 0, start) + 1
        line_end = self.text.find("\n", start)
        stop = min(end, len(self.text) if line_end < 0 else line_end)
        line = self.text.count("\n", 0, start) + 1
        return Span(line, start - line_start + 1, max(1, stop - start), self.name)

    def span_of(self, tree: exp.Expr | None) -> Span | None:
        """The place of a tree: of the first to the last of its tokens that are known."""
        bounds = offsets(tree)
        while bounds is None and tree is not None:
            # Some functions without parentheses keep no place: show what they stand in.
            tree = tree.parent
            bounds = offsets(tree)
        return None if bounds is None else self.span(*bounds)


def offsets(tree: exp.Expr | None) -> tuple[int, int] | None:
    """The 0-based offsets of the first token of a tree that is known, and behind the last one."""
    if tree is None:
        return None
    known = [node.meta for node in tree.walk() if node.meta.get("start") is not None]
    if not known:
        return None
    return min(meta["start"] for meta in known), max(meta["end"] for meta in known) + 1


class Statement(Struct, frozen=True):
    """One statement: its tree, its text and its place."""

    tree: exp.Expr
    text: str
    source: SqlText
    span: Span


def statements(
    source: SqlText, problems: list[Diagnostic], unread: set[str] | None = None
) -> Iterator[Statement]:
    """The statements of a text; those that cannot be parsed are reported (DL401), the others still read.

    `unread` takes the names of what the former would define, in lower case, without database.
    """
    if len(source.text) > MOST_CHARACTERS:
        problems.append(_too_long(source, source.span(0, 1), len(source.text), "characters", MOST_CHARACTERS))
        return
    text = of_tables(source.text)
    try:
        tokens = SPARK.tokenize(text)
    except TokenError:
        problems.append(_unclosed(source))
        return
    before = len(problems)

    def refuse(chunk: list[Token], problem: Diagnostic) -> None:
        problems.append(problem)
        if unread is not None:
            unread.update(defined_name(chunk))

    for chunk in _chunks(tokens):
        if len(problems) - before >= _MOST_PROBLEMS:
            return
        start, end = chunk[0].start, chunk[-1].end + 1
        beyond = _beyond_limits(source, chunk)
        if beyond is not None:
            refuse(chunk, beyond)
            continue
        trees = _trees(source, text, with_types_of_spark(chunk))
        if isinstance(trees, Diagnostic):
            if adds_no_keys(chunk):
                yield Statement(exp.Command(this="ALTER"), text[start:end], source, source.span(start, end))
            else:
                refuse(chunk, trees)
            continue
        if trees and trees[0] is not None:
            problem = _in_tree(source, trees[0])
            if problem is not None:
                refuse(chunk, problem)
                continue
            tree = with_exists(as_written(trees[0], source.text, chunk))
            yield Statement(tree, source.text[start:end], source, source.span(start, end))


def _trees(source: SqlText, text: str, chunk: list[Token]) -> _Trees | Diagnostic:
    """A statement's trees, or why it cannot be parsed."""
    first = _read_as(SPARK, source, text, chunk)
    if not isinstance(first, Diagnostic) or [one.text.lower() for one in chunk[:2]] != ["create", "table"]:
        return first
    other = _read_as(OTHER_TABLES, source, text, columns_alone(chunk))
    return first if isinstance(other, Diagnostic) else other


def _read_as(dialect: SparkSql, source: SqlText, text: str, chunk: list[Token]) -> _Trees | Diagnostic:
    try:
        with _silent():
            trees = dialect.parser().parse(chunk, text)
            if trees and isinstance(trees[0], exp.Command) and (query := _behind_as(chunk)):
                # The parser gives up on a whole CREATE where its query is wrong: ask the query.
                SPARK.parser().parse(query, text)
    except ParseError as error:
        return _syntax(source, chunk, error.errors[0] if error.errors else {})
    except RecursionError:
        return _too_deep(source.span(chunk[0].start, chunk[-1].end + 1))
    except _PARSER_FAILURES:
        return _syntax(source, chunk, {})
    return trees


def _chunks(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    chunk: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            if chunk:
                yield chunk
            chunk = []
        else:
            chunk.append(token)
    if chunk:
        yield chunk


def _behind_as(chunk: list[Token]) -> list[Token]:
    """The tokens behind the first AS outside parentheses, of a CREATE."""
    depth = 0
    if chunk[0].token_type is not TokenType.CREATE:
        return []
    for position, token in enumerate(chunk):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if token.token_type is TokenType.ALIAS and depth == 0:
            return chunk[position + 1 :]
    return []


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Without sqlglot's log: what it says there is said here by diagnostics."""
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _unclosed(source: SqlText) -> Diagnostic:
    """Quotes or a comment that do not end."""
    found = next((f for f in _QUOTED.finditer(source.text) if f["open"]), None)
    start = len(source.text) if found is None else found.start()
    what = "comment" if found is not None and found["open"] == "/*" else "quote"
    return Diagnostic(
        Code.SQL_SYNTAX,
        f"a {what} is not closed",
        source.span(start, start + 1),
        f"the {what} that begins here does not end",
        hint="a quote inside quotes has a backslash before it" if what == "quote" else None,
    )


def _beyond_limits(source: SqlText, chunk: list[Token]) -> Diagnostic | None:
    """What is wrong with a statement that the parser had better not see."""
    if len(chunk) > MOST_TOKENS:
        span = source.span(chunk[0].start, chunk[0].end + 1)
        return _too_long(source, span, len(chunk), "words and signs", MOST_TOKENS)
    number = long_number(chunk)
    if number is not None:
        return Diagnostic(
            Code.BAD_CONSTANT,
            f"a number of {len(number.text)} digits",
            source.span(number.start, number.end + 1),
            f"more than {MOST_DIGITS} digits",
            hint="a decimal has at most 38 digits, a double is written with an exponent: `1e40`",
        )
    for one, other in pairwise(chunk):
        # The parser passes over it.
        if one.token_type is TokenType.COMMA and other.token_type in _BEHIND_NO_COMMA:
            return _syntax(source, chunk, {"line": other.line, "col": other.col})
    deep = too_deep(chunk)
    return None if deep is None else _too_deep(source.span(deep.start, deep.end + 1))


def _in_tree(source: SqlText, tree: exp.Expr) -> Diagnostic | None:
    """What is wrong with a tree that the parser let pass: its depth, or names where queries belong."""
    deep = deep_node(tree)
    if deep is not None:
        return _too_deep(source.span_of(deep))
    for both in tree.find_all(exp.SetOperation):
        for side in (both.this, both.expression):
            if not isinstance(side, exp.Query):
                return Diagnostic(
                    Code.SQL_SYNTAX,
                    f"SQL that cannot be read, beside {type(both).__name__.upper()}",
                    source.span_of(side),
                    "expected a query",
                    note="statements are read in Spark's dialect",
                )
    return None


def _too_deep(span: Span | None) -> Diagnostic:
    return Diagnostic(
        Code.TOO_DEEP,
        "SQL nested too deeply to be read",
        span,
        f"more than {DEEPEST_BRACKETS} brackets or operators, or {DEEPEST_TREE} expressions, inside one another",
        hint="compute an inner part in a view of its own",
    )


def _too_long(source: SqlText, span: Span, length: int, what: str, most: int) -> Diagnostic:
    return Diagnostic(
        Code.TOO_LARGE,
        f"`{source.name}` has SQL of {length} {what}: more than {most} are not read",
        span,
        hint="write it as several, or as several files in a directory",
    )


def _syntax(source: SqlText, chunk: list[Token], error: dict[str, Any]) -> Diagnostic:
    """What the parser stumbled over, in our words."""
    at = (error.get("line"), error.get("col"))
    token = next((t for t in chunk if (t.line, t.col) == at), chunk[-1])
    expected = _EXPECTED.match(str(error.get("description", "")))
    label = "not expected here"
    if token is chunk[-1]:
        label = "something is missing behind this"
    if expected:
        label = f"expected `{expected[1].strip('`')}`"
    shown = source.text[token.start : token.end + 1].replace("`", "")
    is_double = source.text[max(token.start - 1, 0) : token.end + 1] == "//"
    return Diagnostic(
        Code.SQL_SYNTAX,
        f"SQL that cannot be read, at `{shown}`",
        source.span(token.start, token.end + 1),
        label,
        note="statements are read in Spark's dialect",
        hint="whole numbers are divided by `a div b`" if is_double else _HINTS.get(shown),
    )


_MOST_FOUND = 100
"""About one text: more help nobody."""

NOT_ANALYSED = " cannot be analysed"
"""What stands behind the name of a construct that no view definition can hold."""


class UnreadableError(Exception):
    """A part of a query that cannot be read; why is among the problems already."""


class Problems(Struct):
    """Diagnostics about one text; shared by everything that reads a part of it.

    Attributes:
        found: everything found, in any order.
    """

    source: SqlText
    found: list[Diagnostic] = field(default_factory=list)

    @property
    def unsupported(self) -> list[Diagnostic]:
        """What keeps the view from being read, though the SQL is right."""
        return [one for one in self.found if one.code is Code.SQL_UNSUPPORTED]

    @property
    def errors(self) -> list[Diagnostic]:
        """What is wrong with the SQL."""
        return [one for one in self.found if one.severity is Severity.ERROR]

    def error(
        self,
        code: Code,
        message: str,
        tree: exp.Expr | None,
        label: str = "",
        *,
        hint: str | None = None,
        context: tuple[ContextSpan, ...] = (),
    ) -> UnreadableError:
        """Notes an error; raise what is returned where nothing can be read on."""
        self._add(Diagnostic(code, message, self.source.span_of(tree), label, context, hint=hint))
        return UnreadableError()

    def outside(self, what: str, tree: exp.Expr | None, hint: str) -> UnreadableError:
        """Notes a construct that no view definition can hold; `hint` says the nearest thing that works."""
        self._add(
            Diagnostic(
                Code.SQL_UNSUPPORTED,
                f"{what}{NOT_ANALYSED}",
                self.source.span_of(tree),
                "the view is kept as text, and may be undecided where what it reads changes",
                hint=hint,
                severity=Severity.WARNING,
            )
        )
        return UnreadableError()

    def _add(self, diagnostic: Diagnostic) -> None:
        if len(self.found) < _MOST_FOUND and diagnostic not in self.found:
            self.found.append(diagnostic)


def counted(number: int) -> str:
    """A number of columns in words.

    >>> counted(1), counted(2)
    ('1 column', '2 columns')
    """
    return f"{number} column{'' if number == 1 else 's'}"
