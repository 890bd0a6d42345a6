"""A warehouse in a lake: what is committed, refused, undone, killed in the middle. Oracle: the views by hand."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import selfmaint
from selfmaint.duckdb import Relation, lake
from selfmaint.duckdb.bags import beyond
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.loading import extension_file
from selfmaint.duckdb.store import is_same, stored_rows
from selfmaint.errors import Code, InputError
from selfmaint.store.place import LakePlace
from tests.command_line import Ran, run
from tests.effort import effort, rounds
from tests.forked import forked
from tests.killing import killed, killings
from tests.racing import race

PROGRAM = """
create table customer (id int not null primary key, region string not null);
create table sale (id int not null primary key, customer int not null references customer (id), amount int);
create view lines as select s.id, s.amount, c.id as customer, c.region from sale s join customer c on c.id = s.customer;
create view totals as select c.region, count(*) as n, count(s.amount) as m, sum(s.amount) as total
    from sale s join customer c on c.id = s.customer group by c.region;
create view regions as select c.region from sale s join customer c on c.id = s.customer;
create view customers as select id, region from customer;
"""
WAREHOUSE = """
program = "views.sql"
[store]
kind = "lake"
path = "lake"
[sources.files]
kind = "files"
[relations.customer]
source = "files"
path = "base/customer.parquet"
[relations.sale]
source = "files"
path = "base/sale.parquet"
[update]
effective = true
"""
COLUMNS = {"customer": ("id", "region"), "sale": ("id", "customer", "amount")}
TYPES = {"customer": (pa.int32(), pa.string()), "sale": (pa.int32(), pa.int32(), pa.int32())}
Row = tuple[Any, ...]
Base = dict[str, set[Row]]


def write(file: Path, relation: str, rows: Iterable[Row]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    fields = list(zip(COLUMNS[relation], TYPES[relation], strict=True))
    arrays = [
        pa.array([row[i] for row in sorted(rows, key=repr)], type_) for i, (_, type_) in enumerate(fields)
    ]
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), file)


class Shop:
    """A warehouse's folder, with a store of some kind, and its base relations."""

    def __init__(self, folder: Path, kind: str = "lake") -> None:
        self.folder, self.kind = folder, kind
        self.toml = folder / "warehouse.toml"
        self.base: Base = {
            "customer": {(1, "north"), (2, "south"), (3, "north")},
            "sale": {(1, 1, 10), (2, 1, None), (3, 2, 5), (4, 3, 10)},
        }
        (folder / "views.sql").write_text(PROGRAM, encoding="utf-8")
        self.toml.write_text(WAREHOUSE.replace('kind = "lake"', f'kind = "{kind}"'), encoding="utf-8")
        self.store_base()

    def made(self, base: Path) -> Shop:
        """With its store: one of a kind is made, and kept below a folder; others are copies, as stores may be moved."""
        kept, store = base / f"store-{self.kind}", self.folder / "lake"
        if kept.is_dir():
            shutil.copytree(kept, store)
            if self.kind == "lake":  # who reads it with nothing but DuckDB goes by what the catalog says
                with contextlib.closing(
                    sqlite3.connect(store / "catalog.sqlite", isolation_level=None)
                ) as catalog:
                    catalog.execute(
                        "UPDATE ducklake_metadata SET value = ? || substr(value, instr(value, '/lake/')) "
                        "WHERE key = 'data_path'",
                        [str(self.folder)],
                    )
        else:
            done = self.command("init")
            assert done.status == 0, done
            shutil.copytree(store, kept)
        return self

    def store_base(self) -> None:
        for name, rows in self.base.items():
            write(self.folder / "base" / f"{name}.parquet", name, rows)

    def update(self, name: str, inserted: Base, deleted: Base) -> Path:
        """The files of an update; the base relations follow it."""
        folder = self.folder / name
        folder.mkdir()
        for part, changes in (("insert", inserted), ("delete", deleted)):
            for relation, rows in changes.items():
                if rows:
                    write(folder / f"{relation}.{part}.parquet", relation, rows)
        for relation in COLUMNS:
            self.base[relation] = (self.base[relation] - deleted.get(relation, set())) | inserted.get(
                relation, set()
            )
        self.store_base()
        return folder

    def expected(self) -> dict[str, Counter[Row]]:
        """The views' rows by hand."""
        region = dict(self.base["customer"])
        groups: dict[str, list[int | None]] = {}
        for _, customer, amount in self.base["sale"]:
            groups.setdefault(region[customer], []).append(amount)
        totals = []
        for name, amounts in groups.items():
            known = [amount for amount in amounts if amount is not None]
            totals.append((name, len(amounts), len(known), sum(known) if known else None))
        return {
            "lines": Counter((i, amount, c, region[c]) for i, c, amount in self.base["sale"]),
            "totals": Counter(totals),
            "regions": Counter((region[c],) for _, c, _ in self.base["sale"]),
            "customers": Counter(self.base["customer"]),
        }

    def stored(self) -> dict[str, Counter[Row]]:
        """What a reader sees who has nothing but DuckDB."""
        return read_stored(self.folder / "lake", self.expected())

    def command(self, *arguments: object) -> Ran:
        name, *rest = map(str, arguments)
        return run(name, str(self.toml), *rest)


def reader(folder: Path) -> duckdb.DuckDBPyConnection:
    """A connection of somebody who has nothing but DuckDB; while nobody writes."""
    # Hashing an extension for its signature takes longer than all that is read.
    connection = duckdb.connect(":memory:", config={"allow_unsigned_extensions": "true"})
    for name in ("ducklake", "sqlite_scanner"):
        connection.execute(f"LOAD '{extension_file(name)}'")
    connection.execute(f"ATTACH 'ducklake:sqlite:{folder}/catalog.sqlite' AS l (META_BUSY_TIMEOUT 10000)")
    return connection


def read_stored(folder: Path, names: Iterable[str]) -> dict[str, Counter[Row]]:
    with reader(folder) as connection:
        connection.execute("BEGIN")
        return {name: Counter(connection.execute(f'FROM l."{name}"').fetchall()) for name in names}


@pytest.fixture
def shop(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(tmp_path).made(tmp_path_factory.getbasetemp())


def a_change(shop: Shop, name: str = "up") -> Path:
    return shop.update(
        name,
        {"sale": {(5, 2, 7), (1, 1, 11)}, "customer": {(4, "west"), (2, "east")}},
        {"sale": {(1, 1, 10), (4, 3, 10)}, "customer": {(2, "south")}},
    )


def a_random_change(shop: Shop, name: str, draw: random.Random) -> Path:
    region, inserted, deleted = dict(shop.base["customer"]), Counter[str](), shop.base
    del inserted
    old_sales = set(draw.sample(sorted(deleted["sale"], key=repr), min(3, len(deleted["sale"]))))
    top = 1000 + draw.randrange(10**6)
    sales = {
        (top + i, draw.choice(sorted(region)), draw.choice([None, 1, 2, 3])) for i in range(draw.randrange(4))
    }
    sales |= {(i, c, draw.choice([4, None, 5])) for i, c, _ in sorted(old_sales, key=repr)[:1]} - old_sales
    moved = draw.choice(sorted(region))
    new = (moved, draw.choice(["north", "south", "east"]))
    customers: tuple[set[Row], set[Row]] = (
        ({new}, {(moved, region[moved])}) if new[1] != region[moved] else (set(), set())
    )
    return shop.update(
        name, {"sale": sales, "customer": customers[0]}, {"sale": old_sales, "customer": customers[1]}
    )


# ------------------------------------------------------------------------------------------------ the way


def test_a_lake_is_made_from_sources_and_follows_an_update(shop: Shop) -> None:
    assert shop.stored() == shop.expected()
    update = a_change(shop)
    done = shop.command("maintain", "--update", update, "--verify")
    assert done.status == 0, done
    assert shop.stored() == shop.expected()


def test_many_random_batches_and_compactions(shop: Shop) -> None:
    draw = random.Random(3)
    for i in range(effort(4, 20)):
        update = a_random_change(shop, f"u{i}", draw)
        with selfmaint.load(shop.toml) as warehouse:
            warehouse.apply(
                warehouse.maintain(selfmaint.Update.from_files(warehouse, update), recompute=True)
            )
        assert shop.stored() == shop.expected(), i
        if i % 3 == 2:
            done = shop.command("compact", "--keep-days", draw.choice([0, 1]))
            assert done.status == 0, done
            assert shop.stored() == shop.expected(), i


def test_one_warehouse_goes_on_after_each_commit(shop: Shop) -> None:
    draw = random.Random(4)
    with selfmaint.load(shop.toml, engine="duckdb") as warehouse:
        for i in range(4):
            update = selfmaint.Update.from_files(warehouse, a_random_change(shop, f"u{i}", draw))
            warehouse.apply(warehouse.maintain(update))
            assert shop.stored() == shop.expected(), i


def test_the_same_update_again_does_nothing_and_says_so(shop: Shop) -> None:
    update = a_change(shop)
    assert shop.command("maintain", "--update", update).status == 0
    before = shop.command("history", "--format", "json").stdout
    again = shop.command("maintain", "--update", update)
    assert again.status == 0
    assert "committed before, in snapshot" in again.stdout
    assert shop.command("history", "--format", "json").stdout == before
    assert shop.stored() == shop.expected()
    checked = shop.command("check", "--update", update)
    assert checked.status == 0
    assert checked.stdout == again.stdout
    with selfmaint.load(shop.toml) as warehouse:
        given = selfmaint.Update.from_files(warehouse, update)
        assert warehouse.store is not None
        assert warehouse.store.committed(given) is not None
        for ask in (warehouse.check, warehouse.maintain):
            with pytest.raises(selfmaint.InputError, match=r"SM409.*committed before, in snapshot"):
                ask(given)


def test_an_id_is_remembered_behind_other_updates_and_files_are_not(shop: Shop) -> None:
    there: Base = {"sale": {(9, 1, 1)}}
    first, back = shop.update("a", there, {}), shop.update("b", {}, there)
    for folder, name in ((first, "monday"), (back, "tuesday")):
        assert shop.command("maintain", "--update", folder, "--id", name).status == 0
    assert "committed before" in shop.command("maintain", "--update", first, "--id", "monday").stdout
    shop.base["sale"] |= there["sale"]
    shop.store_base()
    before = shop.stored()
    done = shop.command("maintain", "--update", first)  # the same files: sent again, or another update?
    assert done.status == 2
    assert "SM409" in done.stderr
    assert shop.command("maintain", "--update", back, "--id", "monday").status == 2  # other files
    assert shop.stored() == before
    done = shop.command("maintain", "--update", first, "--id", "wednesday")
    assert done.status == 0, done
    assert shop.stored() == shop.expected()


def test_updates_of_no_rows_are_told_apart_and_remembered_by_their_ids_alone(shop: Shop) -> None:
    def snapshots() -> int:
        return len(json.loads(shop.command("history", "--format", "json").stdout)["snapshots"])

    empty = shop.folder / "empty"
    write(empty / "sale.insert.parquet", "sale", [])
    assert "nothing was written" in shop.command("maintain", "--update", empty).stdout
    assert snapshots() == 1
    assert shop.command("maintain", "--update", a_change(shop)).status == 0
    again = shop.command("maintain", "--update", empty)
    assert again.status == 0, again
    assert snapshots() == 2
    done = shop.command("maintain", "--update", empty, "--id", "night")
    assert "no view changed; snapshot" in done.stdout
    assert snapshots() == 3
    assert "committed before" in shop.command("maintain", "--update", empty, "--id", "night").stdout
    assert shop.stored() == shop.expected()


def test_a_moved_lake_says_where_its_files_are(shop: Shop) -> None:
    (shop.folder / "lake").rename(shop.folder / "moved")
    shop.toml.write_text(WAREHOUSE.replace('path = "lake"', 'path = "moved"'), encoding="utf-8")
    assert shop.command("maintain", "--update", a_change(shop)).status == 0
    assert read_stored(shop.folder / "moved", shop.expected()) == shop.expected()


def test_undo_returns_to_any_state_and_forgets_the_update(shop: Shop) -> None:
    states = [shop.stored()]
    folders = [a_random_change(shop, f"u{i}", random.Random(i)) for i in range(3)]
    bases = [shop.base]
    for folder in folders:
        assert shop.command("maintain", "--update", folder, "--recompute").status == 0
        states.append(shop.stored())
    del bases
    assert shop.command("undo").status == 0
    assert shop.stored() == states[2]
    assert "committed before" not in shop.command("maintain", "--update", folders[2]).stdout
    assert shop.stored() == states[3]
    versions = [
        one["snapshot"] for one in json.loads(shop.command("history", "--format", "json").stdout)["snapshots"]
    ]
    assert shop.command("undo", "--to", versions[1]).status == 0
    assert shop.stored() == states[1]
    assert "committed before" in shop.command("maintain", "--update", folders[0]).stdout
    assert shop.command("undo").status == 0
    assert shop.stored() == states[0]
    assert shop.command("undo").status == 2


def test_what_two_states_share_is_not_read_to_tell_them_apart(shop: Shop) -> None:
    draw, spared = random.Random(5), 0
    for i in range(effort(4, 12)):
        update = a_random_change(shop, f"u{i}", draw)
        assert shop.command("maintain", "--update", update, "--recompute").status == 0
        if i == 1:
            assert shop.command("compact").status == 0  # the states before are in files that hold newer rows
    its = lake.Lake(Database(), LakePlace(shop.folder / "lake"))
    newest = its.catalog.newest()
    versions = [v for v in range(1, newest + 1) if its.catalog.tables(v) == its.catalog.tables(newest)]
    pairs = [*itertools.permutations(versions, 2)]
    for one, other in draw.sample(pairs, effort(min(14, len(pairs)), len(pairs))):
        for name in its.catalog.tables(newest):
            tables = [its.catalog.table(name, version) for version in (one, other)]
            first, second = (stored_rows(its.database, table) for table in tables)
            right = [bag(rows) for rows in beyond(its.database, first, second)]
            first, second = (stored_rows(its.database, *pair) for pair in (tables, tables[::-1]))
            assert [bag(rows) for rows in beyond(its.database, first, second)] == right, (one, other, name)
            if is_same(*tables):
                assert right == [Counter(), Counter()]
            whole = stored_rows(its.database, tables[0])
            spared += len(pa.table(first)) < len(pa.table(whole))
    assert spared


def bag(rows: Relation) -> Counter[Row]:
    return Counter(tuple(row.values()) for row in pa.table(rows).to_pylist())


def test_undo_goes_to_no_state_of_other_columns(shop: Shop) -> None:
    program = shop.folder / "views.sql"
    named = program.read_text(encoding="utf-8")
    head, found, tail = named.partition("create view")
    assert found, named
    program.write_text(head + "CREATE VIEW more AS SELECT id FROM sale;\n" + found + tail, encoding="utf-8")
    assert shop.command("import", "--view", "more").status == 0
    assert shop.command("maintain", "--update", a_change(shop)).status == 0
    state = shop.stored()
    text = program.read_text(encoding="utf-8").replace("SELECT id FROM sale", "SELECT id, customer FROM sale")
    program.write_text(text, encoding="utf-8")
    assert shop.command("import", "--view", "more").status == 0
    refused = shop.command("undo")
    assert refused.status == 2
    assert "SM408" in refused.stderr
    assert "`more` had other columns at snapshot" in refused.stderr
    assert shop.stored() == state


def test_undo_goes_to_no_state_of_other_types(shop: Shop) -> None:
    program = shop.folder / "views.sql"
    named = program.read_text(encoding="utf-8")
    more = "CREATE VIEW more AS SELECT id, cast(id / 4 AS decimal(9, {})) AS part FROM sale;\n"
    for digits in (2, 1):
        head, found, tail = named.partition("create view")
        program.write_text(head + more.format(digits) + found + tail, encoding="utf-8")
        assert shop.command("import", "--view", "more").status == 0
    state = shop.stored()
    shown = json.loads(shop.command("history", "--format", "json").stdout)
    refused = shop.command("undo", "--to", shown["snapshots"][-2]["snapshot"])
    assert refused.status == 2
    assert "`more` had other columns at snapshot" in refused.stderr
    assert shop.stored() == state


def test_undo_names_the_updates_that_it_takes_back(shop: Shop) -> None:
    for name, sale in (("monday", 7), ("tuesday", 8), ("wednesday", 9)):
        update = shop.update(name, {"sale": {(sale, 1, 1)}}, {})
        assert shop.command("maintain", "--update", update, "--id", name).status == 0
    assert "taken back: wednesday\n" in shop.command("undo").stdout
    done = shop.command("undo", "--to", "monday", "--format", "json")
    assert json.loads(done.stdout)["undone"] == ["tuesday"]
    brought = shop.command("import", "--format", "json")
    assert brought.status == 0, brought
    (*_, last) = json.loads(shop.command("history", "--format", "json").stdout)["snapshots"]
    assert last["what"] == "import"
    done = shop.command("undo", "--format", "json")
    assert json.loads(done.stdout)["undone"] == ["monday", f"import in snapshot {last['snapshot']}"]
    refused = shop.command("undo", "--to", "sunday")
    assert refused.status == 2
    assert "no update `sunday` was committed" in refused.stderr


def test_the_past_is_read_and_not_written_to(shop: Shop) -> None:
    (first,) = json.loads(shop.command("history", "--format", "json").stdout)["snapshots"]
    update = a_change(shop)
    assert shop.command("maintain", "--update", update).status == 0
    done = shop.command("check", "--update", update, "--as-of", first["snapshot"])
    assert done.status == 0, done
    with selfmaint.load(shop.toml, as_of=first["snapshot"]) as warehouse:
        found = warehouse.maintain(selfmaint.Update.from_files(warehouse, update))
        with pytest.raises(InputError) as refused:
            warehouse.apply(found)
    assert refused.value.diagnostics[0].code is Code.WRITE_FAILED
    assert shop.command("check", "--update", update, "--as-of", 99).status == 2


def test_views_are_brought_in_from_files(shop: Shop) -> None:
    before = shop.stored()
    pq.write_table(pa.table({"region": ["a", "a", "b"]}), shop.folder / "regions.parquet")
    done = shop.command("import", "--view", "regions", "--from", f"regions={shop.folder / 'regions.parquet'}")
    assert done.status == 0, done
    assert shop.stored() == {**before, "regions": Counter({("a",): 2, ("b",): 1})}
    for name in before:
        done = shop.command("import", "--view", name)
        assert done.status == 0, done
    assert shop.stored() == before
    assert shop.command("import").status == 0
    assert shop.stored() == before


def test_a_lake_with_many_deleted_rows_is_compacted_after_a_commit(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake, "FEWEST_DELETED", 2)
    gone = {row for row in shop.base["sale"] if row[0] < 4}
    done = shop.command("maintain", "--update", shop.update("gone", {}, {"sale": gone}))
    assert done.status == 0, done
    found = json.loads(shop.command("compact", "--dry-run", "--format", "json").stdout)
    assert found["after"]["deleted_rows"] == 0
    assert shop.stored() == shop.expected()


def test_many_files_are_put_together_though_few_of_their_rows_are_deleted(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake, "MOST_FILES", 3)
    for number in range(5):
        new = {(200 + 10 * number + i, 1, i) for i in range(10)}
        gone = {row for row in shop.base["sale"] if row[0] == 200 + 10 * (number - 1)}
        done = shop.command("maintain", "--update", shop.update(f"u{number}", {"sale": new}, {"sale": gone}))
        assert done.status == 0, done
    with selfmaint.load(shop.toml) as warehouse:
        assert warehouse.store is not None
        assert not warehouse.store.store.due()
        assert len(warehouse.store.table("lines").files) <= 3
    assert shop.stored() == shop.expected()


def test_partial_copies_follow(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.toml.write_text(WAREHOUSE + "[copies.sale]\npresent = true\nabsent = true\n", encoding="utf-8")
    write(tmp_path / "there.parquet", "sale", {(1, 1, 10), (2, 1, None)})
    write(tmp_path / "not.parquet", "sale", {(5, 2, 7), (8, 1, 1)})
    refused = shop.command("init")
    assert refused.status == 2
    assert "sale@present" in refused.stderr
    assert not (tmp_path / "lake").exists()
    origins = [
        f"--from=sale@{n}={tmp_path / f}"
        for n, f in (("present", "there.parquet"), ("absent", "not.parquet"))
    ]
    done = shop.command("init", *origins)
    assert done.status == 0, done
    assert shop.command("maintain", "--update", a_change(shop)).status == 0
    copies = read_stored(tmp_path / "lake", ["sale@present", "sale@absent"])
    assert copies["sale@present"] == Counter([(2, 1, None), (5, 2, 7), (1, 1, 11)])
    assert copies["sale@absent"] == Counter([(8, 1, 1), (1, 1, 10), (4, 3, 10)])


def test_a_feed_goes_on_where_the_lake_is(shop: Shop) -> None:
    def event(lsn: int, row: Mapping[str, object]) -> str:
        source = {"lsn": lsn, "table": "sale"}
        return json.dumps({"op": "c", "before": None, "after": row, "source": source, "ts_ms": lsn}) + "\n"

    feed = shop.folder / "feed.jsonl"
    feed.write_text(event(1, {"id": 21, "customer": 1, "amount": 1}), encoding="utf-8")
    shop.base["sale"] |= {(21, 1, 1)}
    shop.store_base()
    for _ in range(2):
        done = shop.command("maintain", "--feed", feed)
        assert done.status == 0, done
        assert shop.stored() == shop.expected()
    assert shop.command("maintain", "--feed", feed, "--after", "0", "--id", "all", "--dry-run").status == 2
    done = shop.command("maintain", "--feed", feed, "--after", "0")
    assert done.status == 2
    assert "SM409" in done.stderr, "the views have these changes"
    with feed.open("a", encoding="utf-8") as more:
        more.write(event(5, {"id": 22, "customer": 3, "amount": 2}))
    shop.base["sale"] |= {(22, 3, 2)}
    shop.store_base()
    assert shop.command("maintain", "--feed", feed).status == 0
    assert shop.stored() == shop.expected()
    found = json.loads(shop.command("history", "--format", "json").stdout)["snapshots"]
    assert [one["positions"] for one in found if one["what"] == "maintain"][-1] == {"": "5"}
    assert [one["given"] for one in found][-1] == "feed up to 5"
    assert "nothing was written" in shop.command("maintain", "--feed", feed).stdout
    assert len(json.loads(shop.command("history", "--format", "json").stdout)["snapshots"]) == len(found)
    with feed.open("a", encoding="utf-8") as more:  # there and gone: no row, and yet the feed goes on
        more.write(event(6, there := {"id": 23, "customer": 3, "amount": 2}))
        more.write(
            json.dumps({**json.loads(event(7, there)), "op": "d", "before": there, "after": None}) + "\n"
        )
    assert "no view changed; snapshot" in shop.command("maintain", "--feed", feed).stdout
    found = json.loads(shop.command("history", "--format", "json").stdout)["snapshots"]
    assert found[-1]["positions"] == {"": "7"}


def test_a_folder_of_rows_has_no_position_and_leaves_that_of_another_feed(shop: Shop) -> None:
    event = {"op": "c", "before": None, "after": {"id": 21, "customer": 1, "amount": 1}, "ts_ms": 9}
    feed = shop.folder / "feed.jsonl"
    feed.write_text(json.dumps({**event, "source": {"lsn": 9, "table": "sale"}}) + "\n", encoding="utf-8")
    shop.base["sale"] |= {(21, 1, 1)}
    shop.store_base()
    assert shop.command("maintain", "--feed", feed).status == 0
    images = shop.update("images", {"sale": {(22, 3, 2)}}, {"sale": {(21, 1, 1)}})
    for _ in range(2):
        done = shop.command("maintain", "--feed", images)
        assert done.status == 0, done
        assert shop.stored() == shop.expected()
    assert "was committed before" in done.stdout
    assert "nothing was written" in shop.command("maintain", "--feed", feed).stdout


def test_a_feed_of_several_relations_and_those_of_one_do_not_count_the_same_twice(shop: Shop) -> None:
    event = {"op": "c", "before": None, "after": {"id": 21, "customer": 1, "amount": 1}, "ts_ms": 9}
    feed = shop.folder / "feed.jsonl"
    feed.write_text(json.dumps({**event, "source": {"lsn": 9, "table": "sale"}}) + "\n", encoding="utf-8")
    shop.base["sale"] |= {(21, 1, 1)}
    shop.store_base()
    assert shop.command("maintain", "--feed", feed, "--after", "7").status == 0
    for more in ((), ("--after", "0"), ("--after", "sale=0")):
        done = shop.command("maintain", "--feed", f"sale={feed}", *more)
        assert done.status == 2
        assert "SM409" in done.stderr
    assert "no view changed" in shop.command("maintain", "--feed", f"sale={feed}", "--after", "sale=9").stdout
    assert "nothing was written" in shop.command("maintain", "--feed", feed).stdout
    assert shop.stored() == shop.expected()


def test_changes_without_positions_are_not_put_beside_others(shop: Shop) -> None:
    """What tells that an update was applied are its positions: the others would be applied again."""
    event = {"op": "c", "before": None, "after": {"id": 21, "customer": 1, "amount": 1}, "ts_ms": 9}
    feed = shop.folder / "feed.jsonl"
    feed.write_text(json.dumps({**event, "source": {"lsn": 9, "table": "sale"}}) + "\n", encoding="utf-8")
    images = shop.update("images", {"customer": {(77, "x")}}, {})
    done = shop.command("maintain", "--feed", f"sale={feed}", "--feed", f"{images}")
    assert done.status == 2
    assert "SM603" in done.stderr
    assert "the changes of `customer` have no positions" in done.stderr


def test_an_update_of_nothing_is_no_snapshot(shop: Shop) -> None:
    before = shop.command("history", "--format", "json").stdout
    (shop.folder / "none").mkdir()
    assert shop.command("maintain", "--update", shop.folder / "none").status == 0
    assert shop.command("history", "--format", "json").stdout == before
    update = shop.update("no_rows", {}, {})
    write(update / "sale.insert.parquet", "sale", [])
    for _ in range(2):
        assert "nothing was written" in shop.command("maintain", "--update", update).stdout
        assert shop.command("history", "--format", "json").stdout == before


def test_the_history_says_what_each_update_was_given_as(shop: Shop) -> None:
    folder = a_change(shop)
    assert shop.command("maintain", "--update", folder).status == 0
    assert shop.command("undo").status == 0
    assert shop.command("maintain", "--update", folder, "--id", "tuesday").status == 0
    found = json.loads(shop.command("history", "--format", "json").stdout)["snapshots"]
    assert [one["given"] for one in found] == [None, str(folder), None, str(folder)]
    printed = shop.command("history").stdout
    assert "back to " in printed
    assert "tuesday" in printed


def test_the_history_shows_upkeep_as_one_line(shop: Shop) -> None:
    for i in range(3):
        folder = a_random_change(shop, f"u{i}", random.Random(i))
        assert shop.command("maintain", "--update", folder, "--recompute").status == 0
        if i == 1:
            assert shop.command("compact", "--keep-days", "365").status == 0
    found = json.loads(shop.command("history", "--format", "json").stdout)["snapshots"]
    upkeep = [one["snapshot"] for one in found if one["what"] is None]
    assert len(upkeep) > 1
    printed = shop.command("history").stdout
    assert printed.count("upkeep") == 1
    assert f"{upkeep[0]} to {upkeep[-1]}" in printed


# ----------------------------------------------------------------------------------------------- refusals


def test_a_row_that_is_not_there_cannot_be_lost(shop: Shop) -> None:
    with selfmaint.load(shop.toml, engine="duckdb") as warehouse:
        found = warehouse.maintain(selfmaint.Update.from_files(warehouse, a_change(shop)))
        with reader(shop.folder / "lake") as other:
            other.execute("DELETE FROM l.regions")
        with pytest.raises(InputError) as refused:
            warehouse.apply(found)
    assert refused.value.diagnostics[0].code is Code.WRITE_FAILED
    assert shop.stored()["lines"] != shop.expected()["lines"]


def test_a_lost_null_is_found_beside_a_value_that_another_row_has_too(shop: Shop) -> None:
    update = shop.update("up", {}, {"sale": {(1, 1, 10), (2, 1, None)}})
    done = shop.command("maintain", "--update", update)
    assert done.status == 0, done
    assert shop.stored() == shop.expected()


def test_one_writes_at_a_time_and_is_named(shop: Shop) -> None:
    update = a_change(shop)
    with LakePlace(shop.folder / "lake").writing("a long import"):
        done = shop.command("maintain", "--update", update)
        assert done.status == 2
        assert f"process {os.getpid()}" in done.stderr
        assert "a long import" in done.stderr
        assert shop.command("compact").status == 2
        assert shop.command("undo").status == 2
    assert shop.command("maintain", "--update", update).status == 0


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (shutil.rmtree, "SM408"),
        (lambda lake: (lake / "catalog.sqlite").write_bytes(b"no catalog" * 1000), "SM408"),
        (lambda lake: (lake / "catalog.sqlite").write_bytes(b""), "SM408"),
        (lambda lake: [file.unlink() for file in lake.rglob("*.parquet")], "SM103"),
        (lambda lake: [file.write_bytes(b"PAR1") for file in lake.rglob("*.parquet")], "SM104"),
        (
            lambda lake: [pq.write_table(pa.table({"x": [1]}), file) for file in lake.rglob("*.parquet")],
            "SM104",
        ),
    ],
)
def test_a_damaged_lake_is_told(shop: Shop, spoil: Any, code: str) -> None:
    update = a_change(shop)
    spoil(shop.folder / "lake")
    done = shop.command("maintain", "--update", update)
    assert done.status == 2, done
    assert f"[{code}]" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_the_file_says_of_a_lake_is_checked(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    for text, said in [
        ('[store]\nkind = "lake"\npath = "lake"', None),
        ('[store]\nkind = "lakes"\npath = "lake"', "`lakes` is no kind of store"),
        ('[store]\npath = "lake"', "`[store]` has no `kind`"),
        ('[store]\nkind = "lake"', "has no `path`"),
        ('[store]\nkind = "lake"\npath = "base"', "lies inside"),
        ('[store]\nkind = "files"', "has no entry"),
        ('[store]\nkind = "lake"\npath = "lake"\n[views.lines]\npath = "x"', "kept in the lake"),
    ]:
        shop.toml.write_text(
            WAREHOUSE.replace('[store]\nkind = "lake"\npath = "lake"', text), encoding="utf-8"
        )
        done = shop.command("audit", "--no-advice")
        assert (done.status == 0) is (said is None), (text, done)
        assert said is None or said in done.stderr, (text, done.stderr)


@pytest.mark.parametrize("name", ["rowid", "ROWID", "file_row_number", "_ducklake_internal_row_id", None])
def test_a_name_that_a_lake_keeps_for_itself_is_refused(tmp_path: Path, name: str | None) -> None:
    shop = Shop(tmp_path)
    view = ".decl sale(id: int, customer: int, amount: int). v() :- sale(X, Y, Z)."
    if name is not None:
        view = (
            f".decl sale(id: int, customer: int, amount: int). .decl v({name}: int). v(X) :- sale(X, Y, Z)."
        )
    (tmp_path / "views.dl").write_text(view, encoding="utf-8")
    only_sale = WAREHOUSE.replace("views.sql", "views.dl").replace(
        '[relations.customer]\nsource = "files"\npath = "base/customer.parquet"\n', ""
    )
    shop.toml.write_text(only_sale, encoding="utf-8")
    done = shop.command("init")
    assert done.status == 2
    assert "[SM408]" in done.stderr
    assert not (tmp_path / "lake").exists()


def test_all_files_that_are_not_there_are_named_at_once(tmp_path: Path) -> None:
    folder = Shop(tmp_path).folder
    for name in COLUMNS:
        (folder / "base" / f"{name}.parquet").unlink()
    refused = run("init", str(folder / "warehouse.toml"), "--format", "json")
    found = json.loads(refused.stderr)["errors"]
    assert [(one["code"], one["message"].partition(":")[0]) for one in found] == [
        ("SM103", "`customer`"),
        ("SM103", "`sale`"),
    ]
    assert not (folder / "lake").exists()


def test_a_lake_is_not_made_over_something(shop: Shop) -> None:
    before = shop.stored()
    done = shop.command("init")
    assert done.status == 2
    assert "already" in done.stderr
    assert shop.stored() == before


# ------------------------------------------------------------------------------------- killed on the way


def test_whenever_a_commit_is_killed_all_views_are_old_or_all_new(shop: Shop, tmp_path_factory: Any) -> None:
    old = shop.stored()
    kept = tmp_path_factory.mktemp("kept") / "lake"
    shutil.copytree(shop.folder / "lake", kept)
    update = a_change(shop)
    new = shop.expected()
    seen: Counter[str] = Counter()

    def make() -> None:
        shutil.rmtree(shop.folder / "lake")
        shutil.copytree(kept, shop.folder / "lake")

    def look(*, done: bool) -> None:
        found = shop.stored()
        assert found in (old, new)
        assert not done or found == new
        seen["new" if found == new else "old"] += 1

    # Not every point: the statements of looking at the tables are many, and all alike.
    step = effort(5, 3)
    command = ("maintain", shop.toml, "--update", update, "--engine", "duckdb")
    number = killings(make, look, *command, step=step)
    print(f"killed at {number} points: {dict(seen)}")
    assert seen["old"] * step > 30
    for within_s in (0, 0.002, 0.004, 0.007, 0.01, 0.015, 0.02, 0.03)[:: effort(2, 1)]:
        make()
        killed(10**6, *command, within_s=within_s)
        look(done=False)
        assert shop.command("maintain", "--update", update).status == 0
        assert shop.stored() == new
    print(f"and with those within a commit: {dict(seen)}")
    # It is neither lost nor applied twice by the next one.
    make()
    assert killed(10**6, "maintain", shop.toml, "--update", update) == 0
    assert "committed before" in shop.command("maintain", "--update", update).stdout
    assert shop.stored() == new


def test_whenever_making_a_lake_is_killed_there_is_none_or_all_of_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path)

    def make() -> None:
        shutil.rmtree(tmp_path / "lake", ignore_errors=True)

    def look(*, done: bool) -> None:
        if done or (tmp_path / "lake").exists():
            assert shop.stored() == shop.expected()

    assert killings(make, look, "init", shop.toml, "--engine", "duckdb", step=4) > 3
    assert not (tmp_path / "lake.new").exists()


def test_whenever_compaction_or_undoing_is_killed_nothing_is_lost(shop: Shop) -> None:
    draw = random.Random(7)
    before = shop.stored()
    for i in range(3):
        before = shop.stored()
        assert (
            shop.command("maintain", "--update", a_random_change(shop, f"u{i}", draw), "--recompute").status
            == 0
        )
    now = shop.stored()

    def look(*, done: bool) -> None:
        del done
        assert shop.stored() == now

    assert killings(lambda: None, look, "compact", shop.toml, "--keep-all", step=5) > 2

    def undone(*, done: bool) -> None:
        found = shop.stored()
        assert found in (now, before)
        assert not done or found == before

    assert killings(lambda: None, undone, "undo", shop.toml, step=9) > 2


def test_files_of_a_commit_that_died_go_with_the_next_compaction(shop: Shop) -> None:
    lake, old = shop.folder / "lake", shop.stored()
    left = [shutil.copy(file, file.with_stem(f"{file.stem[:-1]}x")) for file in lake.rglob("*.parquet")]
    assert len(left) == 4
    assert shop.command("compact").status == 0
    assert not any(file.exists() for file in left)
    assert shop.stored() == old


FULL = """
import contextlib, io, resource, signal, sys
from selfmaint.cli.app import app
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), most))
said = io.StringIO()
with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
    status = app(sys.argv[2:])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
print(said.getvalue())
sys.exit(status)
"""
"""A command that can write no file larger than so many bytes; what it says it can."""


@pytest.mark.parametrize("most", [1_000, 40_000, 55_000, 70_000])
def test_where_no_more_can_be_written_all_is_as_it_was(shop: Shop, most: int) -> None:
    old, update = shop.stored(), a_change(shop)
    done = forked(FULL, most, "maintain", shop.toml, "--update", update)
    assert "Traceback" not in done.said
    if done.status != 0:  # with the largest size it may be enough for the commit
        assert "error[SM40" in done.said
        assert shop.stored() == old
    assert shop.command("maintain", "--update", update).status == 0
    assert shop.stored() == shop.expected()


def test_readers_see_all_views_old_or_all_new_while_others_write(shop: Shop) -> None:
    race(shop, rounds(3), lambda name, draw: a_random_change(shop, name, draw), shop.stored)


def test_helpers_are_not_among_the_tables_that_readers_see(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    (tmp_path / "views.sql").write_text(
        PROGRAM + "create view mean as select customer, avg(amount) as mean from sale group by customer;"
    )
    without = shop.toml.read_text()
    shop.toml.write_text(without.replace('path = "lake"', 'path = "lake"\nhelpers = true'))
    assert "mean__sums" in selfmaint.init(shop.toml)
    names = {"lines", "totals", "regions", "customers", "mean"}
    with selfmaint.load(shop.toml) as warehouse:
        new = pa.table({"id": pa.array([77], pa.int32()), "customer": pa.array([1], pa.int32())})
        sale = new.append_column("amount", pa.array([8], pa.int32()))
        warehouse.apply(
            warehouse.maintain(selfmaint.Update.from_frames(warehouse, {"sale": sale}), strict=True)
        )
        held = dict(pa.table(warehouse.read("mean")).to_pylist()[0])
    assert held
    for _ in range(2):  # as it is, and compacted
        with reader(tmp_path / "lake") as connection:
            shown = {name for (name,) in connection.execute("SHOW TABLES FROM l.main").fetchall()}
            assert shown == names
            hidden = connection.execute("FROM l.helpers.mean__sums").fetchall()
            assert {row[0] for row in hidden} == {
                row[0] for row in connection.execute("FROM l.mean").fetchall()
            }
        selfmaint.compact(shop.toml, keep_days=None)
    (said,) = [one.said for one in selfmaint.history(shop.toml) if one.said and one.said.kind == "maintain"]
    assert said.changes is not None
    assert "mean__sums" not in said.changes
    selfmaint.undo(shop.toml)
    selfmaint.init(shop.toml, views=["mean__sums"])
    with reader(tmp_path / "lake") as connection:
        assert 8 not in {row[1] for row in connection.execute("FROM l.helpers.mean__sums").fetchall()}


def test_helpers_are_imported_with_their_views(tmp_path: Path) -> None:
    """A view of a new definition over a helper of the old one would be wrong, and stay so."""
    shop = Shop(tmp_path)
    toml = shop.toml.read_text().replace('path = "lake"', 'path = "lake"\nhelpers = true')
    shop.toml.write_text(toml)
    mean = (
        "create view mean as select customer, avg(amount) as mean from sale where id <> {} group by customer;"
    )
    (tmp_path / "views.sql").write_text(PROGRAM + mean.format(1))
    selfmaint.init(shop.toml)
    (tmp_path / "views.sql").write_text(PROGRAM + mean.format(3))
    assert set(selfmaint.init(shop.toml, views=["mean"])) == {"mean", "mean__sums"}
    assert read_stored(tmp_path / "lake", ["mean"])["mean"] == Counter({(1, 10.0): 1, (3, 10.0): 1})


def test_commits_go_on_while_a_reader_of_the_same_process_has_a_transaction(shop: Shop) -> None:
    """DuckDB and Python bring a SQLite each, which know nothing of one another's locks. Its own state it may lose."""
    draw = random.Random(3)
    with reader(shop.folder / "lake") as connection, selfmaint.load(shop.toml, engine="duckdb") as warehouse:
        for number in range(4):
            before = shop.expected()["regions"]
            connection.execute("BEGIN")
            assert Counter(connection.execute("FROM l.regions").fetchall()) == before
            update = selfmaint.Update.from_files(warehouse, a_random_change(shop, f"u{number}", draw))
            assert warehouse.apply(warehouse.maintain(update))
            connection.execute("FROM l.regions").fetchall()
            connection.execute("COMMIT")
            assert Counter(connection.execute("FROM l.regions").fetchall()) == shop.expected()["regions"]
    assert shop.stored() == shop.expected()
