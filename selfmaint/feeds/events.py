"""What a record of a feed says: rows that go and come at a position, or nothing that concerns the relations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique
from typing import Protocol, TypeAlias

from datalog.diagnostics import Diagnostic
from datalog.model import Row
from selfmaint.errors import Code
from selfmaint.feeds.positions import Position, Scale


@dataclass(frozen=True, slots=True)
class RowEvent:
    """An event that changes a row.

    Attributes:
        relation: the base relation.
        position: where it stands in the order.
        scale: what the position counts.
        deleted: the row that goes; None for an insertion.
        inserted: the row that comes; None for a deletion.
        partial: whether of the row that goes only the key is known; the rest of it is null then.
        table: the full name of the source table; empty where none is said, or the warehouse file maps it.
    """

    relation: str
    position: Position
    scale: Scale
    deleted: Row | None
    inserted: Row | None
    partial: bool = False
    table: str = ""


@unique
class Ignored(Enum):
    """An event that changes no row of a base relation of the warehouse."""

    TOMBSTONE = "tombstones"
    MESSAGE = "messages"
    TABLE = "events of ignored tables"


Event: TypeAlias = RowEvent | Ignored


class EventReader(Protocol):
    """The one interface of all formats: what one record says."""

    def read(self, record: object) -> Event:
        """What a record says.

        Args:
            record: a parsed JSON value with decimals as `Decimal`, or a mapping from columns to values.

        Raises:
            RecordError: it cannot be read.
        """
        ...


class RecordError(Exception):
    """A record that cannot be read; whoever knows where it stands says so.

    Attributes:
        diagnostic: what is wrong, without a place.
    """

    def __init__(self, code: Code, message: str, hint: str | None = None, note: str | None = None) -> None:
        self.diagnostic = Diagnostic(code, message, hint=hint, note=note)
        super().__init__(message)
