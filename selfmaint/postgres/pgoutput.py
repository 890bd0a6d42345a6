"""The messages of PostgreSQL's logical replication, as the output plugin `pgoutput` writes them in protocol 1.

Source: PostgreSQL's documentation, "Logical Replication Message Formats".
"""

from __future__ import annotations

import struct
from typing import Final, TypeAlias, final

from msgspec import Struct


@final
class Unchanged:
    """A large value that an update left as it was, and the log does not repeat."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()

_EPOCH_S = 946_684_800
"""Where the server's clock begins: the year 2000, in seconds since 1970."""

Image: TypeAlias = tuple[str | Unchanged | None, ...]
"""A row: for each column its text, null, or that it is not said."""


class Begin(Struct, frozen=True):
    """A transaction begins.

    Attributes:
        commit: where its commit is in the log.
        xid: the lower half of its id.
        time_s: when it committed by the server's clock, in seconds since 1970.
    """

    commit: int
    xid: int
    time_s: float = 0.0


class Commit(Struct, frozen=True):
    """A transaction ends; `end` is the place after its commit."""

    commit: int
    end: int


class Column(Struct, frozen=True):
    """A column of a table: its name, the id of its type, and what is said of the type (`atttypmod`)."""

    name: str
    type: int
    modifier: int


class Table(Struct, frozen=True):
    """What a table looks like from here on.

    Attributes:
        identity: its replica identity: `f` where old rows are logged whole.
    """

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[Column, ...]

    @property
    def full_name(self) -> str:
        """The name after the schema."""
        return f"{self.schema}.{self.name}"


class RowChange(Struct, frozen=True):
    """A row comes (no old one), goes (no new one), or changes.

    Attributes:
        table: the id of its table.
        old: the row that goes; None for an insertion, or where it is not said.
        new: the row that comes.
        is_whole: whether all columns of the old row are said.
    """

    table: int
    old: Image | None
    new: Image | None
    is_update: bool = False
    is_whole: bool = False


class Truncation(Struct, frozen=True):
    """Tables lose all their rows."""

    tables: tuple[int, ...]


Message: TypeAlias = Begin | Commit | Table | RowChange | Truncation | None
"""A message; None for one that changes no row (types, origins, messages of others)."""


def message(data: bytes) -> Message:
    """What the bytes of a message say.

    Raises:
        ValueError: they are no message of protocol 1.
    """
    reader = _Reader(data)
    try:
        kind = chr(reader.number("B"))
        match kind:
            case "B":
                commit, micros, xid = reader.number("Q"), reader.number("q"), reader.number("I")
                return Begin(commit, xid, _EPOCH_S + micros / 1e6)
            case "C":
                reader.number("B")
                return Commit(reader.number("Q"), reader.number("Q"))
            case "R":
                return reader.table()
            case "I" | "U" | "D":
                return reader.change(kind)
            case "T":
                count = reader.number("I")
                reader.number("B")
                return Truncation(tuple(reader.number("I") for _ in range(count)))
            case "O" | "Y" | "M":
                return None
    except (struct.error, IndexError, UnicodeDecodeError) as failure:
        raise ValueError(f"a message is cut off or damaged: {failure}") from failure
    raise ValueError(f"a message of the unknown kind {kind!r}")


class _Reader:
    """Reads a message from its beginning."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, size: str) -> int:
        form = f">{size}"
        (found,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return int(found)

    def _name(self) -> str:
        end = self._data.index(b"\0", self._at)
        found = self._data[self._at : end].decode()
        self._at = end + 1
        return found

    def table(self) -> Table:
        oid, schema, name, identity = self.number("I"), self._name(), self._name(), chr(self.number("B"))
        columns = []
        for _ in range(self.number("H")):
            self.number("B")  # whether it is of the key
            columns.append(Column(self._name(), self.number("I"), self.number("i")))
        return Table(oid, schema or "pg_catalog", name, identity, tuple(columns))

    def change(self, kind: str) -> RowChange:
        table = self.number("I")
        old, part = None, chr(self.number("B"))
        is_whole = part == "O"
        if part in "OK":
            old = self._image()
            part = chr(self.number("B")) if kind == "U" else ""
        if part not in ("", "N"):
            raise ValueError(f"a row of the unknown kind {part!r}")
        return RowChange(table, old, self._image() if part else None, kind == "U", is_whole)

    def _image(self) -> Image:
        return tuple(self._value() for _ in range(self.number("H")))

    def _value(self) -> str | Unchanged | None:
        match chr(self.number("B")):
            case "n":
                return None
            case "u":
                return UNCHANGED
            case "t":
                size = self.number("I")
                found = self._data[self._at : self._at + size]
                if len(found) != size:
                    raise IndexError("a value is longer than the message")
                self._at += size
                return found.decode()
            case other:
                raise ValueError(f"a value of the unknown kind {other!r}")
