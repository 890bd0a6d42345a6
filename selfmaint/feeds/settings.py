"""What a warehouse file says about its change feeds."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique

from msgspec import Struct, field


@unique
class DecimalText(Enum):
    """How a feed without schemas writes decimals into strings."""

    TEXT = "text"
    """As digits: `decimal.handling.mode=string`."""
    BASE64 = "base64"
    """The unscaled value's bytes, big-endian, in base64: `decimal.handling.mode=precise`, Debezium's default."""


@unique
class TimeUnit(Enum):
    """What a feed without schemas counts in a timestamp that is an integer; the value is the unit's nanoseconds."""

    MILLIS = "ms"
    MICROS = "us"
    NANOS = "ns"

    @property
    def nanoseconds(self) -> int:
        """The unit's length."""
        return {"ms": 1_000_000, "us": 1_000, "ns": 1}[self.value]


class FeedSettings(Struct, frozen=True):
    """How the feeds of a warehouse are to be read.

    Attributes:
        tables: the base relation of a source table, by `schema.table`, `database.table` or `table`; a table that
            is not named has the relation of its own name.
        ignored: source tables whose events are left out.
        decimals: how decimals are written where no schema says it; None: only what is unambiguous is read.
        timestamps: what integers count where no schema says it; None: such timestamps are refused.
        full_before_images: whether every before-image is whole (`REPLICA IDENTITY FULL`), so that one with nothing
            but nulls besides the key really holds nulls.
    """

    tables: Mapping[str, str] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    decimals: DecimalText | None = None
    timestamps: TimeUnit | None = None
    full_before_images: bool = False
