"""The journal of a store of Delta tables: which versions of them belong together.

Delta commits one table at a time. So a state of the store is what a row of the journal says, and the journal is a Delta
table, too: a row is there or is not, and of two that are written at once one is refused. Whoever reads through the
journal reads all tables at one state, whatever is written meanwhile.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Any

from msgspec import Struct

from selfmaint.errors import BusyError, Code, SelfmaintError, first_line, input_error
from selfmaint.store.delta import delta_table, is_delta_table, live_files, sizes, sync_version, table_files
from selfmaint.store.place import DeltaPlace
from selfmaint.store.stored_tables import Commit, Occupied, Snapshot, TableFiles

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_FILES = 50
"""Every row is a file at first; more are put together."""
_KEPT_H = 24
"""So long the files of former versions of the journal stay, for who reads just now."""
_FEED = {"delta.enableChangeDataFeed": "true"}


class Entry(Struct, frozen=True):
    """A state of the store.

    Attributes:
        at: when it was committed.
        said: what was committed; None for upkeep.
        versions: for each table its version in Delta's count.
        oldest: the oldest snapshot of which all files are kept.
        files: how many files were written for it.
        size: how many bytes these have.
    """

    snapshot: int
    at: datetime
    said: Commit | None
    versions: dict[str, int]
    oldest: int
    files: int = 0
    size: int = 0


class DeltaJournal:
    """The states of a store of Delta tables, and its tables at each."""

    def __init__(self, place: DeltaPlace) -> None:
        """Nothing is read yet.

        Raises:
            InputError: SM408 there is none.
        """
        self.place = place
        self._known: dict[int, Entry] = {}
        if not is_delta_table(place.journal):
            message = f"there is no Delta store at `{place.folder}`"
            raise input_error(Code.LAKE, message, "`selfmaint init WAREHOUSE.toml` makes it")

    @classmethod
    def new(cls, place: DeltaPlace) -> DeltaJournal:
        """Makes a journal without a row."""
        import deltalake  # noqa: PLC0415 - only where there are Delta tables
        import pyarrow as pa  # noqa: PLC0415

        numbers = ("snapshot", "oldest", "files", "size")
        fields = [*((name, pa.int64()) for name in numbers), ("at", pa.timestamp("us", "UTC"))]
        schema = pa.schema([*fields, ("said", pa.string()), ("versions", pa.string())])
        deltalake.DeltaTable.create(str(place.journal), schema=schema, configuration={**_FEED})
        return cls(place)

    @cached_property
    def id(self) -> str:
        """What tells the store from others, in the logs of its tables."""
        with _reading(self.place):
            return f"selfmaint-{delta_table(self.place.journal).metadata().id}"

    # ------------------------------------------------------------------------------------------- reading

    def entries(self) -> list[Entry]:
        """The states, oldest first.

        Raises:
            InputError: SM408 the journal cannot be read.
        """
        return self._read()[1]

    def last(self) -> Entry:
        """The newest state."""
        found = self.entries()
        if not found:
            message = f"the journal of the Delta store `{self.place.folder}` has no state"
            raise input_error(Code.LAKE, message, "`selfmaint init` makes a store anew, in an empty folder")
        return found[-1]

    def newest(self) -> int:
        """See `StoredTables`."""
        return self.last().snapshot

    def version(self) -> int:
        """See `StoredTables`."""
        wanted, found = self.place.version, self.last()
        if wanted is None:
            return found.snapshot
        if wanted < found.oldest or all(one.snapshot != wanted for one in self.entries()):
            message = f"the Delta store `{self.place.folder}` has no snapshot {wanted}"
            raise input_error(Code.LAKE, message, "`selfmaint history` lists those that there are")
        return wanted

    def at(self, snapshot: int) -> Entry:
        """A state."""
        if snapshot not in self._known:
            self._known = {one.snapshot: one for one in self.entries()}
        return self._known[snapshot]

    def tables(self, version: int) -> frozenset[str]:
        """See `StoredTables`."""
        return frozenset(self.at(version).versions)

    def hidden(self, version: int) -> frozenset[str]:
        """See `StoredTables`."""
        return frozenset()

    def table(self, name: str, version: int) -> TableFiles:
        """See `StoredTables`."""
        versions = self.at(version).versions
        if name not in versions:
            message = f"`{name}`: the Delta store `{self.place.folder}` has no such table"
            hint = f"`selfmaint import WAREHOUSE.toml --view {name}`"
            raise input_error(Code.MISSING_CONTENTS, message, hint)
        return table_files(name, self.place.table(name), versions[name])

    def commits(self) -> list[tuple[int, Commit]]:
        """What was committed, oldest first, with the snapshots."""
        return [(one.snapshot, one.said) for one in self.entries() if one.said is not None]

    def history(self, commits: Sequence[tuple[int, Commit]]) -> list[Snapshot]:
        """See `StoredTables`."""
        found, said = self.entries(), dict(commits)
        return [
            Snapshot(one.snapshot, one.at.astimezone(), said.get(one.snapshot), one.files, one.size)
            for one in found
            if one.snapshot >= found[-1].oldest
        ]

    def occupied(self) -> Occupied:
        """See `StoredTables`; no row of a file is deleted."""
        now = self.last().versions
        here = [size for name, version in now.items() for size in self.sizes(name, version).values()]
        every = [
            file.stat().st_size
            for name in now
            for file in self.place.table(name).rglob("*.parquet")
            if "_delta_log" not in file.parts
        ]
        return Occupied(len(here), sum(here), 0, len(every), sum(every))

    def sizes(self, name: str, version: int) -> dict[str, int]:
        """The files of a table at a version of Delta's, and how many bytes each has."""
        return sizes(self.place.table(name), version)

    def kept_since(self, days: float | None) -> int:
        """The oldest snapshot that was the newest one at a time that is so many days ago, or later."""
        found = self.entries()
        if days is None:
            return found[-1].oldest
        since = datetime.now(UTC) - timedelta(days=days)
        gone = [one.snapshot for one, after in pairwise(found) if after.at < since]
        return max(found[-1].oldest, 1 + max(gone, default=0))

    # ------------------------------------------------------------------------------------------- writing

    def append(self, after: Entry | None, entry: Entry) -> None:
        """Commits a state.

        Raises:
            BusyError: SM405 somebody else has written a state since.
            InputError: SM405 it cannot be written.
        """
        import deltalake  # noqa: PLC0415 - see `new`
        import pyarrow as pa  # noqa: PLC0415
        from deltalake.exceptions import CommitFailedError  # noqa: PLC0415

        row = {
            "snapshot": entry.snapshot,
            "oldest": entry.oldest,
            "files": entry.files,
            "size": entry.size,
            "at": datetime.now(UTC),
            "said": None if entry.said is None else entry.said.text(),
            "versions": json.dumps(entry.versions),
        }
        with failures(self.place, "has a journal that cannot be written"):
            table, before = self._read()
            if [one.snapshot for one in before[-1:]] != ([] if after is None else [after.snapshot]):
                raise CommitFailedError("it has another state")
            once = deltalake.CommitProperties(
                max_commit_retries=0, app_transactions=[deltalake.Transaction(self.id, entry.snapshot)]
            )
            schema, version = pa.schema(table.schema().to_arrow()), int(table.version()) + 1
            rows = pa.Table.from_pylist([row], schema=schema)
            deltalake.write_deltalake(table, rows, mode="append", commit_properties=once)
            sync_version(self.place.journal, version)
        self._known[entry.snapshot] = entry

    def compact(self, *, always: bool = False) -> None:
        """Puts the files together, where they are many."""
        with _reading(self.place):
            table = delta_table(self.place.journal)
            if always or len(table.file_uris()) > _MOST_FILES:
                table.optimize.compact()
                table.vacuum(_KEPT_H, dry_run=False, enforce_retention_duration=False)

    def _read(self) -> tuple[Any, list[Entry]]:
        """The journal's table, and the states, oldest first."""
        import pyarrow as pa  # noqa: PLC0415 - see `new`
        import pyarrow.parquet as pq  # noqa: PLC0415

        with _reading(self.place):
            table = delta_table(self.place.journal)
            # Neither as a dataset of Arrow's nor with instants, which load pandas: that takes longer than all else.
            parts = [pq.ParquetFile(file).read() for file in live_files(self.place.journal, table)]
            at = parts[0].schema.get_field_index("at") if parts else 0
            parts = [part.set_column(at, "at", part.column(at).cast(pa.int64())) for part in parts]
            rows = sorted((row for part in parts for row in part.to_pylist()), key=itemgetter("snapshot"))
            entries = [
                Entry(
                    row["snapshot"],
                    _EPOCH + timedelta(microseconds=row["at"]),
                    None if row["said"] is None else Commit.read(row["said"]),
                    dict(json.loads(row["versions"])),
                    row["oldest"],
                    row["files"],
                    row["size"],
                )
                for row in rows
            ]
        return table, entries


@contextlib.contextmanager
def _reading(place: DeltaPlace) -> Iterator[None]:
    """What keeps the journal from being read, as an error of this package."""
    try:
        yield
    except SelfmaintError:
        raise
    except Exception as failure:
        message = f"the journal of the Delta store `{place.folder}` cannot be read: {first_line(failure)}"
        raise input_error(Code.LAKE, message, "bring its files back from a backup") from failure


@contextlib.contextmanager
def failures(place: DeltaPlace, what: str) -> Iterator[None]:
    """What Delta refuses, as an error of this package.

    Raises:
        BusyError: SM405 somebody else was faster.
        InputError: SM405.
    """
    from deltalake.exceptions import CommitFailedError  # noqa: PLC0415 - only where there are Delta tables

    try:
        yield
    except SelfmaintError:
        raise
    except CommitFailedError as failure:
        message = f"somebody else writes to the Delta store `{place.folder}`: {first_line(failure)}"
        raise BusyError(
            input_error(Code.WRITE_FAILED, message, "run the command again").diagnostics
        ) from failure
    except Exception as failure:
        message = f"the Delta store `{place.folder}` {what}: {first_line(failure)}"
        raise input_error(Code.WRITE_FAILED, message) from failure
