"""Shapes of TPC-DS's queries in a lake with helpers: how they follow, against plain DuckDB over all rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import selfmaint
from tests.effort import effort

TABLES = """
create table store (id int not null primary key, name string, state string);
create table sale (
    item int not null, ticket int not null, store int references store, customer int, quantity int,
    price decimal(7, 2), profit decimal(7, 2), primary key (item, ticket)
);
create table back (
    item int not null, ticket int not null, store int references store, customer int, amount decimal(7, 2),
    primary key (item, ticket)
);
"""
SHAPES = {
    "buckets": """
        select case when (select count(*) from sale where quantity between 1 and 3) > 4
                    then (select avg(price) from sale where quantity between 1 and 3)
                    else (select avg(profit) from sale where quantity between 1 and 3) end as one,
               (select avg(quantity) from sale where quantity > 2) as two
        from store where id = 1""",
    "channels": """
        with sold as (select store.id as id, sum(price) as sales, sum(profit) as profit
                      from sale, store where sale.store = store.id group by store.id),
             returned as (select store.id as id, sum(amount) as returns
                          from back, store where back.store = store.id group by store.id)
        select channel, id, sum(sales) as sales, sum(returns) as returns
        from (select 'sold' as channel, sold.id as id, sales, coalesce(returns, 0) as returns
              from sold left join returned on sold.id = returned.id
              union all select 'returned' as channel, id, 0 as sales, returns from returned) as x
        group by rollup (channel, id)""",
    "both": """
        with sold as (select customer, item from sale where price > 2 group by customer, item),
             returned as (select customer, item from back group by customer, item)
        select sum(case when sold.customer is not null and returned.customer is null then 1 else 0 end) as one,
               sum(case when sold.customer is not null and returned.customer is not null then 1 else 0 end) as two
        from sold full outer join returned on sold.customer = returned.customer and sold.item = returned.item""",
    "rolled": """
        select state, name, avg(cast(quantity as decimal(12, 2))) as mean, avg(profit) as gain, avg(quantity) as plain,
               count(distinct customer) as customers
        from sale, store where sale.store = store.id group by rollup (state, name) having count(*) > 0""",
    "customers": """
        select count(distinct ticket) as tickets, sum(price) as total, sum(profit) as gain
        from sale where price > 1 and not exists (select 1 from back where back.ticket = sale.ticket)""",
    "ratios": """
        with totals as (select store, customer, sum(price) as price, sum(quantity) as quantity
                        from sale group by store, customer)
        select a.customer as customer, round(a.price / b.price, 2) as ratio, round(a.quantity / b.quantity, 2) as per
        from totals as a, totals as b
        where a.customer = b.customer and a.store = 1 and b.store = 2 and b.price > 0 and b.quantity > 0""",
    "alternatives": """
        select sum(quantity) as total, count(quantity) as n, count(*) as k from sale, store
        where (sale.store = store.id and state = 'TN' and price between 1 and 3)
           or (sale.store = store.id and state = 'CA' and price between 2 and 9)""",
}


class Shop:
    """Base relations before and after a random update."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random, self.database = folder, Random(seed), duckdb.connect()
        self.database.execute(TABLES.replace("string", "varchar"))
        for id_, state in enumerate(("TN", "CA", "TN"), 1):
            self.database.execute("insert into store values (?, ?, ?)", [id_, f"s{id_ % 2}", state])
        for ticket in range(12):
            self._add("sale", ticket), self._add("back", ticket)
        self._write("before")

    def _add(self, name: str, ticket: int) -> None:
        some, random = ([*range(1, 4), None], self.random)
        for item in random.sample(range(4), random.randint(0, 3)):
            money = [random.choice(["0.50", "1.25", "3.10", "7.77", None]) for _ in range(2)]
            own = [random.randint(0, 6), *money] if name == "sale" else money[:1]
            row = [item, ticket, random.choice(some), random.choice(some), *own]
            self.database.execute(f"insert into {name} values ({', '.join('?' * len(row))})", row)

    def _write(self, when: str) -> None:
        (self.folder / when).mkdir()
        for name in ("store", "sale", "back"):
            self.database.execute(f"copy {name} to '{self.folder}/{when}/{name}.parquet'")

    def change(self) -> None:
        """New tickets, and some that go."""
        (self.folder / "update").mkdir()
        for name in ("sale", "back"):
            gone = f"from {name} where ticket in ({self.random.randrange(12)}, {self.random.randrange(12)})"
            self.database.execute(f"copy (select * {gone}) to '{self.folder}/update/{name}.delete.parquet'")
            self.database.execute(f"delete {gone}")
            for ticket in (20, 21):
                self._add(name, ticket)
            new = f"select * from {name} where ticket >= 20"
            self.database.execute(f"copy ({new}) to '{self.folder}/update/{name}.insert.parquet'")
        self._write("after")

    def settings(self, when: str, text: str) -> Path:
        """A warehouse file over the rows at some time."""
        file = self.folder / "warehouse.toml"
        (self.folder / "views.sql").write_text(f"{TABLES} create view v as {text};")
        places = [
            f'[relations.{name}]\nsource = "base"\npath = "{when}/{name}.parquet"'
            for name in ("store", "sale", "back")
        ]
        store = '[store]\nkind = "lake"\npath = "lake"\nhelpers = true'
        rest = '[update]\neffective = true\n[sources.base]\nkind = "files"'
        file.write_text("\n".join(['program = "views.sql"', store, rest, *places]))
        return file


def ranked(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    plain = [tuple(float(v) if isinstance(v, Decimal) else v for v in row) for row in rows]
    return sorted(plain, key=lambda row: [f"{v:.4f}" if isinstance(v, float) else repr(v) for v in row])


@pytest.mark.parametrize("seed", range(effort(1, 4)))
@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_followed_without_recomputing(tmp_path: Path, name: str, seed: int) -> None:
    shop, text = Shop(tmp_path, seed), SHAPES[name]
    selfmaint.init(shop.settings("before", text), engine="duckdb")
    shop.change()
    with selfmaint.load(shop.settings("after", text), engine="duckdb") as warehouse:
        found = warehouse.maintain(selfmaint.Update.from_files(warehouse, tmp_path / "update"), verify=True)
        assert not found.differences
        warehouse.apply(found)
        rows = warehouse.contents["v"]
        right = shop.database.sql(text)
        stored = [tuple(row[c] for c in right.columns) for row in pa.table(rows).to_pylist()]
    for one, other in zip(ranked(stored), ranked(right.fetchall()), strict=True):
        for value, its in zip(one, other, strict=True):
            both = isinstance(value, float) and isinstance(its, float)
            assert math.isclose(value, its, abs_tol=1e-6) if both else value == its, (one, other)
