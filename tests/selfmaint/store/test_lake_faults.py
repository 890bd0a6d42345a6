"""A lake in trouble: every command ends with an error that says what to do, and goes on once all is put back."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

import selfmaint
from selfmaint.duckdb.lake import _attach
from selfmaint.errors import InputError
from selfmaint.store import lake_server
from tests.command_line import Ran
from tests.effort import EXPLORE, effort
from tests.forked import Ended, forked
from tests.selfmaint.store.test_lake import FULL, Row, Shop

CATALOG = "catalog.sqlite"
COMMANDS = {
    "check": ["check", "--update", "UP"],
    "explain": ["explain", "lines", "--update", "UP"],
    "maintain": ["maintain", "--update", "UP"],
    "history": ["history"],
    "undo": ["undo"],
    "compact": ["compact", "--keep-days", "0"],
    "import": ["import"],
    "import one": ["import", "--view", "lines"],
    "init": ["init"],
}
WRITES = ("maintain", "undo", "compact", "import", "import one")


class Kept:
    """A shop whose lake has a past, an update that waits for it, and a copy of the lake as it is."""

    def __init__(self, folder: Path) -> None:
        self.shop, self.lake, self.copy = Shop(folder), folder / "lake", folder / "kept"
        assert self.shop.command("init").status == 0
        first = self.shop.update(
            "first", {"sale": {(9, 1, 9)}}, {"sale": {(3, 2, 5)}, "customer": {(2, "south")}}
        )
        assert self.shop.command("maintain", "--update", first).status == 0
        self.old, self.went_on = self.shop.stored(), False
        self.update = self.shop.update("up", {"sale": {(5, 3, 7)}}, {"sale": {(1, 1, 10)}})
        shutil.copytree(self.lake, self.copy)

    def run(self, name: str) -> Ran:
        return self.shop.command(*self.arguments(name))

    def arguments(self, name: str) -> list[object]:
        return [self.update if part == "UP" else part for part in COMMANDS[name]]

    def fresh(self) -> None:
        shutil.rmtree(self.lake, ignore_errors=True)
        shutil.copytree(self.copy, self.lake)

    def put_back(self) -> None:
        """What is gone or damaged is there again, and what else was written stays."""
        shutil.copytree(self.copy, self.lake, dirs_exist_ok=True)

    def is_as_it_was(self) -> bool:
        """Whether the views have their old rows; files that are the same need no look at the rows."""
        return every_byte(self.lake) == every_byte(self.copy) or self.shop.stored() == self.old

    def goes_on(self) -> None:
        """A lake that is as it was to the last byte goes on as it did, so that this is tried once; else each time."""
        if self.went_on and not EXPLORE and every_byte(self.lake) == every_byte(self.copy):
            return
        self.went_on = True
        assert self.shop.stored() == self.old
        done = self.run("maintain")
        assert done.status == 0, done
        assert self.shop.stored() == self.shop.expected()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    found = Kept(tmp_path_factory.mktemp("faults"))
    yield found
    found.fresh()
    found.went_on = False  # once more behind all that went wrong in this process
    found.goes_on()


def contents(folder: Path) -> dict[str, bytes]:
    """All files but those that a look leaves: the lock's, and what SQLite keeps beside a catalog."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {
        str(path): path.read_bytes() for path in files if not path.name.endswith((".lock", "-shm", "-wal"))
    }


def every_byte(folder: Path) -> dict[str, bytes]:
    """All that matters to who opens a lake: what was written beside a catalog and waits to be put into it, too."""
    files = (
        path for path in folder.rglob("*") if path.is_file() and not path.name.endswith((".lock", "-shm"))
    )
    found = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    return {name: data for name, data in found.items() if data or not name.endswith("-wal")}


def cut(to: Callable[[int], int], file: Path) -> None:
    file.write_bytes(file.read_bytes()[: to(file.stat().st_size)])


def garbled(begin: int, file: Path) -> None:
    file.write_bytes(file.read_bytes()[:begin] + b"\xa5" * (file.stat().st_size - begin))


def folder_in_place(file: Path) -> None:
    file.unlink()
    file.mkdir()


# ---------------------------------------------------------------------------------------- the catalog's file

CATALOGS: Mapping[str, Callable[[Path], object]] = {
    "empty": partial(cut, lambda _: 0),
    "cut in its header": partial(cut, lambda _: 50),
    "cut after a page": partial(cut, lambda _: 4096),
    "cut in the middle": partial(cut, lambda size: size // 2),
    "a page short": partial(cut, lambda size: size - 4096),
    "a byte short": partial(cut, lambda size: size - 1),
    "garbage": partial(garbled, 0),
    "garbage behind its header": partial(garbled, 4096),
    "garbage in its second half": partial(garbled, 81_920),
    "deleted": Path.unlink,
    "a folder": folder_in_place,
}


@pytest.mark.parametrize("fault", CATALOGS)
def test_a_damaged_catalog_is_told_and_left_as_it_is(kept: Kept, fault: str) -> None:
    kept.fresh()
    CATALOGS[fault](kept.lake / CATALOG)
    before = contents(kept.lake)
    for name in COMMANDS:
        ran = kept.run(name)
        assert ran.status == 2, (name, ran)
        if name == "init":
            assert f"error[SM405]: there is something at `{kept.lake}` already" in ran.stderr
        else:
            assert "error[SM408]" in ran.stderr, (name, ran)
            assert f"`{kept.lake / CATALOG}`" in ran.stderr, (name, ran)
            assert "back from a backup" in ran.stderr, (name, ran)
        assert contents(kept.lake) == before, name
    if (kept.lake / CATALOG).is_dir():
        (kept.lake / CATALOG).rmdir()
    kept.put_back()
    kept.goes_on()
    print(f"{len(COMMANDS)} commands over a catalog that is {fault}")


def test_a_catalog_that_is_damaged_before_the_commit_is_left_as_it_is(kept: Kept) -> None:
    """What was computed is kept over all of it, and committed once the catalog is back."""
    kept.fresh()
    with selfmaint.load(kept.shop.toml, engine="duckdb") as warehouse:
        found = warehouse.maintain(selfmaint.Update.from_files(warehouse, kept.update))
        for fault, damage in CATALOGS.items():
            damage(kept.lake / CATALOG)
            before = contents(kept.lake)
            with pytest.raises(InputError, match="SM408"):
                warehouse.apply(found)
            assert contents(kept.lake) == before, fault
            if (kept.lake / CATALOG).is_dir():
                (kept.lake / CATALOG).rmdir()
            kept.put_back()
            assert kept.is_as_it_was(), fault
        warehouse.apply(found)
    assert kept.shop.stored() == kept.shop.expected()
    kept.fresh()
    kept.goes_on()


def test_no_catalog_is_made_in_place_of_a_lost_one(kept: Kept) -> None:
    """DuckDB makes an empty one where it finds none, even when it is told not to."""
    kept.fresh()
    with selfmaint.load(kept.shop.toml, engine="duckdb") as warehouse:
        assert warehouse.store is not None
        store = warehouse.store.store
        (kept.lake / CATALOG).unlink()
        with pytest.raises(InputError, match="is gone"):
            _attach(store.database, store.place)
    assert not (kept.lake / CATALOG).exists()


def test_a_lake_whose_folder_is_lost_is_not_made_by_who_does_not_say_so(kept: Kept) -> None:
    shutil.rmtree(kept.lake)
    for name in COMMANDS.keys() - {"init"}:
        ran = kept.run(name)
        assert ran.status == 2, (name, ran)
        assert f"error[SM408]: there is no lake at `{kept.lake}`" in ran.stderr
        assert not kept.lake.exists()
    kept.fresh()
    kept.goes_on()


HOLDER = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    held.execute(statement)
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def held(file: Path, *statements: str) -> Iterator[None]:
    """Another process that holds a database of SQLite."""
    command = [sys.executable, "-c", HOLDER, str(file), *statements]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        yield
        other.communicate(b"")


def test_a_catalog_that_another_program_holds_is_waited_for_and_told(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_server, "_BUSY_S", 0.1)
    kept.fresh()
    before = contents(kept.lake)
    with held(kept.lake / CATALOG, "PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE"):
        for name in COMMANDS.keys() - {"init"}:
            ran = kept.run(name)
            assert ran.status == 2, (name, ran)
            assert (
                f"error[SM408]: the catalog `{kept.lake / CATALOG}` of the lake cannot be read" in ran.stderr
            )
            assert "another program holds it: wait" in ran.stderr, (name, ran)
    assert contents(kept.lake) == before
    with held(kept.lake / CATALOG, "BEGIN IMMEDIATE"):
        for name in ("check", "explain", "history"):
            assert kept.run(name).status == 0, name
        for name in ("maintain", "undo", "import", "import one"):
            ran = kept.run(name)
            assert ran.status == 2, (name, ran)
            assert "error[SM405]" in ran.stderr, (name, ran)
            assert "another program writes to the catalog: wait" in ran.stderr, (name, ran)
    kept.goes_on()


# -------------------------------------------------------------------------------------------------- its files


@dataclass(frozen=True)
class FileFault:
    """What is done to which files, with the code of those commands that read them; 0 for those that do not."""

    do: Callable[[Path], object]
    glob: str = "data/main/*/*.parquet"
    code: str = "SM103"
    others: Mapping[str, int | str] = field(default_factory=dict)


ANEW: Mapping[str, int | str] = {"history": 0, "import": 0, "compact": "SM405", "init": "SM405"}
"""What does not read the views; nor does it matter to what makes all of them anew."""
ONE: Mapping[str, int | str] = {**ANEW, "import one": 0}
DELETES = "data/main/*/*-delete.parquet"
FILES = {
    "all files missing": FileFault(Path.unlink, others=ANEW),
    "all files empty": FileFault(partial(cut, lambda _: 0), code="SM104", others=ANEW),
    "all files cut": FileFault(partial(cut, lambda size: size - 9), code="SM104", others=ANEW),
    "all files garbage": FileFault(partial(garbled, 0), code="SM104", others=ANEW),
    "the files of a view missing": FileFault(Path.unlink, "data/main/lines/*.parquet", others=ONE),
    "the files of a view cut": FileFault(
        partial(cut, lambda size: size // 2), "data/main/lines/*.parquet", "SM104", ONE
    ),
    "files of deleted rows missing": FileFault(Path.unlink, DELETES, others=ANEW),
    "files of deleted rows cut": FileFault(partial(cut, lambda size: size - 9), DELETES, "SM104", ANEW),
}


@pytest.mark.parametrize("fault", FILES)
def test_a_damaged_file_is_told_and_nothing_is_lost(kept: Kept, fault: str) -> None:
    its = FILES[fault]
    for name in COMMANDS:
        kept.fresh()
        spoilt = list(kept.lake.glob(its.glob))
        assert spoilt
        for file in spoilt:
            its.do(file)
        wanted = its.others.get(name, its.code)
        ran = kept.run(name)
        if wanted == 0:
            assert ran.status == 0, (name, ran)
            if name == "import":  # all is there again, and is taken care of
                assert kept.shop.stored() == kept.shop.expected()
                assert kept.run("compact").status == 0
                assert kept.shop.stored() == kept.shop.expected()
                continue
        else:
            assert ran.status == 2, (name, ran)
            assert f"error[{wanted}]" in ran.stderr, (name, ran)
            assert "hint: " in ran.stderr, (name, ran)
            assert name == "init" or any(str(file) in ran.stderr for file in spoilt), (name, ran)
            assert name == "init" or "back from a backup" in ran.stderr, (name, ran)
        kept.put_back() if name not in {"import one", "compact"} else kept_files(kept, spoilt)
        if name != "import one" or wanted != 0:
            assert kept.is_as_it_was(), name
    kept.fresh()
    kept.goes_on()
    print(f"{len(COMMANDS)} commands over {fault}: {len(spoilt)}")


def kept_files(kept: Kept, spoilt: list[Path]) -> None:
    """Only those files are put back: the catalog may say more than it did."""
    for file in spoilt:
        shutil.copy(kept.copy / file.relative_to(kept.lake), file)


def test_where_no_more_can_be_written_every_command_leaves_all_as_it_was(kept: Kept) -> None:
    refused = 0
    for name in WRITES:
        for most in (1_000, 40_000):
            kept.fresh()
            command, *rest = kept.arguments(name)
            ran = forked(FULL, most, command, kept.shop.toml, *rest)
            assert "Traceback" not in ran.said
            if ran.status != 0:
                refused += 1
                assert "error[SM40" in ran.said, (name, ran.said)
                assert "see to the disk" in ran.said, (name, ran.said)
                assert kept.is_as_it_was(), name
    print(f"refused {refused} times")
    assert refused >= len(WRITES) + 2
    kept.fresh()
    kept.goes_on()


# ------------------------------------------------------------------------------------------------ who may not

OTHER = 65_534


BECOMING = f"""
import os
os.setgroups([])
os.setresgid({OTHER}, {OTHER}, {OTHER})
os.setresuid({OTHER}, {OTHER}, {OTHER})
"""
COMMANDING = """
import sys
from selfmaint.cli.app import app
sys.exit(app(sys.argv[1:]))
"""
READING = """
import sys, selfmaint
with selfmaint.load(sys.argv[1]) as warehouse:
    print(warehouse.read("lines").arrow())
"""


class Other:
    """Somebody who may not write to the lake. Another user only where this one is root, whom rights do not bind."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept

    def command(self, *given: object) -> list[str]:
        prefix = (
            ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"] if os.getuid() == 0 else []
        )
        return [*prefix, sys.executable, *map(str, given)]

    def run(self, name: str, *more: str) -> Ended:
        first, *rest = self.kept.arguments(name)
        return self.does(COMMANDING, first, self.kept.shop.toml, *rest, *more)

    @staticmethod
    def does(code: str, *arguments: object) -> Ended:
        ran = forked(BECOMING + code if os.getuid() == 0 else code, *arguments)
        assert "Traceback" not in ran.said, ran
        return ran

    def let(self, mode: int) -> None:
        """Takes rights of all in the lake; folders can be looked into."""
        for path in (self.kept.lake, *self.kept.lake.rglob("*")):
            path.chmod(mode | 0o111 if path.is_dir() else mode)


@pytest.fixture(scope="module")
def other() -> Iterator[Other]:
    with tempfile.TemporaryDirectory(prefix="selfmaint-other-") as name:
        Path(name).chmod(0o755)
        found = Other(Kept(Path(name)))
        if os.getuid() == 0 and shutil.which("setpriv") is None:
            pytest.skip("there is no `setpriv` to be another user by")
        tried = subprocess.run(found.command("-c", "import selfmaint"), capture_output=True, check=False)
        if tried.returncode != 0:
            pytest.skip("another user may not start this Python")
        yield found
        found.let(0o644)


def test_who_may_not_write_checks_and_reads_and_is_refused_before_there_is_work(other: Other) -> None:
    kept = other.kept
    for beside in (False, True):  # what SQLite keeps beside a catalog that is open, or was left so
        kept.fresh()
        if not beside:
            for end in ("-shm", "-wal"):
                (kept.lake / f"{CATALOG}{end}").unlink(missing_ok=True)
        else:
            assert kept.run("history").status == 0
            assert (kept.lake / f"{CATALOG}-shm").exists()
        before = contents(kept.lake)
        shutil.move(
            kept.shop.folder / "base", kept.shop.folder / "hidden"
        )  # no work: nobody misses the sources
        other.let(0o444)
        for name in ("check", "explain", "history"):
            assert other.run(name).status == 0, name
        assert "amount" in other.does(READING, kept.shop.toml).said
        shutil.move(kept.shop.folder / "hidden", kept.shop.folder / "base")
        for name in WRITES:
            ran = other.run(name)
            assert ran.status == 2, (name, ran)
            assert f"error[SM405]: `{kept.lake}` cannot be written to" in ran.said, (name, ran)
            assert "nothing was done" in ran.said, (name, ran)
        assert other.run("maintain", "--dry-run").status == 0
        assert contents(kept.lake) == before
        other.let(0o644)
        kept.goes_on()


@pytest.mark.parametrize("what", ["the catalog", "the folder", "the files"])
def test_who_may_not_read_is_told_of_what(other: Other, what: str) -> None:
    kept = other.kept
    kept.fresh()
    closed = {
        "the catalog": [kept.lake / CATALOG],
        "the folder": [kept.lake],
        "the files": list(kept.lake.rglob("*.parquet")),
    }[what]
    for path in closed:
        path.chmod(0)
    ran = {name: other.run(name) for name in ("check", "history", "import")}
    for path in closed:
        path.chmod(0o755 if path.is_dir() else 0o644)
    for name, one in ran.items():
        if what == "the files" and name != "check":  # one reads none of them, the other may not write
            assert one.status == (0 if name == "history" else 2), (name, one)
            continue
        assert one.status == 2, (name, one)
        assert ("error[SM104]" if what == "the files" else "error[SM408]") in one.said, (name, one)
        assert any(str(path) in one.said for path in closed), (name, one)
        assert "see to the" in one.said, (name, one)
    kept.goes_on()


LOOKING = """
import json, sys
from selfmaint.api.stores.store_upkeep import store_of
from selfmaint.duckdb.store import stored_rows
while True:
    open_, found = store_of(sys.argv[1]), {}
    for name in ("lines", "customers", "regions", "totals"):
        rows = stored_rows(open_.store.database, open_.table(name)).arrow().to_pylist()
        found[name] = [list(row.values()) for row in rows]
    print(json.dumps([open_.version, found]), flush=True)
"""


def test_who_may_not_write_sees_whole_states_while_others_commit(other: Other) -> None:
    """Each commit opens and closes the catalog, so that it is read with and without SQLite's files beside it."""
    kept = other.kept
    kept.fresh()
    seen: dict[int, dict[str, Counter[Row]]] = {}
    with subprocess.Popen(
        other.command("-c", LOOKING, kept.shop.toml), stdout=subprocess.PIPE, text=True
    ) as looker:
        assert looker.stdout is not None

        def look() -> int:
            version, found = json.loads(looker.stdout.readline())
            seen[version] = {name: Counter(map(tuple, rows)) for name, rows in found.items()}
            return int(version)

        try:
            last = look()
            for _ in range(effort(4, 40)):
                assert kept.run("maintain").status == 0
                assert kept.run("undo").status == 0
                last += 2
            while look() < last:
                pass
        finally:
            looker.kill()
    assert all(found in (kept.old, kept.shop.expected()) for found in seen.values())
    assert len(seen) > 3
