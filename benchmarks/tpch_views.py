"""The 22 queries of TPC-H as views: how each follows an update of orders and line items, and that its rows are right.

    python benchmarks/tpch_views.py --work /tmp/tpch --scale 0.01

With `--helpers` each view is in a lake that `selfmaint init` fills, with a helper where it has one; else it is a
Parquet file.
Prints a table. ORDER BY and LIMIT of the queries are left to who reads the views, and parameters have the values that
the benchmark's own validation uses. A view counts as right if its new rows are those that its query gives over all rows
after the update, computed by plain DuckDB; averages and quotients, which DuckDB computes as
doubles, to seven digits, or six behind the point.
"""

# ruff: noqa: S608 - the names in statements are those of this file
from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import duckdb
from query_views import Queries, follow, table, write_update

QUERIES = Path(__file__).resolve().with_name("tpch_queries")
NAMES = tuple(f"q{number:02}" for number in range(1, 23))
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")


def prepare(work: Path, scale: float, orders: int) -> Path:
    """The base relations before and after an update, and the update, unless they are there already."""
    place = work / f"views_sf{scale:g}_{orders}"
    if (place / "done").exists():
        return place
    shutil.rmtree(place, ignore_errors=True)
    (place / "raw").mkdir(parents=True)
    generator = Path(sys.executable).with_name("tpchgen-cli")
    command = [str(generator), "parquet", "-s", str(scale), "--output-dir", str(place / "raw")]
    subprocess.run(command, check=True, capture_output=True)
    with duckdb.connect() as database:
        _tables(database, place)
        _update(database, place, orders)
    shutil.rmtree(place / "raw")
    (place / "done").touch()
    return place


def _tables(database: duckdb.DuckDBPyConnection, place: Path) -> None:
    """The base relations with the declared types."""
    database.execute((QUERIES / "tables.sql").read_text().replace("STRING", "VARCHAR"))
    for name in TABLES:
        columns = ", ".join(row[0] for row in database.execute(f"describe {name}").fetchall())
        database.execute(f"insert into {name} select {columns} from '{place}/raw/{name}.parquet'")


def _update(database: duckdb.DuckDBPyConnection, place: Path, orders: int) -> None:
    """New orders with their line items, made of old ones, and as many old ones deleted with theirs."""
    database.execute(
        "create table leaving as select o_orderkey as key from orders "
        f"order by hash(o_orderkey), o_orderkey limit {orders}"
    )
    database.execute(
        "create table models as select o_orderkey as key from orders "
        f"order by hash(o_orderkey) desc, o_orderkey limit {orders}"
    )
    # Order keys modulo 32 are 0 to 7 in the generated data.
    update = {
        name: (
            f"select * replace ({key} + 8 as {key}) from {name} where {key} in (select key from models)",
            f"{key} in (select key from leaving)",
        )
        for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey"))
    }
    write_update(database, place, TABLES, update)


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Follows the queries of TPC-H.")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--helpers", action="store_true")
    parser.add_argument("--only", nargs="*", default=NAMES)
    given = parser.parse_args()
    place = prepare(given.work, given.scale, given.orders)
    texts = {name: (QUERIES / f"{name}.sql").read_text().strip() for name in NAMES}
    queries = Queries((QUERIES / "tables.sql").read_text(), TABLES, texts)
    return table(partial(follow, queries, place, name, helpers=given.helpers) for name in given.only)


if __name__ == "__main__":
    sys.exit(main())
