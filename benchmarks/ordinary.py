"""Ordinary views over TPC-H, ordinary updates: how many follow without a base row, and that their deltas are right.

    python benchmarks/ordinary.py --work build/bench --scale 0.02 [--views distinct.sql]

The views (`ordinary.sql`) drop columns and keys, group, and join dimensions; those of `distinct.sql` are sets that hide
what they join by. For each update it prints how many are settled by tests and by a search near the update, with the
numbers of rows searched, and which are not decided from what the warehouse holds; each delta of a "yes" is held
against recomputing in DuckDB.
"""

# ruff: noqa: S608 - the names in statements are those of this file
from __future__ import annotations

import argparse
import re
import resource
import sys
import time
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples" / "tpch"), str(ROOT)]

import data  # noqa: E402

import selfmaint  # noqa: E402
from selfmaint.decide.searched import determined_delta  # noqa: E402
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable  # noqa: E402

ORDERS = "(SELECT o_orderkey FROM orders ORDER BY hash(o_orderkey) LIMIT 20)"
CUSTOMERS = "(SELECT c_custkey FROM customer ORDER BY hash(c_custkey) LIMIT 5)"
CHANGED = "SELECT * REPLACE ({} AS {}) FROM {} WHERE {}"

UPDATES: dict[str, dict[str, str]] = {
    "new orders with their lines": {
        "orders+": f"SELECT * REPLACE (o_orderkey + 100000000 AS o_orderkey) FROM orders WHERE o_orderkey IN {ORDERS}",
        "lineitem+": "SELECT * REPLACE (l_orderkey + 100000000 AS l_orderkey) FROM lineitem "
        f"WHERE l_orderkey IN {ORDERS}",
    },
    "orders deleted with their lines": {
        "orders-": f"FROM orders WHERE o_orderkey IN {ORDERS}",
        "lineitem-": f"FROM lineitem WHERE l_orderkey IN {ORDERS}",
    },
    "one more line of an order": {
        "lineitem+": "SELECT * REPLACE (77 AS l_linenumber) FROM lineitem "
        f"WHERE l_linenumber = 1 AND l_orderkey IN {ORDERS}",
    },
    "another status of an order": {
        "orders-": f"FROM orders WHERE o_orderkey IN {ORDERS} AND o_orderstatus <> 'F'",
        "orders+": CHANGED.format(
            "'F'", "o_orderstatus", "orders", f"o_orderkey IN {ORDERS} AND o_orderstatus <> 'F'"
        ),
    },
    "another segment of a customer": {
        "customer-": f"FROM customer WHERE c_custkey IN {CUSTOMERS}",
        "customer+": CHANGED.format("'NEW'", "c_mktsegment", "customer", f"c_custkey IN {CUSTOMERS}"),
    },
    "another name of a customer": {
        "customer-": f"FROM customer WHERE c_custkey IN {CUSTOMERS}",
        "customer+": CHANGED.format("c_name || '!'", "c_name", "customer", f"c_custkey IN {CUSTOMERS}"),
    },
    "another brand of a part": {
        "part-": "FROM part WHERE p_partkey < 4",
        "part+": CHANGED.format("'Brand#0'", "p_brand", "part", "p_partkey < 4"),
    },
}
"""By relation and side the rows, as queries over the base relations."""


def main() -> int:
    """Prints a line for each update; the exit status is 1 if a delta is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--scale", type=float, required=True)
    parser.add_argument("--views", default="ordinary.sql")
    given = parser.parse_args()
    texts = (Path(__file__).with_name(name) for name in ("ordinary_tables.sql", given.views))
    sql = "".join(text.read_text(encoding="utf-8") for text in texts)
    views = dict(re.findall(r"CREATE VIEW (\w+) AS\n(.*?);", sql, re.DOTALL))
    base = given.work / f"ordinary{given.scale:g}"
    if not base.exists():
        data.generate(given.scale, base)
    tables = {path.stem: path for path in sorted(base.glob("*.parquet"))}
    connection = duckdb.connect()
    for name, path in tables.items():
        connection.sql(f"CREATE TABLE {name} AS FROM '{path}'")
    held = {name: connection.sql(query).to_arrow_table() for name, query in views.items()}
    print(f"{'update':34} {'tests':>5} {'search':>6}  {'s':>5}  {'rows searched':16}  not decided")
    wrong = sum(followed(connection, sql, views, held, update) for update in UPDATES)
    both = (
        resource.getrusage(who).ru_maxrss // 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print("peak memory in MB, of this process and of the solver's: {}, {}".format(*both))
    return 1 if wrong else 0


def followed(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    views: dict[str, str],
    held: dict[str, object],
    update: str,
) -> int:
    """Prints how one update is followed; how many deltas are wrong."""
    sides = {name: connection.sql(query).to_arrow_table() for name, query in UPDATES[update].items()}
    given = [{n[:-1]: t for n, t in sides.items() if n[-1] == side} for side in "+-"]
    with selfmaint.build(sql, held, engine="duckdb", effective=True) as warehouse:
        change = selfmaint.Update.from_frames(warehouse, *given, effective=True)
        began = time.perf_counter()
        verdicts = warehouse.check(change)
        seconds = time.perf_counter() - began
        known = warehouse.decision.knowledge(warehouse.engine, *warehouse.given(change))
        yes = [v for v in verdicts.values() if isinstance(v, SelfMaintainable)]
        deltas = {v.view: determined_delta(known, v) for v in yes}
        connection.sql("BEGIN")
        for name, table in sides.items():
            connection.register("changed", table)
            inserting = f"INSERT INTO {name[:-1]} FROM changed"
            keys = {"orders": "o_orderkey", "lineitem": "(l_orderkey, l_linenumber)", "customer": "c_custkey"}
            key = keys.get(name[:-1], "p_partkey")
            deleting = f"DELETE FROM {name[:-1]} WHERE {key} IN (SELECT {key} FROM changed)"
            connection.sql(inserting if name.endswith("+") else deleting)
        wrong = 0
        for view, delta in deltas.items():
            for name, one in (
                ("old", held[view]),
                ("lost", delta.lost.arrow()),
                ("gained", delta.gained.arrow()),
            ):
                connection.register(name, one)
            follow = "(FROM old EXCEPT ALL FROM lost) UNION ALL FROM gained"
            both = (
                f"(({views[view]}) EXCEPT ALL ({follow})) UNION ALL (({follow}) EXCEPT ALL ({views[view]}))"
            )
            wrong += connection.sql(f"SELECT count(*) > 0 FROM ({both})").fetchall()[0][0]
        connection.sql("ROLLBACK")
    no = {v.view for v in verdicts.values() if isinstance(v, NotSelfMaintainable)}
    left = ", ".join(f"{name} (no)" if name in no else name for name in views if name not in deltas)
    near = [v.near.rows for v in verdicts.values() if v.near is not None]
    found = sum(v.near is not None for v in verdicts.values() if v or v.view in no)
    rows = ", ".join(map(str, sorted(near)))
    tests = len(yes) + len(no) - found
    print(
        f"{update:34} {tests:>5} {found:>6}  {seconds:>5.1f}  {rows or '-':16}  {left or '-'}{'  WRONG' * wrong}"
    )
    return wrong


if __name__ == "__main__":
    sys.exit(main())
