"""What passes between an engine and this process, a bounded number of rows at a time, and statements over it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from datalog.model import ColumnType, Row
from datalog.sql.changes import Query
from selfmaint.engine.protocol import D
from selfmaint.store.expected import Expected

if TYPE_CHECKING:
    from selfmaint.store.spill import Spill

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that leave an engine.

    Attributes:
        types: the types of their columns; None for one that the language does not have.
        rows: them, to be gone through once; instants as a clock in UTC shows them.
    """

    types: Sequence[ColumnType | None]
    rows: Iterable[Row]


class Frame(Protocol[R_co]):
    """Rows whose columns may be of any type, structs among them."""

    @property
    def columns(self) -> Sequence[str]:
        """Their names."""
        ...

    def records(self) -> Iterator[object]:
        """The rows, in no order: mappings from columns to values, or texts of JSON."""
        ...

    def rows(self, expected: Expected) -> R_co:
        """Some columns, matched by name, in their types.

        Raises:
            InputError: SM104 other types.
        """
        ...


class Exchange(Protocol[D]):
    """How rows enter an engine and leave it."""

    @property
    def zone(self) -> str:
        """The time zone on whose clock timestamps without a zone of their own are."""
        ...

    def entered(self, spill: Spill) -> D:
        """The rows of a spill that has ended; a file is read when they are used."""
        ...

    def stored(self, location: str, expected: Expected) -> D:
        """The rows of a file.

        Raises:
            InputError: SM103 it is not there; SM104 other columns or types.
        """
        ...

    def frame(self, given: object) -> Frame[D] | None:
        """A frame that is the engine's own; None for anything else."""
        ...

    def distinct(self, data: D) -> Rows:
        """The distinct rows of a relation.

        Raises:
            InputError: SM104 a value that this process does not have, such as a year after 9999; as they come.
        """
        ...

    def computed(
        self,
        query: Callable[[Sequence[str]], Query],
        parts: Sequence[D],
        columns: Sequence[tuple[str, ColumnType]],
    ) -> D:
        """The rows of a query over some relations, when they are used.

        Args:
            query: made of the relations' names; their columns are `c0`, `c1`, ..., and so are the query's own.
            parts: the relations.
            columns: the names and types of the query's columns.
        """
        ...
