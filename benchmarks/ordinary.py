"""Ordinary views, ordinary updates: what settles each verdict and how long that takes, and that deltas are right.

    python benchmarks/ordinary.py --work build/bench --scale 0.02 [--views distinct.sql | star | cafe]

The views over TPC-H (`ordinary.sql`) drop columns and keys, group, and join dimensions; those of `distinct.sql` are
sets that hide what they join by. `star` and `cafe` are those examples; a scale of 1 is a million sales, or orders. For
each update it prints how many verdicts tests settle, how many a search near the update, with the numbers of rows
searched; processor seconds of `check`, of the search in it (but for the solver's process) and of recomputing all views
in DuckDB; and which views are not decided. Each delta of a "yes" is held against recomputing, but for those that are
computed from other views.
"""

# ruff: noqa: S608 - the names in statements are those of this file
from __future__ import annotations

import argparse
import json
import re
import resource
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples" / "tpch"), str(ROOT)]

import data  # noqa: E402

import selfmaint  # noqa: E402
from selfmaint.decide.procedure import check as decide  # noqa: E402
from selfmaint.decide.saturation import saturated  # noqa: E402
from selfmaint.decide.searched import determined_delta, searches  # noqa: E402
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


@dataclass(frozen=True)
class Scene:
    """Views over base relations, and updates.

    Attributes:
        sql: declarations and views.
        tables: the base relations, as queries.
        updates: by relation and side the rows, as queries over the base relations.
        keys: by relation the key's columns.
        typed: for views what gives columns the types that Spark gives them.
    """

    sql: str
    tables: dict[str, str]
    updates: dict[str, dict[str, str]]
    keys: dict[str, str]
    typed: dict[str, str] = field(default_factory=dict)


def tpch(given: argparse.Namespace) -> Scene:
    """Views over TPC-H."""
    texts = (Path(__file__).with_name(name) for name in ("ordinary_tables.sql", given.views))
    base = given.work / f"ordinary{given.scale:g}"
    if not base.exists():
        data.generate(given.scale, base)
    tables = {path.stem: f"FROM '{path}'" for path in sorted(base.glob("*.parquet"))}
    keys = {"orders": "o_orderkey", "lineitem": "l_orderkey, l_linenumber", "customer": "c_custkey"}
    return Scene(
        "".join(text.read_text(encoding="utf-8") for text in texts),
        tables,
        UPDATES,
        {**keys, "part": "p_partkey"},
    )


def star(given: argparse.Namespace) -> Scene:
    """The example `star`."""
    sales = int(given.scale * 1_000_000)
    tables = {
        "items": "SELECT i::INT AS item, 'item ' || i AS name, ['food', 'garden', 'toys'][i % 3 + 1] AS category "
        f"FROM range(1, {sales // 20}) AS _(i)",
        "customers": "SELECT i::INT AS customer, 'customer ' || i AS name, "
        f"['gold', 'silver', 'plain'][i % 3 + 1] AS segment FROM range(1, {sales // 8}) AS _(i)",
        "stores": "SELECT i::INT AS store, ['Bergen', 'Malmö', 'Graz', 'Brno'][i % 4 + 1] AS city, "
        "['north', 'south'][i % 2 + 1] AS region FROM range(1, 9) AS _(i)",
        "dates": "SELECT i::INT AS date, DATE '2026-11-01' + i::INT AS day, month(day)::INT AS month "
        "FROM range(1, 61) AS _(i)",
        "sales": f"SELECT i::INT AS sale, (1 + hash(i) % {sales // 20 - 1})::INT AS item, "
        f"(1 + hash(i, 1) % {sales // 9})::INT AS customer, (1 + i % 8)::INT AS store, (1 + i % 60)::INT AS date, "
        f"(1 + i % 9)::INT AS quantity, (i % 9999 / 100)::DECIMAL(9, 2) AS price FROM range(1, {sales}) AS _(i)",
    }
    some = "sale BETWEEN 1000 AND 1019"
    updates = {
        "20 sales of known customers": {
            "sales+": f"SELECT * REPLACE (sale + 100000000 AS sale) FROM sales WHERE {some}"
        },
        "20 sales, a customer unknown": {
            "sales+": f"SELECT * REPLACE (sale + 100000000 AS sale, {sales // 8 - 1} AS customer) FROM sales "
            f"WHERE {some}"
        },
        "20 returns": {"sales-": f"FROM sales WHERE {some}"},
        "another segment of a customer": {
            "customers-": "FROM customers WHERE customer BETWEEN 10 AND 14",
            "customers+": CHANGED.format("'new'", "segment", "customers", "customer BETWEEN 10 AND 14"),
        },
        "another category of an item": {
            "items-": "FROM items WHERE item BETWEEN 10 AND 12",
            "items+": CHANGED.format("'new'", "category", "items", "item BETWEEN 10 AND 12"),
        },
    }
    keys = {"sales": "sale", "customers": "customer", "items": "item"}
    text = (ROOT / "examples" / "star" / "views.sql").read_text(encoding="utf-8")
    return Scene(text, tables, updates, keys)


def cafe(given: argparse.Namespace) -> Scene:
    """The models of the example `cafe`, which dbt has compiled."""
    orders = int(given.scale * 1_000_000)
    manifest = json.loads(
        (ROOT / "examples" / "cafe" / "target" / "manifest.json").read_text(encoding="utf-8")
    )
    models = {n["name"]: n for n in manifest["nodes"].values() if n["resource_type"] == "model"}
    parts = [CAFE]
    for name, model in sorted(models.items(), key=lambda one: _depth(one[1], manifest["nodes"])):
        text = re.sub(r'"?cafe"?\."?raw"?\."?(\w+)"?', r"raw_\1", model["compiled_code"]).replace(
            "cafe.main.", ""
        )
        kind = "TEMPORARY VIEW" if model["config"]["materialized"] == "view" else "VIEW"
        parts.append(f"CREATE {kind} {name} AS\n{text.strip()};\n")
    tables = {
        "raw_customers": "SELECT i::INT AS id, 'Customer ' || i AS name, ['Oslo', 'Bergen', 'Graz'][i % 3 + 1] AS city "
        f"FROM range(1, {orders // 5}) AS _(i)",
        "raw_products": "SELECT 'P' || i AS sku, 'Product ' || i AS name, ['drink', 'food'][i % 2 + 1] AS kind, "
        "(i % 9 + 1.5)::DECIMAL(8, 2) AS price FROM range(1, 101) AS _(i)",
        "raw_orders": f"SELECT i::INT AS id, (1 + hash(i) % {orders // 6})::INT AS customer, "
        "TIMESTAMP '2026-01-01 08:00:00' + INTERVAL (i % 400000) MINUTE AS ordered_at, "
        f"['placed', 'paid', 'cancelled'][i % 3 + 1] AS status FROM range(1, {orders}) AS _(i)",
        "raw_items": f"SELECT i::INT AS id, (1 + hash(i) % {orders - 1})::INT AS order_id, "
        f"'P' || (1 + i % 100) AS sku, (1 + i % 4)::INT AS quantity FROM range(1, {2 * orders}) AS _(i)",
    }
    some = "id BETWEEN 1000 AND 1019"
    updates = {
        "20 new orders with their items": {
            "raw_orders+": f"SELECT * REPLACE (id + 10000000 AS id) FROM raw_orders WHERE {some}",
            "raw_items+": "SELECT * REPLACE (id + 10000000 AS id, order_id + 10000000 AS order_id) FROM raw_items "
            "WHERE order_id BETWEEN 1000 AND 1019",
        },
        "20 orders are paid": {
            "raw_orders-": f"FROM raw_orders WHERE {some} AND status = 'placed'",
            "raw_orders+": CHANGED.format("'paid'", "status", "raw_orders", f"{some} AND status = 'placed'"),
        },
        "a product is renamed": {
            "raw_products-": "FROM raw_products WHERE sku = 'P7'",
            "raw_products+": CHANGED.format("'Tea'", "name", "raw_products", "sku = 'P7'"),
        },
        "five customers move": {
            "raw_customers-": "FROM raw_customers WHERE id BETWEEN 10 AND 14",
            "raw_customers+": CHANGED.format("'Brno'", "city", "raw_customers", "id BETWEEN 10 AND 14"),
        },
        "items are returned": {"raw_items-": f"FROM raw_items WHERE {some}"},
    }
    keys = dict.fromkeys(("raw_orders", "raw_items", "raw_customers"), "id") | {"raw_products": "sku"}
    typed = {
        "sales_by_day": "pieces::BIGINT AS pieces",
        "best_products": "revenue::DECIMAL(29, 2) AS revenue",
    }
    return Scene("".join(parts), tables, updates, keys, typed)


def _depth(model: dict[str, Any], nodes: dict[str, Any]) -> int:
    """How many models a model is above sources."""
    below = (nodes[name] for name in model["depends_on"]["nodes"] if name in nodes)
    return 1 + max((_depth(one, nodes) for one in below), default=0)


CAFE = """
CREATE TABLE raw_customers (id INT PRIMARY KEY, name STRING NOT NULL, city STRING);
CREATE TABLE raw_products (
  sku STRING PRIMARY KEY, name STRING NOT NULL, kind STRING NOT NULL, price DECIMAL(8, 2) NOT NULL
);
CREATE TABLE raw_orders (
  id INT PRIMARY KEY, customer INT NOT NULL REFERENCES raw_customers(id), ordered_at TIMESTAMP_NTZ NOT NULL,
  status STRING NOT NULL
);
CREATE TABLE raw_items (
  id INT PRIMARY KEY, order_id INT NOT NULL REFERENCES raw_orders(id),
  sku STRING NOT NULL REFERENCES raw_products(sku), quantity INT NOT NULL
);
"""


def main() -> int:
    """Prints a line for each update; the exit status is 1 if a delta is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--scale", type=float, required=True)
    parser.add_argument("--views", default="ordinary.sql")
    given = parser.parse_args()
    scene = {"star": star, "cafe": cafe}.get(given.views, tpch)(given)
    created = re.findall(r"CREATE (TEMPORARY )?VIEW (\w+)\s+AS\s(.*?);", scene.sql, re.DOTALL)
    connection = duckdb.connect()
    for name, query in scene.tables.items():
        connection.sql(f"CREATE TABLE {name} AS {query}")
    for _, name, query in created:
        connection.sql(f"CREATE TEMPORARY VIEW {name} AS {query}")
    names = [name for is_temporary, name, _ in created if not is_temporary]
    as_typed = {name: f" REPLACE ({columns})" for name, columns in scene.typed.items()}
    views = {name: f"SELECT *{as_typed.get(name, '')} FROM {name}" for name in names}
    held = {name: connection.sql(query).to_arrow_table() for name, query in views.items()}
    titles = ("tests", "search", "open", "check s", "of it s", "recompute s")
    print(f"{'update':34} {' '.join(f'{t:>8}' for t in titles)}  {'rows searched':16}  not decided")
    wrong = sum(followed(connection, scene, views, held, update) for update in scene.updates)
    both = (
        resource.getrusage(who).ru_maxrss // 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print("peak memory in MB, of this process and of the solver's: {}, {}".format(*both))
    return 1 if wrong else 0


def followed(
    connection: duckdb.DuckDBPyConnection,
    scene: Scene,
    views: dict[str, str],
    held: dict[str, object],
    update: str,
) -> int:
    """Prints how one update is followed; how many deltas are wrong."""
    sides = {name: connection.sql(query).to_arrow_table() for name, query in scene.updates[update].items()}
    given = [{n[:-1]: t for n, t in sides.items() if n[-1] == side} for side in "+-"]
    with selfmaint.build(scene.sql, held, engine="duckdb", effective=True) as warehouse:
        change = selfmaint.Update.from_frames(warehouse, *given, effective=True)
        began = time.process_time()
        verdicts = warehouse.check(change)
        seconds = [time.process_time() - began]
        known = warehouse.decision.knowledge(warehouse.engine, *warehouse.given(change))
        decide(known, warehouse.catalog.apart.views, 0)
        seconds.append(searches(saturated(known)).spent)
        yes = [v for v in verdicts.values() if isinstance(v, SelfMaintainable)]
        decided = {view.name for view in known.catalog.views}
        deltas = {v.view: determined_delta(known, v) for v in yes if v.view in decided and not v.is_computed}
        connection.sql("BEGIN")
        for name, table in sides.items():
            connection.register("changed", table)
            inserting = f"INSERT INTO {name[:-1]} FROM changed"
            key = scene.keys[name[:-1]]
            deleting = f"DELETE FROM {name[:-1]} WHERE ({key}) IN (SELECT ({key}) FROM changed)"
            connection.sql(inserting if name.endswith("+") else deleting)
        began = time.process_time()
        for query in views.values():
            connection.sql(query).to_arrow_table()
        seconds.append(time.process_time() - began)
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
    told = {v.view for v in yes}
    left = ", ".join(f"{name} (no)" if name in no else name for name in views if name not in told)
    near = [v.near.rows for v in verdicts.values() if v.near is not None]
    found = sum(v.near is not None for v in verdicts.values() if v or v.view in no)
    rows = ", ".join(map(str, sorted(near)))
    settled = len(yes) + len(no)
    counts = " ".join(f"{n:>8}" for n in (settled - found, found, len(verdicts) - settled))
    times = " ".join(f"{s:>8.2f}" for s in seconds)
    print(f"{update:34} {counts} {times}  {rows or '-':16}  {left or '-'}{'  WRONG' * wrong}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
