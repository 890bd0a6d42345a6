"""The statements that `selfmaint sql` prints for the tour's eight views, run as they are, against `check`.

By DuckDB they are translated. By Spark they run in one session, after a first run that does not count, and so does
`check`; with `--away` as if the files were not on this machine, so that Spark reads them for `check` too.
Seconds by the clock and of processor time, which tells more on a machine that others use too.

    python benchmarks/printed.py --work build/bench --scale 1 --engine duckdb
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import duckdb
import psutil
import sqlglot
from sqlglot import exp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "tpch"))

import contents
import database
import follow
import tpch
from refresh import as_command, database_after, in_session, summary

from selfmaint import load
from selfmaint.api.printing.printed import Statement, StatementKind
from selfmaint.spark import local_files, session

Run = Callable[[str], int]
"""Runs a query in Spark's SQL; the number of its rows."""


def main() -> None:
    """Prints a record a view, and one for all with `check` beside it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--scale", type=float, required=True)
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    parser.add_argument("--update", choices=tpch.UPDATES, default="0.1 %")
    parser.add_argument("--away", action="store_true")
    arguments = parser.parse_args()
    place = tpch.prepare(arguments.work, arguments.scale)
    update = place / "updates" / arguments.update
    by_duckdb = arguments.engine == "duckdb"
    run = (_in_duckdb if by_duckdb else _in_spark)(place, update)
    if arguments.away:
        local_files.is_on_this_machine = lambda _spark: False
    printed = _printed(place)
    if not by_duckdb:
        for statements in printed.values():
            _records(run, statements)
    every: list[dict[str, object]] = []
    for name, statements in printed.items():
        records = _records(run, statements)
        every += [{"view": name, **record} for record in records]
        print(json.dumps(_total(name, records)), flush=True)
    print(json.dumps(_total("all", every)))
    for record in sorted(every, key=lambda r: -float(str(r["cpu_s"])))[:5]:
        print(json.dumps(record))
    with database.server() as url:
        os.environ["TPCH_URL"] = url
        database.load(url, place / "base")
        with database_after(url, update):
            if by_duckdb:
                times = as_command(3, "follow.py", place / "warehouse.toml", update)
            else:
                file = place / "warehouse.toml"
                times = in_session(session(), lambda: follow.check(file, update, "spark"), 3)
    print(json.dumps({"what": "check", "engine": arguments.engine, **summary("", times)}))


def _records(run: Run, statements: Sequence[Statement]) -> list[dict[str, object]]:
    """What each statement took; what they hold is let go."""
    records = [_measured(run, one) for one in statements]
    for one in statements:
        if one.kind is StatementKind.HELD:
            run(f"DROP VIEW `{one.name}`")
    return records


def _printed(place: Path) -> dict[str, tuple[Statement, ...]]:
    os.environ.setdefault("TPCH_URL", "postgresql://nowhere/none")  # printing asks no source
    with load(place / "warehouse.toml") as warehouse:
        return {name: tuple(warehouse.sql(name)) for name in contents.statements()}


def _measured(run: Run, statement: Statement) -> dict[str, object]:
    started, used = time.perf_counter(), _cpu_s()
    rows = run(statement.sql)
    seconds, cpu_s = time.perf_counter() - started, _cpu_s() - used
    return {"statement": statement.name, "rows": rows, "s": round(seconds, 2), "cpu_s": round(cpu_s, 2)}


def _total(name: str, records: list[dict[str, object]]) -> dict[str, object]:
    sums = {key: round(sum(float(str(r[key])) for r in records), 2) for key in ("s", "cpu_s")}
    return {"view": name, "statements": len(records), **sums}


def _cpu_s() -> float:
    me = psutil.Process()
    return float(sum(sum(p.cpu_times()[:2]) for p in (me, *me.children(recursive=True))))


def _tables(place: Path, update: Path) -> Iterator[tuple[str, Path, bool]]:
    """The name of each table that is read, its files, and whether it is empty."""
    for name in contents.statements():
        yield name, place / "views" / name, False
    for base in sorted((place / "base").glob("*.parquet")):
        for version, kind in (("inserted", "insert"), ("deleted", "delete")):
            file = update / f"{base.stem}.{kind}.parquet"
            yield f"{base.stem}_{version}", file if file.exists() else base, not file.exists()


def _in_duckdb(place: Path, update: Path) -> Run:
    connection = duckdb.connect()
    for name, path, is_empty in _tables(place, update):
        files = f"'{path}/*.parquet'" if path.is_dir() else f"'{path}'"
        connection.execute(f"CREATE VIEW {name} AS FROM {files} {'LIMIT 0' if is_empty else ''}")
        connection.table(name).aggregate("count(*)").fetchall()
    return lambda sql: len(connection.execute(_for_duckdb(sql)).fetchall())


def _for_duckdb(sql: str) -> str:
    """A printed statement for DuckDB, which has temporary tables where Spark holds rows."""
    tree = sqlglot.parse_one(sql, dialect="spark")
    if isinstance(tree, exp.Drop):
        tree.set("kind", "TABLE")
    if isinstance(tree, exp.Cache):
        temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
        tree = exp.Create(this=tree.this, kind="TABLE", expression=tree.expression, properties=temporary)
    return tree.sql("duckdb")


def _in_spark(place: Path, update: Path) -> Run:
    spark = session({"spark.driver.memory": tpch.MEMORY})
    for name, path, is_empty in _tables(place, update):
        rows = spark.read.parquet(str(path))
        (rows.limit(0) if is_empty else rows).createOrReplaceTempView(name)
        spark.table(name).count()
    return lambda sql: len(spark.sql(sql).collect())


if __name__ == "__main__":
    main()
