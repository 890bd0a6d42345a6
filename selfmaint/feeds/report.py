"""How much of a feed was read, and what it came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from selfmaint.feeds.changes import Ignored


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
