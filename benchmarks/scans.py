"""A reader's scan of a lake's table after many small commits, against one of a fresh table, and after compaction.

python benchmarks/scans.py --rows 3000000 --commits 100
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import selfmaint
from selfmaint.duckdb.loading import extension_file

PROGRAM = """
create table sale (id bigint not null primary key, customer int not null, amount decimal(12, 2) not null, note string);
create view sales as select id, customer, amount, note from sale;
"""
WAREHOUSE = """
program = "views.sql"
[store]
kind = "lake"
path = "lake"
[engine]
kind = "duckdb"
[update]
effective = true
"""
SCANS = {
    "one column": "SELECT sum(amount) FROM l.sales",
    "all columns": "SELECT sum(id), sum(customer), sum(amount), sum(length(note)) FROM l.sales",
    "a group": "SELECT customer % 100, count(*), sum(amount) FROM l.sales GROUP BY ALL",
}
CHANGED = 20


def sales(first: int, number: int, version: int = 0) -> pa.Table:
    ids = pa.array(range(first, first + number), pa.int64())
    query = f"""SELECT id, (hash(id) % 5000)::INT AS customer, (hash(id * 7) % 100000 / 100 + {version})::DECIMAL(12, 2)
        AS amount, 'note ' || hash(id * 3) % 1000 AS note FROM given"""  # noqa: S608 - numbers
    return duckdb.connect().from_arrow(pa.table({"id": ids})).query("given", query).to_arrow_table()


def reader(lake: Path) -> duckdb.DuckDBPyConnection:
    """A reader who has nothing but DuckDB."""
    connection = duckdb.connect(":memory:", config={"threads": 2})
    for name in ("ducklake", "sqlite_scanner"):
        connection.execute(f"LOAD '{extension_file(name)}'")
    connection.execute("SET sqlite_disable_multithreaded_scans = true")
    place = f"DATA_PATH '{lake / 'data'}/', OVERRIDE_DATA_PATH true"
    connection.execute(f"ATTACH 'ducklake:sqlite:{lake / 'catalog.sqlite'}' AS l ({place})")
    return connection


def scans(lakes: dict[str, Path], rounds: int) -> list[dict[str, object]]:
    """The median and the least time of each scan of each lake, in milliseconds; one lake after the other, in rounds."""
    readers = {what: reader(lake) for what, lake in lakes.items()}
    found = []
    for name, query in SCANS.items():
        times: dict[str, list[float]] = {what: [] for what in lakes}
        for _ in range(rounds + 2):
            for what, connection in readers.items():
                begin = time.perf_counter()
                connection.execute(query).fetchall()
                times[what].append((time.perf_counter() - begin) * 1000)
        for what, each in times.items():
            found.append(
                {
                    "scan": name,
                    "of": what,
                    "median_ms": round(statistics.median(each[2:]), 1),
                    "least_ms": round(min(each[2:]), 1),
                }
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=31)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "views.sql").write_text(PROGRAM, encoding="utf-8")
        (folder / "warehouse.toml").write_text(WAREHOUSE, encoding="utf-8")
        pq.write_table(sales(0, given.rows), folder / "sales.parquet")
        selfmaint.init(folder / "warehouse.toml", origins={"sales": folder / "sales.parquet"})

        lakes: dict[str, Path] = {}

        def show(what: str) -> None:
            after, _ = selfmaint.compact(folder / "warehouse.toml", dry_run=True)
            print(json.dumps({"lake": what, "files": after.files, "deleted": after.deleted}), flush=True)
            lakes[what] = folder / what.replace(" ", "-")
            shutil.copytree(folder / "lake", lakes[what])

        show("fresh")
        with selfmaint.load(folder / "warehouse.toml") as warehouse:
            for number in range(given.commits):  # each changes some rows, and adds as many
                first = number * (given.rows // given.commits)
                new = sales(given.rows + number * CHANGED, CHANGED)
                inserted = pa.concat_tables([sales(first, CHANGED, 1), new])
                update = selfmaint.Update.from_frames(
                    warehouse, {"sale": inserted}, {"sale": sales(first, CHANGED)}
                )
                warehouse.apply(warehouse.maintain(update))
        show(f"after {given.commits} commits")
        selfmaint.compact(folder / "warehouse.toml", keep_days=0)
        show("compacted")
        for line in scans(lakes, given.rounds):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
