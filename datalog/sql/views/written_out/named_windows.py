"""Windows that have names, written out where they are used.

    SELECT a, sum(b) OVER w AS n FROM r WINDOW w AS (PARTITION BY a)
    SELECT a, sum(b) OVER (PARTITION BY a) AS n FROM r

As in Spark a name is found as it is spelt, in the WINDOW clause of its own SELECT; one may stand for another. A text in
which a name is found otherwise, or is made more of, as in `OVER (w ORDER BY b)`, stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import sqlglot
from sqlglot.tokenizer_core import TokenType

from datalog.sql.views.split.written_parts import NoSplitError, Tokens

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_QUERIES = (TokenType.SELECT, TokenType.WITH)
_SPECIFYING = (
    *(TokenType.PARTITION_BY, TokenType.ORDER_BY, TokenType.ROWS, TokenType.RANGE, TokenType.R_PAREN),
    *(TokenType.DISTRIBUTE_BY, TokenType.CLUSTER_BY, TokenType.SORT_BY),
)


def windows_written_out(text: str) -> str:
    """A query without WINDOW clauses; the text itself where it has none, or one that is not understood.

    >>> windows_written_out("SELECT a, sum(b) OVER w AS n FROM r WINDOW w AS (ORDER BY a)")
    'SELECT a, sum(b) OVER (ORDER BY a) AS n FROM r'
    """
    found = text
    try:
        while (place := _clause(tokens := Tokens(found))) is not None:
            found = _Clause(tokens, place).without()
    except (NoSplitError, StopIteration, sqlglot.errors.SqlglotError):
        return text
    return found


def _clause(tokens: Tokens) -> int | None:
    """The last WINDOW clause: those inside queries in its SELECT stand before it."""
    kinds = [one.token_type for one in tokens.all]
    places = (i for i in range(len(kinds) - 3, 0, -1) if kinds[i] is TokenType.WINDOW)
    return next((i for i in places if kinds[i + 1] in _NAMES and kinds[i + 2] is TokenType.ALIAS), None)


class _Clause:
    """A WINDOW clause.

    Attributes:
        tokens: those of the text.
        end: the token behind the clause.
        named: by name, what it stands for.
    """

    def __init__(self, tokens: Tokens, start: int) -> None:
        self.tokens, self.start, self.end = tokens, start, start
        self.named: dict[str, str] = {}
        others: dict[str, str] = {}
        while self.end == start or self._kind(self.end) is TokenType.COMMA:
            name, place = self.tokens.all[self.end + 1].text, self.end + 3
            if name in self.named or name in others or self._kind(self.end + 2) is not TokenType.ALIAS:
                raise NoSplitError
            other = self._reference(place)
            if other is None:
                self.end = tokens.closing(place) + 1
                self.named[name] = self._text(place, self.end)
            else:
                self.end = place + (1 if self._kind(place) in _NAMES else 3)
                others[name] = other
        self.named |= {name: self._meant(other) for name, other in others.items()}

    def without(self) -> str:
        """The text without the clause."""
        text, at = "", 0
        for since, until, new in sorted([*self._uses(), (self.start, self.end, "")]):
            text = f"{text}{self.tokens.text[at : self.tokens.all[since].start]}{new}"
            at = self.tokens.all[until - 1].end + 1
        return f"{text}{self.tokens.text[at:]}".rstrip()

    def _uses(self) -> Iterator[tuple[int, int, str]]:
        """Where names stand behind OVER in the SELECT, as places of tokens, and what they stand for."""
        tokens, depth = self.tokens, self.tokens.depths[self.start]
        before = range(self.start - 1, -1, -1)
        first = next(i for i in before if tokens.depths[i] == depth and self._kind(i) is TokenType.SELECT)
        i, behind = first + 1, self.end
        if self._kind(self.end) is TokenType.QUALIFY:  # which may come before the clause, or after it
            behind = next(
                (k for k in range(self.end, len(tokens.all)) if tokens.depths[k] < depth), len(tokens.all)
            )
        while i < behind:
            if i == self.start:
                i = self.end
            if self._kind(i) is TokenType.L_PAREN and self._kind(i + 1) in _QUERIES:
                i = tokens.closing(i)
            if self._kind(i) is TokenType.OVER:
                name = self._reference(i + 1)
                if name is not None:
                    end = i + 2 if self._kind(i + 1) in _NAMES else i + 4
                    yield i + 1, end, self._meant(name)
            i += 1

    def _reference(self, place: int) -> str | None:
        """The name at a place where a window stands; None if it is written out there."""
        if self._kind(place) in _NAMES:
            return self.tokens.all[place].text
        if self._kind(place) is not TokenType.L_PAREN:
            raise NoSplitError
        if self._kind(place + 1) in _SPECIFYING:
            return None
        if self._kind(place + 1) not in _NAMES or self._kind(place + 2) is not TokenType.R_PAREN:
            raise NoSplitError
        return self.tokens.all[place + 1].text

    def _meant(self, name: str) -> str:
        if name not in self.named:
            raise NoSplitError
        return self.named[name]

    def _kind(self, place: int) -> TokenType | None:
        return self.tokens.all[place].token_type if place < len(self.tokens.all) else None

    def _text(self, since: int, until: int) -> str:
        all_ = self.tokens.all
        return self.tokens.text[all_[since].start : all_[until - 1].end + 1]
