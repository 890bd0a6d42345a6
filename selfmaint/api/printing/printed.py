"""A view's statements, each a query or command in Spark SQL, and as a script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import overload

from datalog.model import Program


@unique
class StatementKind(Enum):
    """What a statement is for."""

    HELD = "held"
    """Holds rows of a view that several of the other statements look up, for these."""
    TEST = "test"
    """The self-maintainability test: the view is self-maintainable if no test has a row and no group is open."""
    PROBE = "probe"
    """Keys to look up in a base relation, which settle a failing test."""
    GAINED = "gained"
    """Rows to insert into the view."""
    LOST = "lost"
    """Rows to delete from the view."""
    OPEN = "open"
    """Groups of a view for which the merge has no right values; other knowledge may have them."""
    MERGE = "merge"
    """Brings the table of a view that groups up to date."""
    PART = "part"
    """Makes the rows readable of what a view with LEFT JOINs is made of, for other statements."""
    COUNTED = "counted"
    """Makes the rows of a view that keeps duplicates readable with their numbers of copies, for other statements."""
    CHANGES = "changes"
    """Holds the rows of such a view that change, with their new numbers of copies."""
    DELETE = "delete"
    """Deletes these rows from its table."""
    INSERT = "insert"
    """Inserts them into its table as often as they stand now."""
    ANEW = "anew"
    """Computes the table of a view anew from those of others; run after all other kinds."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One query.

    Attributes:
        kind: what it is for.
        name: its predicate, such as `v1@depends_1`; of held rows the table that holds them.
        about: what its rows are, in words.
        program: its rules, as they are before demands lead through them.
        reads: the tables that it reads, dotted names quoted where need be.
        exact: of a test and of the open groups, whether a row proves that the view is not self-maintainable; where
            False, `check` knows more than the statement reads, and may say yes. None of other statements.
    """

    kind: StatementKind
    name: str
    about: str
    program: Program
    sql: str
    reads: tuple[str, ...]
    exact: bool | None = None


@dataclass(frozen=True, repr=False)
class Statements(Sequence[Statement]):
    """What decides and maintains a view.

    Attributes:
        statements: what holds rows, tests, then probes, then what changes the view; only those that can have a row.
        undecided: why no statements would be right; None if these are.
        unchanging: why nothing changes the view, or none of the changes that were asked for; empty if something may.
    """

    view: str
    statements: tuple[Statement, ...]
    undecided: str | None
    unchanging: str

    @overload
    def __getitem__(self, index: int) -> Statement: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Statement, ...]: ...

    def __getitem__(self, index: int | slice) -> Statement | tuple[Statement, ...]:
        return self.statements[index]

    def __len__(self) -> int:
        return len(self.statements)

    def __str__(self) -> str:
        """The queries as a script: each ends with a semicolon, and what its rows are is said before it."""
        return "\n".join(self._script())

    def _script(self) -> Iterator[str]:
        if self.unchanging:
            yield f"-- nothing to do: {one_line(self.unchanging)}"
        elif self.undecided is not None:
            yield f"-- undecided: {one_line(self.undecided)}"
        for one in self.statements:
            yield f"-- {one_line(f'{one.kind.value} {one.name}: {one.about}')}"
            yield f"-- reads {one_line(', '.join(one.reads))}\n{one.sql};\n"

    def __repr__(self) -> str:
        return f"Statements({self.view}: {', '.join(one.name for one in self.statements)})"


def one_line(line: str) -> str:
    """A name may hold a line feed, which would end a comment."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
