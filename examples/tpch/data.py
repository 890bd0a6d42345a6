"""TPC-H data for the example and the benchmarks: base relations as Parquet, and updates in the manner of RF1 and RF2.

TPC-H uses 8 of every 32 order keys; its refresh functions insert orders with a run of keys in the gaps, and delete
a run of old ones. So does `refresh`: a new order is an old one, with its line items, under a free key and on a later
day.
"""

from __future__ import annotations

import datetime as dt
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

BIGINT, INT, TEXT, DATE, MONEY = pa.int64(), pa.int32(), pa.string(), pa.date32(), pa.decimal128(15, 2)

SCHEMAS = {
    "region": pa.schema([("r_regionkey", BIGINT), ("r_name", TEXT)]),
    "nation": pa.schema([("n_nationkey", BIGINT), ("n_name", TEXT), ("n_regionkey", BIGINT)]),
    "customer": pa.schema(
        [
            ("c_custkey", BIGINT),
            ("c_name", TEXT),
            ("c_nationkey", BIGINT),
            ("c_mktsegment", TEXT),
            ("c_acctbal", MONEY),
        ]
    ),
    "supplier": pa.schema([("s_suppkey", BIGINT), ("s_name", TEXT), ("s_nationkey", BIGINT)]),
    "part": pa.schema([("p_partkey", BIGINT), ("p_name", TEXT), ("p_brand", TEXT), ("p_type", TEXT)]),
    "orders": pa.schema(
        [
            ("o_orderkey", BIGINT),
            ("o_custkey", BIGINT),
            ("o_orderstatus", TEXT),
            ("o_totalprice", MONEY),
            ("o_orderdate", DATE),
        ]
    ),
    "lineitem": pa.schema(
        [
            ("l_orderkey", BIGINT),
            ("l_linenumber", INT),
            ("l_partkey", BIGINT),
            ("l_suppkey", BIGINT),
            ("l_quantity", MONEY),
            ("l_extendedprice", MONEY),
            ("l_discount", MONEY),
            ("l_shipdate", DATE),
        ]
    ),
}
"""The columns of each base relation that the warehouse uses."""

FIRST_FREE_KEY, KEY_BLOCK = 8, 32
"""Order keys modulo 32 are 0 to 7 in the generated data."""
LAST_DAY = dt.date(1998, 8, 2)
"""The last day of the generated orders."""


@dataclass(frozen=True)
class Update:
    """The inserted and the deleted rows by base relation."""

    inserted: dict[str, pa.Table]
    deleted: dict[str, pa.Table]

    def rows(self) -> int:
        """How many rows change."""
        return sum(t.num_rows for part in (self.inserted, self.deleted) for t in part.values())


def generate(scale: float, folder: Path) -> None:
    """TPC-H at a scale factor: one Parquet file for each base relation, with the columns of `SCHEMAS`."""
    raw = folder / "raw"
    raw.mkdir(parents=True)
    command = [str(_generator()), "parquet", "-s", str(scale), "--output-dir", str(raw)]
    subprocess.run(command, check=True, capture_output=True)
    for name, schema in SCHEMAS.items():
        with pq.ParquetWriter(folder / f"{name}.parquet", schema) as writer:
            for batch in pq.ParquetFile(raw / f"{name}.parquet").iter_batches(columns=schema.names):
                writer.write_table(pa.Table.from_batches([batch]).select(schema.names).cast(schema))
    shutil.rmtree(raw)


def _generator() -> Path:
    beside = Path(sys.executable).with_name("tpchgen-cli")
    found = beside if beside.exists() else shutil.which("tpchgen-cli")
    if found is None:
        raise SystemExit("error: no tpchgen-cli; install the development dependencies")
    return Path(found)


def add_part(folder: Path) -> int:
    """A part that nobody has sold yet, put into `part`; its key."""
    path = folder / "part.parquet"
    parts = pq.read_table(path)
    key = pc.max(parts["p_partkey"]).as_py() + 1
    new = pa.table(
        [[key], ["frosted lavender sky"], ["Brand#55"], ["PROMO POLISHED TIN"]], schema=SCHEMAS["part"]
    )
    pq.write_table(pa.concat_tables([parts, new]), path)
    return int(key)


def refresh(folder: Path, orders: int, *, movers: int = 0, part: int | None = None) -> Update:
    """New orders with their line items, as many old ones deleted with theirs, and customers who change segment.

    Args:
        folder: where the base relations are.
        orders: how many orders to insert, and to delete.
        movers: how many customers change to another market segment: their row is deleted, and inserted changed.
        part: if given, the first new line item sells this part.

    Returns:
        The update. It is the same for the same data and arguments, and effective.
    """
    table = pq.read_table(folder / "orders.parquet").sort_by("o_orderkey")
    old = table.slice(0, orders)
    models = table.slice(max(orders, table.num_rows // 2), orders)
    lines = pq.read_table(folder / "lineitem.parquet", filters=_keys(pa.concat_tables([old, models])))
    inserted = {"orders": _new_orders(models), "lineitem": _new_lines(_lines_of(lines, models), part)}
    deleted = {"orders": old, "lineitem": _lines_of(lines, old)}
    if movers:
        deleted["customer"], inserted["customer"] = _moving(folder, models, movers)
    return Update(inserted, deleted)


def _keys(orders: pa.Table) -> pc.Expression:
    return pc.field("l_orderkey").isin(orders["o_orderkey"].combine_chunks())


def _lines_of(lines: pa.Table, orders: pa.Table) -> pa.Table:
    return lines.filter(pc.is_in(lines["l_orderkey"], orders["o_orderkey"].combine_chunks()))


def _shifted(keys: pa.ChunkedArray) -> pa.ChunkedArray:
    """Free keys for the keys of existing orders."""
    return pc.add(keys, pa.scalar(FIRST_FREE_KEY, BIGINT))


def _new_orders(models: pa.Table) -> pa.Table:
    """Two days of orders after the last day, neighbours in pairs of one customer."""
    count = models.num_rows
    customers = models["o_custkey"].to_pylist()
    columns = {
        "o_orderkey": _shifted(models["o_orderkey"]),
        "o_custkey": pa.array([customers[i - i % 2] for i in range(count)], BIGINT),
        "o_orderstatus": pa.array(["O"] * count, TEXT),
        "o_totalprice": models["o_totalprice"],
        "o_orderdate": pa.array([LAST_DAY + dt.timedelta(days=1 + i % 4 // 2) for i in range(count)], DATE),
    }
    return pa.table(columns, schema=SCHEMAS["orders"])


def _new_lines(models: pa.Table, part: int | None) -> pa.Table:
    count = models.num_rows
    parts = models["l_partkey"].to_pylist()
    if part is not None:
        parts[0] = part
    columns = {name: models[name] for name in SCHEMAS["lineitem"].names}
    columns["l_orderkey"] = _shifted(models["l_orderkey"])
    columns["l_partkey"] = pa.array(parts, BIGINT)
    columns["l_shipdate"] = pa.array([LAST_DAY + dt.timedelta(days=3 + i % 30) for i in range(count)], DATE)
    return pa.table(columns, schema=SCHEMAS["lineitem"])


def _moving(folder: Path, models: pa.Table, movers: int) -> tuple[pa.Table, pa.Table]:
    """Customers before and after: in turn into the segment `BUILDING`, and out of it."""
    customers = pq.read_table(folder / "customer.parquet")
    customers = customers.filter(pc.is_in(customers["c_custkey"], models["o_custkey"].combine_chunks()))
    building = pc.equal(customers["c_mktsegment"], "BUILDING")
    outsiders, insiders = customers.filter(pc.invert(building)), customers.filter(building)
    into = outsiders.slice(0, movers - movers // 2)
    out = insiders.slice(0, movers // 2)
    before = pa.concat_tables([into, out])
    segments = ["BUILDING"] * into.num_rows + ["MACHINERY"] * out.num_rows
    at = before.schema.get_field_index("c_mktsegment")
    return before, before.set_column(at, before.schema.field(at), pa.array(segments, TEXT))


def write_update(update: Update, folder: Path) -> None:
    """The update as files `RELATION.insert.parquet` and `RELATION.delete.parquet`."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, tables in (("insert", update.inserted), ("delete", update.deleted)):
        for name, rows in tables.items():
            pq.write_table(rows, folder / f"{name}.{part}.parquet")
