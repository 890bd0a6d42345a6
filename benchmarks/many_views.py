"""Cost against the number of views and the size of the update: whole commands on a lake, beside recomputing in DuckDB.

    python benchmarks/many_views.py --work build/bench --orders 1000000 --json out.json

Four shapes of views over orders and customers (joined, grouped, selected, grouped over the join), each of a shop of its
own. An update is new orders. Recomputing is DuckDB's, of all views from Parquet to Parquet, as a command.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
from pathlib import Path

import duckdb
from refresh import Time, timed

SHAPES = (
    "SELECT o.id, o.customer, c.name, o.total FROM orders o JOIN customer c ON o.customer = c.id WHERE o.shop = {}",
    "SELECT o.customer, count(*) AS n, sum(o.total) AS total FROM orders o WHERE o.shop = {} GROUP BY o.customer",
    "SELECT o.id, o.customer, o.total FROM orders o WHERE o.shop = {}",
    "SELECT c.city, count(*) AS n FROM orders o JOIN customer c ON o.customer = c.id WHERE o.shop = {} GROUP BY c.city",
)
TABLES = """
CREATE TABLE customer (id BIGINT PRIMARY KEY, name STRING NOT NULL, city BIGINT NOT NULL);
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT NOT NULL REFERENCES customer, shop BIGINT NOT NULL,
  placed DATE NOT NULL, total DECIMAL(12, 2) NOT NULL);
"""
FILE = """
program = "views.sql"
[store]
kind = "lake"
path = "lake"
[sources.shop]
kind = "files"
[relations.customer]
source = "shop"
path = "base/customer.parquet"
[relations.orders]
source = "shop"
path = "base/orders.parquet"
[update]
effective = true
"""
CUSTOMERS, SHOPS = 10_000, 25
ORDERS = (
    "SELECT i AS id, (hash(i) % {customers})::BIGINT AS customer, (i % {shops})::BIGINT AS shop,"
    " DATE '2026-01-01' + (i % 300)::INT AS placed, ((hash(i * 7) % 100000) / 100)::DECIMAL(12, 2) AS total"
    " FROM range({start}, {end}) r(i)"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--orders", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--views", type=int, nargs="*", default=[1, 3, 10, 30, 100])
    parser.add_argument("--updates", type=int, nargs="*", default=[1, 10_000, 1_000_000])
    parser.add_argument("--repetitions", type=int, default=3)
    given = parser.parse_args()
    found = []
    for views, rows in [*((n, 100) for n in given.views), *((10, m) for m in given.updates)]:
        place = given.work / f"views{views}"
        if not (place / "lake").exists():
            prepare(place, views, given.orders)
        found.append(measure(place, views, rows, given.orders, given.repetitions))
        print(json.dumps(found[-1]), flush=True)
    given.json.write_text(json.dumps(found), encoding="utf-8")
    return 0


def queries(views: int) -> list[str]:
    return [SHAPES[i % len(SHAPES)].format(i // len(SHAPES)) for i in range(views)]


def orders(start: int, end: int) -> str:
    return ORDERS.format(customers=CUSTOMERS, shops=SHOPS, start=start, end=end)


def prepare(place: Path, views: int, rows: int) -> None:
    """The base tables and the lake."""
    shutil.rmtree(place, ignore_errors=True)
    (place / "base").mkdir(parents=True)
    customers = f"SELECT i AS id, 'customer ' || i AS name, i % 40 AS city FROM range({CUSTOMERS}) r(i)"  # noqa: S608
    write(customers, place / "base/customer.parquet")
    write(orders(0, rows), place / "base/orders.parquet")
    made = (f"CREATE VIEW v{i} AS {query};\n" for i, query in enumerate(queries(views)))
    (place / "views.sql").write_text(TABLES + "".join(made), encoding="utf-8")
    (place / "warehouse.toml").write_text(FILE, encoding="utf-8")
    timed(1, ["-m", "selfmaint", "init", str(place / "warehouse.toml")], warm=0)


def write(query: str, file: Path) -> None:
    duckdb.sql(query).write_parquet(str(file))


def measure(place: Path, views: int, rows: int, base: int, repetitions: int) -> dict[str, object]:
    """`check`, `maintain` to the commit, and recomputing: medians of the clock and of processor time, and the peak."""
    update = place / f"update{rows}"
    update.mkdir(exist_ok=True)
    write(orders(base, base + rows), update / "orders.insert.parquet")
    script = place / "recompute.py"
    copies = "".join(
        f"c.sql({query!r}).write_parquet({str(place / f'v{i}.parquet')!r})\n"
        for i, query in enumerate(queries(views))
    )
    tables = "".join(
        f"{name} = c.read_parquet({str(place / 'base' / name)!r} + '.parquet')\n"
        for name in ("customer", "orders")
    )
    script.write_text(f"import duckdb\nc = duckdb.connect()\n{tables}{copies}", encoding="utf-8")
    file, kept = str(place / "warehouse.toml"), place / "kept"
    shutil.copytree(place / "lake", kept)
    times: dict[str, list[Time]] = {"check": [], "maintain": [], "recompute": []}
    for _ in range(repetitions):
        given = [file, "--update", str(update)]
        times["check"] += timed(1, ["-m", "selfmaint", "check", *given], (0, 1, 3), warm=0)
        times["maintain"] += timed(1, ["-m", "selfmaint", "maintain", *given], warm=0)
        times["recompute"] += timed(1, [str(script)], warm=0)
        shutil.rmtree(place / "lake")
        shutil.copytree(kept, place / "lake")
    shutil.rmtree(kept)
    record: dict[str, object] = {"views": views, "rows": rows}
    for what, its in times.items():
        record[f"{what}_s"] = round(statistics.median(t.clock_s for t in its), 2)
        record[f"{what}_cpu_s"] = round(statistics.median(t.cpu_s for t in its), 2)
        record[f"{what}_mb"] = max(t.peak_mb for t in its)
    return record


if __name__ == "__main__":
    sys.exit(main())
