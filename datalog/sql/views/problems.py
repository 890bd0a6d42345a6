"""What is found while SQL is read: errors, which refuse the text, and what keeps a view from being read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches

from sqlglot import exp

from datalog.diagnostics import Code, ContextSpan, Diagnostic, Severity
from datalog.sql.views.source import SqlText

_MOST_FOUND = 100
"""About one text: more help nobody."""

NOT_ANALYSED = " cannot be analysed"
"""What stands behind the name of a construct that no view definition can hold."""


class UnreadableError(Exception):
    """A part of a query that cannot be read; why is among the problems already."""


@dataclass(slots=True)
class Problems:
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
                "the view is kept as text, and is undecided where what it reads changes",
                hint=hint,
                severity=Severity.WARNING,
            )
        )
        return UnreadableError()

    def _add(self, diagnostic: Diagnostic) -> None:
        if len(self.found) < _MOST_FOUND and diagnostic not in self.found:
            self.found.append(diagnostic)


def near(name: str, known: Iterable[str], kind: str) -> str | None:
    """A hint for an unknown name, if another one is like it.

    >>> near("CUSTID", ["custId", "name"], "column")
    'a column `custId` exists'
    """
    by_folded = {one.casefold(): one for one in known}
    close = get_close_matches(name.casefold(), by_folded, 1)
    return f"a {kind} `{by_folded[close[0]]}` exists" if close else None


def counted(number: int) -> str:
    """A number of columns in words.

    >>> counted(1), counted(2)
    ('1 column', '2 columns')
    """
    return f"{number} column{'' if number == 1 else 's'}"
