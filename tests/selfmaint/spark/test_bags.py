"""Bags in files: read with their duplicates, maintained, written with as many copies as they should have.

Oracle: the view recomputed by hand, as a bag, from the base rows after each update; and `--verify`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from selfmaint import Update, build, load
from selfmaint.api.printing.printed import StatementKind
from selfmaint.api.printing.statements import statements, tables_of
from selfmaint.decide.decision import Decision
from selfmaint.warehouse.situation import Situation
from tests.command_line import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")

SQL = """
create table customer (id int not null primary key, region string);
create table sale (id int not null primary key, customer int not null references customer, price int);
create view prices as select region, price, price * 2 as twice from sale s join customer c on c.id = s.customer;
create view customers as select id, region from customer;
"""
CUSTOMERS = [(1, "eu"), (2, "us"), (3, None)]
SALES = [(1, 1, 5), (2, 1, 5), (3, 1, 7), (4, 2, 5), (5, 3, None), (6, 3, None)]
INSERTED = [(7, 1, 5), (8, 2, 5), (9, 3, 1), (10, 3, 1)]
DELETED = [(3, 1, 7), (5, 3, None), (1, 1, 5), (2, 1, 5)]


def prices(sales: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """The definition of `prices`, by hand."""
    regions = dict(CUSTOMERS)
    return Counter((regions[c], price, None if price is None else price * 2) for _, c, price in sales)


def write(path: Path, columns: list[str], rows: Iterable[tuple[Any, ...]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    kinds = [pa.string() if name == "region" else pa.int32() for name in columns]
    values = list(zip(*rows, strict=True))
    arrays = [pa.array(v, k) for v, k in zip(values, kinds, strict=True)]
    pq.write_table(pa.table(dict(zip(columns, arrays, strict=True))), path)


def shop(folder: Path) -> Path:
    after = [row for row in SALES if row not in DELETED] + INSERTED
    write(folder / "prices" / "a.parquet", ["region", "price", "twice"], prices(SALES).elements())
    write(folder / "customers" / "a.parquet", ["id", "region"], CUSTOMERS)
    write(folder / "base" / "sale" / "a.parquet", ["id", "customer", "price"], after)
    write(folder / "base" / "customer" / "a.parquet", ["id", "region"], CUSTOMERS)
    write(folder / "u" / "sale.insert.parquet", ["id", "customer", "price"], INSERTED)
    write(folder / "u" / "sale.delete.parquet", ["id", "customer", "price"], DELETED)
    (folder / "views.sql").write_text(SQL, encoding="utf-8")
    places = "".join(f'[views.{name}]\npath = "{name}"\n' for name in ("prices", "customers"))
    bases = "".join(
        f'[relations.{name}]\nsource = "here"\npath = "base/{name}"\n' for name in ("sale", "customer")
    )
    toml = folder / "w.toml"
    files = '[sources.here]\nkind = "files"\n'
    toml.write_text(
        f'program = "views.sql"\n{places}{files}{bases}[update]\neffective = true\n', encoding="utf-8"
    )
    return toml


def in_file(folder: Path) -> Counter[tuple[Any, ...]]:
    rows = pq.read_table(folder / "prices").to_pylist()
    return Counter(tuple(row.values()) for row in rows)


def test_the_file_holds_each_row_as_often_as_it_should(tmp_path: Path) -> None:
    toml = shop(tmp_path)
    assert in_file(tmp_path)["eu", 5, 10] == 2
    ran = run("maintain", str(toml), "--update", str(tmp_path / "u"), "--verify", "--format", "json")
    assert ran.status == 0, ran.stderr
    after = prices([row for row in SALES if row not in DELETED] + INSERTED)
    assert in_file(tmp_path) == after
    found = json.loads(ran.stdout)
    assert found["differences"] == []
    assert found["reads"] == []
    verdicts = {entry["view"]: entry for entry in found["verdicts"]}
    assert verdicts["prices"] == {"view": "prices", "verdict": "yes", "semantics": "bag", "exact": False}
    assert verdicts["customers"] == {"view": "customers", "verdict": "yes", "exact": True}
    changes = {entry["view"]: (entry["gained"], entry["lost"]) for entry in found["changes"]}
    more, fewer = after - prices(SALES), prices(SALES) - after
    assert changes["prices"] == (more.total(), fewer.total())


def test_deltas_are_counted_rows(tmp_path: Path, spark: SparkSession) -> None:
    with load(shop(tmp_path), spark) as warehouse:
        found = warehouse.maintain(Update.from_files(warehouse, tmp_path / "u"), strict=True)
        delta = found.deltas["prices"]
        assert delta.gained.columns == ["region", "price", "twice", "copies"]
        assert {tuple(row) for row in delta.gained.collect()} == {("us", 5, 10, 1), (None, 1, 2, 2)}
        lost = {("eu", 5, 10, 1), ("eu", 7, 14, 1), (None, None, None, 1)}
        assert {tuple(row) for row in delta.lost.collect()} == lost
        warehouse.apply(found)


def test_the_statements_run_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    """All but the DELETE, which Spark has for other table formats; what is inserted is what changes, as it is now."""
    session = spark.newSession()
    with load(shop(tmp_path), session) as warehouse:
        catalog = warehouse.catalog
        situation = Situation.any_update(["sale"], effective=True)
        made = statements(Decision(catalog), catalog.view("prices"), situation, tables_of(catalog, {}))
    sql = {s.kind: s.sql for s in made}
    for name, path in {
        "prices": "prices",
        "customers": "customers",
        "sale_inserted": "u/sale.insert.parquet",
    }.items():
        session.read.parquet(str(tmp_path / path)).createOrReplaceTempView(name)
    session.read.parquet(str(tmp_path / "u/sale.delete.parquet")).createOrReplaceTempView("sale_deleted")
    session.sql(sql[StatementKind.COUNTED])
    try:
        session.sql(sql[StatementKind.CHANGES].replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
        session.sql("DROP VIEW prices")
        session.sql("CREATE TABLE prices (region string, price int, twice int)")
        session.sql(sql[StatementKind.INSERT])
        found = Counter(tuple(row) for row in session.table("prices").collect())
    finally:
        for table in ("prices_changes", "prices"):
            session.sql(f"DROP TABLE IF EXISTS {table}")
    before, after = prices(SALES), prices([row for row in SALES if row not in DELETED] + INSERTED)
    assert found == Counter({row: n for row, n in after.items() if n != before[row]})
    assert max(found.values()) > 1


def test_frames_are_given_with_their_duplicates(spark: SparkSession) -> None:
    session = spark.newSession()
    rows = session.createDataFrame([(5,), (5,), (6,)], "price int")
    program = ".decl sale(id: int not null, price: int) key(id).\n.view p(price) bag. p(P) :- sale(_, P)."
    with build(program, {"p": rows}, spark=session) as warehouse:
        gone = session.createDataFrame([(1, 5)], "id int, price int")
        delta = warehouse.maintain(Update({}, {"sale": gone}, effective=True)).deltas["p"]
        assert [tuple(row) for row in delta.lost.collect()] == [(5, 1)]
        assert delta.gained.isEmpty()
