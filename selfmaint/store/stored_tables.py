"""The states of a store: what is said of each, and which files make up its tables. The same for every kind of store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Generic, Protocol

from msgspec import Struct
from msgspec.structs import asdict

from datalog.copies import replace
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, input_error
from selfmaint.store.log_position import LogPosition

if TYPE_CHECKING:
    from datalog.sql import Table

ROWS = "rows:"
"""What the digest of an update of frames begins with."""

_SHOWN_DIGEST = 12
"""How much of a digest is shown."""


def require_same_tables(version: int, before: AbstractSet[str], now: AbstractSet[str]) -> None:
    """Refuses to go back to a snapshot at which there were other tables.

    Raises:
        InputError: SM408.
    """
    if before == now:
        return
    sides = ((now - before, "not there yet"), (before - now, "there still"))
    said = "; ".join(f"{', '.join(f'`{n}`' for n in sorted(names))}: {how}" for names, how in sides if names)
    raise input_error(
        Code.LAKE,
        f"other tables than now made up the store at snapshot {version}: {said}",
        "go back no further than to where these came or went (`selfmaint history`); "
        "`selfmaint import` brings views in anew, from sources as they are",
    )


class Commit(Struct, frozen=True):
    """What is said of a snapshot.

    Attributes:
        kind: `init`, `import`, `maintain` or `undo`.
        update: the id of the update that was maintained, or undone.
        positions: where the change feeds of relations ended; that under "" is for all others.
        changes: for each table the number of rows that it lost and gained.
        digest: that of the update's files, if it was given as files; behind `ROWS` if some of it was frames.
        given: what the update was given as, for people: a file, a folder of files, a feed.
        log: which transactions of a database's log the contents have, if they follow one.
        moment: of definitions that read the current date or time, the moment that the contents are of.
        definitions: by view, the definition that its rows are of from here on, as `written` has it; None of one that
            was left out.
        program: the digest of the program by which the rows of all its views are from here on, if it reads the clock.
    """

    kind: str
    update: str | None = None
    positions: dict[str, str] | None = None
    changes: dict[str, tuple[int, int]] | None = None
    digest: str | None = None
    given: str | None = None
    log: LogPosition | None = None
    moment: datetime | None = None
    definitions: dict[str, str | None] | None = None
    program: str | None = None

    @property
    def about(self) -> str:
        """What tells people which update it was: its id, or what it was given as."""
        if self.kind == "undo":
            return f"back to {self.update}"
        what = "rows" if (self.digest or "").startswith(ROWS) else "files"
        shown = (self.digest or "").removeprefix(ROWS)[:_SHOWN_DIGEST]
        return self.update or self.given or (f"{what} {shown}" if shown else "")

    def text(self) -> str:
        """As JSON."""
        apart = ("log", "moment", "definitions", "program")
        said = {n: value for n, value in asdict(replace(self, log=None)).items() if n not in apart}
        if self.log is not None:
            said["log"] = self.log.entry()
        if self.moment is not None:
            said["moment"] = self.moment.isoformat()
        if self.definitions:
            said["definitions"] = self.definitions
        if self.program:
            said["program"] = self.program
        return json.dumps(said)

    @classmethod
    def read(cls, text: str) -> Commit:
        """From JSON.

        Raises:
            ValueError: it is none that was written here.
        """
        found = json.loads(text)
        changes = found["changes"]
        return cls(
            found["kind"],
            found["update"],
            found["positions"],
            None if changes is None else {name: (lost, gained) for name, (lost, gained) in changes.items()},
            found.get("digest"),
            found.get("given"),
            LogPosition.read(found["log"]) if found.get("log") else None,
            datetime.fromisoformat(found["moment"]) if found.get("moment") else None,
            found.get("definitions"),
            found.get("program"),
        )


SNAPSHOT_COLUMN = "_ducklake_internal_snapshot_id"
"""In files of rows of several snapshots, the one in which a row was added, or deleted."""


class DataFile(Struct, frozen=True):
    """A Parquet file of a table's rows.

    Attributes:
        rows: how many rows of it belong to the table.
        is_newer: whether some of its rows were added after the snapshot.
        deleted: the Parquet file with the numbers (`pos`) of its deleted rows, if there is one.
        is_deleted_newer: whether some of these were deleted after the snapshot.
    """

    path: str
    rows: int
    is_newer: bool = False
    deleted: str | None = None
    is_deleted_newer: bool = False


class TableFiles(Struct, frozen=True):
    """What makes up a table at a snapshot.

    Attributes:
        version: the snapshot.
        columns: the names of its columns.
        types: their types, as DuckDB names them.
        spreads: for columns of whole numbers, how many there are from the smallest to the largest ever stored.
        never_null: columns in which no null was ever stored.
    """

    name: str
    version: int
    columns: tuple[str, ...]
    types: tuple[str, ...]
    files: tuple[DataFile, ...]
    spreads: dict[int, int]
    never_null: frozenset[int]

    @property
    def rows(self) -> int | None:
        """How many rows it has; None where files hold others besides."""
        if any(file.is_newer or file.is_deleted_newer for file in self.files):
            return None
        return sum(file.rows for file in self.files)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state of a store.

    Attributes:
        at: when it was committed.
        said: what was committed; None for the store's own upkeep.
        files: how many files it added that are still there.
        size: how many bytes these have.
    """

    version: int
    at: datetime
    said: Commit | None
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Occupied:
    """What the files of a store take up.

    Attributes:
        files: how many belong to the newest snapshot.
        size: how many bytes these have.
        deleted: how many of their rows are deleted.
        all_files: how many there are for any snapshot.
        all_size: how many bytes these have.
    """

    files: int
    size: int
    deleted: int
    all_files: int
    all_size: int


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What a change of a table took, where it writes files anew.

    Attributes:
        files: how many files were replaced.
        added: how many were written.
        size: how many bytes these have.
    """

    files: int
    added: int
    size: int


class StoredTables(Protocol):
    """The states of a store, and its tables at each."""

    def newest(self) -> int:
        """The newest snapshot."""
        ...

    def version(self) -> int:
        """The snapshot that is to be read: that of its place, or the newest.

        Raises:
            InputError: SM408 there is no such snapshot, or no more.
        """
        ...

    def tables(self, version: int) -> frozenset[str]:
        """The names of the tables at a snapshot."""
        ...

    def hidden(self, version: int) -> frozenset[str]:
        """Of the tables at a snapshot those that readers are not shown."""
        ...

    def table(self, name: str, version: int) -> TableFiles:
        """A table at a snapshot.

        Raises:
            InputError: SM103 there is none; SM408 it is not as it was written here.
        """
        ...

    def history(self, commits: Sequence[tuple[int, Commit]]) -> list[Snapshot]:
        """The snapshots that there are, oldest first."""
        ...

    def occupied(self) -> Occupied:
        """What the files take up."""
        ...


class TableChange(Struct, Generic[D], frozen=True, eq=False):
    """What a table gains and loses.

    Attributes:
        table: the table, columns in the view's order.
        gained: the rows that it gains; None if none.
        lost: the rows that it loses; None if none.
        counted: where rows may stand several times, the table's counted rows; `gained` and `lost` are counted, too.
    """

    view: str
    table: Table
    gained: D | None
    lost: D | None
    counted: D | None = None
