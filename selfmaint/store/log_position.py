"""Which transactions of a PostgreSQL server's log some contents have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from datalog.copies import replace

_EPOCH = 1 << 32
"""Transaction ids in the log are the lower half of those that snapshots name."""


def lsn_text(lsn: int) -> str:
    """A log sequence number as PostgreSQL writes it.

    >>> lsn_text(23803720)
    '0/16B3748'
    """
    return f"{lsn >> 32:X}/{lsn & (_EPOCH - 1):X}"


def lsn_of(text: str) -> int:
    """The number that a text says.

    >>> lsn_of("1/16B3748") == (1 << 32) + 23803720
    True

    Raises:
        ValueError: it is none.
    """
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


class Snapshot(Struct, frozen=True):
    """Which transactions a reader of the server sees.

    Attributes:
        least: all before this one have ended.
        most: this one and all after it are not seen.
        running: those between that are not seen.
    """

    least: int
    most: int
    running: frozenset[int] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Snapshot:
        """From what `pg_current_snapshot()` writes.

        >>> Snapshot.parse("10:20:10,14").shows(12), Snapshot.parse("10:20:10,14").shows(14)
        (True, False)

        Raises:
            ValueError: it is none.
        """
        least, most, running = text.split(":")
        return cls(int(least), int(most), frozenset(int(one) for one in running.split(",") if one))

    def text(self) -> str:
        """As the server writes it."""
        return f"{self.least}:{self.most}:{','.join(map(str, sorted(self.running)))}"

    def whole(self, xid: int) -> int:
        """The whole id of a transaction of which the log has the lower half: the one nearest to this snapshot.

        >>> Snapshot((1 << 32) + 2, (1 << 32) + 5).whole((1 << 32) - 1), Snapshot(2, 5).whole(7)
        (4294967295, 7)
        """
        near = (self.most & ~(_EPOCH - 1)) | (xid & (_EPOCH - 1))
        candidates = [one for one in (near - _EPOCH, near, near + _EPOCH) if one >= 0]
        return min(candidates, key=lambda one: abs(one - self.most))

    def shows(self, xid: int) -> bool:
        """Whether the effects of a committed transaction, named by its whole id, are seen."""
        return xid < self.least or (xid < self.most and xid not in self.running)


class LogPosition(Struct, frozen=True):
    """Which transactions some contents have: those that committed before a place of the log.

    After the contents were computed from their sources there may be some more: those that the snapshot showed in
    which they were computed. A reader sees transactions in another order than the log has them.

    Attributes:
        system: the server's identifier.
        slot: the replication slot.
        lsn: every transaction whose commit is before it is in the contents.
        snapshot: those that it shows are, too, as far as they committed before `upto`.
        upto: where the log ended when the snapshot had been taken.
        unseen: whole ids of transactions in the contents that readers of the server did not see yet.
        tables: by base relation what its table is: another one of the same name is not followed on.
        shapes: by base relation what shows that its rows were rewritten past the log.
    """

    system: str
    slot: str
    lsn: int
    snapshot: Snapshot | None = None
    upto: int = 0
    unseen: tuple[int, ...] = ()
    tables: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, str] = field(default_factory=dict)

    def has(self, commit: int, xid: int) -> bool:
        """Whether a transaction is in the contents."""
        if commit < self.lsn:
            return True
        if self.snapshot is None or commit >= self.upto:
            return False
        return self.snapshot.shows(self.snapshot.whole(xid))

    def after(self, lsn: int, unseen: Iterable[int]) -> LogPosition:
        """The position of contents that have everything before a later place of the log."""
        lsn = max(lsn, self.lsn)
        snapshot, upto = (self.snapshot, self.upto) if lsn < self.upto else (None, 0)
        return replace(self, lsn=lsn, unseen=tuple(sorted(unseen)), snapshot=snapshot, upto=upto)

    def entry(self) -> dict[str, Any]:
        """As JSON has it."""
        found: dict[str, Any] = {
            "system": self.system,
            "slot": self.slot,
            "lsn": lsn_text(self.lsn),
            "tables": dict(self.tables),
            "shapes": dict(self.shapes),
        }
        if self.unseen:
            found["unseen"] = list(self.unseen)
        if self.snapshot is not None:
            found |= {"snapshot": self.snapshot.text(), "upto": lsn_text(self.upto)}
        return found

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> LogPosition:
        """From JSON.

        Raises:
            ValueError, KeyError: it is none that was written here.
        """
        snapshot = found.get("snapshot")
        return cls(
            found["system"],
            found["slot"],
            lsn_of(found["lsn"]),
            None if snapshot is None else Snapshot.parse(snapshot),
            lsn_of(found.get("upto", "0/0")),
            tuple(found.get("unseen", ())),
            found["tables"],
            found["shapes"],
        )
