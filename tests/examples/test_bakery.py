"""A shop's dbt models, `bakery.sql`: marts over marts follow random days, and are what DuckDB makes of the sources."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

import selfmaint

PROGRAM = Path(__file__).with_name("bakery.sql")
SOURCES = (
    "raw_people",
    "raw_shops",
    "raw_goods",
    "raw_ingredients",
    "raw_sales",
    "raw_lines",
    "raw_payments",
)
FILLED = {
    "raw_people": "select 'p' || i, 'first' || i, if(i % 4 = 0, null, 'last' || i) from range(30) t(i)",
    "raw_shops": "select 's' || i, 'shop' || i, timestamp '2016-09-01 07:30:00' + to_days(i::int) from range(3) t(i)",
    "raw_goods": "select 'g' || i, 'good' || i, ['bread', 'drink', null][1 + i % 3], 105 + 35 * i from range(8) t(i)",
    "raw_ingredients": "select 'i' || j, 'g' || i, 11 + j * 7, j % 2 = 0 from range(7) t(i), range(3) u(j)",
    "raw_sales": "select 'a' || i, 'p' || (i * 7 % 25), 's' || i % 3, timestamp '2017-01-01 22:00:00' "
    "+ to_hours(i::int * 5), ['done', 'sent'][1 + i % 2], 250 * (i % 9) from range(120) t(i)",
    "raw_lines": "select 'l' || i, 'a' || (i // 2), 'g' || (i * 5 % 8) from range(220) t(i)",
    "raw_payments": "select 'y' || i, 'a' || (i * 3 % 110), ['card', 'coupon', 'cash'][1 + i % 3], 95 * (i % 13) "
    "from range(140) t(i)",
}


def statements() -> tuple[list[str], dict[str, str]]:
    """The tables, and the views by name, as DuckDB has them."""
    tables, views = [], {}
    for tree in sqlglot.parse(PROGRAM.read_text(encoding="utf-8"), read="spark"):
        assert isinstance(tree, exp.Create)
        if tree.kind == "TABLE":
            columns = ", ".join(f"{c.name} {c.kind.sql('duckdb')}" for c in tree.this.find_all(exp.ColumnDef))
            tables.append(
                f"create table {tree.this.this.name} ({columns.replace('TIMESTAMPTZ', 'TIMESTAMP')})"
            )
        else:
            views[tree.this.name] = tree.expression.sql("duckdb")
    return tables, views


def a_day(plain: duckdb.DuckDBPyConnection, chance: random.Random, number: int, folder: Path) -> None:
    """Sales come with their lines and payments, and go; a price, a cost, a name, a state change."""
    some = f"hash(id || '{number}') % 12 = {chance.randrange(12)}"
    plain.execute(f"create or replace temp table gone as select id from raw_sales where {some}")
    new = f"select 'n{number}x' || i, 'p' || (i * {chance.randrange(1, 30)} % 30), 's' || i % 3, "
    new += f"timestamp '2017-02-01 00:10:00' + to_hours(i::int * {number}), 'done', 99 * i from range(6) t(i)"
    sent = f"state = 'sent' and {some.replace('12', '9')}"
    gone = "(select id from gone)"
    good, person, cost = (chance.randrange(n) for n in (8, 30, 3))
    changes = {
        "raw_sales": (
            f"{new} union all select * replace ('back' as state) from raw_sales where id not in {gone} and {sent}",
            f"id in {gone} or ({sent})",
        ),
        "raw_lines": (
            f"select 'n{number}l' || i, 'n{number}x' || (i // 3), 'g' || i % 8 from range(15) t(i)",
            f"sale in {gone}",
        ),
        "raw_payments": (
            f"select 'n{number}y' || i, 'n{number}x' || (i // 2), 'coupon', 55 * i from range(9) t(i)",
            f"sale in {gone}",
        ),
        "raw_goods": (
            f"select * replace (cents + 5 as cents, 'drink' as sort) from raw_goods where code = 'g{good}'",
            f"code = 'g{good}'",
        ),
        "raw_people": (
            f"select * replace (first_name || '!' as first_name) from raw_people where id = 'p{person}'",
            f"id = 'p{person}'",
        ),
        "raw_ingredients": (
            f"select * replace (cents + 3 as cents) from raw_ingredients where id = 'i{cost}' and code > 'g2'",
            f"id = 'i{cost}' and code > 'g2'",
        ),
    }
    for name, (rows, leaves) in changes.items():
        plain.execute(f"create or replace temp table came as select * from {name} limit 0")
        plain.execute(f"insert into came {rows}")
        copy(plain, f"{name} where {leaves}", folder / f"{name}.delete.parquet")
        copy(plain, "came", folder / f"{name}.insert.parquet")
        plain.execute(f"delete from {name} where {leaves}")
        plain.execute(f"insert into {name} select * from came")


def test_a_shop_follows_its_days(tmp_path: Path) -> None:
    tables, views = statements()
    chance = random.Random(7)
    (tmp_path / "program.sql").write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
    toml = [
        'program = "program.sql"',
        '[store]\nkind = "lake"\npath = "lake"\nhelpers = true',
        "[update]\neffective = true",
    ]
    toml += ['[sources.base]\nkind = "files"']
    toml += [f'[relations.{name}]\nsource = "base"\npath = "base/{name}.parquet"' for name in SOURCES]
    (tmp_path / "warehouse.toml").write_text("\n".join(toml), encoding="utf-8")
    (tmp_path / "base").mkdir()
    with duckdb.connect() as plain:
        for table in tables:
            plain.execute(table)
        for name in SOURCES:
            plain.execute(f"insert into {name} {FILLED[name]}")
        write(plain, tmp_path)
        selfmaint.init(tmp_path / "warehouse.toml", engine="duckdb")
        for number in range(1, 3):
            folder = tmp_path / f"day{number}"
            folder.mkdir()
            a_day(plain, chance, number, folder)
            write(plain, tmp_path)
            with selfmaint.load(tmp_path / "warehouse.toml", engine="duckdb") as warehouse:
                maintained = warehouse.maintain(selfmaint.Update.from_files(warehouse, folder))
                assert not [
                    read for read in maintained.reads if not read.key_columns
                ]  # no relation is read whole
                warehouse.apply(maintained)
                for view in views:
                    assert its_rows(pa.table(warehouse.read(view))) == rows_of(plain, views, view), (
                        number,
                        view,
                    )


def write(plain: duckdb.DuckDBPyConnection, folder: Path) -> None:
    for name in SOURCES:
        copy(plain, name, folder / "base" / f"{name}.parquet")


def copy(plain: duckdb.DuckDBPyConnection, rows: str, path: Path) -> None:
    """Rows as a file, their times as instants: plain DuckDB has these as UTC's clock shows them."""
    time = {"raw_shops": "opened_at", "raw_sales": "sold_at"}.get(path.name.split(".")[0])
    columns = "*" if time is None else f"* replace ({time}::timestamptz as {time})"
    plain.execute(f"copy (select {columns} from {rows}) to '{path}'")


def its_rows(found: pa.Table) -> Counter[tuple[Any, ...]]:
    columns = sorted(found.column_names)
    return Counter(tuple(map(without_zone, (row[name] for name in columns))) for row in found.to_pylist())


def without_zone(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value


def rows_of(plain: duckdb.DuckDBPyConnection, views: dict[str, str], view: str) -> Counter[tuple[Any, ...]]:
    """The rows of a view over all sources, computed from texts; each name behind WITH is told from the view's."""
    for name, text in views.items():
        plain.execute(f"create or replace temp table {name} as {text}")
    return its_rows(plain.table(view).to_arrow_table())
