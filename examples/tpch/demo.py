"""The guided tour: a TPC-H warehouse, one refresh of its sources, and what it takes to follow it.

python examples/tpch/demo.py [--scale 0.01] [--orders 15] [--work build/tpch] [--keep]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import contents  # noqa: E402 - found beside this file, wherever it is started from
import data  # noqa: E402
import database  # noqa: E402

from selfmaint.cli import app  # noqa: E402

MOVERS = 2
"""How many customers change their market segment."""
ORDERS_AT_SCALE_1 = 1_500
"""TPC-H's own refresh functions change so many orders."""


def main(argv: list[str] | None = None) -> int:
    """Runs the tour.

    Args:
        argv: arguments, without the program's name.

    Returns:
        0 if the views were maintained and recomputing them gave the same rows.
    """
    arguments = _parser().parse_args(argv)
    started = time.perf_counter()
    before = signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM)
    )  # the server is to be stopped
    work = arguments.work.resolve()
    shutil.rmtree(work, ignore_errors=True)
    orders = arguments.orders or max(1, round(ORDERS_AT_SCALE_1 * arguments.scale))
    try:
        with database.server() as url:
            os.environ["TPCH_URL"] = url
            _set_up(work, url, arguments.scale, orders)
            status = _tour(work)
    finally:
        signal.signal(signal.SIGTERM, before)
        os.environ.pop("TPCH_URL", None)
        if not arguments.keep:
            shutil.rmtree(work, ignore_errors=True)
    _say(
        f"\n{time.perf_counter() - started:.0f} s in all."
        + (f" The files are in {work}." if arguments.keep else "")
    )
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="demo", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.01, help="TPC-H's scale factor (default: 0.01)")
    parser.add_argument(
        "--orders", type=int, help="orders inserted, and deleted (default: 1500 times the scale)"
    )
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "tpch", help="the directory to work in")
    parser.add_argument("--keep", action="store_true", help="keep that directory")
    return parser


def _set_up(work: Path, url: str, scale: float, orders: int) -> None:
    """Base relations, views and update; the database is left in the state after the update."""
    base = work / "base"
    _say("Setting up")
    _step(f"TPC-H at scale factor {scale:g}", lambda: data.generate(scale, base))
    part = data.add_part(base)
    counts = _step("the base relations, in PostgreSQL", lambda: database.load(url, base))
    _step("the views, in Parquet", lambda: contents.store(base, work / "views"))
    update = data.refresh(base, orders, movers=MOVERS, part=part)
    data.write_update(update, work / "update")
    _step("the update, to PostgreSQL and into files", lambda: database.apply(url, update))
    for name in ("views.dl", "warehouse.toml"):
        shutil.copy(HERE / name, work / name)
    _say("  base relations: " + ", ".join(f"{name} {count:,}" for name, count in counts.items()))
    _say(f"  views: {', '.join(contents.statements())}")
    _say(
        f"  update: {orders} new orders with {update.inserted['lineitem'].num_rows} line items, one of them of part "
        f"{part}, which was never sold;\n          {orders} old orders deleted with "
        f"{update.deleted['lineitem'].num_rows}; {MOVERS} customers change their market segment"
    )


def _tour(work: Path) -> int:
    """The product's own commands, computed by DuckDB and by Spark."""
    file, update = work / "warehouse.toml", work / "update"
    seconds: dict[tuple[str, str], float] = {}

    def command(name: str, engine: str, *options: str, shown: bool = True) -> tuple[int, str]:
        arguments = [name, str(file), "--update", str(update), *options, "--engine", engine]
        line = ["selfmaint", name, file.name, "--update", update.name, *options, "--engine", engine]
        _say(f"$ {' '.join(line)}")
        out, started = io.StringIO(), time.perf_counter()
        with contextlib.redirect_stdout(out):
            status = app(arguments)
        seconds.setdefault((name, engine), time.perf_counter() - started)
        _say(out.getvalue().rstrip() if shown else "...")
        return status, out.getvalue()

    _say("\nWhich views can follow without asking the database?\n")
    status, verdicts = command("check", "duckdb")
    _say(f"(exit status {status})")
    _say("\nThe same on Spark, which is for what outgrows one machine.\n")
    _step("a session of Spark", _start_spark)
    again = command("check", "spark", shown=False)
    same = [again == (status, verdicts)]
    deltas = [command("maintain", engine, "--dry-run", shown=False) for engine in ("duckdb", "spark")]
    same.append(deltas[0] == deltas[1])
    _say(f"(both engines print the same: {'yes' if all(same) else 'NO'})")
    _say("\nFollow: ask only for what is missing, and compare with recomputing everything.\n")
    status, _ = command("maintain", "duckdb", "--verify")
    _say(f"(exit status {status})\n")
    for name in ("check", "maintain"):
        _say(f"{name:9} {seconds[name, 'duckdb']:5.1f} s by DuckDB, {seconds[name, 'spark']:5.1f} s by Spark")
    return status if all(same) else 1


def _start_spark() -> None:
    from selfmaint.spark import session

    session()


def _step(what: str, work: Callable[[], object]) -> object:
    started = time.perf_counter()
    result = work()
    _say(f"  {what}: {time.perf_counter() - started:.1f} s")
    return result


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
