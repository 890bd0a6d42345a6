"""Hints for text that cannot stand where it stands: what people bring along from other languages."""

from __future__ import annotations

from collections.abc import Collection

from datalog.syntax.pieces import PieceKind, Surroundings
from datalog.syntax.quoting import RESERVED

_HINTS = {
    "==": "equality is written `=`",
    "=<": "write `<=`",
    "=>": "write `>=`",
    ";": "there is no `or`: write one rule for each alternative",
    "|": "there is no `or`: write one rule for each alternative",
    "||": "there is no `or`: write one rule for each alternative",
    "or": "there is no `or`: write one rule for each alternative",
    "and": "subgoals are joined by `,`",
    "&&": "subgoals are joined by `,`",
    "+": "there is no arithmetic in rules",
    "-": "there is no arithmetic in rules; a negative number has its sign directly before it",
    "*": "there is no arithmetic in rules",
    "/": "there is no arithmetic in rules; comments start with `%`, `//` or `#`",
    "--": "comments start with `%`, `//` or `#`",
    "/*": "comments start with `%`, `//` or `#` and end with the line",
    "[": "there are no lists; arguments stand in `(` and `)`",
    "{": "there are no sets; arguments stand in `(` and `)`",
    "is": "a null test is written `X is null` or `X is not null`",
    "\N{LEFT SINGLE QUOTATION MARK}": "strings stand in plain quotes `'`",
    "\N{RIGHT SINGLE QUOTATION MARK}": "strings stand in plain quotes `'`",
    "\N{LEFT DOUBLE QUOTATION MARK}": "strings stand in plain quotes `'`",
    "\N{RIGHT DOUBLE QUOTATION MARK}": "strings stand in plain quotes `'`",
}
_NOT_ARROWS = frozenset({"=", ":=", "->", "=>", "<=", ":", "if"})
_LOWER_CASE_KEYWORDS = RESERVED | {"key", "unique", "foreign", "references"}


def hint_for(around: Surroundings, expected: Collection[str]) -> str | None:
    """What to do about unexpected text, if it is a known mistake.

    Args:
        around: the text and what stands before and behind it.
        expected: the grammar's terminals that could have come next.
    """
    found, previous = around.found, around.previous
    word = found.text.lower()
    if "_ARROW" in expected and found.text in _NOT_ARROWS:
        return "a rule is written `head :- body.`"
    if found.text in (":-", "<-"):
        return "a rule has one head, before the arrow; end the rule before with a full stop"
    if found.text == "." and previous is not None and previous.text in (":-", "<-"):
        return "a fact is written without an arrow: `head.`"
    if found.kind is PieceKind.WORD and found.text != word and word in _LOWER_CASE_KEYWORDS:
        return f"write `{word}` in lower case"
    if found.text == "(" and "VARIABLE" in expected:
        return "parentheses stand only around the terms of an atom and behind `not`"
    if "COLON" in expected and found.kind is PieceKind.WORD:
        return f"a column's type stands behind a colon: `{_text(around)}: {found.text}`"
    if found.kind is PieceKind.END and "RPAR" in expected:
        return "a parenthesis is not closed"
    return _HINTS.get(word)


def _text(around: Surroundings) -> str:
    return "" if around.previous is None else around.previous.text
