"""Views over views that join columns of two types: a column has its own type, whichever of the two told its value.

Oracle: plain DuckDB computes all views from the rows after the update.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import selfmaint
from selfmaint.api.maintain import new_contents
from tests.effort import effort
from tests.plain_duckdb import plain_duckdb

TYPES = ["smallint", "int", "bigint", "decimal(9,2)", "decimal(9,4)", "decimal(20,0)"]
BELOW = (
    "select k, {x} as x, y from r join s on a = b",
    "select k, y, {x} as x, z from r join s on a = b join t on t.z = s.b",
    "select {x} as x, count(*) as n from r join s on a = b group by {x}",
    "select {x} as x, y, max(k) as m from r join s on a = b group by {x}, y",
    "select distinct {x} as x from r join s on a = b",
    "select k, a as x from r where exists (select 1 from s where b = a)",
)
ABOVE = (
    "select concat(x, '') as e from v",
    "select cast(x as string) as e, count(*) as n from v group by 1",
    "select max(concat('a', x)) as e, count(*) as n from v",
    "select x * x as e from v",
    "select distinct concat(x, 'a') as e from v where x > 1",
)
COPIES = {"r1": "select * from r", "s1": "select * from s", "t1": "select * from t"}
TABLES = {"r": "k int, a {}", "s": "b {}, y int", "t": "z {}, w int"}
KEYS = {"r": "k", "s": "b, y", "t": "z"}
Database = dict[str, list[tuple[int, int]]]


class Case:
    """Tables whose columns of several types are joined, a view over them, one over that view, and an update."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.columns = {name: its.format(random.choice(TYPES)) for name, its in TABLES.items()}
        self.before: Database = {
            "r": [(k, random.randrange(4)) for k in range(3)],
            "s": [(b, y) for b in range(4) for y in range(2) if random.random() < 0.5],
            "t": [(z, 0) for z in range(4) if random.random() < 0.7],
        }
        self.after = dict(self.before)
        if random.random() < 0.7:
            self.after["s"] = [*random.sample(self.before["s"], len(self.before["s"]) // 2), (3, 7)]
        if random.random() < 0.5:
            self.after["r"] = [*self.before["r"][1:], (7, random.randrange(1, 4))]
        copies = {name: its for name, its in COPIES.items() if random.random() < 0.7}
        below = random.choice(BELOW).format(x=random.choice("ab"))
        self.views = {**copies, "v": below, "w": random.choice(ABOVE)}

    def contents(self, database: Database, views: Mapping[str, str]) -> dict[str, pa.Table]:
        """The tables and views, as plain DuckDB computes them."""
        with plain_duckdb() as plain:
            for name, columns in self.columns.items():
                plain.execute(f"create table {name}({columns})")
                if database[name]:
                    plain.execute(f"insert into {name} values {', '.join(map(str, database[name]))}")
            for name, query in views.items():
                plain.execute(f"create table {name} as {query}")
            return {n: plain.table(n).to_arrow_table() for n in (*self.columns, *views)}

    def maintained(self, engine: str) -> dict[str, tuple[pa.Table, pa.Table]]:
        """The new rows of the views that are determined, as they are maintained, and as they are right."""
        tables = (f"create table {n} ({its}, primary key ({KEYS[n]}));" for n, its in self.columns.items())
        program = " ".join((*tables, *(f"create view {n} as {q};" for n, q in self.views.items())))
        before, right = (self.contents(one, self.views) for one in (self.before, self.after))
        stored = {name: before[name] for name in self.views}
        with selfmaint.build(program, stored, engine=engine, effective=True) as warehouse:
            new, gone = (
                self.contents({n: [row for row in one[n] if row not in other[n]] for n in one}, {})
                for one, other in ((self.after, self.before), (self.before, self.after))
            )
            update = selfmaint.Update.from_frames(warehouse, new, gone, effective=True)
            if not all(warehouse.check(update).values()):
                return {}
            deltas, found = warehouse.maintain(update).deltas, {}
            for name in self.views:
                view = warehouse.catalog.view(name)
                rows = new_contents(warehouse, view, deltas[name])
                if view.is_counted:
                    rows = warehouse.engine.bags.expanded(rows)
                found[name] = pa.table(rows), right[name]
        return found


def bag(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows; numbers as they are written, which tells 10 from 10.00."""
    return Counter(
        tuple(str(Decimal(value)) if isinstance(value, int) else str(value) for value in row.values())
        for row in table.to_pylist()
    )


@pytest.mark.parametrize("seed", range(effort(45, 3000)))
def test_values_have_the_types_of_their_columns(seed: int) -> None:
    case = Case(seed)
    for name, (found, right) in case.maintained("duckdb").items():
        assert bag(found) == bag(right), (name, case.columns, case.views)


def test_values_have_the_types_of_their_columns_on_spark(spark: object) -> None:
    assert spark
    seen = 0
    for seed in range(effort(4, 200)):
        for name, (found, right) in Case(seed).maintained("spark").items():
            seen += 1
            assert bag(found) == bag(right), name
    assert seen
