"""`check` and `maintain` against recomputing, in one Spark session; what is read; what memory it takes.

Run for one scale factor, in a process of its own, so that memory is that scale's:

    python benchmarks/refresh.py --work build/bench --scale 0.1 --json out.json
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import shutil
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
import tpch
from touched import rows_touched

from selfmaint import Update, load
from selfmaint.api.maintain import new_contents
from selfmaint.spark import session

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

    with database.server() as url:
        os.environ["TPCH_URL"] = url
        database.load(url, place / "base")
        show(_recompute(spark, place, arguments.repetitions))
        for label in arguments.updates:
            with _database_after(url, place / "updates" / label):
                _measure(spark, place, label, arguments.repetitions, show)
    arguments.json.write_text(json.dumps(records), encoding="utf-8")
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


def _recompute(spark: Any, place: Path, repetitions: int) -> Record:
    """All views from the base relations' Parquet files, written as Parquet."""
    target = place / "recomputed"

    def work() -> None:
        contents.store(spark, place / "base", target, ordered=False)

    times = _times(spark, work, repetitions)
    rows = {name: spark.read.parquet(str(target / name)).count() for name in contents.statements()}
    size = sum(file.stat().st_size for file in target.rglob("*.parquet"))
    shutil.rmtree(target)
    return {"what": "recompute", **_summary("", times), "rows": rows, "bytes": size}


def _measure(spark: Any, place: Path, label: str, repetitions: int, show: Show) -> None:
    """One update: check, maintain with its deltas written, rewriting the changed views, and what was read."""
    update = place / "updates" / label
    size = sum(pq.ParquetFile(file).metadata.num_rows for file in update.iterdir())
    out = place / "out"
    last: Record = {}

    def checked() -> None:
        with load(place / "warehouse.toml") as warehouse:
            last["verdicts"] = warehouse.check(Update.from_files(warehouse, update))

    def maintained() -> None:
        with load(place / "warehouse.toml") as warehouse:
            last["maintained"] = warehouse.maintain(Update.from_files(warehouse, update))
            _write_deltas(last["maintained"], out)

    verdicts = _times(spark, checked, repetitions)
    deltas = _times(spark, maintained, repetitions)
    found = last["maintained"]
    show(
        {
            "what": "refresh",
            "update": label,
            "update_rows": size,
            "no": [
                name
                for name, verdict in last["verdicts"].items()
                if type(verdict).__name__ != "SelfMaintainable"
            ],
            **_summary("check_", verdicts),
            **_summary("maintain_", deltas),
            **_rewrite(spark, place, update, out),
            "delta_rows": sum(pq.ParquetFile(file).metadata.num_rows for file in out.rglob("*.parquet")),
            "reads": [_read(read) for read in found.reads],
            "rows_read": sum(read.rows_read for read in found.reads),
            "bytes_read": sum(read.bytes_read for read in found.reads),
            "rows_touched": rows_touched(spark, place, update),
            "python_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "heap_committed_mb": _committed_heap_mb(spark),
        }
    )
    shutil.rmtree(out, ignore_errors=True)


def _read(read: Any) -> Record:
    return {
        "relation": read.relation,
        "by": list(read.key_columns),
        "keys": read.keys_asked,
        "rows": read.rows_read,
        "bytes": read.bytes_read,
    }


def _write_deltas(maintained: Any, out: Path) -> None:
    """Every delta as Parquet, two at a time: writing few rows is mostly waiting."""
    shutil.rmtree(out, ignore_errors=True)
    parts = {
        f"{name}.{part}": rows
        for name, delta in maintained.deltas.items()
        for part, rows in (("gained", delta.gained), ("lost", delta.lost))
    }
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: parts[name].write.parquet(str(out / name)), parts))


def _rewrite(spark: Any, place: Path, update: Path, out: Path) -> Record:
    """Writing the whole new contents of every view that has a delta: what a store of plain files has to do.

    Before it, what the heap holds while the deltas are held.
    """
    target = place / "rewritten"
    with load(place / "warehouse.toml") as warehouse:
        found = warehouse.maintain(Update.from_files(warehouse, update))
        changed = [
            view
            for view in warehouse.catalog.views
            if any(_rows(out / f"{view.name}.{part}") for part in ("gained", "lost"))
        ]
        heap = _live_heap_mb(spark)
        started = time.perf_counter()
        for view in changed:
            rows = new_contents(warehouse, view, found.deltas[view.name])
            rows.write.mode("overwrite").parquet(str(target / view.name))
        elapsed = time.perf_counter() - started
    shutil.rmtree(target, ignore_errors=True)
    return {"rewrite_s": elapsed, "heap_mb": heap}


def _rows(folder: Path) -> int:
    return sum(pq.ParquetFile(file).metadata.num_rows for file in folder.glob("*.parquet"))


@dataclass(frozen=True)
class Time:
    """Seconds by the clock, and of processor time in the JVM and this process."""

    clock_s: float
    cpu_s: float


def _times(spark: Any, work: Callable[[], None], repetitions: int) -> list[Time]:
    """The times of some runs, after one that does not count."""
    found = []
    for _ in range(repetitions + 1):
        gc.collect()
        started, used = time.perf_counter(), _cpu_s(spark)
        work()
        found.append(Time(time.perf_counter() - started, _cpu_s(spark) - used))
    return found[1:]


def _summary(prefix: str, times: list[Time]) -> Record:
    return {
        f"{prefix}s": statistics.median(t.clock_s for t in times),
        f"{prefix}cpu_s": statistics.median(t.cpu_s for t in times),
        f"{prefix}times": [[round(t.clock_s, 3), round(t.cpu_s, 3)] for t in times],
    }


def _cpu_s(spark: Any) -> float:
    """Processor time so far; on a machine that others use too it tells more than the clock."""
    jvm = psutil.Process(int(spark._jvm.java.lang.ProcessHandle.current().pid())).cpu_times()
    return float(jvm.user + jvm.system) + time.process_time()


# ------------------------------------------------------------------------------------ memory, and the database


def _live_heap_mb(spark: Any) -> int:
    """What the JVM holds after a collection: also what the engine keeps."""
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    spark._jvm.java.lang.System.gc()
    return int((runtime.totalMemory() - runtime.freeMemory()) // 2**20)


def _committed_heap_mb(spark: Any) -> int:
    return int(spark._jvm.java.lang.Runtime.getRuntime().totalMemory() // 2**20)


@contextmanager
def _database_after(url: str, update: Path) -> Iterator[None]:
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
