"""Split changes: a deleted or an inserted row, with its place in the order (Zhou et al. 2007, section 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from datalog.model import Row
from selfmaint.feeds.events import RowEvent
from selfmaint.feeds.positions import Position, Scale


class Kind(IntEnum):
    """What happens to a row; at one position deletions come first."""

    DELETE = 0
    INSERT = 1


@dataclass(frozen=True, slots=True)
class Change:
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
