"""How the queries of a benchmark follow an update as views, and that their rows are right; for the two that use it."""

# ruff: noqa: S608 - the names in statements are those of the two
from __future__ import annotations

import math
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import duckdb

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

import selfmaint  # noqa: E402

_SHORT, _ROUNDED = 2e-6, 0.0101
"""How far numbers may lie apart: DuckDB computes quotients as doubles, and rounds 1.025 to 1.02."""


@dataclass(frozen=True)
class Queries:
    """The queries of a benchmark.

    Attributes:
        tables: the statements that declare the base relations.
        names: the base relations.
        texts: each query.
    """

    tables: str
    names: tuple[str, ...]
    texts: Mapping[str, str]


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
        loading: seconds for loading.
        rows: the view's rows after the update.
        changed: how many rows the update gave it or took from it.
    """

    name: str
    how: str
    why: str
    keys: int
    reads: int
    seconds: float
    is_right: bool | None
    loading: float = 0.0
    rows: int = 0
    changed: int = 0


def write_update(
    database: duckdb.DuckDBPyConnection,
    place: Path,
    names: Iterable[str],
    update: Mapping[str, tuple[str, str]],
) -> None:
    """The base relations before and after an update, and the update, as files.

    Args:
        database: with the base relations as they are before.
        place: the folder to write to.
        names: the base relations.
        update: of each that changes a query for the rows that come, and a condition for those that go.
    """
    for folder in ("before", "after", "update"):
        (place / folder).mkdir(parents=True)
    for name in names:
        database.execute(f"copy {name} to '{place}/before/{name}.parquet'")
    for name, (new, leaves) in update.items():
        database.execute(f"create table {name}_new as select * from {name} limit 0")
        database.execute(f"insert into {name}_new {new}")  # with the types of its columns
        old = f"select * from {name} where {leaves}"
        database.execute(f"copy {name}_new to '{place}/update/{name}.insert.parquet'")
        database.execute(f"copy ({old}) to '{place}/update/{name}.delete.parquet'")
    for name in names:
        if name in update:
            rest = f"select * from {name} where ({update[name][1]}) is not true"
            both = f"{rest} union all select * from {name}_new"
            database.execute(f"copy ({both}) to '{place}/after/{name}.parquet'")
        else:
            shutil.copy(place / "before" / f"{name}.parquet", place / "after")


def follow(
    queries: Queries, place: Path, name: str, *, helpers: bool, engine: Literal["duckdb", "spark"] = "duckdb"
) -> Result:
    """Stores one view, and maintains it."""
    folder = place / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "program.sql").write_text(f"{queries.tables}\nCREATE VIEW {name} AS\n{queries.texts[name]};\n")
    file = folder / "warehouse.toml"
    started = time.perf_counter()
    file.write_text("\n".join(_settings(queries, place / "before", helpers=helpers)))
    try:
        selfmaint.init(file, engine=engine)
    except selfmaint.InputError as error:
        return Result(name, "refused", _said(error), 0, 0, 0.0, None)
    file.write_text("\n".join(_settings(queries, place / "after", helpers=helpers)))
    started = time.perf_counter()
    with selfmaint.load(file, engine=engine) as warehouse:
        update = selfmaint.Update.from_files(warehouse, place / "update")
        start = time.perf_counter()
        why, how, keys = "", "", 0
        try:
            found = warehouse.maintain(update)
        except selfmaint.NotMaintainedError as error:
            why = error.diagnostics[0].note or error.diagnostics[0].message
            how = "recomputed"
            try:
                found = warehouse.maintain(update, recompute=True)
            except selfmaint.InputError as failure:
                return Result(name, "refused", _said(failure), 0, 0, 0.0, None)
        seconds = time.perf_counter() - start
        if name in found.keyed:
            its = found.keyed[name]
            how, keys = "keyed" if its.of is None else "added up", its.keys
            how = how if keys else "untouched"
        reads = sum(read.rows_read for read in found.reads)
        how = how or ("settled" if found.reads else "decided")
        if warehouse.catalog.helpers and how != "recomputed":
            how = "helper"
        warehouse.apply(found)
        save(warehouse.read(name), folder / f"{name}.parquet")
        rows, changed, right = compared(queries, place, name, folder / f"{name}.parquet")
    return Result(name, how, why, keys, reads, seconds, right, start - started, rows, changed)


def _said(error: selfmaint.InputError) -> str:
    one = error.diagnostics[0]
    return f"{one.code}: {one.message}"


def _settings(queries: Queries, bases: Path, *, helpers: bool) -> Iterator[str]:
    yield 'program = "program.sql"'
    yield f'[store]\nkind = "lake"\npath = "lake"\nhelpers = {str(helpers).lower()}'
    yield "[update]\neffective = true"
    yield '[sources.base]\nkind = "files"'
    for table in queries.names:
        yield f'[relations.{table}]\nsource = "base"\npath = "{bases / table}.parquet"'


def save(rows: Any, path: Path) -> None:
    """Writes rows of either engine into a file."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    pq.write_table(pa.table(rows) if hasattr(rows, "__arrow_c_stream__") else rows.toArrow(), path)


def compared(queries: Queries, place: Path, name: str, path: Path) -> tuple[int, int, bool]:
    """How many rows a query gives after the update and in how many these differ from before; are they those stored."""
    before, right = (_rows(queries, place / when, name) for when in ("before", "after"))
    with duckdb.connect() as database:
        source = f"read_parquet('{path}*/**')" if path.is_dir() else f"'{path}'"
        with _opened(queries, place / "before") as names:
            columns = ", ".join(f'"{one}"' for one in names.sql(queries.texts[name]).columns)
        stored = database.sql(f"select {columns} from {source}").fetchall()
    old, new = (Counter(tuple(map(repr, row)) for row in rows) for rows in (before, right))
    return (
        len(right),
        (old - new).total() + (new - old).total(),
        _are_same(stored, right, _ROUNDED if "round(" in queries.texts[name] else _SHORT),
    )


def _rows(queries: Queries, bases: Path, name: str) -> list[tuple[Any, ...]]:
    with _opened(queries, bases) as database:
        return database.sql(queries.texts[name]).fetchall()


def _opened(queries: Queries, bases: Path) -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    for table in queries.names:
        database.execute(f"create view {table} as select * from '{bases}/{table}.parquet'")
    return database


def _are_same(rows: list[tuple[Any, ...]], others: list[tuple[Any, ...]], apart: float) -> bool:
    """Whether rows are the same but for the last digits of numbers with digits behind the point."""
    if len(rows) != len(others):
        return False
    for one, other in zip(sorted(rows, key=_rank), sorted(others, key=_rank), strict=True):
        for value, its in zip(one, other, strict=True):
            both = isinstance(value, Decimal | float) and isinstance(its, Decimal | float)
            if not (math.isclose(value, its, rel_tol=1e-7, abs_tol=apart) if both else value == its):
                return False
    return True


def _rank(row: tuple[Any, ...]) -> tuple[str, ...]:
    """Rows by what is no such number, then by these, roughly."""
    numbers = [isinstance(value, Decimal | float) for value in row]
    rough = (f"{float(v):+.4e}" for v, is_number in zip(row, numbers, strict=True) if is_number)
    return (*(repr(v) for v, is_number in zip(row, numbers, strict=True) if not is_number), *rough)


def table(results: Iterable[Callable[[], Result]]) -> int:
    """Prints a table of views that are followed one by one; 1 if one is wrong."""
    print(
        "| view | how | keys | rows read | seconds | right | why not followed |\n|---|---|---|---|---|---|---|"
    )
    every = []
    for made in results:
        one = made()
        every.append(one)
        right = {None: "", True: "yes", False: "NO"}[one.is_right]
        print(
            f"| {one.name} | {one.how} | {one.keys} | {one.reads} | {one.seconds:.2f} | {right} | {one.why} |",
            flush=True,
        )
    print(dict(Counter(one.how for one in every)))
    return 1 if any(one.is_right is False for one in every) else 0
