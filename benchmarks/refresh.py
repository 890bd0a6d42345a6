"""`check` and `maintain` against recomputing, by DuckDB and by Spark; what is read; what memory it takes.

By DuckDB each is a command of its own, from its start to its end; by Spark it is work in one session, after a first run
that does not count. Recomputing writes the views as Parquet, and `maintain` its deltas.

    python benchmarks/refresh.py --work build/bench --scale 0.1 --json out.json
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "tpch"))

import contents
import data
import database
import follow
import tpch
from touched import rows_touched

from selfmaint.spark import session

HERE = Path(__file__).resolve().parent
Record = dict[str, Any]
Show = Callable[[Record], None]


def main(argv: list[str] | None = None) -> int:
    """Measures one scale factor and writes the records."""
    arguments = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the server is to be stopped
    place = tpch.folder(arguments.work, arguments.scale)
    spark = session({"spark.driver.memory": tpch.MEMORY})
    records: list[Record] = []

    def show(record: Record) -> None:
        record = {"scale": arguments.scale, **record}
        print(json.dumps(record), file=sys.stderr, flush=True)
        records.append(record)
        # A run that is stopped keeps what it has.
        arguments.json.write_text(json.dumps(records), encoding="utf-8")

    with database.server() as url:
        os.environ["TPCH_URL"] = url
        database.load(url, place / "base")
        for record in recompute(spark, place, arguments.repetitions):
            show(record)
        for label in arguments.updates:
            with database_after(url, place / "updates" / label):
                _measure(spark, place, label, arguments.repetitions, show)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--scale", type=float, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--updates", nargs="*", default=tpch.UPDATES)
    return parser


# ---------------------------------------------------------------------------------------------- measurements


def recompute(spark: Any, place: Path, repetitions: int) -> Iterator[Record]:
    """All views from the base relations' Parquet files, written as Parquet."""
    target = place / "recomputed"

    def work() -> None:
        for name, rows in contents.views(spark, place / "base").items():
            rows.write.mode("overwrite").parquet(str(target / name))

    by_spark = in_session(spark, work, repetitions)
    shutil.rmtree(target)
    by_duckdb = as_command(repetitions, "contents.py", place / "base", target)
    rows = sum(_rows(target / name) for name in contents.statements())
    size = sum(file.stat().st_size for file in target.rglob("*.parquet"))
    shutil.rmtree(target)
    for engine, found in (("duckdb", by_duckdb), ("spark", by_spark)):
        yield {"what": "recompute", "engine": engine, **summary("", found), "rows": rows, "bytes": size}


def _measure(spark: Any, place: Path, label: str, repetitions: int, show: Show) -> None:
    """One update: check, and maintain with its deltas written; what was read."""
    update, out, file = place / "updates" / label, place / "out", place / "warehouse.toml"
    size = sum(pq.ParquetFile(part).metadata.num_rows for part in update.iterdir())
    common = {"what": "refresh", "update": label, "update_rows": size}
    command = ("follow.py", file, update)
    check = as_command(repetitions, *command)
    maintain = as_command(repetitions, *command, "--out", out)
    said = json.loads((out / "said.json").read_text(encoding="utf-8"))
    deltas = sum(_rows(folder) for folder in out.iterdir() if folder.is_dir())
    show(
        {
            **common,
            "engine": "duckdb",
            **summary("check_", check),
            **summary("maintain_", maintain),
            **said,
            "delta_rows": deltas,
            "peak_mb": max(one.peak_mb for one in maintain),
            "rows_touched": rows_touched(spark, place, update),
        }
    )
    check = in_session(spark, lambda: follow.check(file, update, "spark"), repetitions)
    maintain = in_session(spark, lambda: follow.maintain(file, update, out, "spark"), repetitions)
    show(
        {
            **common,
            "engine": "spark",
            **summary("check_", check),
            **summary("maintain_", maintain),
            **json.loads((out / "said.json").read_text(encoding="utf-8")),
            "delta_rows": sum(_rows(folder) for folder in out.iterdir() if folder.is_dir()),
            "peak_mb": max(one.peak_mb for one in maintain),
        }
    )
    shutil.rmtree(out, ignore_errors=True)


def _rows(folder: Path) -> int:
    return sum(pq.ParquetFile(file).metadata.num_rows for file in folder.glob("*.parquet"))


@dataclass(frozen=True)
class Time:
    """Seconds by the clock, seconds of processor time in all processes, and the largest memory of one."""

    clock_s: float
    cpu_s: float
    peak_mb: int


def as_command(repetitions: int, script: str, *arguments: object) -> list[Time]:
    """The times of a script's whole run; one that does not count fills the system's cache of files."""
    folder = HERE if (HERE / script).exists() else tpch.EXAMPLE
    return timed(repetitions, [str(folder / script), *map(str, arguments)])


def timed(
    repetitions: int, arguments: list[str], allowed: tuple[int, ...] = (0,), warm: int = 1
) -> list[Time]:
    """The times of Python's run with some arguments; the first ones do not count."""
    line = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(tpch.ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # users' runs find compiled modules
    found = []
    for _ in range(repetitions + warm):
        started = time.perf_counter()
        process = subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in allowed:
            raise subprocess.CalledProcessError(process.returncode, line)
        cpu_s = used.ru_utime + used.ru_stime
        found.append(Time(time.perf_counter() - started, cpu_s, used.ru_maxrss // 1024))
    return found[warm:]


def in_session(spark: Any, work: Callable[[], None], repetitions: int) -> list[Time]:
    """The times of some runs, after one that does not count."""
    jvm = psutil.Process(int(spark._jvm.java.lang.ProcessHandle.current().pid()))
    found = []
    for _ in range(repetitions + 1):
        gc.collect()
        started, used = time.perf_counter(), _cpu_s(jvm)
        work()
        peak_mb = (jvm.memory_info().rss + psutil.Process().memory_info().rss) // 2**20
        found.append(Time(time.perf_counter() - started, _cpu_s(jvm) - used, peak_mb))
    return found[1:]


def _cpu_s(jvm: psutil.Process) -> float:
    """Processor time so far; on a machine that others use too it tells more than the clock."""
    used = jvm.cpu_times()
    return float(used.user + used.system) + time.process_time()


def summary(prefix: str, times: list[Time]) -> Record:
    return {
        f"{prefix}s": statistics.median(t.clock_s for t in times),
        f"{prefix}cpu_s": statistics.median(t.cpu_s for t in times),
        f"{prefix}times": [[round(t.clock_s, 3), round(t.cpu_s, 3)] for t in times],
    }


@contextmanager
def database_after(url: str, update: Path) -> Iterator[None]:
    """The database in the state after an update, and back again."""
    parts: dict[str, dict[str, Any]] = {"insert": {}, "delete": {}}
    for file in update.iterdir():
        relation, part, _ = file.name.split(".")
        parts[part][relation] = pq.read_table(file)
    database.apply(url, data.Update(parts["insert"], parts["delete"]))
    try:
        yield
    finally:
        database.apply(url, data.Update(parts["delete"], parts["insert"]))


if __name__ == "__main__":
    sys.exit(main())
