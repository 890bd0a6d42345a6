"""A tiny parser of rules.

A program is a sequence of rules such as ``v0(X, Y) :- r(X, Y), s(Y, 'c'), X < 10.``
Capitalised names are variables; quoted text, numbers, true and false are constants, and so is a
date, written ``date '2024-01-31'``: to the oracle it is its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .rules import Atom, Comparison, Rule, Term, Variable

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<punctuation> :- | [(),.] )
      | (?P<operator> <= | >= | != | <> | [<>=] )
      | '(?P<single> [^']* )'
      | "(?P<double> [^"]* )"
      | (?P<number> -?\d+(?:\.\d+)? )
      | (?P<name> [A-Za-z]\w* )
    )\s*""",
    re.VERBOSE,
)
Token = tuple[str, str]


def parse_program(text: str) -> list[Rule]:
    """The rules of a program, in order."""
    tokens = _Tokens(list(_tokens(text.strip())))
    rules = []
    while not tokens.at_end():
        head = tokens.atom()
        tokens.expect(":-")
        literals = [tokens.literal()]
        while tokens.expect(",", ".") == ",":
            literals.append(tokens.literal())
        body = tuple(literal for literal in literals if isinstance(literal, Atom))
        comparisons = tuple(literal for literal in literals if isinstance(literal, Comparison))
        rules.append(Rule.of(head, body, comparisons))
    return rules


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None or found.lastgroup is None:
            raise ValueError(f"cannot read the rules at {text[position:]!r}")
        yield found.lastgroup, found[found.lastgroup]
        position = found.end()


@dataclass(slots=True)
class _Tokens:
    """The tokens of a program, and how far they have been read."""

    tokens: list[Token]
    position: int = 0

    def at_end(self) -> bool:
        return self.position == len(self.tokens)

    def take(self) -> Token:
        if self.at_end():
            raise ValueError("the rules end too early")
        self.position += 1
        return self.tokens[self.position - 1]

    def expect(self, *texts: str) -> str:
        kind, text = self.take()
        if kind != "punctuation" or text not in texts:
            raise ValueError(f"expected one of {texts}, found {text!r}")
        return text

    def literal(self) -> Atom | Comparison:
        if self.tokens[self.position + 1 : self.position + 2] == [("punctuation", "(")]:
            return self.atom()
        left = self.term()
        kind, text = self.take()
        if kind != "operator":
            raise ValueError(f"expected a comparison, found {text!r}")
        return Comparison(left, "!=" if text == "<>" else text, self.term())

    def atom(self) -> Atom:
        kind, name = self.take()
        if kind != "name":
            raise ValueError(f"expected a predicate, found {name!r}")
        self.expect("(")
        terms: list[Term] = []
        if self.tokens[self.position : self.position + 1] == [("punctuation", ")")]:
            self.take()
            return Atom(name, ())
        while True:
            terms.append(self.term())
            if self.expect(",", ")") == ")":
                return Atom(name, tuple(terms))

    def term(self) -> Term:
        kind, text = self.take()
        if (kind, text) == ("name", "date"):
            kind, text = self.take()
        if kind in ("single", "double"):
            return text
        if kind == "number":
            return float(text) if "." in text else int(text)
        if kind == "name" and text in ("true", "false"):
            return text == "true"
        if kind == "name" and text[0].isupper():
            return Variable(text)
        raise ValueError(f"expected a variable or a constant, found {text!r}")
