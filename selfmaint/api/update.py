"""An update of the base relations, and the three ways to give one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from datalog.model import Predicate, Version
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, input_error

if TYPE_CHECKING:
    from selfmaint.api.feed import Feed
    from selfmaint.api.warehouse import Warehouse
    from selfmaint.feeds.changes import FeedReport
    from selfmaint.feeds.ranges import Ends
    from selfmaint.store.frames import ArrowStream
    from selfmaint.store.log_position import LogPosition

E = TypeVar("E")


@dataclass(frozen=True)
class Update(Generic[D]):
    """One update of the base relations, as a whole.

    Attributes:
        inserted: for each relation that gains rows, the rows; columns in declared order.
        deleted: for each relation that loses rows, the rows.
        effective: whether inserted rows were absent before and deleted rows present, as change data capture
            from a database guarantees.
        feed: where it comes from a change feed, how much was read, and up to which position.
        files: for each part that was read from files (a relation in the version `INSERTED` or `DELETED`), the path.
        id: what tells it from other updates, for a store to know it again, if it was given.
        digest: that of its files, or of its rows, for a store.
        positions: where the change feeds that it is from ended: by relation, under "" that of several relations.
        log: which transactions of a server's log the views have after it, if they follow one.
    """

    inserted: Mapping[str, D] = field(default_factory=dict)
    deleted: Mapping[str, D] = field(default_factory=dict)
    effective: bool = False
    feed: FeedReport | None = None
    files: Mapping[Predicate, str] = field(default_factory=dict)
    id: str | None = None
    digest: str | None = None
    positions: Mapping[str, str] = field(default_factory=dict)
    log: LogPosition | None = None

    def __post_init__(self) -> None:
        if not _is_id(self.id):  # callers may not be type-checked
            message = f"an update has the id {self.id!r}, and not a text that tells it from others"
            raise input_error(Code.WAREHOUSE_FILE, message, "for a date, `id=str(date)`")

    def __repr__(self) -> str:
        """Which relations it changes; their rows may not be computed yet."""
        said = [
            f"{what} {', '.join(part)}"
            for what, part in (("inserts into", self.inserted), ("deletes from", self.deleted))
            if part
        ]
        return f"Update({'; '.join([*said, *(['effective'] if self.effective else [])])})"

    @property
    def sides(self) -> dict[Predicate, D]:
        """The rows by relation, in the version `INSERTED` or `DELETED`."""
        parts = ((Version.INSERTED, self.inserted), (Version.DELETED, self.deleted))
        return {Predicate(name, version): rows for version, part in parts for name, rows in part.items()}

    @staticmethod
    def from_files(
        warehouse: Warehouse[E],
        directory: str | Path | None = None,
        *,
        inserted: Mapping[str, str | Path] | None = None,
        deleted: Mapping[str, str | Path] | None = None,
        effective: bool | None = None,
        id: str | None = None,  # noqa: A002 - what it is
    ) -> Update[E]:
        """The update in a directory, in single files, or in both.

        Args:
            warehouse: whose base relations change.
            directory: of files or directories `RELATION.insert.SUFFIX` and `RELATION.delete.SUFFIX`; each `parquet`,
                `csv` with a header line, or `jsonl`.
            inserted: by relation the path of the rows that it gains.
            deleted: by relation the path of the rows that it loses.
            effective: whether inserted rows were absent before, deleted ones present; by default as the warehouse
                says.
            id: what tells it from other updates; by default a digest of its files.

        Returns:
            The update; a relation without files does not change.

        Raises:
            InputError: SM101 a file that is no part of an update, two for one part, or a path inside a view's; SM102
                a misspelt relation; SM103 nothing at a path; SM104 columns that do not fit; every problem of one
                kind at once.
        """
        from selfmaint.api.update_rows import from_files  # noqa: PLC0415 - what reads files only where some are read

        return from_files(warehouse, directory, inserted or {}, deleted or {}, effective, id)

    @staticmethod
    def from_frames(
        warehouse: Warehouse[E],
        inserted: Mapping[str, E | ArrowStream] | None = None,
        deleted: Mapping[str, E | ArrowStream] | None = None,
        *,
        effective: bool | None = None,
        id: str | None = None,  # noqa: A002 - what it is
    ) -> Update[E]:
        """An update from frames: DataFrames of Spark, pandas or polars, tables of Arrow, relations of DuckDB.

        Args:
            warehouse: whose base relations change.
            inserted: for each relation that gains rows, the rows: what offers an Arrow C stream
                (`__arrow_c_stream__`). Rows of another library than the engine's pass through this process.
            deleted: for each relation that loses rows, the rows.
            effective: whether inserted rows were absent before, deleted ones present; by default as the warehouse
                says.
            id: what tells it from other updates, so that a store knows it again.

        Returns:
            The update. Columns are matched by name to those that are declared; those of a relation that is not
            declared by position. pandas' NaN is null, and its index without a name is no column.

        Raises:
            InputError: SM102 an unknown relation; SM104 columns that do not fit; every problem of one kind at once.
        """
        from selfmaint.api.update_rows import update_from  # noqa: PLC0415 - see `from_files`

        return update_from(warehouse, inserted, deleted, effective=effective, id=id)

    @staticmethod
    def from_feed(  # noqa: PLR0913 - each is a choice of its own
        warehouse: Warehouse[E],
        feed: Feed | Mapping[str, Feed] | Mapping[str | None, Feed],
        *,
        format: str | None = None,  # noqa: A002 - what it is
        after: Ends = None,
        upto: Ends = None,
        initial_load: bool = False,
        effective: bool | None = None,
        id: str | None = None,  # noqa: A002 - what it is
    ) -> Update[E]:
        """The update that a batch of change events amounts to.

        Several versions of a row condense to its first and last one; what was inserted and deleted again, changed
        back, or only carried over, is not in the update.

        Args:
            warehouse: whose base relations change. Their columns and types must be declared.
            feed: for each base relation its feed (a frame, of Spark or whatever offers an Arrow C stream; records; the
                path of a file, a directory, a Delta table); or one feed of Debezium's events that say their tables,
                or a directory of files `RELATION.insert.SUFFIX` and `RELATION.delete.SUFFIX` (both at once: under
                None).
            format: `debezium`, `delta`, `iceberg` or `plain`; by default told from the columns.
            after: the position or version where the batch before ended; what is there and before is left out. By
                relation where feeds have positions of their own; that under None is for all others. By default, of
                views in a store, where the last update ended that the store has.
            upto: the position or version where this batch ends; likewise.
            initial_load: whether the relations were empty before: then snapshot reads (`r`) are insertions.
            effective: whether inserted rows were absent before and deleted ones present. By default yes if all
                relations that change have declared keys: databases and tables log what really happened. Without a
                key two rows may look the same; then as the warehouse says.
            id: what tells it from other updates, so that a store knows it again.

        Returns:
            The update; its `feed` says how much was read, what it came to, and up to which position.

        Raises:
            InputError: SM101 a path inside a view's; SM102 an unknown relation or table; SM103 no such feed; SM104
                other columns; SM502 an engine that reads no feeds; SM601 the format; SM602 lines or values that
                cannot be read; SM603 no order; SM604 changes that cannot follow each other; SM605 rows of which too
                little is known; SM606 truncations and snapshot reads; SM607 a package is missing. Nothing is applied
                then.

        Source:
            Zhou, Larson and Elmongui (VLDB 2007), section 4.
        """
        from selfmaint.api.feed import update_from_feed  # noqa: PLC0415 - what reads feeds only where one is read

        return update_from_feed(
            warehouse,
            feed,
            format=format,
            after=after,
            upto=upto,
            initial_load=initial_load,
            effective=effective,
            id=id,
        )


def _is_id(given: object) -> bool:
    return given is None or (isinstance(given, str) and given != "")


def require_update(given: object) -> None:
    """Refuses what is no update: callers may not be type-checked.

    Raises:
        InputError: SM101.
    """
    if not isinstance(given, Update):
        message = f"an update is an `Update`, not a `{type(given).__name__}`"
        raise input_error(
            Code.WAREHOUSE_FILE, message, "`Update.from_frames(warehouse, {...})` makes one of frames"
        )
