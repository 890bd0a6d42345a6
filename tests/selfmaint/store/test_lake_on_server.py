"""A lake whose catalog is in PostgreSQL: the same as one in SQLite, and its own faults. Oracle: the views by hand."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import selfmaint
from selfmaint.api.stores.store_upkeep import store_of
from selfmaint.duckdb import loading
from selfmaint.duckdb.loading import extension_file
from selfmaint.store.lake_catalog import LakeCatalog
from tests.command_line import run
from tests.effort import effort, rounds
from tests.racing import race
from tests.selfmaint.store.test_lake import Row, Shop, a_random_change, killed

SERVER = 'path = "lake"\ncatalog_url_env = "SELFMAINT_TEST_LAKE"\nschema = "wh"'


@pytest.fixture
def database(postgres: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"lake_{random.Random().randrange(10**12)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    url = make_conninfo(postgres, dbname=name)
    monkeypatch.setenv("SELFMAINT_TEST_LAKE", url)
    yield url
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")


def views(shop: Shop) -> dict[str, Counter[Row]]:
    """What a reader sees who has nothing but DuckDB."""
    # Hashing an extension for its signature takes longer than all that is read.
    with duckdb.connect(":memory:", config={"allow_unsigned_extensions": "true"}) as connection:
        for name in ("ducklake", "postgres_scanner"):
            connection.execute(f"LOAD '{extension_file(name)}'")
        url = os.environ["SELFMAINT_TEST_LAKE"]
        connection.execute(f"ATTACH 'ducklake:postgres:{url}' AS l (META_SCHEMA 'wh')")
        connection.execute("BEGIN")
        return {n: Counter(connection.execute(f'FROM l."{n}"').fetchall()) for n in shop.expected()}


@pytest.fixture
def shop(tmp_path: Path, database: str) -> Shop:
    assert database
    made = Shop(tmp_path)
    made.toml.write_text(made.toml.read_text(encoding="utf-8").replace('path = "lake"', SERVER, 1))
    ran = run("init", str(made.toml))
    assert ran.status == 0, ran.stderr
    return made


def test_it_follows_returns_compacts_and_lists_as_any_lake(shop: Shop) -> None:
    chance = random.Random(4)
    for number in range(effort(3, 12)):
        update = a_random_change(shop, f"u{number}", chance)
        ran = run("maintain", str(shop.toml), "--update", str(update))
        assert ran.status == 0, ran.stderr
        assert views(shop) == shop.expected()
    before = shop.expected()
    last = a_random_change(shop, "last", chance)
    assert run("maintain", str(shop.toml), "--update", str(last)).status == 0
    assert "committed before" in run("maintain", str(shop.toml), "--update", str(last)).stdout
    assert run("undo", str(shop.toml)).status == 0
    assert views(shop) == before
    assert [state.said.kind for state in selfmaint.history(shop.toml) if state.said][-1] == "undo"
    assert run("compact", str(shop.toml), "--keep-days", "0").status == 0
    assert views(shop) == before


@pytest.mark.usefixtures("database")
def test_a_second_lake_is_not_made_over_it_and_one_that_died_is(tmp_path: Path) -> None:
    made = Shop(tmp_path)
    made.toml.write_text(made.toml.read_text(encoding="utf-8").replace('path = "lake"', SERVER, 1))
    assert "there is no lake" in run("history", str(made.toml)).stderr
    for at in (4, 14):
        assert killed(at, "init", made.toml, "--engine", "duckdb") == -signal.SIGKILL
    assert run("init", str(made.toml)).status == 0
    assert views(made) == made.expected()
    other = made.toml.with_name("other.toml")
    other.write_text(made.toml.read_text(encoding="utf-8").replace('path = "lake"', 'path = "lake2"'))
    ran = run("init", str(other))
    assert ran.status == 2
    assert "there is a lake in the schema `wh` already" in ran.stderr


def test_whenever_a_commit_is_killed_all_views_are_old_or_all_new(shop: Shop) -> None:
    chance, at, status = random.Random(8), 4, -signal.SIGKILL
    while status == -signal.SIGKILL:  # ever later, until a commit ends before it is killed
        old, update = shop.expected(), a_random_change(shop, f"u{at}", chance)
        status = killed(at, "maintain", shop.toml, "--update", update, "--engine", "duckdb")
        assert views(shop) in (old, shop.expected())
        assert run("maintain", str(shop.toml), "--update", str(update)).status == 0
        assert views(shop) == shop.expected()
        at += effort(9, 4)
    assert status == 0
    assert at > 20


def test_one_writes_at_a_time_even_from_other_machines_and_is_named(shop: Shop) -> None:
    update = shop.update("u", {"customer": {(9, "west")}}, {})
    holder = store_of(shop.toml).store.place.catalog
    with holder.holding("a long import"):
        ran = run("maintain", str(shop.toml), "--update", str(update))
    assert ran.status == 2
    assert "SM405" in ran.stderr
    assert "being written to by selfmaint a long import, process" in ran.stderr
    assert run("maintain", str(shop.toml), "--update", str(update)).status == 0
    assert views(shop) == shop.expected()


def test_readers_see_all_views_old_or_all_new_while_others_write(shop: Shop) -> None:
    race(shop, rounds(3), lambda name, draw: a_random_change(shop, name, draw), lambda: views(shop))


def test_who_commits_in_between_is_not_overwritten(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is lost with its connection; then the catalog itself refuses the later commit."""
    monkeypatch.setattr(
        type(store_of(shop.toml).store.place.catalog), "holding", lambda *_: contextlib.nullcontext()
    )
    first, second = ({"customer": {(n, "west")}} for n in (21, 22))
    updates = [shop.update(f"u{i}", rows, {}) for i, rows in enumerate((first, second))]
    barrier, results = threading.Barrier(2), list[Any]()

    def maintained(update: Path) -> None:
        with selfmaint.load(shop.toml, engine="duckdb") as warehouse:
            found = warehouse.maintain(selfmaint.Update.from_files(warehouse, update))
            barrier.wait()
            try:
                results.append(bool(warehouse.apply(found)))
            except selfmaint.SelfmaintError as error:
                results.append(error.diagnostics[0].code.value)

    monkeypatch.setattr("selfmaint.store.place.fcntl.flock", lambda *_: None)
    threads = [threading.Thread(target=maintained, args=[update]) for update in updates]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, results)) == ["SM405", "True"]
    assert [said.kind for _, said in store_of(shop.toml).store.commits()] == ["init", "maintain"]


def test_who_commits_between_the_look_and_the_transaction_is_not_overwritten(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above, but one has committed wholly before the other's transaction begins."""
    updates = [shop.update(f"u{n}", {"customer": {(n, "west")}}, {}) for n in (21, 22)]
    with contextlib.ExitStack() as opened:
        each = [opened.enter_context(selfmaint.load(shop.toml, engine="duckdb")) for _ in updates]
        found = [
            one.maintain(selfmaint.Update.from_files(one, u)) for one, u in zip(each, updates, strict=True)
        ]
        seen = store_of(shop.toml).version
        assert each[0].apply(found[0])
        with monkeypatch.context() as patched:
            patched.setattr(LakeCatalog, "newest", lambda _: seen)
            with pytest.raises(selfmaint.SelfmaintError, match=f"and {seen} was read"):
                each[1].apply(found[1])
    assert [said.kind for _, said in store_of(shop.toml).store.commits()] == ["init", "maintain"]


COMMANDS: dict[str, list[str]] = {
    "check": ["--update", "u"],
    "maintain": ["--update", "u"],
    "history": [],
    "undo": [],
    "compact": [],
    "import": [],
}


@pytest.mark.parametrize(
    ("spoil", "mend", "said"),
    [
        ("alter schema wh rename to away", "alter schema away rename to wh", "is gone, and the folder"),
        (
            "alter table wh.ducklake_snapshot rename to x",
            "alter table wh.x rename to ducklake_snapshot",
            "is gone",
        ),
        (
            "alter table wh.ducklake_table rename to x",
            "alter table wh.x rename to ducklake_table",
            "does not exist",
        ),
        (
            "create table wh.x as table wh.ducklake_snapshot; truncate wh.ducklake_snapshot",
            "insert into wh.ducklake_snapshot table wh.x; drop table wh.x",
            "it has no snapshot",
        ),
    ],
)
def test_a_damaged_catalog_is_told_and_left_as_it_is(
    shop: Shop, database: str, spoil: str, mend: str, said: str
) -> None:
    old, update = views(shop), a_random_change(shop, "u", random.Random(2))
    with psycopg.connect(database, autocommit=True) as connection:
        schemas = "select nspname from pg_namespace where nspname !~ '^pg_' order by 1"
        tables = "select table_schema, table_name from information_schema.tables order by 1, 2"
        connection.execute(spoil)
        before = [connection.execute(query).fetchall() for query in (schemas, tables)]
        for name, more in COMMANDS.items():
            ran = run(name, str(shop.toml), *(str(update) if one == "u" else one for one in more))
            assert ran.status == 2, (name, ran)
            assert "error[SM408]" in ran.stderr, (name, ran)
            assert "schema `wh`" in ran.stderr, (name, ran)
            assert said in ran.stderr, (name, ran)
            assert "back from a backup" in ran.stderr, (name, ran)
        ran = run("init", str(shop.toml))
        assert ran.status == 2, ran
        assert "already" in ran.stderr
        assert [connection.execute(query).fetchall() for query in (schemas, tables)] == before
        connection.execute(mend)
    assert views(shop) == old
    assert run("maintain", str(shop.toml), "--update", str(update)).status == 0
    assert views(shop) == shop.expected()


def test_a_role_that_may_only_read_looks_and_is_refused_before_there_is_work(
    shop: Shop, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, update = views(shop), a_random_change(shop, "u", random.Random(2))
    role = f"reader_{random.Random().randrange(10**12)}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"create role {role} login")
        connection.execute(f"grant usage on schema wh to {role}")
        connection.execute(f"grant select on all tables in schema wh to {role}")
        monkeypatch.setenv("SELFMAINT_TEST_LAKE", make_conninfo(database, user=role))
        monkeypatch.setattr("selfmaint.cli.maintain.compute", lambda *_, **__: pytest.fail("there was work"))
        for name, more in COMMANDS.items():
            ran = run(name, str(shop.toml), *(str(update) if one == "u" else one for one in more))
            assert ran.status == (0 if name in {"check", "history"} else 2), (name, ran)
            if ran.status and name != "undo":  # nothing is there to be undone
                assert f"the role `{role}` may only read it" in ran.stderr, (name, ran)
                assert "error[SM405]" in ran.stderr, (name, ran)
        with selfmaint.load(shop.toml) as warehouse:
            assert warehouse.read("lines").arrow().num_rows == sum(old["lines"].values())
        monkeypatch.setenv("SELFMAINT_TEST_LAKE", database)
        connection.execute(f"drop owned by {role}")
        connection.execute(f"drop role {role}")
    assert views(shop) == old


def test_a_server_that_is_not_there_and_a_missing_package_are_told(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(loading.EXTENSIONS, "postgres_scanner", "no_such_package")
    update = shop.update("u", {"customer": {(9, "west")}}, {})
    ran = run("maintain", str(shop.toml), "--update", str(update), "--engine", "duckdb")
    assert ran.status == 2
    assert "SM408" in ran.stderr
    assert "pip install" in ran.stderr
    monkeypatch.setenv("SELFMAINT_TEST_LAKE", "postgresql://ann:s3cr3t@127.0.0.1:1/lake")
    ran = run("history", str(shop.toml))
    assert ran.status == 2
    assert "SM408" in ran.stderr
    assert "s3cr3t" not in ran.stderr
    monkeypatch.delenv("SELFMAINT_TEST_LAKE")
    assert "`SELFMAINT_TEST_LAKE` is not set" in run("history", str(shop.toml)).stderr


@pytest.mark.parametrize(
    "lines",
    [
        'path = "lake"\nschema = "x"',
        'path = "lake"\ncatalog_url = "postgresql://a:secret@h/d"',
        'path = "lake"\ncatalog_url = "postgresql://h/d"\ncatalog_url_env = "X"',
    ],
)
def test_what_the_file_says_of_the_catalog_is_checked(tmp_path: Path, lines: str) -> None:
    made = Shop(tmp_path)
    made.toml.write_text(made.toml.read_text(encoding="utf-8").replace('path = "lake"', lines, 1))
    ran = run("history", str(made.toml))
    assert ran.status == 2
    assert "SM101" in ran.stderr
    assert "secret" not in ran.stderr
