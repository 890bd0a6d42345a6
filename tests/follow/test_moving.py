"""A source that moves while it is followed: concurrent writers, commits that readers see late, lost connections."""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from selfmaint.api.log import follower
from selfmaint.api.stores.store_upkeep import store_of
from tests.command_line import run
from tests.effort import effort
from tests.follow.shops import LoggedShop, Writer

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.usefixtures("postgres")


@contextlib.contextmanager
def writing(shop: LoggedShop, seed: int, pause_s: float = 0.0, most: float = math.inf) -> Iterator[list[int]]:
    """Transactions that go on meanwhile, in a thread, but not more than so many; how many there were."""
    stop, done, failures = threading.Event(), [0], list[BaseException]()

    def write() -> None:
        writer = Writer(shop, seed)
        writer.connection.execute(
            "set lock_timeout = '100ms'"
        )  # another may hold a row as long as the test goes
        refused = (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable, psycopg.IntegrityError)
        try:
            while done[0] < most and not stop.is_set():
                with contextlib.suppress(*refused):
                    writer.transaction()
                    done[0] += 1
                stop.wait(pause_s)
        except BaseException as failure:  # noqa: BLE001 - told below
            failures.append(failure)
        finally:
            writer.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()
    assert not failures, failures


@contextlib.contextmanager
def as_they_write(*writers: list[int]) -> Iterator[None]:
    """Begins when each writer has written, and some of them must write before it ends."""
    wait_until(lambda: all(done for (done,) in writers))
    before = [done for (done,) in writers]
    yield
    assert before != [done for (done,) in writers], "nobody wrote meanwhile"


@contextlib.contextmanager
def following(shop: LoggedShop, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, until it is told to stop; it must end well."""
    command = [sys.executable, "-m", "selfmaint", "follow", str(shop.toml), "--poll", "0.05", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_until(lambda: takes_signals(process.pid))
            yield process
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, out + err
        finally:
            process.kill()


def wait_until(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)


def takes_signals(pid: int) -> bool:
    """Whether a process has said what it does when it is told to end."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    (caught,) = (int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(caught & 1 << (signal.SIGTERM - 1))


def server_setting(shop: LoggedShop, statement: str) -> None:
    shop.connection.execute(f"alter system {statement}")
    shop.connection.execute("select pg_reload_conf()")
    time.sleep(0.2)


def test_views_are_made_while_others_write_and_then_follow(hard: LoggedShop) -> None:
    assert run("follow", str(hard.toml), "--create").status == 0
    waiting = psycopg.connect(hard.url)
    waiting.execute("insert into shop.sale values (77, 1, 1, 1)")
    # Not more than so many: each makes steps, which take time, in which there would be more, and so on.
    with writing(hard, 1, 0.02, 60) as first, writing(hard, 2, 0.02, 60) as second:
        with as_they_write(first, second):
            assert run("init", str(hard.toml)).status == 0
        with writing(hard, 3, 0.04, 60) as third, writing(hard, 4, 0.04, 60) as fourth:
            waiting.execute("update shop.sale set amount = 2 where id = 77")
            waiting.commit()
            waiting.close()
            with as_they_write(third, fourth):
                assert hard.follow("--once", "--transactions", "7").status == 0
    assert hard.follow("--once", "--transactions", "50", "--verify").status == 0
    assert hard.stored() == hard.expected()


def test_it_follows_several_writers_and_ends_when_told_to(hard: LoggedShop) -> None:
    hard.made()
    with following(hard, "--transactions", "5"), writing(hard, 1, 0.02), writing(hard, 2, 0.02) as done:
        wait_until(lambda: done[0] > 30)
    assert hard.follow("--once").status == 0
    assert hard.stored() == hard.expected()


def test_two_that_follow_one_log_are_one_after_the_other(shop: LoggedShop) -> None:
    shop.made()
    first, second = (following(shop, "--transactions", str(number)) for number in (2, 3))
    with first, second, writing(shop, 1, 0.02) as done:
        wait_until(lambda: done[0] > 40)
    assert shop.follow("--once").status == 0
    assert shop.stored() == shop.expected()


def test_a_lost_connection_is_made_again(shop: LoggedShop) -> None:
    shop.made()
    theirs = "from pg_stat_activity where application_name = 'selfmaint' and datname = current_database()"
    with following(shop, "--transactions", "2"), writing(shop, 1, 0.02) as done:
        for number in (10, 20, 30):
            wait_until(lambda number=number: done[0] > number)
            shop.connection.execute(f"select pg_terminate_backend(pid) {theirs}")
        wait_until(lambda: shop.connection.execute(f"select pid {theirs}").fetchall())
    assert shop.follow("--once").status == 0
    assert shop.stored() == shop.expected()


def test_a_commit_that_waits_for_a_standby_is_waited_for_where_rows_are_read(hard: LoggedShop) -> None:
    hard.made()
    hard.connection.execute("set synchronous_commit = local")
    server_setting(hard, "set synchronous_standby_names = 'nobody'")
    try:
        writer = psycopg.connect(hard.url, autocommit=True)
        late = threading.Thread(
            target=writer.execute, args=["insert into shop.sale values (50, 4, 99, 0.01)"]
        )
        late.start()
        query = "select 1 from pg_stat_activity where wait_event = 'SyncRep' and datname = current_database()"
        wait_until(lambda: hard.connection.execute(query).fetchone())
        before = hard.stored()
        with following(hard):
            time.sleep(3)
            assert hard.stored() == before, "it was maintained from rows that do not show it"
            server_setting(hard, "reset synchronous_standby_names")
            late.join()
            wait_until(lambda: hard.stored() == hard.expected())
        writer.close()
    finally:
        server_setting(hard, "reset synchronous_standby_names")


def test_what_readers_see_late_is_remembered_with_the_position(shop: LoggedShop) -> None:
    shop.made()
    shop.connection.execute("set synchronous_commit = local")
    server_setting(shop, "set synchronous_standby_names = 'nobody'")
    try:
        writer = psycopg.connect(shop.url, autocommit=True)
        (xid,) = writer.execute("select pg_current_xact_id()::text::bigint").fetchone() or (0,)
        late = threading.Thread(
            target=writer.execute, args=["insert into shop.customer values (50, 'north')"]
        )
        late.start()
        query = "select 1 from pg_stat_activity where wait_event = 'SyncRep' and datname = current_database()"
        wait_until(lambda: shop.connection.execute(query).fetchone())
        assert shop.follow("--once").status == 0
        position = store_of(shop.toml).log_position()
        assert position is not None
        assert position.unseen == (xid + 1,)
        assert (50, "north") in shop.stored()["customers"]
        shop.execute("update shop.sale set amount = 0 where id = 1")
        server_setting(shop, "reset synchronous_standby_names")
        late.join()
        writer.close()
    finally:
        server_setting(shop, "reset synchronous_standby_names")
    assert shop.follow("--once", "--verify").status == 0
    position = store_of(shop.toml).log_position()
    assert position is not None
    assert position.unseen == ()
    assert shop.stored() == shop.expected()


def test_what_is_committed_without_waiting_for_the_disk_is_followed(hard: LoggedShop) -> None:
    hard.made()
    server_setting(hard, "set wal_writer_delay = '10s'")
    try:
        hard.connection.execute("set synchronous_commit = off")
        for number in range(6):
            hard.execute(f"insert into shop.sale values ({60 + number}, 1 + {number} % 4, 1, {number})")
            assert hard.follow("--once", "--verify").status == 0
            assert hard.stored() == hard.expected()
    finally:
        hard.connection.execute("set synchronous_commit = on")
        server_setting(hard, "reset wal_writer_delay")


def test_log_that_is_of_other_tables_is_let_go_of(shop: LoggedShop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "IDLE_BYTES", 100_000)
    shop.made()
    before, stored = shop.confirmed(), shop.stored()
    shop.execute("create table shop.noise (t text)")
    shop.execute("insert into shop.noise select md5(g::text) from generate_series(1, 5000) g")
    assert shop.steps()[0]["transactions"] == 0
    assert shop.confirmed() > before + 100_000
    assert shop.stored() == stored
    shop.execute("update shop.sale set amount = 4")
    assert shop.follow("--once").status == 0
    assert shop.stored() == shop.expected()


def test_batches_of_changes_are_bounded(shop: LoggedShop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "BATCH_MESSAGES", 10)
    shop.made()
    for number in range(6):
        shop.execute(f"update shop.sale set amount = {number}")
        shop.execute("insert into shop.other select coalesce(max(id), 0) + 1 from shop.other")
    assert sum(step["transactions"] for step in shop.steps()) == 6
    assert len(shop.steps()) == 1
    assert shop.stored() == shop.expected()


def test_compaction_and_following_do_not_meet(shop: LoggedShop) -> None:
    shop.made()
    with following(shop, "--transactions", "3"), writing(shop, 1, 0.05) as done:
        for number in (5, 15, 25):
            wait_until(lambda number=number: done[0] > number)
            ran = run("compact", str(shop.toml))
            assert ran.status == 0 or "SM405" in ran.stderr
    assert shop.follow("--once").status == 0
    assert shop.stored() == shop.expected()


def test_an_interrupt_ends_it_after_the_commit(shop: LoggedShop) -> None:
    shop.made()
    chance = random.Random(5)
    for _ in range(effort(2, 10)):
        with following(shop, "--transactions", "1") as process, writing(shop, chance.randint(10, 99), 0.01):
            assert process.stdout is not None
            assert "transactions" in process.stdout.readline()
            time.sleep(chance.uniform(0, 0.5))
            os.kill(process.pid, signal.SIGINT)
            process.wait(60)
            assert process.returncode == 0
        assert shop.follow("--once").status == 0
        assert shop.stored() == shop.expected()


def test_who_may_read_the_log_and_no_table_follows_what_is_self_maintainable(
    shop: LoggedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.made()
    name = f"follower_{shop.slot}"
    shop.execute(f"create role {name} login replication", f"grant usage on schema shop to {name}")
    try:
        monkeypatch.setenv("SELFMAINT_TEST_SHOP", psycopg.conninfo.make_conninfo(shop.url, user=name))
        shop.execute("update shop.sale set amount = 4", "insert into shop.customer values (55, 'x')")
        ran = shop.follow("--once", "--strict")
        assert ran.status == 0, ran.stderr
        assert len(ran.stdout.splitlines()) == 1, "a line for each commit"
        assert shop.stored() == shop.expected()
    finally:
        shop.execute(f"drop owned by {name}", f"drop role {name}")
