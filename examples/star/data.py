"""A retail star of any size, and one day's changes: all from a seed, as Parquet.

The views' first contents are joined here by hand, so that what the product computes is held against something else.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

Rows = dict[str, list[tuple[object, ...]]]

INT, TEXT, DAY, MONEY = pa.int32(), pa.string(), pa.date32(), pa.decimal128(9, 2)
ITEM, CUSTOMER, STORE, DATE = ("item", INT), ("customer", INT), ("store", INT), ("date", INT)
SALE_END = (("quantity", INT), ("price", MONEY))

BASE = {
    "items": (ITEM, ("name", TEXT), ("category", TEXT)),
    "customers": (CUSTOMER, ("name", TEXT), ("segment", TEXT)),
    "stores": (STORE, ("city", TEXT), ("region", TEXT)),
    "dates": (DATE, ("day", DAY), ("month", INT)),
    "sales": (("sale", INT), ITEM, CUSTOMER, STORE, DATE, *SALE_END),
}
VIEWS = {
    "all_items": (ITEM, ("item_name", TEXT), ("category", TEXT)),
    "all_stores": BASE["stores"],
    "all_dates": BASE["dates"],
    "store_sales": (
        ("sale", INT),
        ITEM,
        CUSTOMER,
        STORE,
        ("city", TEXT),
        ("region", TEXT),
        DATE,
        *SALE_END,
    ),
    "december_food": (
        ("sale", INT),
        ITEM,
        ("item_name", TEXT),
        CUSTOMER,
        STORE,
        DATE,
        ("day", DAY),
        *SALE_END,
    ),
    "gold_sales": (("sale", INT), ITEM, CUSTOMER, ("customer_name", TEXT), STORE, DATE, *SALE_END),
}
CATEGORIES, SEGMENTS = ("food", "garden", "toys"), ("gold", "silver", "plain", "plain")
REGIONS = {"Bergen": "north", "Malmö": "north", "Graz": "south", "Brno": "south"}
FIRST_DAY = dt.date(2026, 11, 2)
DAYS = 60


@dataclass(frozen=True)
class Day:
    """One day's changes, as one update."""

    inserted: Rows
    deleted: Rows


def base(sales: int, seed: int = 7) -> Rows:
    """The base relations before the day."""
    random = Random(seed)
    items = [(i, f"item {i}", random.choice(CATEGORIES)) for i in range(1, max(sales // 20, 8) + 1)]
    customers = [(i, f"customer {i}", random.choice(SEGMENTS)) for i in range(1, max(sales // 8, 12) + 1)]
    cities = sorted(REGIONS)
    stores = [(i, cities[i % len(cities)], REGIONS[cities[i % len(cities)]]) for i in range(1, 9)]
    days = [FIRST_DAY + dt.timedelta(days=i) for i in range(DAYS)]
    dates = [(i, day, day.month) for i, day in enumerate(days, 1)]
    found: Rows = {"items": [*items], "customers": [*customers], "stores": [*stores], "dates": [*dates]}
    # The last customers have not bought anything yet: no view knows them.
    buyers = customers[: len(customers) * 9 // 10]
    found["sales"] = [
        _sale(random, number, items, buyers, len(stores), DAYS) for number in range(1, sales + 1)
    ]
    return found


def _sale(
    random: Random,
    number: int,
    items: list[tuple[int, str, str]],
    buyers: list[tuple[int, str, str]],
    stores: int,
    date: int,
) -> tuple[object, ...]:
    item, buyer = random.choice(items)[0], random.choice(buyers)[0]
    price = Decimal(random.randint(99, 9999)) / 100
    return (
        number,
        item,
        buyer,
        random.randint(1, stores),
        random.randint(1, date),
        random.randint(1, 9),
        price,
    )


def day(before: Rows, seed: int = 8) -> Day:
    """The next day: sales, one of them to a customer that no view knows; returns; and dimensions that change."""
    random = Random(seed)
    inserted: Rows = {name: [] for name in BASE}
    deleted: Rows = {name: [] for name in BASE}
    date = FIRST_DAY + dt.timedelta(days=DAYS)
    inserted["dates"] = [(DAYS + 1, date, date.month)]
    newcomer = (len(before["customers"]) + 1, "a new customer", "gold")
    inserted["customers"] = [newcomer]
    _change(before, inserted, deleted, "items", 0, lambda row: (row[0], f"{row[1]}, now bigger", row[2]))
    _change(
        before,
        inserted,
        deleted,
        "items",
        1,
        lambda row: (row[0], row[1], "food" if row[2] != "food" else "toys"),
    )
    _change(before, inserted, deleted, "stores", 2, lambda row: (row[0], row[1], "centre"))
    count = len(before["sales"])
    known = [row[2] for row in random.sample(before["sales"], 6)]
    silent = before["customers"][-1][0]
    for number, customer in enumerate([*known, newcomer[0], silent], count + 1):
        item, store = random.choice(before["items"])[0], random.choice(before["stores"])[0]
        inserted["sales"].append(
            (number, item, customer, store, DAYS + 1, random.randint(1, 9), Decimal("12.50"))
        )
    deleted["sales"] = random.sample(before["sales"], 4)
    return Day(
        {name: rows for name, rows in inserted.items() if rows},
        {name: rows for name, rows in deleted.items() if rows},
    )


def _change(before: Rows, inserted: Rows, deleted: Rows, name: str, at: int, new: object) -> None:
    """One row of a dimension changes."""
    assert callable(new)
    deleted[name].append(before[name][at])
    inserted[name].append(new(before[name][at]))


def after(before: Rows, changes: Day) -> Rows:
    """The base relations after the day."""
    return {
        name: [
            *(row for row in rows if row not in changes.deleted.get(name, [])),
            *changes.inserted.get(name, []),
        ]
        for name, rows in before.items()
    }


def contents(database: Rows) -> Rows:
    """What the views hold, joined by hand."""
    items, customers, stores, dates = (
        {row[0]: row for row in database[name]} for name in ("items", "customers", "stores", "dates")
    )
    found: Rows = {name: [] for name in VIEWS}
    found["all_items"], found["all_stores"] = database["items"], database["stores"]
    found["all_dates"] = database["dates"]
    for sale, item, customer, store, date, quantity, price in database["sales"]:
        end = (quantity, price)
        found["store_sales"].append((sale, item, customer, store, *stores[store][1:], date, *end))
        if items[item][2] == "food" and dates[date][2] == 12:
            row = (sale, item, items[item][1], customer, store, date, dates[date][1], *end)
            found["december_food"].append(row)
        if customers[customer][2] == "gold":
            found["gold_sales"].append((sale, item, customer, customers[customer][1], store, date, *end))
    return found


def write(
    folder: Path, columns: Mapping[str, Iterable[tuple[str, pa.DataType]]], rows: Rows, middle: str = ""
) -> None:
    """Rows as `NAME[.insert|.delete].parquet`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, its in rows.items():
        schema = pa.schema([pa.field(column, kind) for column, kind in columns[name]])
        arrays = [
            pa.array(values, field.type) for values, field in zip(zip(*its, strict=True), schema, strict=True)
        ]
        table = pa.Table.from_arrays(arrays or [pa.array([], field.type) for field in schema], schema=schema)
        pq.write_table(table, folder / f"{name}{middle}.parquet")
