"""A reader's scan of a lake's table after many small commits, against one of a fresh table, and after compaction.

python benchmarks/scans.py --rows 3000000 --commits 100
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import selfmaint
from selfmaint.duckdb.lake import _extension

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


def scans(folder: Path, repetitions: int) -> dict[str, float]:
    """The median of each scan, in milliseconds, of a reader who has nothing but DuckDB."""
    with duckdb.connect(":memory:", config={"threads": 2}) as connection:
        for name in ("ducklake", "sqlite_scanner"):
            connection.execute(f"LOAD '{_extension(name, f'duckdb_extension_{name}')}'")
        connection.execute("SET sqlite_disable_multithreaded_scans = true")
        connection.execute(f"ATTACH 'ducklake:sqlite:{folder / 'lake' / 'catalog.sqlite'}' AS l")
        found = {}
        for name, query in SCANS.items():
            times = []
            for _ in range(repetitions + 2):
                begin = time.perf_counter()
                connection.execute(query).fetchall()
                times.append(time.perf_counter() - begin)
            found[name] = round(statistics.median(times[2:]) * 1000, 2)
        return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "views.sql").write_text(PROGRAM, encoding="utf-8")
        (folder / "warehouse.toml").write_text(WAREHOUSE, encoding="utf-8")
        pq.write_table(sales(0, given.rows), folder / "sales.parquet")
        selfmaint.init(folder / "warehouse.toml", origins={"sales": folder / "sales.parquet"})

        def show(what: str) -> None:
            ((after, _),) = [selfmaint.compact(folder / "warehouse.toml", dry_run=True)]
            print(
                json.dumps({"what": what, "files": after.files, **scans(folder, given.repetitions)}),
                flush=True,
            )

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


if __name__ == "__main__":
    main()
