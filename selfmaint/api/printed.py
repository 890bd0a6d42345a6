"""A view's statements as a script, for any change or for some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import overload

from datalog.budget import BudgetSpentError, limit
from selfmaint.api.statements import Statement, not_printed, statements, tables_of
from selfmaint.decide.procedure import Decision
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.near import require_known
from selfmaint.warehouse.situation import Situation


@dataclass(frozen=True, repr=False)
class Statements(Sequence[Statement]):
    """What decides and maintains a view.

    Attributes:
        view: the view.
        statements: tests, then probes, then what changes the view; only those that can have a row.
        undecided: why no statements would be right; None if these are.
        unchanging: why nothing changes the view; empty if something may.
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


def printed(decision: Decision, view: str, situation: Situation, tables: Mapping[str, str]) -> Statements:
    """The statements of a view.

    Args:
        decision: the symbolic side of deciding; its budget bounds finding and writing the statements, too.
        view: its name.
        situation: what changes, and what is known besides the views.
        tables: for some views the name of a table of Spark's catalog.

    Raises:
        EmissionError: a name that Spark cannot take.
    """
    chosen = decision.catalog.view(view)
    found: tuple[Statement, ...] = ()
    undecided = not_printed(decision.catalog, chosen, situation)
    try:
        with limit(decision.budget_s, f"writing the statements of `{view}`"):
            found = statements(decision, chosen, situation, tables_of(decision.catalog, tables))
    except BudgetSpentError as spent:
        undecided = str(spent)
    return Statements(view, found, undecided, chosen.unchanging or "")


def any_change(
    catalog: Catalog, inserted: Iterable[str], deleted: Iterable[str], known: Situation
) -> Situation:
    """The named changes, or any if none is named, with what is known besides.

    Raises:
        InputError: SM102 a misspelt relation.
    """
    gaining, losing = frozenset(inserted), frozenset(deleted)
    require_known(sorted(gaining | losing), catalog.relations, "base relation")
    if not gaining and not losing:
        gaining = losing = frozenset(catalog.relations)
    return replace(known, inserted=gaining, deleted=losing)


def one_line(line: str) -> str:
    """A name may hold a line feed, which would end a comment."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
