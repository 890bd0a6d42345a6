"""`follow`: step after step, until all is there or it is told to stop; faults that pass are waited for."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator, Iterator
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from selfmaint.api.file.warehouse_file import WarehouseFile, read_warehouse_file
from selfmaint.api.load import open_warehouse
from selfmaint.api.log.follower import Followed, Follower, FollowOptions
from selfmaint.api.log.log_source import log_of
from selfmaint.api.warehouse import Warehouse
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.store import opened
from selfmaint.errors import BusyError, InputError, PassingError, SourceError
from selfmaint.postgres.log import ServerLog

if TYPE_CHECKING:
    from selfmaint.api.file.file_settings import EngineKind
    from selfmaint.spark import SparkSession

_LOG = logging.getLogger(__name__)

PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0)
"""How long to wait before a fault that may pass is met again, time after time."""


def follow(
    path: str | Path,
    spark: SparkSession | None = None,
    *,
    once: bool = False,
    poll_s: float = 1.0,
    stop: Event | None = None,
    engine: EngineKind | None = None,
    options: FollowOptions | None = None,
) -> Generator[Followed]:
    """Brings the views up to date with the log of their source, step by step, and says what each came to.

    Args:
        path: the warehouse file, with `[follow]` and a store.
        spark: the session to use, which makes the engine Spark.
        once: end when all is taken that was there at the beginning.
        poll_s: how long to wait, in seconds, where nothing was there.
        stop: is set to end after the step that is being made.
        engine: which engine computes.
        options: how it is done.

    Yields:
        What a step came to, when it is durable; one without transactions where nothing was there.

    Raises:
        InputError: SM101 the file names no log or store; SM104, SM602, SM605, SM606 a change that cannot be followed,
            with its place in the log; SM608 the slot, the publication or a table is not what the views follow. What
            `maintain` and `apply` raise.
        SourceError: SM401 a server that does not answer, for longer than `PAUSES_S` in all.
    """
    file = read_warehouse_file(path, spark)
    stop = stop or Event()
    with contextlib.closing(log_of(file)) as log:
        end = _end_of(log, stop) if once else None
        pauses = iter(PAUSES_S)
        while not stop.is_set():
            try:
                with _opened(file, spark, engine) as warehouse:
                    follower = Follower(file, warehouse, log, options or FollowOptions())
                    while not (stop.is_set() or follower.is_outdated):
                        done = _step(follower)
                        pauses = iter(PAUSES_S)
                        yield done
                        if end is not None and (done.is_drained or follower.position.lsn >= end):
                            return
                        if done.is_drained:
                            stop.wait(poll_s)
            except (PassingError, BusyError) as fault:
                _wait(fault, pauses, stop)


def _opened(file: WarehouseFile, spark: SparkSession | None, engine: EngineKind | None) -> Warehouse[Any]:
    """The warehouse; if it cannot be opened, and the store was written to meanwhile, it may be opened anew."""
    before = None if file.store is None else opened(Database(), file.store).catalog.newest()
    try:
        return open_warehouse(file, spark, engine)
    except InputError as error:  # files of the state that was read may be gone
        if file.store is not None and opened(Database(), file.store).catalog.newest() != before:
            raise BusyError(error.diagnostics) from error
        raise


def _step(follower: Follower[Any]) -> Followed:
    """A step; if it fails, and the store was written to meanwhile, it may be made again."""
    try:
        return follower.step()
    except (BusyError, PassingError):
        raise
    except InputError as error:  # files of the state that was read may be gone
        if follower.is_outdated:
            raise BusyError(error.diagnostics) from error
        raise


def _end_of(log: ServerLog, stop: Event) -> int:
    """Where the log ends now."""
    pauses = iter(PAUSES_S)
    while True:
        try:
            return log.flushed()
        except PassingError as fault:
            _wait(fault, pauses, stop)
            if stop.is_set():
                return 0


def _wait(fault: SourceError | InputError, pauses: Iterator[float], stop: Event) -> None:
    """Waits for a fault to pass."""
    pause = next(pauses, None)
    if pause is None:
        raise fault
    _LOG.warning("trying again in %g s: %s", pause, fault)
    stop.wait(pause)
