"""The 99 queries of TPC-DS as views: how each follows an update of sales, returns, stocks, items and customers.

    pip install --target /tmp/tpcds/extension --no-deps duckdb-extension-tpcds==1.5.5     # DuckDB's version
    python benchmarks/tpcds_views.py --work /tmp/tpcds --extension /tmp/tpcds/extension --scale 0.01

Data and texts are those of DuckDB's extension `tpcds`; the tables' keys are in `tpcds_tables.sql`. ORDER BY and LIMIT
at the end of a query are left to who reads the view, and columns without a name get one. The rest is as in
`tpch_views.py`.
"""

# ruff: noqa: S608 - the names in statements are those of this file
from __future__ import annotations

import argparse
import shutil
import sys
from collections import Counter
from functools import partial
from itertools import accumulate
from pathlib import Path

import duckdb
import sqlglot
from query_views import Queries, follow, table, write_update
from sqlglot import TokenType

TABLES = Path(__file__).resolve().with_name("tpcds_tables.sql")
NAMES = tuple(f"q{number:02}" for number in range(1, 100))
_OPEN, _CLOSED = TokenType.L_PAREN, TokenType.R_PAREN
MOVED = 1_000_000_000
"""What is added to the numbers of tickets and orders that come."""


def prepare(work: Path, extension: Path, scale: float, orders: int, seed: int) -> tuple[Path, Queries]:
    """The queries; and the base relations before and after an update, and the update, unless they are there already."""
    place = work / f"views_sf{scale:g}_{orders}_{seed}"
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as database:
        (library,) = extension.glob(
            f"**/duckdb_extension_tpcds/extensions/v{duckdb.__version__}/tpcds.duckdb_extension"
        )
        database.execute(f"load '{library}'")
        database.execute(f"call dsdgen(sf = {0 if (place / 'done').exists() else scale})")
        names = tuple(row[0] for row in database.execute("show tables").fetchall())
        found = database.execute("select query_nr, query from tpcds_queries()").fetchall()
        texts = {f"q{number:02}": _named(database, _without_order(text)) for number, text in found}
        if not (place / "done").exists():
            shutil.rmtree(place, ignore_errors=True)
            write_update(database, place, names, _update(database, orders, seed))
            (place / "done").touch()
    return place, Queries(TABLES.read_text(), names, texts)


def _without_order(text: str) -> str:
    """A query without ORDER BY and LIMIT at its end."""
    text = text.strip().rstrip(";").rstrip()
    depth, until = 0, len(text)
    for token in sqlglot.tokenize(text, read="duckdb"):
        depth += (token.token_type is _OPEN) - (token.token_type is _CLOSED)
        if depth == 0 and token.token_type in (TokenType.ORDER_BY, TokenType.LIMIT):
            until = min(until, token.start)
    return text[:until].rstrip()


def _named(database: duckdb.DuckDBPyConnection, text: str) -> str:
    """A query with names for columns that have none, or one that another has."""
    names = database.sql(text).columns
    often = Counter(name.casefold() for name in names)
    tokens = sqlglot.tokenize(text, read="duckdb")
    depths = list(accumulate((t.token_type is _OPEN) - (t.token_type is _CLOSED) for t in tokens))
    at = [i for i, depth in enumerate(depths) if depth == 0]
    first = next(i for i in at if tokens[i].token_type is TokenType.SELECT)
    last = next(i for i in at if i > first and tokens[i].token_type is TokenType.FROM)
    ends = [i for i in at if first < i < last and tokens[i].token_type is TokenType.COMMA]
    for place, i in reversed(list(enumerate([*ends, last]))):
        name = names[place] if place < len(names) else "*"
        if "*" not in names and (not name.isidentifier() or often[name.casefold()] > 1):
            is_quoted = tokens[i - 1].token_type is TokenType.IDENTIFIER  # not so in Spark's SQL
            where = tokens[i - 1].start if is_quoted else tokens[i - 1].end + 1
            written = f"{text[:where]}{'' if is_quoted else ' AS '}column_{place + 1}"
            text = f"{written}{text[tokens[i - 1].end + 1 :]}"
    return text


def _update(database: duckdb.DuckDBPyConnection, orders: int, seed: int) -> dict[str, tuple[str, str]]:
    """New tickets and orders with their returns, made of old ones, as many that go, other items, customers, stocks."""
    made: dict[str, tuple[str, str]] = {}
    channels = (
        ("store_sales", "ss_ticket_number", "store_returns", "sr_ticket_number"),
        ("catalog_sales", "cs_order_number", "catalog_returns", "cr_order_number"),
        ("web_sales", "ws_order_number", "web_returns", "wr_order_number"),
    )
    for sales, key, returns, its in channels:
        for which, order in (("leaving", ""), ("model", "desc")):
            database.execute(
                f"create table {sales}_{which} as select distinct {key} as key from {sales} "
                f"order by hash({key} + {seed}) {order}, key limit {orders}"
            )
        for name, number in ((sales, key), (returns, its)):
            made[name] = (
                f"{_with(name, f'{number} + {MOVED} as {number}')} where {number} in (select key from {sales}_model)",
                f"{number} in (select key from {sales}_leaving)",
            )
    some = f"hash(i_item_sk + {seed}) % 20 = 0"
    new = "i_current_price + 1 as i_current_price, i_manager_id + 1 as i_manager_id, i_color || 'ish' as i_color"
    made["item"] = f"{_with('item', new)} where {some}", some
    some = f"hash(c_customer_sk + {seed}) % 50 = 0"
    new = "c_last_name || 'son' as c_last_name, c_current_addr_sk % 400 + 1 as c_current_addr_sk"
    same = f"{_with('customer', new)} where {some}"
    more = _with(f"({same})", f"c_customer_sk + {MOVED} as c_customer_sk")
    made["customer"] = f"{same} union all {more}", some
    some = f"hash(inv_item_sk * 1000 + inv_date_sk + {seed}) % 500 = 0"
    new = "inv_date_sk + 1 as inv_date_sk, inv_quantity_on_hand + 90 as inv_quantity_on_hand"
    made["inventory"] = f"{_with('inventory', new)} where {some}", some
    return made


def _with(rows: str, values: str) -> str:
    return f"select * replace ({values}) from {rows}"


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Follows the queries of TPC-DS.")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--extension", type=Path, required=True)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--helpers", action="store_true")
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    parser.add_argument("--only", nargs="*", default=NAMES)
    given = parser.parse_args()
    place, queries = prepare(given.work, given.extension, given.scale, given.orders, given.seed)
    how = {"helpers": given.helpers, "engine": given.engine}
    return table(partial(follow, queries, place, name, **how) for name in given.only)


if __name__ == "__main__":
    sys.exit(main())
