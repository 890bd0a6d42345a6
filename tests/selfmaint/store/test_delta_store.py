"""A warehouse whose views are Delta tables: committed together, found again after a kill, safe from other writers.

Oracle: the views by hand. Who looks has nothing but `deltalake`, and the journal of the versions that belong together.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import selfmaint
from selfmaint.duckdb.delta import DeltaTables
from selfmaint.errors import InputError
from tests.effort import rounds
from tests.forked import forked
from tests.killing import killed, killings
from tests.selfmaint.store.test_lake import FULL, Row, Shop, a_change, a_random_change, write

State = dict[str, Counter[Row]]


def rows(table: DeltaTable) -> Counter[Row]:
    return Counter(tuple(row.values()) for row in table.to_pyarrow_table().to_pylist())


def stored(shop: Shop) -> State:
    """The tables at the versions of the journal's last row."""
    journal = DeltaTable(str(shop.folder / "lake" / "_journal")).to_pyarrow_table().sort_by("snapshot")
    versions = json.loads(journal.column("versions")[-1].as_py())
    return {n: rows(DeltaTable(str(shop.folder / "lake" / n), version=v)) for n, v in versions.items()}


def last(shop: Shop) -> State:
    """What somebody sees who does not know the journal."""
    return {name: rows(DeltaTable(str(shop.folder / "lake" / name))) for name in shop.expected()}


def history(shop: Shop) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shop.command("history", "--format", "json").stdout)["snapshots"]
    return found


@pytest.fixture
def shop(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(tmp_path, "delta").made(tmp_path_factory.getbasetemp())


def test_many_random_batches_undone_compacted_and_known_again(shop: Shop) -> None:
    draw = random.Random(3)
    states, folders = [stored(shop)], []
    assert states[0] == shop.expected()
    for i in range(4):
        folders.append(a_random_change(shop, f"u{i}", draw))
        done = shop.command("maintain", "--update", folders[-1], "--recompute", "--format", "json")
        assert done.status == 0, done
        states.append(stored(shop))
        assert states[-1] == last(shop) == shop.expected(), i
    net: Counter[Row] = Counter()
    for row in pa.table(
        DeltaTable(str(shop.folder / "lake" / "lines")).load_cdf(starting_version=1)
    ).to_pylist():
        net[*list(row.values())[:4],] += {"insert": 1, "delete": -1}[row["_change_type"]]
    assert +net == states[-1]["lines"] - states[0]["lines"], "the change data feed"
    assert -net == states[0]["lines"] - states[-1]["lines"]
    cost = [one for one in json.loads(done.stdout)["written"] if one["files_rewritten"]]
    assert cost
    assert all(one["bytes_written"] > 0 for one in cost)
    assert "committed before" in shop.command("maintain", "--update", folders[-1]).stdout
    assert shop.command("undo").status == 0
    assert stored(shop) == last(shop) == states[-2]
    assert "files: " in shop.command("maintain", "--update", folders[-1], "--recompute").stdout
    assert shop.command("undo", "--to", history(shop)[2]["snapshot"]).status == 0
    assert stored(shop) == states[2]
    assert shop.command("check", "--update", folders[2], "--as-of", 3).status in (0, 1, 3)
    assert shop.command("compact", "--keep-days", 0).status == 0
    assert stored(shop) == last(shop) == states[2]
    assert shop.command("check", "--update", folders[2], "--as-of", 3).status == 2  # let go of
    assert shop.command("undo", "--to", 3).status == 2


def test_one_warehouse_goes_on_after_each_commit(shop: Shop) -> None:
    draw = random.Random(4)
    with selfmaint.load(shop.toml, engine="duckdb") as warehouse:
        for i in range(3):
            update = selfmaint.Update.from_files(warehouse, a_random_change(shop, f"u{i}", draw))
            warehouse.apply(warehouse.maintain(update, recompute=True))
            assert stored(shop) == shop.expected(), i


# ------------------------------------------------------------------------------------------ other writers


@pytest.mark.parametrize("place", ["before", "between"])
def test_a_table_that_somebody_else_changes_is_refused_and_all_else_put_back(
    shop: Shop, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is committed, and after other views of the same update were."""
    before, update = stored(shop), a_change(shop)
    table = shop.folder / "lake" / "regions"

    def other() -> None:
        write_deltalake(str(table), pa.table({"region": ["west"]}), mode="append")

    plain = DeltaTables._merge

    def merge(self: DeltaTables, opened: DeltaTable, *more: Any) -> int:
        if "regions" in opened.table_uri and place == "between":
            monkeypatch.undo()
            other()
        return plain(self, opened, *more)

    monkeypatch.setattr(DeltaTables, "_merge", merge)
    with selfmaint.load(shop.toml) as warehouse:
        found = warehouse.maintain(selfmaint.Update.from_files(warehouse, update))
        if place == "before":
            other()
        with pytest.raises(InputError, match="SM410") as refused:
            warehouse.apply(found)
    assert "regions" in str(refused.value)
    assert stored(shop) == before, "readers through the journal"
    assert {n: r for n, r in last(shop).items() if n != "regions"} == {
        n: r for n, r in before.items() if n != "regions"
    }
    assert shop.command("check", "--update", update).status == 0, "it reads the state of the last commit"
    again = shop.command("maintain", "--update", update)
    assert again.status == 2
    assert "[SM410]" in again.stderr
    # What is there now is taken, or computed anew from the sources, which are in the state after the update.
    assert shop.command("import", "--view", "regions", "--from", f"regions={table}").status == 0
    assert stored(shop)["regions"] == before["regions"] + Counter({("west",): 1})
    assert shop.command("import").status == 0
    assert stored(shop) == last(shop) == shop.expected()


def test_upkeep_of_others_is_no_conflict(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before the commit, nor in the moment of it."""
    update = a_change(shop)
    plain, seen = DeltaTables._merge, []

    def merge(self: DeltaTables, opened: DeltaTable, *more: Any) -> int:
        if not seen:
            seen.append(opened.version())
            DeltaTable(opened.table_uri).vacuum(dry_run=False)
        return plain(self, opened, *more)

    DeltaTable(str(shop.folder / "lake" / "totals")).vacuum(dry_run=False)
    monkeypatch.setattr(DeltaTables, "_merge", merge)
    with selfmaint.load(shop.toml) as warehouse:
        warehouse.apply(warehouse.maintain(selfmaint.Update.from_files(warehouse, update)))
    assert seen
    assert stored(shop) == last(shop) == shop.expected()


def test_two_maintainers_without_a_lock_lose_nothing_and_repeat_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a file system that has no locks: Delta refuses the later one of two commits, and it is taken back.

    Somebody who reads meanwhile sees all views at one state: the rows of each view tell those of the others.
    """
    codes: Counter[str] = Counter()
    stop, mixed, seen = threading.Event(), list[State](), set[int]()

    def reading() -> None:
        while not stop.wait(0.02):
            found = stored(shop)
            sizes = {sum(found["lines"].values()), sum(found["regions"].values())}
            if sizes != {sum(row[1] for row in found["totals"].elements())}:
                mixed.append(found)
            seen.update(sizes)

    reader = threading.Thread(target=reading, daemon=True)
    reader.start()
    for number in range(rounds(2)):
        updates = [
            shop.update(f"u{number}{i}", {"sale": {(10 * number + i + 50, 2, i)}}, {}) for i in range(2)
        ]
        barrier = threading.Barrier(2)

        def maintained(update: Path, barrier: threading.Barrier = barrier) -> None:
            with selfmaint.load(shop.toml, engine="duckdb") as warehouse:
                found = warehouse.maintain(selfmaint.Update.from_files(warehouse, update, id=update.name))
                barrier.wait()
                try:
                    warehouse.apply(found)
                    codes["done"] += 1
                except selfmaint.SelfmaintError as error:
                    codes[error.diagnostics[0].code.value] += 1

        with monkeypatch.context() as patch:
            patch.setattr("selfmaint.store.place.fcntl.flock", lambda *_: None)
            threads = [threading.Thread(target=maintained, args=[update]) for update in updates]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for update in updates:
            assert shop.command("maintain", "--update", update, "--id", update.name).status == 0
        assert stored(shop) == last(shop) == shop.expected(), number
    stop.set()
    reader.join()
    print(f"two at once: {dict(codes)}, {len(seen)} states seen")
    assert not mixed
    assert len(seen) > 2
    assert codes.keys() <= {"done", "SM405"}
    assert codes["done"] <= number + 1, "never both"


NAN = float("nan")


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize(
    ("values", "lost"),
    [
        ([2.5, NAN, 2.5], [2]),  # statistics of the file say that all are 2.5
        ([1.0] * 40 + [NAN] * 2, [7]),
        ([NAN, 1.5], [0]),
        ([NAN, -0.0, 0.0], [0]),
        ([NAN, NAN, 1.0], [0, 2]),
    ],
)
def test_rows_beside_nan_stay_as_they_are(
    values: list[float], lost: list[int], kind: pa.DataType, tmp_path: Path
) -> None:
    def table(places: Iterable[int]) -> pa.Table:
        its = list(places)
        return pa.table({"id": pa.array(its, pa.int64()), "d": pa.array([values[i] for i in its], kind)})

    sql = "double" if kind == pa.float64() else "float"
    (tmp_path / "v.sql").write_text(
        f"create table t (id bigint not null primary key, d {sql}); create view copy as select id, d from t;"
    )
    (tmp_path / "w.toml").write_text(
        'program = "v.sql"\n[store]\nkind = "delta"\npath = "store"\n[sources.s]\nkind = "files"\n'
        '[relations.t]\nsource = "s"\npath = "t.parquet"\n[update]\neffective = true\n'
    )
    pq.write_table(table(range(len(values))), tmp_path / "t.parquet")
    selfmaint.init(tmp_path / "w.toml")
    with selfmaint.load(tmp_path / "w.toml") as warehouse:
        update = selfmaint.Update.from_frames(warehouse, {}, {"t": table(lost)})
        warehouse.apply(warehouse.maintain(update))
    found = rows(DeltaTable(str(tmp_path / "store" / "copy")))
    left = [(i, value) for i, value in enumerate(values) if i not in lost]
    assert Counter((i, repr(value)) for i, value in found.elements()) == Counter(
        (i, repr(v)) for i, v in left
    )


def test_upkeep_of_one_table_lets_go_of_the_files_of_all(shop: Shop) -> None:
    for number in range(3):
        update = shop.update(f"u{number}", {"sale": {(200 + number, 1, number)}}, {})
        assert shop.command("maintain", "--update", update).status == 0
    store = selfmaint.load(shop.toml).store
    assert store is not None
    store.store.compact(0, frozenset({"lines"}))
    for name in shop.expected():
        table = DeltaTable(str(shop.folder / "lake" / name))
        assert len(list((shop.folder / "lake" / name).glob("*.parquet"))) == len(table.file_uris())


def test_tables_elsewhere_are_taken_as_they_are(tmp_path: Path) -> None:
    """Of columns in another order, and of a narrower type: what does not fit is refused, not cut off."""
    shop = Shop(tmp_path, "delta")
    table, names = tmp_path / "other" / "lines", ("id", "amount", "customer", "region")
    text = shop.toml.read_text(encoding="utf-8")
    shop.toml.write_text(text + '[views.lines]\npath = "other/lines"\n', encoding="utf-8")
    refused = shop.command("init")
    assert "[SM103]" in refused.stderr
    assert not (tmp_path / "lake").exists()
    there = pa.table(dict(zip(names, zip(*shop.expected()["lines"], strict=True), strict=True)))
    there = there.set_column(1, "amount", there.column("amount").cast(pa.int16()))
    there = there.set_column(0, "id", there.column("id").cast(pa.int32()))
    there = there.set_column(2, "customer", there.column("customer").cast(pa.int32()))
    write_deltalake(str(table), there.select([*reversed(names)]))
    assert shop.command("init").status == 0
    assert shop.command("maintain", "--update", a_change(shop)).status == 0
    found = DeltaTable(str(table)).to_pyarrow_table()
    assert found.column_names == [*reversed(names)]
    assert (
        Counter(tuple(row[name] for name in names) for row in found.to_pylist()) == shop.expected()["lines"]
    )
    assert not (tmp_path / "lake" / "lines").exists()
    large = shop.update("large", {"sale": {(77, 1, 40_000)}}, {})
    done = shop.command("maintain", "--update", large)
    assert "[SM104]" in done.stderr
    assert DeltaTable(str(table)).to_pyarrow_table().equals(found)


def test_partial_copies_and_feeds_are_in_the_same_commit(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "delta")
    text = shop.toml.read_text(encoding="utf-8")
    shop.toml.write_text(text + "[copies.sale]\npresent = true\n", encoding="utf-8")
    write(tmp_path / "there.parquet", "sale", {(1, 1, 10), (2, 1, None)})
    assert shop.command("init", f"--from=sale@present={tmp_path / 'there.parquet'}").status == 0
    feed = tmp_path / "feed.jsonl"
    event = {"op": "c", "before": None, "after": {"id": 21, "customer": 1, "amount": 1}, "ts_ms": 1}
    feed.write_text(json.dumps({**event, "source": {"lsn": 7, "table": "sale"}}) + "\n", encoding="utf-8")
    shop.base["sale"] |= {(21, 1, 1)}
    shop.store_base()
    for _ in range(2):
        assert shop.command("maintain", "--feed", feed).status == 0
    found = stored(shop)
    assert found.pop("sale@present") == Counter([(1, 1, 10), (2, 1, None), (21, 1, 1)])
    assert found == shop.expected()
    assert history(shop)[-1]["positions"] == {"": "7"}


def test_the_place_of_a_store_is_checked(shop: Shop) -> None:
    text = shop.toml.read_text(encoding="utf-8")
    for change, said in (
        ((text, text + '[views.lines]\ntable = "x"\n'), "kept in the Delta store"),
        (('path = "lake"', 'path = "lake"\nschema = "x"'), "is of a lake"),
        (('path = "lake"', 'path = "lake"\n[views.lines]\npath = "s3://x/y"'), "on this machine"),
    ):
        shop.toml.write_text(text.replace(*change), encoding="utf-8")
        done = shop.command("history")
        assert done.status == 2
        assert said in done.stderr, done.stderr
    shop.toml.write_text(text, encoding="utf-8")
    for file in (shop.folder / "lake" / "_journal").glob("*.parquet"):
        file.unlink()
    assert "[SM408]" in shop.command("history").stderr


# ------------------------------------------------------------------------------------- killed on the way


def test_whenever_a_commit_is_killed_the_next_command_finds_all_old_or_all_new(shop: Shop) -> None:
    lake, kept = shop.folder / "lake", shop.folder / "kept"
    old = stored(shop)
    shutil.copytree(lake, kept)
    update = a_change(shop)
    new = shop.expected()
    seen: Counter[str] = Counter()

    def make() -> None:
        shutil.rmtree(lake)
        shutil.copytree(kept, lake)

    def look(*, done: bool) -> None:
        assert stored(shop) in (old, new), "before anything is put right"
        assert shop.command("history").status == 0
        found = stored(shop)
        assert found == last(shop)
        assert found in (old, new)
        assert not done or found == new
        seen["new" if found == new else "old"] += 1
        if not done:
            again = shop.command("maintain", "--update", update)
            assert again.status == 0, again
            assert ("committed before" in again.stdout) is (found == new)
            assert stored(shop) == last(shop) == new
            assert shop.command("undo").status == 0
            assert stored(shop) == last(shop) == old

    command = ("maintain", shop.toml, "--update", update, "--engine", "duckdb")
    number = killings(make, look, *command, steps="delta")
    for within_s in (0.02,):
        make()
        killed(10**6, *command, within_s=within_s, steps="delta")
        look(done=False)
    print(f"killed at {number} steps of a commit and within it: {dict(seen)}")
    assert number == 6, "before each of four tables, before and after the journal's row"
    assert seen["old"] >= 4
    assert seen["new"] >= 3


def test_making_compacting_and_undoing_are_killed_and_nothing_is_lost(shop: Shop) -> None:
    lake, kept = shop.folder / "lake", shop.folder / "kept"
    before = stored(shop)
    assert shop.command("maintain", "--update", a_change(shop)).status == 0
    now = stored(shop)
    shutil.copytree(lake, kept)

    def die(at: int, *command: object) -> None:
        assert killed(at, *command, steps="delta") == -signal.SIGKILL

    for at in (5, 10):  # some tables are put together, and all of them, but not in the journal
        die(at, "compact", shop.toml, "--keep-days", 0)
        assert stored(shop) == last(shop) == now
        assert shop.command("compact", "--keep-days", 0).status == 0
        assert stored(shop) == last(shop) == now
        shutil.rmtree(lake)
        shutil.copytree(kept, lake)
    die(3, "undo", shop.toml)
    assert stored(shop) == now
    assert shop.command("undo").status == 0
    assert stored(shop) == last(shop) == before
    shutil.rmtree(lake)
    die(3, "init", shop.toml)
    assert not lake.exists()
    assert shop.command("init").status == 0
    assert stored(shop) == last(shop) == shop.expected()


def test_where_no_more_can_be_written_all_is_as_it_was(shop: Shop) -> None:
    old, update = stored(shop), a_change(shop)
    done = forked(FULL, 2500, "maintain", shop.toml, "--update", update)
    assert done.status == 2, done
    assert "error[SM405]" in done.said
    assert stored(shop) == old
    assert shop.command("maintain", "--update", update).status == 0
    assert stored(shop) == last(shop) == shop.expected()


def test_what_fails_after_the_journal_has_the_commit_undoes_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from selfmaint.store import delta_journal

    def full(*_: object) -> None:
        raise OSError("no space left")

    update = a_change(shop)
    with monkeypatch.context() as patch:
        patch.setattr(delta_journal, "sync_version", full)
        assert "[SM405]" in shop.command("maintain", "--update", update).stderr
    assert "committed before" in shop.command("maintain", "--update", update).stdout
    assert stored(shop) == last(shop) == shop.expected()
    monkeypatch.setitem(sys.modules, "deltalake", None)
    assert "[SM607]" in shop.command("history").stderr


def test_a_missing_or_damaged_file_is_told(shop: Shop) -> None:
    update = a_change(shop)
    for file in (shop.folder / "lake" / "lines").glob("*.parquet"):
        file.write_bytes(b"PAR1")
    assert "[SM104]" in shop.command("maintain", "--update", update).stderr
    for file in (shop.folder / "lake" / "lines").glob("*.parquet"):
        pq.write_table(pa.table({"x": [1]}), file)
        file.unlink()
    assert "[SM103]" in shop.command("maintain", "--update", update).stderr


def test_an_update_of_no_rows_is_remembered_by_its_id_alone(shop: Shop) -> None:
    folder = shop.update("no_rows", {}, {})
    write(folder / "sale.insert.parquet", "sale", [])
    before = shop.command("history", "--format", "json").stdout
    assert "nothing was written" in shop.command("maintain", "--update", folder).stdout
    assert shop.command("history", "--format", "json").stdout == before
    assert "no view changed" in shop.command("maintain", "--update", folder, "--id", "night").stdout
    assert "committed before" in shop.command("maintain", "--update", folder, "--id", "night").stdout
