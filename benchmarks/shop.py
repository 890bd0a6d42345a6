"""A small shop with 32 views, whose update changes six relations: whole commands, beside recomputing in DuckDB.

    python benchmarks/shop.py --work build/bench --orders 1200 --json out.json

The views (`shop.sql`) join, group and leave out; the update is 144 rows: orders with their lines, payments, customers,
stock that is counted anew, and new names of three categories and two regions, which most rows show.
"""

# ruff: noqa: S608 - the names in statements are those of this file
from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from pathlib import Path

import duckdb
from refresh import timed

FILE = """
program = "shop.sql"
[store]
kind = "lake"
path = "lake"
helpers = true
[sources.shop]
kind = "files"
[update]
effective = true
"""
RENAMED = "SELECT * REPLACE (name || ' new' AS name) FROM {} WHERE id IN ({})"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--orders", type=int, default=1_200)
    parser.add_argument("--json", type=Path, required=True)
    given = parser.parse_args()
    place = given.work / f"shop{given.orders}"
    prepare(place, given.orders)
    commands = [str(place / "warehouse.toml"), "--update", str(place / "update")]
    script = recomputing(place)
    record: dict[str, object] = {"orders": given.orders}
    for what, arguments in {
        "recompute": [str(script)],
        "check": ["-m", "selfmaint", "check", *commands],
        "maintain": ["-m", "selfmaint", "maintain", *commands, "--recompute"],
    }.items():
        (time,) = timed(1, arguments, (0, 1, 3), warm=0)
        record |= {f"{what}_cpu_s": round(time.cpu_s, 2), f"{what}_mb": time.peak_mb}
    print(json.dumps(record))
    given.json.write_text(json.dumps(record), encoding="utf-8")
    return 0


def tables(orders: int) -> dict[str, str]:
    customers, products = max(orders // 4, 20), max(orders // 10, 10)
    return {
        "region": "SELECT i AS id, 'region ' || i AS name FROM range(5) r(i)",
        "city": "SELECT i AS id, 'city ' || i AS name, i % 5 AS region FROM range(40) r(i)",
        "customer": "SELECT i AS id, 'customer ' || i AS name, (hash(i) % 40)::BIGINT AS city, "
        f"['gold', 'silver', 'plain'][1 + i % 3] AS segment FROM range({customers}) r(i)",
        "category": "SELECT i AS id, 'category ' || i AS name FROM range(12) r(i)",
        "product": "SELECT i AS id, 'product ' || i AS name, i % 12 AS category, "
        f"((hash(i) % 9000) / 100 + 1)::DECIMAL(10, 2) AS price FROM range({products}) r(i)",
        "coupon": "SELECT i AS id, 'C' || i AS code, i % 50 AS percent FROM range(20) r(i)",
        "orders": f"SELECT i AS id, (hash(i) % {customers - 5})::BIGINT AS customer, "
        "DATE '2026-01-01' + (i % 300)::INT AS placed, ['open', 'paid', 'sent'][1 + i % 3] AS status, "
        f"CASE WHEN i % 4 = 0 THEN i % 20 END AS coupon FROM range({orders}) r(i)",
        "line": f"SELECT i // 4 AS orders, i % 4 AS no, (hash(i) % {products})::BIGINT AS product, "
        "1 + i % 5 AS quantity, ((hash(i * 3) % 9000) / 100 + 1)::DECIMAL(10, 2) AS price "
        f"FROM range({4 * orders}) r(i)",
        "payment": "SELECT i AS id, i AS orders, ['card', 'cash'][1 + i % 2] AS kind, "
        f"((hash(i * 7) % 90000) / 100)::DECIMAL(12, 2) AS amount FROM range({orders}) r(i) WHERE i % 3 > 0",
        "stock": "SELECT i // 2 AS product, ['main', 'north'][1 + i % 2] AS place, (hash(i) % 200)::BIGINT AS pieces "
        f"FROM range({2 * products}) r(i)",
    }


def update(orders: int) -> dict[str, str]:
    customers, products = max(orders // 4, 20), max(orders // 10, 10)
    return {
        "orders.insert": f"SELECT i AS id, (hash(i, 1) % {customers - 5})::BIGINT AS customer, "
        "DATE '2026-11-01' AS placed, 'open' AS status, CASE WHEN i % 4 = 0 THEN i % 20 END AS coupon "
        f"FROM range({orders}, {orders + 20}) r(i)",
        "line.insert": f"SELECT {orders} + i // 4 AS orders, i % 4 AS no, "
        f"(hash(i, 2) % {products})::BIGINT AS product, 1 + i % 5 AS quantity, "
        "12.50::DECIMAL(10, 2) AS price FROM range(80) r(i)",
        "payment.insert": f"SELECT {orders} + i AS id, {orders} + i AS orders, ['card', 'cash'][1 + i % 2] AS kind, "
        "100.00::DECIMAL(12, 2) AS amount FROM range(10) r(i)",
        "customer.insert": f"SELECT {customers} + i AS id, 'new customer ' || i AS name, i % 40 AS city, "
        "'gold' AS segment FROM range(4) r(i)",
        "stock.delete": "FROM stock WHERE product < 5",
        "stock.insert": "SELECT * REPLACE (pieces + 7 AS pieces) FROM stock WHERE product < 5",
        "category.delete": "FROM category WHERE id IN (1, 5, 9)",
        "category.insert": RENAMED.format("category", "1, 5, 9"),
        "region.delete": "FROM region WHERE id IN (1, 3)",
        "region.insert": RENAMED.format("region", "1, 3"),
    }


def prepare(place: Path, orders: int) -> None:
    """The base tables, the update and the lake."""
    shutil.rmtree(place, ignore_errors=True)
    for folder in ("base", "update"):
        (place / folder).mkdir(parents=True)
    connection, file = duckdb.connect(), FILE
    for name, query in tables(orders).items():
        connection.sql(f"CREATE TABLE {name} AS {query}")
        connection.table(name).write_parquet(str(place / "base" / f"{name}.parquet"))
        file += f'[relations.{name}]\nsource = "shop"\npath = "base/{name}.parquet"\n'
    for name, query in update(orders).items():
        connection.sql(query).write_parquet(str(place / "update" / f"{name}.parquet"))
    shutil.copy(Path(__file__).with_name("shop.sql"), place)
    (place / "warehouse.toml").write_text(file, encoding="utf-8")
    timed(1, ["-m", "selfmaint", "init", str(place / "warehouse.toml")], warm=0)


def recomputing(place: Path) -> Path:
    """A program that recomputes all views by DuckDB, from Parquet to Parquet."""
    text = (place / "shop.sql").read_text(encoding="utf-8")
    lines = ["import duckdb", "c = duckdb.connect()"]
    for name in re.findall(r"CREATE TABLE (\w+)", text):
        path = place / "base" / f"{name}.parquet"
        lines.append(f"c.read_parquet({str(path)!r}).create_view({name!r})")
    for name, query in re.findall(r"CREATE VIEW (\w+) AS\s(.*?);", text, re.DOTALL):
        lines.append(f"c.sql({query!r}).write_parquet({str(place / f'{name}.parquet')!r})")
    script = place / "recompute.py"
    script.write_text("\n".join(lines), encoding="utf-8")
    return script


if __name__ == "__main__":
    sys.exit(main())
