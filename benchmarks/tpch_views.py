"""The 22 queries of TPC-H as views: how each follows an update of orders and line items, and that its rows are right.

    python benchmarks/tpch_views.py --work /tmp/tpch --scale 0.01

With `--helpers` each view is in a lake that `selfmaint init` fills, with a helper where it has one; else it is a
Parquet file.
Prints a table. ORDER BY and LIMIT of the queries are left to who reads the views, and parameters have the values that
the benchmark's own validation uses. A view counts as right if its new rows are those that its query gives over all rows
after the update, computed by plain DuckDB; averages and quotients, which DuckDB computes as doubles, to nine digits.
"""

# ruff: noqa: S608 - the names in statements are those of this file
from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

import selfmaint  # noqa: E402
from datalog.model import OpaqueView, Predicate  # noqa: E402
from datalog.sql.views import read_sql  # noqa: E402
from selfmaint.duckdb import DuckEngine, Relation  # noqa: E402
from selfmaint.duckdb.text_views import text_rows  # noqa: E402
from selfmaint.engine.protocol import Facts  # noqa: E402

QUERIES = Path(__file__).resolve().with_name("tpch_queries")
NAMES = tuple(f"q{number:02}" for number in range(1, 23))
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")


@dataclass(frozen=True)
class Result:
    """How one view followed the update.

    Attributes:
        name: the view's name.
        how: `decided`, `settled` by reads of the decision, `untouched` by the update, `keyed` reads, `added up` from
            the rows that groups gain and lose, by a `helper` beside it, `recomputed` or `refused`.
        why: where it is not followed, the reason.
        keys: how many keys were affected.
        reads: rows of base relations that were read.
        seconds: for `maintain`.
        is_right: whether the new rows are those of the query over all rows; None if there are none.
    """

    name: str
    how: str
    why: str
    keys: int
    reads: int
    seconds: float
    is_right: bool | None


def prepare(work: Path, scale: float, orders: int) -> Path:
    """The base relations before and after an update, and the update, unless they are there already."""
    place = work / f"views_sf{scale:g}_{orders}"
    if (place / "done").exists():
        return place
    shutil.rmtree(place, ignore_errors=True)
    (place / "raw").mkdir(parents=True)
    generator = Path(sys.executable).with_name("tpchgen-cli")
    command = [str(generator), "parquet", "-s", str(scale), "--output-dir", str(place / "raw")]
    subprocess.run(command, check=True, capture_output=True)
    with duckdb.connect() as database:
        _tables(database, place)
        _update(database, place, orders)
    shutil.rmtree(place / "raw")
    (place / "done").touch()
    return place


def _tables(database: duckdb.DuckDBPyConnection, place: Path) -> None:
    """The base relations with the declared types."""
    database.execute((QUERIES / "tables.sql").read_text().replace("STRING", "VARCHAR"))
    for name in TABLES:
        columns = ", ".join(row[0] for row in database.execute(f"describe {name}").fetchall())
        database.execute(f"insert into {name} select {columns} from '{place}/raw/{name}.parquet'")


def _update(database: duckdb.DuckDBPyConnection, place: Path, orders: int) -> None:
    """New orders with their line items, made of old ones, and as many old ones deleted with theirs."""
    for folder in ("before", "after", "update"):
        (place / folder).mkdir(parents=True)
    for name in TABLES:
        database.execute(f"copy {name} to '{place}/before/{name}.parquet'")
    database.execute(
        "create table leaving as select o_orderkey as key from orders "
        f"order by hash(o_orderkey), o_orderkey limit {orders}"
    )
    database.execute(
        "create table models as select o_orderkey as key from orders "
        f"order by hash(o_orderkey) desc, o_orderkey limit {orders}"
    )
    for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        # Order keys modulo 32 are 0 to 7 in the generated data.
        new = f"select * replace ({key} + 8 as {key}) from {name} where {key} in (select key from models)"
        old = f"select * from {name} where {key} in (select key from leaving)"
        database.execute(f"copy ({new}) to '{place}/update/{name}.insert.parquet'")
        database.execute(f"copy ({old}) to '{place}/update/{name}.delete.parquet'")
    for name in TABLES:
        if name in ("orders", "lineitem"):
            key = name[0] + "_orderkey"
            rest = f"select * from {name} where {key} not in (select key from leaving)"
            new = f"select * from '{place}/update/{name}.insert.parquet'"
            database.execute(f"copy ({rest} union all {new}) to '{place}/after/{name}.parquet'")
        else:
            shutil.copy(place / "before" / f"{name}.parquet", place / "after")


def follow(place: Path, name: str, *, helpers: bool) -> Result:
    """Stores one view, and maintains it."""
    folder = place / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    text = (QUERIES / f"{name}.sql").read_text().strip()
    (folder / "program.sql").write_text(
        f"{(QUERIES / 'tables.sql').read_text()}\nCREATE VIEW {name} AS\n{text};\n"
    )
    file = folder / "warehouse.toml"
    if helpers:
        file.write_text("\n".join(_settings(place / "before", name, helpers=True)))
        selfmaint.init(file, engine="duckdb")
    else:
        problem = store(place, folder / f"{name}.parquet")
        if problem is not None:
            return Result(name, "refused", problem, 0, 0, 0.0, None)
    file.write_text("\n".join(_settings(place / "after", name, helpers=helpers)))
    with selfmaint.load(file, engine="duckdb") as warehouse:
        update = selfmaint.Update.from_files(warehouse, place / "update")
        start = time.perf_counter()
        why, how, keys = "", "", 0
        try:
            found = warehouse.maintain(update)
        except selfmaint.NotMaintainedError as error:
            why = error.diagnostics[0].note or error.diagnostics[0].message
            found = warehouse.maintain(update, recompute=True)
            how = "recomputed"
        seconds = time.perf_counter() - start
        if name in found.keyed:
            its = found.keyed[name]
            how, keys = "keyed" if its.of is None else "added up", its.keys
            how = how if keys else "untouched"
        reads = sum(read.rows_read for read in found.reads)
        how = how or ("settled" if found.reads else "decided")
        if warehouse.catalog.helpers:
            how = "helper"
        warehouse.apply(found)
        if helpers:
            save(warehouse.contents[name], folder / f"{name}.parquet")
        right = is_right(place, folder / f"{name}.parquet", text)
    return Result(name, how, why, keys, reads, seconds, right)


def _settings(bases: Path, name: str, *, helpers: bool) -> Iterator[str]:
    yield 'program = "program.sql"'
    yield (
        '[store]\nkind = "lake"\npath = "lake"\nhelpers = true'
        if helpers
        else f'[views.{name}]\npath = "{name}.parquet"'
    )
    yield "[update]\neffective = true"
    yield '[sources.base]\nkind = "files"'
    for table in TABLES:
        yield f'[relations.{table}]\nsource = "base"\npath = "{bases / table}.parquet"'


def store(place: Path, path: Path) -> str | None:
    """Stores a view's rows before the update; why not, if it cannot be."""
    views = read_sql(path.with_name("program.sql").read_text())
    engine = DuckEngine()
    rows: dict[Predicate, Relation] = {}
    for table in views.declarations:
        source = place / "before" / f"{table.name}.parquet"
        if source.exists():
            stored, _ = engine.database.parquet([str(source)])
            rows[Predicate(table.name)] = Relation(stored, table.column_names)
    declared = {Predicate(d.name): tuple(c.type for c in d.columns) for d in views.declarations}
    try:
        found: Relation
        if views.opaque:
            (view,) = views.opaque
            assert isinstance(view, OpaqueView)
            found = text_rows(engine.database, view, Facts(rows))
        else:
            (definition,) = views.views
            found = engine.evaluate_view(definition, Facts(rows), declared)
    except selfmaint.InputError as error:
        return error.diagnostics[0].message
    save(found, path)
    return None


def save(rows: Relation, path: Path) -> None:
    """Writes rows into a file."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    pq.write_table(pa.table(rows), path)


def is_right(place: Path, path: Path, text: str) -> bool:
    """Whether stored rows are what the query gives over all rows after the update."""
    with duckdb.connect() as database:
        for name in TABLES:
            database.execute(f"create view {name} as select * from '{place}/after/{name}.parquet'")
        right = database.sql(text)
        stored = database.sql(
            f"select {', '.join(right.columns)} from read_parquet('{path}*/**')"
            if path.is_dir()
            else f"select {', '.join(right.columns)} from '{path}'"
        )
        return Counter(map(_plain, right.fetchall())) == Counter(map(_plain, stored.fetchall()))


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(f"{float(v):.5g}" if isinstance(v, Decimal | float) else v for v in row)


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Follows the queries of TPC-H.")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--helpers", action="store_true")
    parser.add_argument("--only", nargs="*", default=NAMES)
    given = parser.parse_args()
    place = prepare(given.work, given.scale, given.orders)
    print(
        "| view | how | keys | rows read | seconds | right | why not followed |\n|---|---|---|---|---|---|---|"
    )
    results = []
    for name in given.only:
        one = follow(place, name, helpers=given.helpers)
        results.append(one)
        right = {None: "", True: "yes", False: "NO"}[one.is_right]
        print(
            f"| {name} | {one.how} | {one.keys} | {one.reads} | {one.seconds:.2f} | {right} | {one.why} |",
            flush=True,
        )
    print(dict(Counter(one.how for one in results)))
    return 1 if any(one.is_right is False for one in results) else 0


if __name__ == "__main__":
    sys.exit(main())
