"""Maintains the views of the three SQL examples through mixed batches of generated changes, and verifies each.

    python examples/sql/batches.py [BATCHES]

Every batch inserts and deletes rows of several tables, keeping keys and foreign keys. Each view's delta is computed
from the views where that is possible, else with the fewest base keys; then all views are recomputed and compared.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from datalog.evaluate import evaluate_view
from datalog.model import Predicate, Row
from datalog.sql.views import SqlText, SqlViews, read_sql
from selfmaint import Update
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.maintain import new_contents
from selfmaint.api.warehouse import build
from selfmaint.engine.memory import MemoryEngine
from selfmaint.fallback.settle import Readable
from selfmaint.sources.memory import RowsSource

FOLDER = Path(__file__).resolve().parent

Make = Callable[[Random, int, "Database"], Row]
"""Makes a row of a table: from chance, a new number, and the rows that it may reference."""


@dataclass
class Database:
    """The base tables' rows.

    Attributes:
        rows: by table.
        makers: how a new row of each table is made, referenced tables first.
        keys: for each table the columns of its key.
        references: for each table, its columns that hold the key of another table.
    """

    makers: Mapping[str, Make]
    keys: Mapping[str, tuple[int, ...]]
    references: Mapping[str, tuple[tuple[tuple[int, ...], str], ...]]
    rows: dict[str, set[Row]] = field(default_factory=dict)
    number: int = 0

    def one(self, random: Random, table: str) -> Row:
        """Some row of a table."""
        return random.choice(sorted(self.rows[table], key=repr))

    def insert(self, random: Random, table: str) -> Row | None:
        """A new row, put into the table; None if its key is taken or a row to reference is missing."""
        self.number += 1
        if any(not self.rows[target] for _, target in self.references.get(table, ())):
            return None
        row = self.makers[table](random, self.number, self)
        key = self.keys[table]
        if any(all(other[i] == row[i] for i in key) for other in self.rows[table]):
            return None
        self.rows[table].add(row)
        return row

    def delete(self, random: Random, table: str) -> Row | None:
        """A row that none references, taken out of the table."""
        free = [row for row in sorted(self.rows[table], key=repr) if not self._is_referenced(table, row)]
        if not free:
            return None
        row = random.choice(free)
        self.rows[table].remove(row)
        return row

    def _is_referenced(self, table: str, row: Row) -> bool:
        key = tuple(row[i] for i in self.keys[table])
        return any(
            tuple(other[i] for i in columns) == key
            for source, references in self.references.items()
            for columns, target in references
            if target == table
            for other in self.rows[source]
        )


def _cents(random: Random, most: int) -> Decimal:
    return Decimal(random.randint(1, most)) / 100


def retail() -> Database:
    """Customers and sales."""

    def sale(random: Random, _: int, base: Database) -> Row:
        return (
            base.one(random, "customer")[0],
            random.randint(1, 9),
            random.randint(0, 3),
            _cents(random, 999),
        )

    return Database(
        {
            "customer": lambda random, n, _: (n, f"name {n}", "here", random.choice(("High", "Low"))),
            "sales": sale,
        },
        {"customer": (0,), "sales": (0, 1)},
        {"sales": (((0,), "customer"),)},
    )


def orders() -> Database:
    """A little of TPC-H."""

    def item(random: Random, number: int, base: Database) -> Row:
        part = base.one(random, "partsupp")
        order = base.one(random, "orders")[0]
        return (order, number, part[0], part[1], _cents(random, 500), _cents(random, 9999))

    return Database(
        {
            "nation": lambda random, n, _: (n, f"nation {random.randint(1, 4)}", random.randint(0, 1)),
            "customer": lambda random, n, base: (
                n,
                f"customer {n}",
                base.one(random, "nation")[0],
                random.choice(("AUTO", "BUILDING")),
            ),
            "supplier": lambda random, n, base: (n, f"supplier {n}", base.one(random, "nation")[0]),
            "partsupp": lambda random, _, base: (
                random.randint(1, 5),
                base.one(random, "supplier")[0],
                random.choice((None, "fine")),
            ),
            "orders": lambda random, n, base: (n, base.one(random, "customer")[0]),
            "lineitem": item,
        },
        {
            **dict.fromkeys(("nation", "customer", "supplier", "orders"), (0,)),
            **dict.fromkeys(("partsupp", "lineitem"), (0, 1)),
        },
        {
            "customer": (((2,), "nation"),),
            "supplier": (((2,), "nation"),),
            "partsupp": (((1,), "supplier"),),
            "orders": (((1,), "customer"),),
            "lineitem": (((0,), "orders"), ((2, 3), "partsupp")),
        },
    )


def cheapest() -> Database:
    """Suppliers' costs."""
    return Database(
        {
            "region": lambda random, n, _: (n, random.choice(("MIDDLE EAST", "ASIA"))),
            "nation": lambda random, n, base: (n, f"nation {n}", base.one(random, "region")[0]),
            "supplier": lambda random, n, base: (n, f"supplier {n}", base.one(random, "nation")[0]),
            "partsupp": lambda random, _, base: (
                random.randint(1, 9),
                base.one(random, "supplier")[0],
                _cents(random, 300),
            ),
        },
        {**dict.fromkeys(("region", "nation", "supplier"), (0,)), "partsupp": (0, 1)},
        {
            "nation": (((2,), "region"),),
            "supplier": (((2,), "nation"),),
            "partsupp": (((1,), "supplier"),),
        },
    )


EXAMPLES: Mapping[str, Callable[[], Database]] = {"cheapest": cheapest, "orders": orders, "retail": retail}


def views_of(name: str) -> SqlViews:
    """The tables and views of an example."""
    path = FOLDER / f"{name}.sql"
    return read_sql([SqlText(path.read_text(encoding="utf-8"), path.name)])


@dataclass(frozen=True)
class Batch:
    """One batch: what it changed, and what maintaining the views took."""

    example: str
    rows_changed: int
    verdicts: Mapping[str, str]
    rows_read: int
    differences: int


def batches(name: str, number: int, seed: int = 0) -> Iterator[Batch]:
    """Maintains an example's views through some batches, verifying each.

    Args:
        name: `cheapest`, `orders` or `retail`.
        number: how many batches.
        seed: of the changes.
    """
    random, base = Random(seed), EXAMPLES[name]()
    program = views_of(name)
    base.rows = {table: set() for table in base.makers}
    for table in base.makers:
        for _ in range(12):
            base.insert(random, table)
    columns = {d.name: d.column_names for d in program.declarations}
    bags = {Predicate(table): Counter(rows) for table, rows in base.rows.items()}
    counted = {view.name for view in catalog_of(program).views if view.is_counted}
    contents = {v.name: _stored(evaluate_view(v, bags), counted=v.name in counted) for v in program.views}
    for _ in range(number):
        before = {table: frozenset(rows) for table, rows in base.rows.items()}
        _change(random, base)
        after = {table: frozenset(rows) for table, rows in base.rows.items()}
        update = Update(
            {t: after[t] - before[t] for t in after if after[t] - before[t]},
            {t: before[t] - after[t] for t in after if before[t] - after[t]},
            effective=True,
        )
        source = RowsSource("base", {t: (columns[t], rows) for t, rows in after.items()})
        readable = {t: Readable[Any](source) for t in after}
        warehouse = build(program, contents, MemoryEngine(), readable=readable)
        found = warehouse.maintain(update, verify=True)
        contents = {v: new_contents(warehouse, warehouse.view(v), found.deltas[v]) for v in contents}
        yield Batch(
            name,
            sum(len(rows) for part in (update.inserted, update.deleted) for rows in part.values()),
            {view: type(verdict).__name__ for view, verdict in found.verdicts.items()},
            sum(read.rows_read for read in found.reads),
            len(found.differences or ()),
        )


def _stored(rows: Counter[Row], *, counted: bool) -> frozenset[Row]:
    """A view's rows as they are maintained: of a bag each once, with its number of copies."""
    return frozenset((*row, copies) for row, copies in rows.items()) if counted else frozenset(rows)


def _change(random: Random, base: Database) -> None:
    """Some rows of some tables, mostly of those that no other references."""
    tables = list(base.makers)
    for table in random.sample(tables, random.randint(1, 2)) + tables[-1:] * 2:
        for _ in range(random.randint(0, 2)):
            base.insert(random, table)
        for _ in range(random.randint(0, 2)):
            base.delete(random, table)


def main() -> int:
    """Runs all examples; 1 if some view differed from what recomputing gives."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    differences = 0
    for name in EXAMPLES:
        for at, batch in enumerate(batches(name, number), 1):
            shown = ", ".join(f"{view}: {verdict}" for view, verdict in batch.verdicts.items())
            sys.stdout.write(
                f"{name} {at}: {batch.rows_changed} rows changed; {shown}; {batch.rows_read} base rows read\n"
            )
            differences += batch.differences
    sys.stdout.write(f"views that differ from what recomputing gives: {differences}\n")
    return 1 if differences else 0


if __name__ == "__main__":
    raise SystemExit(main())
