"""The log that a warehouse file names, the tables in it, and where contents that are computed now are in it."""

from __future__ import annotations

from typing import Any, Self

from selfmaint.api.columns import columns_of
from selfmaint.api.file.warehouse_file import WarehouseFile
from selfmaint.api.load import url_of
from selfmaint.api.platforms.platform import expected_columns
from selfmaint.errors import Code, SourceError, input_error
from selfmaint.postgres.connection import TIMEOUT_S
from selfmaint.postgres.log import LogState, ServerLog, log_error
from selfmaint.postgres.published import LoggedTable, logged_tables, tables_of
from selfmaint.sources.protocol import Source
from selfmaint.store.expected import Expected
from selfmaint.store.log_position import LogPosition, Snapshot


def log_of(file: WarehouseFile) -> ServerLog:
    """The log that a warehouse file names, not connected to yet.

    Raises:
        InputError: SM101 it names none.
        SourceError: SM401 the URL is not in the environment.
    """
    settings = file.follow
    if settings is None:
        hint = "add `[follow]` with `source`: a source of kind `postgres`"
        raise input_error(Code.WAREHOUSE_FILE, f"`{file.path}` names no log to follow", hint)
    source = next(e.source for e in file.relations.values() if e.source.name == settings.source)
    timeout_s = TIMEOUT_S if source.timeout_s is None else source.timeout_s
    return ServerLog(source.name, url_of(source), settings.slot, settings.publication, timeout_s)


def tables_in(file: WarehouseFile) -> tuple[dict[str, str], dict[str, Expected]]:
    """The table of each base relation, and its columns."""
    columns = columns_of(file.catalog)
    return (
        {name: entry.location.text for name, entry in file.relations.items()},
        {name: expected_columns(columns[name]) for name in file.relations},
    )


def followed_tables(file: WarehouseFile, log: ServerLog) -> list[LoggedTable]:
    """The tables of the base relations, all of whose changes the log says in full.

    Raises:
        SourceError: see `logged_tables`.
    """
    return logged_tables(log, *tables_in(file))


def create(file: WarehouseFile, log: ServerLog) -> list[str]:
    """Makes the publication and the slot, as far as they are missing.

    Raises:
        SourceError: SM103, SM104 tables that are not there or do not fit; SM605 tables whose old rows are not logged
            whole; SM608 the server or the user's rights. Nothing is made then.
    """
    tables, problems = tables_of(log, *tables_in(file))
    if problems:
        raise SourceError(problems)
    generated = any(table.stored for table in tables)
    done = log.create([table.identifier for table in tables], generated=generated)
    followed_tables(file, log)
    return done


class Start:
    """Contents that are computed from their sources, and where they are in the log of these."""

    def __init__(self, file: WarehouseFile, log: ServerLog, source: Source[Any]) -> None:
        """Nothing is looked at yet."""
        self._file, self._log, self._source = file, log, source

    def __enter__(self) -> Self:
        """Fixes the state of the source that is read from now on.

        The slot is looked at first: what the source shows later has everything that the slot has let go of.

        Raises:
            SourceError: SM401; SM103, SM104, SM605, SM608 what cannot be followed.
        """
        try:
            self._tables = followed_tables(self._file, self._log)
            self._state: LogState = self._log.state()
            self._snapshot = self._source.version()
        except BaseException:
            self._log.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the connection to the log."""
        self._log.close()

    def position(self, before: LogPosition | None) -> LogPosition:
        """Where the contents are that were read meanwhile.

        Raises:
            SourceError: SM608 the source was not read in one state; or it does not show yet what was followed.
        """
        found = self._source.version()
        if found is None or found != self._snapshot:
            raise log_error(
                f"the source `{self._source.name}` lost its connection while it was read", "try again"
            )
        snapshot = Snapshot.parse(found)
        if before is not None and not all(map(snapshot.shows, before.unseen)):
            what = "waits for a standby, and is not seen by readers yet"
            raise log_error(f"a transaction of the source `{self._source.name}` {what}", "try again")
        return LogPosition(
            self._state.system,
            self._log.slot,
            self._state.confirmed,
            snapshot,
            self._log.state().end,
            (),
            {table.relation: table.mark for table in self._tables},
            {table.relation: table.shape for table in self._tables},
        )


def started(
    file: WarehouseFile, source: Source[Any] | None, before: LogPosition | None, *, is_whole: bool
) -> Start:
    """Contents that are computed anew, of views that follow a log, or did.

    Raises:
        InputError: SM608 the file names no log; or some contents would be at another place of it.
        SourceError: SM401 the URL is not in the environment.
    """
    nothing = "nothing was written"
    if file.follow is None or source is None:
        slot = "" if before is None else before.slot
        message = (
            f"the views of this lake follow the log of the slot `{slot}`, and the warehouse file names none"
        )
        raise input_error(Code.LOG, message, "say which: `[follow]`", nothing)
    if not is_whole:
        message = (
            "views that follow a log are all computed from its source: others are at no place of the log"
        )
        raise input_error(Code.LOG, message, "leave `--from` and `--view` out", nothing)
    return Start(file, log_of(file), source)
