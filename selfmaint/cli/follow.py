"""`selfmaint follow`: the views kept up to date with the log of their source."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from types import FrameType

from selfmaint.api.file.file_settings import EngineKind
from selfmaint.api.file.warehouse_file import read_warehouse_file
from selfmaint.api.following.recompute import require_not_strict
from selfmaint.api.log.follow import follow as steps
from selfmaint.api.log.follower import BATCH_TRANSACTIONS, Followed, FollowOptions
from selfmaint.api.log.log_source import create, log_of
from selfmaint.cli.inputs import cross_examination
from selfmaint.cli.maintain import refusing
from selfmaint.cli.options import (
    BUDGET,
    CROSS_EXAMINE,
    FORMAT,
    LEAST_S,
    WAREHOUSE,
    at_least_one,
    choice,
    number,
    option,
    switch,
)
from selfmaint.cli.output import Format, print_json, print_text, progressing, reporting
from selfmaint.report.maintenance import reads_json
from selfmaint.report.values import cell
from selfmaint.report.verdicts import examined_json

OPTIONS = (
    WAREHOUSE,
    switch("--once", help="End when all is taken that is there; by default when it is told to stop."),
    switch(
        "--create", help="Only make the publication and the replication slot, as far as they are missing."
    ),
    option(
        "--transactions",
        metavar="N",
        type=at_least_one,
        default=BATCH_TRANSACTIONS,
        help=f"Commit at most so many transactions at a time; by default {BATCH_TRANSACTIONS}.",
    ),
    option(
        "--poll",
        metavar="SECONDS",
        type=number("a number of seconds up to a day", LEAST_S, 86_400),
        default=1.0,
        help="How long to wait where nothing is there; by default 1.",
    ),
    switch("--strict", help="Never read a base relation."),
    switch("--verify", help="Recompute every view from its sources, and compare before each commit."),
    switch("--recompute", help="Recompute from its sources what can be followed in no other way."),
    BUDGET,
    *CROSS_EXAMINE,
    choice("--engine", EngineKind, help="Which engine computes; by default as for an update."),
    FORMAT,
)


def follow(given: Namespace) -> int:
    """Keeps the views up to date with the log of their source.

    Transactions are read from a replication slot of PostgreSQL, and the place in the log is committed with the views:
    none is skipped or applied twice, whenever it is stopped or dies. It runs until it gets SIGINT or SIGTERM, and
    ends after the commit that is being made. Exit status: 0 done; 1 a view stays undetermined; 2 bad usage or
    input, or a source failed; 3 a view is undecided.
    """
    with reporting(given.format):
        require_not_strict(recompute=given.recompute, strict=given.strict)
        if given.create:
            _create(given)
            return 0
    with reporting(given.format), refusing(given.format), progressing() as progress, _stopping() as stop:
        options = FollowOptions(
            given.transactions,
            given.strict,
            given.recompute,
            given.verify,
            given.budget,
            cross_examination(given),
            progress,
        )
        found = steps(
            given.warehouse,
            once=given.once,
            poll_s=given.poll,
            stop=stop,
            engine=given.engine,
            options=options,
        )
        for done in found:
            progress(f"at {done.position}, {done.lag_bytes:,} bytes behind; waiting for transactions")
            if done.transactions or (given.once and done.is_drained):
                _print_step(done, given.format)
    return 0


def _create(given: Namespace) -> None:
    file = read_warehouse_file(given.warehouse)
    with contextlib.closing(log_of(file)) as log:
        done = create(file, log)
    if given.format is Format.JSON:
        print_json({"statements": [*done]})
        return
    print_text(*(f"{statement};" for statement in done or ["-- the publication and the slot are there"]))


@contextlib.contextmanager
def _stopping() -> Iterator[threading.Event]:
    """What SIGINT and SIGTERM set; the second one ends at once."""
    stop = threading.Event()

    def told(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, told) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_step(done: Followed, format_: Format) -> None:
    """Prints a line, at once: who watches may be another program."""
    if format_ is Format.JSON:
        print_json(
            {
                "position": done.position,
                "transactions": done.transactions,
                "changes": done.changes,
                "lag_bytes": done.lag_bytes,
                "lag_s": None if done.lag_s is None else round(done.lag_s, 3),
                "snapshot": done.snapshot,
                "written": [entry.name for entry in done.written],
                "reads": reads_json(done.reads),
                "verdicts": [{"view": name, **examined_json(one)} for name, one in done.examined.items()],
            }
        )
    else:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        read = f", {sum(one.rows_read for one in done.reads)} base rows read" if done.reads else ""
        written = f"; written: {', '.join(entry.name for entry in done.written)}" if done.written else ""
        print_text(
            cell(
                f"{now} at {done.position}: {done.transactions} transactions, {done.changes} changes, "
                f"{done.lag_bytes} bytes behind{read}{written}"
            ).plain
        )
    sys.stdout.flush()
