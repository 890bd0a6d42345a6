"""Random queries of every shape over three small tables, random updates, and what following them by keys gives.

Oracle: plain DuckDB, which runs the query's text over all rows before and after.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

import selfmaint
from datalog.model import ColumnType, TypeName
from selfmaint.api.warehouse import Warehouse
from selfmaint.duckdb import DuckEngine, Relation
from selfmaint.sources.protocol import Read
from tests.no_search import without_search
from tests.plain_duckdb import plain_duckdb

Rows = frozenset[tuple[Any, ...]]
Database = Mapping[str, Rows]

COLUMNS = {"r": ("a", "b", "c"), "s": ("f", "d", "e"), "t": ("x", "y")}
KEYS = {"r": 1, "s": 1, "t": 2}
TABLES = """
create table r (a int not null primary key, b int, c int);
create table s (f int not null primary key, d int, e int);
create table t (x int not null, y int not null, primary key (x, y));
"""


NO_VIEWS: Mapping[str, str] = MappingProxyType({})


@dataclass
class Held:
    """Tables that DuckDB's engine holds, as a source."""

    engine: DuckEngine
    tables: Mapping[str, Relation]
    name: str = "held"

    def row_count(self, relation: str) -> int:
        return self.engine.count(self.tables[relation])

    def read(self, relation: str, key_columns: Sequence[str], keys: Relation | None) -> tuple[Relation, Read]:
        rows, asked = self.tables[relation], 0
        if keys is not None:
            assert keys.columns == tuple(key_columns)
            places = [rows.columns.index(column) for column in key_columns]
            rows, asked = self.engine.bags.matching(rows, places, keys), self.engine.count(keys)
        return rows, Read(relation, tuple(key_columns), asked, self.engine.count(rows), 0, self.name)

    def version(self) -> None:
        return None


def arrow(rows: Rows, names: Sequence[str]) -> pa.Table:
    """Rows of small whole numbers."""
    columns = [pa.array([row[i] for row in sorted(rows, key=str)], pa.int32()) for i in range(len(names))]
    return pa.Table.from_arrays(columns, list(names))


def truth(text: str, database: Database, below: Mapping[str, str] = NO_VIEWS) -> pa.Table:
    """What the query gives over a database, and views over it; sums as whole numbers of 64 bits."""
    with plain_duckdb() as plain:
        for name, rows in database.items():
            plain.register(name, arrow(rows, COLUMNS[name]))
        for name, its in below.items():
            plain.execute(f"create view {name} as {its}")
        found = plain.sql(text)
        items = [
            f'"{name}"::BIGINT AS "{name}"' if str(kind) in ("HUGEINT", "DECIMAL(38,0)") else f'"{name}"'
            for name, kind in zip(found.columns, found.types, strict=True)
        ]
        return plain.sql(f"select {', '.join(items)} from ({text})").to_arrow_table()


def bag(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """Rows with how often they stand."""
    return Counter(tuple(row.values()) for row in table.to_pylist())


@dataclass(frozen=True)
class Outcome:
    """How a view was maintained: `keyed`, `added up`, `settled` or why not; its rows, and those that are right.

    `way` is what `check` said of it, if it was asked; None of a "yes"; `untold` which relations would do, were their
    rows stored. `rows` are those that were read.
    """

    how: str
    found: Counter[tuple[Any, ...]]
    right: Counter[tuple[Any, ...]]
    reads: int = 0
    way: selfmaint.Way | None = None
    rows: int = 0
    untold: frozenset[str] = frozenset()


@without_search()
def maintained(
    text: str,
    before: Database,
    after: Database,
    *,
    source_is_after: bool = True,
    below: Mapping[str, str] = NO_VIEWS,
    is_effective: bool = True,
    strict: bool = False,
    checked: bool = False,
    tables: str = TABLES,
) -> Outcome:
    """Maintains the view of a query, over views `below`, too, by what may be read.

    Of an update that is not effective, rows are inserted that are there, and others deleted that are not.
    """
    texts = {**below, "v": text}
    engine_views = {name: truth(its, before, below) for name, its in texts.items()}
    views = " ".join(f"create view {name} as {its};" for name, its in texts.items())
    warehouse: Warehouse[Relation] = selfmaint.build(
        f"{tables} {views}", engine_views, engine="duckdb", effective=is_effective
    )
    engine = warehouse.engine
    assert isinstance(engine, DuckEngine)
    state = after if source_is_after else before
    held = Held(engine, {n: _relation(engine, rows, n) for n, rows in state.items()})
    warehouse.readable = {name: selfmaint.Readable(held) for name in state}
    kept: Database = {} if is_effective else {n: before[n] & after[n] for n in before}
    absent: Database = {} if is_effective else {n: frozenset({(9,) * len(COLUMNS[n])}) for n in before}
    new = {n: after[n] - before[n] | kept.get(n, frozenset()) for n in before}
    gone = {n: before[n] - after[n] | absent.get(n, frozenset()) for n in before}
    inserted, deleted = (
        {n: arrow(rows, COLUMNS[n]) for n, rows in its.items() if rows} for its in (new, gone)
    )
    update = selfmaint.Update.from_frames(warehouse, inserted, deleted, effective=is_effective)
    right = bag(truth(text, after, below))
    verdicts = warehouse.check(update) if checked else selfmaint.Verdicts({})
    way, untold = verdicts.ways.get("v"), verdicts.untold.get("v", frozenset())
    try:
        found = warehouse.maintain(update, strict=strict)
    except selfmaint.NotMaintainedError as error:
        return Outcome(
            "; ".join(str(d.note or d.message) for d in error.diagnostics), right, right, 0, way, 0, untold
        )
    change = found.deltas["v"]
    old = bag(truth(text, before, below))
    gained, lost = (bag(pa.table(rows)) for rows in (change.gained, change.lost))
    if warehouse.catalog.view("v").is_counted:
        gained, lost = (Counter({r[:-1]: r[-1] for r in some}) for some in (gained, lost))
    how = "recomputed" if "v" in found.recomputed else "settled"
    if "v" in found.keyed:
        how = "keyed" if found.keyed["v"].of is None else "added up"
    rows = sum(read.rows_read for read in found.reads)
    return Outcome(how, old + gained - lost, right, len(found.reads), way, rows, untold)


def require_right(text: str, numbers: int, below: Mapping[str, str] = NO_VIEWS) -> None:
    """Has so many random updates make a query's rows what plain DuckDB gives after them."""
    for number in range(numbers):
        choice = random.Random(number)
        before = database(choice)
        outcome = maintained(text, before, changed(choice, before), below=below)
        assert outcome.found == outcome.right, number


def is_found_wrong(text: str, numbers: int) -> bool:
    """Whether one of so many random updates makes a query's rows wrong."""
    for number in range(numbers):
        choice = random.Random(number)
        before = database(choice)
        outcome = maintained(text, before, changed(choice, before))
        if outcome.found != outcome.right:
            return True
    return False


def _relation(engine: DuckEngine, rows: Rows, name: str) -> Relation:
    kind = ColumnType(TypeName.INT)
    return engine.load(rows, COLUMNS[name], [kind] * len(COLUMNS[name]))


def database(choice: random.Random) -> Database:
    """A small database with nulls."""
    found = {}
    for name, columns in COLUMNS.items():
        rows = {}
        for _ in range(choice.randint(0, 6)):
            row = _row(choice, name)
            rows[row[: KEYS[name]]] = row
        found[name] = frozenset(rows.values())
        assert all(len(row) == len(columns) for row in rows.values())
    return found


def changed(choice: random.Random, database: Database) -> Database:
    """A database after an update of some tables."""
    found = {}
    for name, rows in database.items():
        kept = {row[: KEYS[name]]: row for row in rows if choice.random() < 0.8}
        if choice.random() < 0.6:
            kept = {row[: KEYS[name]]: row for row in rows}
        for _ in range(choice.randint(0, 2)):
            row = _row(choice, name)
            kept[row[: KEYS[name]]] = row
        found[name] = frozenset(kept.values())
    return found


def _row(choice: random.Random, name: str) -> tuple[int | None, ...]:
    key = KEYS[name]
    return tuple(
        choice.randint(0, 4) if i < key or choice.random() < 0.8 else None for i in range(len(COLUMNS[name]))
    )
