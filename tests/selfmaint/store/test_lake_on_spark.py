"""The lake through both engines: the same tables from the same update, every type with its odd values as it was."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import selfmaint
from selfmaint.api.stores.store_upkeep import compact, init, store_of, undo
from selfmaint.duckdb.store import stored_rows
from tests.command_line import run
from tests.selfmaint.store.test_lake import Row, Shop, a_change

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FAR = ("0001-01-02 00:00:00", "9999-12-30 23:59:59.999999")
VALUES = {
    "t": ("boolean", pa.bool_(), ["true", "false", None, "true", "false", "true"]),
    "i1": ("tinyint", pa.int8(), ["-128", "127", None, "0", "1", "2"]),
    "i2": ("smallint", pa.int16(), ["-32768", "32767", None, "0", "1", "2"]),
    "i4": ("int", pa.int32(), ["-2147483648", "2147483647", None, "0", "1", "2"]),
    "i8": ("bigint", pa.int64(), ["-9223372036854775808", "9223372036854775807", None, "0", "9007199254740993", "2"]),
    "f": ("float", pa.float32(), ["nan", "-0.0", "inf", None, "-inf", "0.1"]),
    "d": ("double", pa.float64(), ["nan", "-0.0", "0.0", "-inf", None, "1e308"]),
    "p": ("decimal(38,10)", pa.decimal128(38, 10), ["9" * 28 + ".9999999999", "-0.0000000001", None, "0", "1", "-1"]),
    "s": ("string", pa.string(), ["", " x ", None, "it's \"q\" \n", "\U0001f600", "e\u0301"]),
    "e": ("date", pa.date32(), ["0001-01-01", "9999-12-31", None, "1582-10-14", "1970-01-01", "2024-02-29"]),
    "m": (
        "timestamp",
        pa.timestamp("us", "UTC"),
        [*FAR, None, "2024-03-31 01:30:00", "2024-10-27 00:30:00", "1969-12-31 23:59:59.999999"],
    ),
    "w": (
        "timestamp_ntz",
        pa.timestamp("us"),
        [*FAR, None, "2024-03-31 02:30:00", "2024-03-31 03:30:00", "1969-12-31 23:59:59.999999"],
    ),
}  # fmt: skip


def test_both_engines_give_the_same_tables(interpreting_spark: SparkSession, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    assert shop.command("init").status == 0
    shutil.copytree(tmp_path / "lake", tmp_path / "kept")
    update = a_change(shop)
    found = {}
    for engine in ("duckdb", "spark"):
        shutil.rmtree(tmp_path / "lake")
        shutil.copytree(tmp_path / "kept", tmp_path / "lake")
        done = run("maintain", str(shop.toml), "--update", str(update), "--engine", engine, "--verify")
        assert done.status == 0, done
        found[engine] = shop.stored()
        states = json.loads(shop.command("history", "--format", "json").stdout)["snapshots"]
        changes = next(one["changes"] for one in states if one["what"] == "maintain")
        assert changes["totals"] == {"lost": 2, "gained": 2}  # north changes, and south becomes east
    assert found["duckdb"] == found["spark"] == shop.expected()
    assert contents(interpreting_spark, shop) == found["spark"]


def test_spark_reads_any_state_whatever_was_compacted(
    interpreting_spark: SparkSession, tmp_path: Path
) -> None:
    spark, shop = interpreting_spark, Shop(tmp_path)
    init(shop.toml, spark)
    states = {store_of(shop.toml).version: shop.stored()}
    for i in range(3):
        new = {"sale": {(100 + i, 1, i)}}
        gone = {"sale": {row for row in shop.base["sale"] if row[0] == i + 1}}
        update = shop.update(f"u{i}", new, gone)
        with selfmaint.load(shop.toml, spark) as warehouse:
            warehouse.apply(warehouse.maintain(selfmaint.Update.from_files(warehouse, update)))
            states[store_of(shop.toml).version] = shop.expected()
            assert of(warehouse) == shop.expected()
    assert {v: contents(spark, shop, v) for v in states} == states
    compact(shop.toml, keep_days=None)
    assert {v: contents(spark, shop, v) for v in states} == states
    undo(shop.toml)
    assert contents(spark, shop) == [*states.values()][-2]


def contents(spark: SparkSession, shop: Shop, as_of: int | None = None) -> dict[str, Counter[Row]]:
    with selfmaint.load(shop.toml, spark, as_of=as_of) as warehouse:
        return of(warehouse)


def of(warehouse: selfmaint.Warehouse[DataFrame]) -> dict[str, Counter[Row]]:
    found = {}
    for name, rows in warehouse.contents.items():
        counted = [tuple(row) for row in rows.collect()]
        is_counted = warehouse.view(name).is_counted
        found[name] = Counter({row[:-1]: row[-1] for row in counted}) if is_counted else Counter(counted)
    return found


@pytest.mark.parametrize("kind", ["lake", "delta"])
@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_every_type_comes_back_as_it_was(engine: Any, kind: str, spark: SparkSession, tmp_path: Path) -> None:
    del spark
    columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in VALUES.items())
    (tmp_path / "v.sql").write_text(
        f"create table r (id int not null primary key, {columns});\n"
        f"create view v as select id, {', '.join(VALUES)} from r;\n"
        f"create view bag as select {', '.join(VALUES)} from r;\n",
        encoding="utf-8",
    )
    (tmp_path / "w.toml").write_text(
        f'program = "v.sql"\n[store]\nkind = "{kind}"\npath = "lake"\n[update]\neffective = true\n',
        encoding="utf-8",
    )
    before = table(range(6))
    after = table([3, 4, 5], first=10)
    pq.write_table(before, tmp_path / "v.parquet")
    pq.write_table(before.drop_columns("id"), tmp_path / "bag.parquet")
    init(tmp_path / "w.toml", engine=engine, origins={n: tmp_path / f"{n}.parquet" for n in ("v", "bag")})
    assert stored(tmp_path, "v") == bits(before, kind)
    (tmp_path / "up").mkdir()
    pq.write_table(before.take([0, 1, 2]), tmp_path / "up" / "r.delete.parquet")
    pq.write_table(after, tmp_path / "up" / "r.insert.parquet")
    done = run("maintain", str(tmp_path / "w.toml"), "--update", str(tmp_path / "up"), "--engine", engine)
    assert done.status == 0, done
    left = pa.concat_tables([before.slice(3), after])
    assert stored(tmp_path, "v") == bits(left, kind)
    assert stored(tmp_path, "bag") == bits(left.drop_columns("id"), kind)
    compact(tmp_path / "w.toml", keep_days=0)
    assert stored(tmp_path, "v") == bits(left, kind)


def table(which: Any, first: int = 0) -> pa.Table:
    columns: dict[str, pa.Array] = {"id": pa.array([first + i for i in range(len(which))], pa.int32())}
    for name, (_, type_, values) in VALUES.items():
        chosen = [values[i] for i in which]
        plain = pa.array(chosen, pa.string())
        columns[name] = plain.cast(pa.timestamp("us")).cast(type_) if name == "m" else plain.cast(type_)
    return pa.table(columns)


def stored(folder: Path, name: str) -> Counter[tuple[str, ...]]:
    open_ = store_of(folder / "w.toml")
    return bits(stored_rows(open_.store.database, open_.table(name)).arrow())


def bits(rows: pa.Table, kind: str = "delta") -> Counter[tuple[str, ...]]:
    """The rows, each value as what tells it from all others: -0.0 is not 0.0, which a lake holds for it."""
    shown = []
    for column in rows.columns:
        if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
            column = column.cast(pa.int64() if pa.types.is_timestamp(column.type) else pa.int32())  # noqa: PLW2901
        shown.append([repr(value) for value in column.to_pylist()])
    if kind == "lake":
        shown = [["0.0" if value == "-0.0" else value for value in column] for column in shown]
    return Counter(zip(*shown, strict=True))
