"""Explaining a syntax error: the common mistakes are recognised, the others say what was expected."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from lark import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from msgspec import Struct

from datalog.diagnostics import Code, ContextSpan, Diagnostic
from datalog.model.spans import Span
from datalog.syntax.pieces import Piece, PieceKind, Surroundings, hint_for, next_statement, surroundings
from datalog.syntax.places import Places

_TERM = frozenset({"VARIABLE", "STRING"})
_TERM_WORDS = _TERM | {
    "ANONYMOUS",
    "QUOTED_VARIABLE",
    "INTEGER",
    "DECIMAL",
    "FLOAT",
    "TYPED",
    "TRUE",
    "FALSE",
    "NULL",
}
_COLUMN = frozenset({"NAME", "VARIABLE", "QUOTED_NAME"})
_SUBGOAL = frozenset({"NAME", "VARIABLE", "_NEGATION_SIGN"})

_WORDS = {
    "LPAR": "`(`",
    "COLON": "`:`",
    "NOT": "`not null`",
    "COMMA": "`,`",
    "RPAR": "`)`",
    "OPERATOR": "a comparison sign",
    "IS": "`is null`",
    "_ARROW": "`:-`",
    "_STOP": "`.`",
    "KEY": "`key`",
    "UNIQUE": "`unique`",
    "FOREIGN": "`foreign`",
    "REFERENCES": "`references`",
}


def _expected_words(terminals: Collection[str]) -> str:
    """The terminals in plain words, joined by commas and `or`.

    >>> _expected_words({"COMMA", "AMPERSAND", "_STOP"})
    '`,` or `.`'
    """
    left = set(terminals)
    words: list[str] = []

    def take(needed: Collection[str], *phrases: str, taken: Collection[str] = ()) -> None:
        if left.issuperset(needed):
            left.difference_update(taken or needed)
            words.extend(phrases)

    take({"NAME", "_DECL"}, "a rule", "a declaration", taken={"NAME", "QUOTED_NAME", "_DECL", "$END"})
    take(_SUBGOAL, "a subgoal", taken={*_TERM_WORDS, *_SUBGOAL, "QUOTED_NAME", "NOT"})
    take(_TERM, "a variable", "a constant", taken=_TERM_WORDS)
    take(_COLUMN, "a column name", taken=_COLUMN | {"ANONYMOUS"})
    take({"NAME", "VARIABLE"}, "a column type")
    take({"NAME", "QUOTED_NAME"}, "a relation name")
    take({"INTEGER"}, "a whole number")
    take({"NULL", "NOT"}, "`null`", "`not null`")
    take({"NULL"}, "`null`")
    words += [phrase for terminal, phrase in _WORDS.items() if terminal in left]
    if not words:
        return "the end of the text"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


_SQL_WORDS = frozenset({"select", "insert", "create", "update", "delete", "with", "merge", "alter", "drop"})
_NO_SQL_AFTER = frozenset({"(", ":-", "<-", "@", ".", ""})


class Explained(NamedTuple):
    """A syntax error's diagnostic, and the offset at which the next statement can be read, if any."""

    diagnostic: Diagnostic
    resume: int | None


def explain(error: UnexpectedInput, text: str, places: Places, expected: frozenset[str]) -> Explained:
    """What is wrong at a syntax error, and where to read on."""
    case = _Case(text, places, surroundings(text, _offset(error, len(text))), expected)
    resume = next_statement(text, case.around.found.start)
    for recognise in (_sql, _unclosed_quote, _missing_stop, _upper_case_relation, _lower_case_term):
        diagnostic = recognise(case)
        if diagnostic is not None:
            if diagnostic.code is Code.MISSING_STOP and case.around.found.kind is not PieceKind.END:
                resume = case.around.found.start
            return Explained(diagnostic, resume)
    return Explained(_unexpected(case), resume)


class _Case(Struct, frozen=True):
    """A syntax error: the text, what stands around the error, and the terminals that could come next."""

    text: str
    places: Places
    around: Surroundings
    expected: frozenset[str]

    def span(self, piece: Piece) -> Span:
        """The place of a piece; the end of the text is just behind the last piece."""
        if piece.kind is PieceKind.END:
            previous = self.around.previous
            return self.behind(previous) if previous is not None else self._at(piece.start, 1)
        return self._at(piece.start, len(piece.text))

    def behind(self, piece: Piece) -> Span:
        """The place just behind a piece."""
        return self._at(piece.end, 1)

    def starts_line(self, piece: Piece) -> bool:
        """Whether a piece is on a later line than the one before it."""
        previous = self.around.previous
        return previous is not None and "\n" in self.text[previous.end : piece.start]

    def _at(self, start: int, length: int) -> Span:
        line_start = self.text.rfind("\n", 0, start) + 1
        line = self.text.count("\n", 0, start) + 1
        return Span(line, start - line_start + 1, max(1, length), self.places.source)


def _offset(error: UnexpectedInput, end: int) -> int:
    start: int | None = None
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        start = error.token.start_pos
    elif isinstance(error, UnexpectedCharacters):
        start = error.pos_in_stream
    return end if start is None else start


def _sql(case: _Case) -> Diagnostic | None:
    """`SELECT ...`: the statement begins with a word of SQL."""
    statement = (*case.around.statement, case.around.found, case.around.following)
    first, second = statement[0], statement[1]
    if first.text.lower() not in _SQL_WORDS or second.text in _NO_SQL_AFTER:
        return None
    return Diagnostic(
        Code.SQL_TEXT,
        f"`{first.text}` begins a statement of SQL, not a rule",
        case.span(first),
        "this is SQL",
        note="a program consists of rules `head :- subgoal, ..., subgoal.`, facts and declarations",
        hint="`select a from r where b > 3` is written `v(A) :- r(A, B), B > 3.`",
    )


def _unclosed_quote(case: _Case) -> Diagnostic | None:
    """A string that does not end on its line, or two strings of which one should not have ended."""
    found, previous = case.around.found, case.around.previous
    quote = found
    if found.kind is not PieceKind.UNCLOSED:
        unclosed = case.around.following.kind is PieceKind.UNCLOSED
        if not (unclosed and previous is not None and previous.kind is PieceKind.QUOTED):
            return None
        quote = previous
    mark = quote.text[0]
    kind, end = ("name", "a backtick") if mark == "`" else ("string", f"`{mark}`")
    return Diagnostic(
        Code.UNCLOSED_QUOTE,
        f"unclosed {kind}",
        case.span(quote),
        f"the {kind} that begins here does not end as it should",
        hint=f"end it with {end} on the same line; a quote inside is doubled, a line feed is `\\n`",
    )


def _missing_stop(case: _Case) -> Diagnostic | None:
    """The statement is complete, and another one or the end of the text follows."""
    found, previous = case.around.found, case.around.previous
    if previous is None or "_STOP" not in case.expected:
        return None
    if not (found.kind is PieceKind.END or found.text in (".decl", ".view") or _starts_rule(case)):
        return None
    rest = () if found.kind is PieceKind.END else (ContextSpan(case.span(found), "the next one begins here"),)
    more = ", or go on with `,`" if "COMMA" in case.expected else ""
    return Diagnostic(
        Code.MISSING_STOP,
        f"expected {_expected_words(case.expected)}, found {_found_words(found)}",
        case.behind(previous),
        "a full stop is missing here",
        rest,
        hint=f"end every rule, fact and declaration with a full stop{more}",
    )


def _starts_rule(case: _Case) -> bool:
    found = case.around.found
    return case.starts_line(found) and (found.kind is PieceKind.WORD or found.text.startswith("`"))


def _upper_case_relation(case: _Case) -> Diagnostic | None:
    """`Orders(X)`: what looks like a variable is used as a relation."""
    found, previous = case.around.found, case.around.previous
    name = None
    if found.text in ("(", "@") and previous is not None and _is_capitalised(previous):
        name = previous
    elif _is_capitalised(found) and "NAME" in case.expected and "VARIABLE" not in case.expected:
        name = found
    if name is None:
        return None
    lower = name.text.lower()
    return Diagnostic(
        Code.UPPER_CASE_RELATION,
        f"relation name `{name.text}` starts with a capital letter",
        case.span(name),
        "this would be a variable",
        note="relation names start with a lower-case letter or stand in backticks",
        hint=f"write `{lower}`, or put the name in backticks if it has capital letters",
    )


def _lower_case_term(case: _Case) -> Diagnostic | None:
    """`r(x)` or `x < 3`: what looks like a relation is used as a variable or constant."""
    found, previous = case.around.found, case.around.previous
    word = None
    if _is_lower(found) and "VARIABLE" in case.expected and "NAME" not in case.expected:
        word = found
    elif (
        previous is not None
        and _is_lower(previous)
        and "LPAR" in case.expected
        and (found.text in ("=", "!=", "<>", "<", "<=", ">", ">=", "is"))
    ):
        word = previous
    if word is None:
        return None
    variable = word.text[0].upper() + word.text[1:]
    hint = f"write `{variable}` for a variable, `'{word.text}'` for a string"
    if word.text in ("date", "timestamp", "timestamp_ntz"):
        hint = f"a constant is written `{word.text} '2026-01-31'`"
    elif word is found and case.around.following.text == "(":
        hint = "terms cannot be nested, and there are no functions"
    return Diagnostic(
        Code.LOWER_CASE_TERM,
        f"`{word.text}` is neither a variable nor a constant",
        case.span(word),
        f"expected {_expected_words(case.expected) if word is found else 'a variable or a constant'}",
        note="variables start with a capital letter or `_`, strings stand in quotes",
        hint=hint,
    )


def _unexpected(case: _Case) -> Diagnostic:
    found = case.around.found
    expected = _expected_words(case.expected)
    return Diagnostic(
        Code.UNEXPECTED_TEXT,
        f"expected {expected}, found {_found_words(found)}",
        case.span(found),
        f"expected {expected}",
        hint=hint_for(case.around, case.expected),
    )


def _found_words(piece: Piece) -> str:
    return "the end of the text" if piece.kind is PieceKind.END else f"`{piece.text}`"


def _is_capitalised(piece: Piece) -> bool:
    return piece.kind is PieceKind.WORD and piece.text[0] in "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"


def _is_lower(piece: Piece) -> bool:
    return piece.kind is PieceKind.WORD and not _is_capitalised(piece) and piece.text != ".decl"
