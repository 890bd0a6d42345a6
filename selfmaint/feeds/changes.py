"""Split changes: deleted and inserted rows, with their places in the order (Zhou et al. 2007, section 2); how many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum, unique
from typing import Protocol, TypeAlias

from msgspec import Struct

from datalog.diagnostics import Diagnostic
from datalog.model import Row
from selfmaint.errors import Code
from selfmaint.feeds.ranges import Position, Scale


class Kind(IntEnum):
    """What happens to a row; at one position deletions come first."""

    DELETE = 0
    INSERT = 1


class Change(Struct, frozen=True):
    """One row that goes or comes.

    Attributes:
        kind: whether it goes or comes.
        row: the row, in declared columns.
        position: where it stands in the order.
        scale: what the position counts.
        partial: whether only the key is known.
        file: the file that holds the event; None where lines are no order.
        line: the event: lines of one file, from 1, or any number that tells events apart.
        leads: whether it is its event's first change.
    """

    kind: Kind
    row: Row
    position: Position
    scale: Scale
    partial: bool = False
    file: str | None = None
    line: int = 0
    leads: bool = True


def split(event: RowEvent, file: str | None = None, line: int = 0) -> Iterator[Change]:
    """The changes of an event, the deletion first."""
    if event.deleted is not None:
        yield Change(Kind.DELETE, event.deleted, event.position, event.scale, event.partial, file, line)
    if event.inserted is not None:
        yield Change(
            Kind.INSERT, event.inserted, event.position, event.scale, False, file, line, event.deleted is None
        )


class RowEvent(Struct, frozen=True):
    """An event that changes a row.

    Attributes:
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
        diagnostics: what is wrong, without a place.
    """

    def __init__(self, code: Code, message: str, hint: str | None = None, note: str | None = None) -> None:
        self.diagnostics = [Diagnostic(code, message, hint=hint, note=note)]
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class RelationReport:
    """What the feed says of one base relation.

    Attributes:
        events: how many events of it were read and lie in the range; for Delta and Iceberg rows, of which an
            update has two.
        repeated: how many of these were repetitions of another (the same change at the same log position).
        deleted: how many rows of before the batch are gone, or others, after it.
        inserted: how many rows are there after the batch that were not before.
        upto: the last position, for the next batch to begin after; None where there are no positions.
        has_key: whether rows are told apart by a declared key. If not, they are taken to be unique.
    """

    relation: str
    events: int
    repeated: int
    deleted: int
    inserted: int
    upto: str | None
    has_key: bool


@dataclass(frozen=True, slots=True)
class FeedReport:
    """What became of the events of a batch.

    Attributes:
        relations: what was read of each base relation.
        ignored: how many events change no row of a base relation, by what they are.
        outside: how many events lie outside the range of positions.
    """

    relations: tuple[RelationReport, ...] = ()
    ignored: Mapping[Ignored, int] = field(default_factory=dict)
    outside: int = 0

    @property
    def has_keys(self) -> bool:
        """Whether all rows are told apart by declared keys, so that the update is effective."""
        return all(entry.has_key for entry in self.relations)
