"""A lake with its files in object storage: a server of S3 in a process of its own, which checks each signature."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import selfmaint
from selfmaint.duckdb import lake as lake_module
from selfmaint.duckdb import loading
from selfmaint.duckdb.loading import extension_file
from selfmaint.errors import InputError
from tests.command_line import run
from tests.effort import effort
from tests.follow.shops import logged_shop
from tests.killing import killed, killings
from tests.selfmaint.store.test_lake import WAREHOUSE, Row, Shop, a_change, a_random_change

KEY, SECRET = "THEKEY", "s3cr3t-of-the-storage"
RCLONE = Path(sys.executable).with_name("rclone")


@dataclass
class Storage:
    """A server of S3 over a folder of this machine, whose sub-folders are the buckets.

    It goes by what it saw in them, so it is stopped while something else changes them.
    """

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [RCLONE, "serve", "s3", "--config", os.devnull, "--addr", f"127.0.0.1:{self.port}"]
        more = ["--auth-key", f"{KEY},{SECRET}", self.folder]
        self.process = subprocess.Popen([*command, *more], stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        pytest.fail("the server of S3 does not start")

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        self.process.wait()

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        self.stop()
        yield
        self.start()

    def files(self, folder: str = "bucket/wh") -> set[Path]:
        return {path for path in (self.folder / folder).rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = Storage(tmp_path_factory.mktemp("storage"), port)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def storage(server: Storage, monkeypatch: pytest.MonkeyPatch) -> Storage:
    with server.down():
        shutil.rmtree(server.folder / "bucket", ignore_errors=True)
        (server.folder / "bucket").mkdir()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return server


def a_shop(folder: Path, storage: Storage, more: str = "") -> Shop:
    folder.mkdir(exist_ok=True)
    shop = Shop(folder)
    lines = f'path = "lake"\ndata = "s3://bucket/wh"\nendpoint = "{storage.endpoint}"{more}'
    shop.toml.write_text(WAREHOUSE.replace('path = "lake"', lines), encoding="utf-8")
    return shop


@pytest.fixture
def shop(tmp_path: Path, storage: Storage) -> Shop:
    made = a_shop(tmp_path, storage)
    done = made.command("init")
    assert done.status == 0, done
    return made


def stored(shop: Shop, storage: Storage, catalog: str = "", more: str = "") -> dict[str, Counter[Row]]:
    """What a reader sees who has nothing but DuckDB, and goes where the catalog says."""
    with duckdb.connect(":memory:", config={"allow_unsigned_extensions": "true"}) as connection:
        for name in ("ducklake", "sqlite_scanner", "postgres_scanner", "httpfs"):
            connection.execute(f"LOAD '{extension_file(name)}'")
        connection.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID '{KEY}', SECRET '{SECRET}', URL_STYLE 'path', USE_SSL false, "
            f"ENDPOINT '127.0.0.1:{storage.port}')"
        )
        connection.execute(
            f"ATTACH 'ducklake:{catalog or f'sqlite:{shop.folder}/lake/catalog.sqlite'}' AS l {more}"
        )
        connection.execute("BEGIN")
        return {name: Counter(connection.execute(f'FROM l."{name}"').fetchall()) for name in shop.expected()}


def test_it_is_made_follows_returns_and_compacts_as_any_lake(shop: Shop, storage: Storage) -> None:
    assert storage.files()
    assert not (shop.folder / "lake" / "data").exists()
    assert not (shop.folder / "lake" / "begun").exists()
    draw = random.Random(3)
    for number in range(effort(2, 10)):
        before, update = shop.expected(), a_random_change(shop, f"u{number}", draw)
        assert shop.command("check", "--update", update).status in {0, 1, 3}
        done = shop.command("maintain", "--update", update, "--recompute")
        assert done.status == 0, done
        assert stored(shop, storage) == shop.expected()
    assert shop.command("undo").status == 0
    assert stored(shop, storage) == before
    assert shop.command("maintain", "--update", update, "--recompute").status == 0
    number = len(storage.files())
    with storage.down():
        orphan = shutil.copy(min(storage.files()), storage.folder / "bucket/wh/main/lines/died.parquet")
    assert shop.command("compact", "--keep-days", "0").status == 0
    assert not Path(orphan).exists()
    assert len(storage.files()) < number
    assert stored(shop, storage) == shop.expected()
    assert shop.command("import", "--view", "lines").status == 0
    assert shop.command("import").status == 0
    assert stored(shop, storage) == shop.expected()
    assert shop.command("history").status == 0
    with selfmaint.load(shop.toml) as warehouse:
        assert warehouse.read("lines").arrow().num_rows == sum(shop.expected()["lines"].values())


def test_credentials_are_those_of_aws_and_are_never_shown(
    shop: Shop, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = a_change(shop)
    old = stored(shop, storage)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"no-{SECRET}")
    ran = shop.command("maintain", "--update", update)
    assert ran.status == 2
    assert "error[SM103]: `s3://bucket/wh/main/" in ran.stderr
    assert "the credentials" in ran.stderr
    assert SECRET not in ran.stderr + ran.stdout
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(shop.folder))
    ran = shop.command("maintain", "--update", update)
    assert ran.status == 2
    assert "error[SM408]: there are no credentials for `s3://bucket/wh`" in ran.stderr
    assert "AWS_ACCESS_KEY_ID" in ran.stderr
    assert stored(shop, storage) == old
    profile = shop.folder / "credentials"
    profile.write_text(
        f"[shop]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n", encoding="utf-8"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
    monkeypatch.setenv("AWS_PROFILE", "shop")
    toml = shop.toml.read_text(encoding="utf-8")
    shop.toml.write_text(
        "".join(line for line in toml.splitlines(True) if "endpoint" not in line), encoding="utf-8"
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", storage.endpoint)
    ran = shop.command("maintain", "--update", update)
    assert ran.status == 0, ran
    assert stored(shop, storage) == shop.expected()
    statements = list[str]()
    plain = lake_module.Database.run
    monkeypatch.setattr(
        lake_module.Database,
        "run",
        lambda its, text, given=(), rows=None: statements.append(text) or plain(its, text, given, rows),
    )
    assert shop.command("undo").status == 0
    assert any("SECRET" in one for one in statements)
    assert not any(SECRET in one or KEY in one for one in statements)


@pytest.mark.parametrize("fault", ["down", "missing", "cut", "no bucket"])
def test_storage_in_trouble_is_told_and_all_goes_on_behind_it(
    shop: Shop, storage: Storage, fault: str
) -> None:
    update, old = a_change(shop), stored(shop, storage)
    kept = storage.folder / "kept"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(storage.folder / "bucket", kept)
    with storage.down():
        if fault == "no bucket":
            shutil.rmtree(storage.folder / "bucket")
        for file in storage.files():
            if fault == "missing":
                file.unlink()
            elif fault == "cut":
                file.write_bytes(file.read_bytes()[:-9])
        if fault != "down":
            storage.start()
        for arguments in (["check", "--update", update], ["maintain", "--update", update], ["import"]):
            if arguments == ["import"] and fault in {"missing", "cut"}:
                continue  # it makes all anew
            ran = shop.command(*arguments)
            assert ran.status == 2, ran
            assert "s3://bucket/wh" in ran.stderr, ran
            code = "SM405" if arguments == ["import"] else "SM104" if fault == "cut" else "SM103"
            assert f"error[{code}]" in ran.stderr, ran
            mend = "see to the storage" if fault == "down" or code == "SM405" else "back from a backup"
            assert mend in ran.stderr, ran
        assert shop.command("history").status == 0
        if fault != "down":
            storage.stop()
        shutil.copytree(kept, storage.folder / "bucket", dirs_exist_ok=True)
    assert stored(shop, storage) == old
    assert shop.command("maintain", "--update", update).status == 0
    assert stored(shop, storage) == shop.expected()


def test_whenever_a_commit_is_killed_all_views_are_old_or_all_new(shop: Shop, storage: Storage) -> None:
    draw, at, status = random.Random(8), 4, -signal.SIGKILL
    while status == -signal.SIGKILL:  # ever later, until a commit ends before it is killed
        old, update = shop.expected(), a_random_change(shop, f"u{at}", draw)
        status = killed(at, "maintain", shop.toml, "--update", update, "--recompute")
        assert stored(shop, storage) in (old, shop.expected())
        assert shop.command("maintain", "--update", update, "--recompute").status == 0
        assert stored(shop, storage) == shop.expected()
        at += effort(9, 5)
    assert status == 0
    assert at > 20
    assert shop.command("compact", "--keep-days", "0").status == 0
    assert stored(shop, storage) == shop.expected()


def test_whenever_making_it_is_killed_there_is_none_or_all_of_it(tmp_path: Path, storage: Storage) -> None:
    shop = a_shop(tmp_path, storage)

    def make() -> None:
        if (tmp_path / "lake").exists():  # it was killed behind its end
            shutil.rmtree(tmp_path / "lake")
            with storage.down():
                shutil.rmtree(storage.folder / "bucket/wh")

    def look(*, done: bool) -> None:
        if done or (tmp_path / "lake").exists():
            assert stored(shop, storage) == shop.expected()

    assert killings(make, look, "init", shop.toml, "--engine", "duckdb", step=effort(7, 5)) > 3
    assert len(storage.files()) == 4, "what those that died left is gone"


def test_it_is_not_made_among_other_objects(tmp_path: Path, storage: Storage) -> None:
    first, second = (a_shop(tmp_path / name, storage) for name in ("a", "b"))
    assert first.command("init").status == 0
    before = storage.files()
    ran = second.command("init")
    assert ran.status == 2
    assert "error[SM405]: there is something at `s3://bucket/wh` already" in ran.stderr
    assert storage.files() == before
    assert not (tmp_path / "b" / "lake").exists()
    assert stored(first, storage) == first.expected()


def test_machines_share_a_catalog_in_postgresql_and_no_folder(
    tmp_path: Path, storage: Storage, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"objects_{random.Random().randrange(10**12)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"create database {name}")
        url = make_conninfo(postgres, dbname=name)
        monkeypatch.setenv("SELFMAINT_TEST_LAKE", url)
        more = '\ncatalog_url_env = "SELFMAINT_TEST_LAKE"\nschema = "wh"'
        one, other = (a_shop(tmp_path / machine, storage, more) for machine in ("one", "other"))
        assert one.command("init").status == 0
        update = a_change(one)
        assert other.command("check", "--update", update).status == 0
        assert not (other.folder / "lake").exists()
        assert other.command("maintain", "--update", update).status == 0
        assert "committed before" in one.command("maintain", "--update", update).stdout
        assert stored(one, storage, f"postgres:{url}", "(META_SCHEMA 'wh')") == one.expected()
        assert one.command("undo").status == 0
        assert other.command("compact", "--keep-days", "0").status == 0
        connection.execute(f"drop database {name} with (force)")


def test_a_log_is_followed_into_it(tmp_path: Path, storage: Storage, postgres: str) -> None:
    with logged_shop(tmp_path, postgres) as made:
        lines = f'path = "lake"\ndata = "s3://bucket/wh"\nendpoint = "{storage.endpoint}"'
        made.toml.write_text(made.toml.read_text(encoding="utf-8").replace('path = "lake"', lines))
        shop = made.made()
        shop.execute("update shop.sale set amount = 3 where id = 1")
        assert shop.follow("--once").status == 0
        assert shop.stored() == shop.expected()
        before = shop.confirmed()
        shop.execute("update shop.sale set amount = 4 where id = 1")
        with storage.down():
            ran = shop.follow("--once")
            assert ran.status == 2
            assert "see to the storage" in ran.stderr
        assert shop.confirmed() == before
        assert shop.follow("--once").status == 0
        assert shop.stored() == shop.expected()


def test_spark_and_a_missing_package_are_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in (["check", "--update", a_change(shop)], ["import"]):
        ran = shop.command(*arguments, "--engine", "spark")
        assert ran.status == 2
        assert "error[SM502]" in ran.stderr
        assert "only DuckDB reads it here" in ran.stderr
    monkeypatch.setitem(loading.EXTENSIONS, "httpfs", "no_such_package")
    ran = shop.command("history")
    assert ran.status == 2
    assert "error[SM408]" in ran.stderr
    assert "pip install no-such-package" in ran.stderr


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('path = "s3://bucket/wh"', "is a folder on this machine"),
        ('path = "lake"\ndata = "s3://bucket"', "is no folder in object storage"),
        ('path = "lake"\ndata = "gs://bucket/wh"', "is no folder in object storage"),
        ('path = "lake"\ndata = "elsewhere"', "is no folder in object storage"),
        ('path = "lake"\ndata = "s3://bucket/*"', "is no folder in object storage"),
        ('path = "lake"\ndata = "s3://ann:hidden@bucket/wh"', "names a user or password"),
        ('path = "lake"\nendpoint = "http://h"', "none is named"),
        ('path = "lake"\ndata = "s3://bucket/wh"\nendpoint = "http://ann:hidden@h"', "is no URL of a server"),
    ],
)
@pytest.mark.parametrize("kind", ["lake", "delta"])
def test_what_the_file_says_of_it_is_checked(tmp_path: Path, lines: str, said: str, kind: str) -> None:
    shop = Shop(tmp_path)
    text = WAREHOUSE.replace('path = "lake"', lines).replace('kind = "lake"', f'kind = "{kind}"')
    shop.toml.write_text(text, encoding="utf-8")
    ran = run("init", str(shop.toml))
    assert ran.status == 2
    assert "SM101" in ran.stderr
    assert (said if kind == "lake" or 'path = "s3' in lines else "is of a lake") in ran.stderr
    assert "hidden" not in ran.stderr
    with pytest.raises(InputError):
        selfmaint.history(shop.toml)
