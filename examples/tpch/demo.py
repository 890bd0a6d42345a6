"""The guided tour: a TPC-H warehouse in a lake, one refresh of its sources, and what it takes to follow it.

python examples/tpch/demo.py [--scale 0.01] [--orders 15] [--work build/tpch] [--keep]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shlex
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import data  # noqa: E402 - found beside this file, wherever it is started from
import database  # noqa: E402

import selfmaint  # noqa: E402
from selfmaint.cli import app  # noqa: E402

MOVERS = 2
"""How many customers change their market segment."""
ORDERS_AT_SCALE_1 = 1_500
"""TPC-H's own refresh functions change so many orders."""
QUESTION = "SELECT max(ordered) AS newest, count(*) AS lines, sum(price) AS price FROM order_lines"
EXAMINED_S, EXAMINED_ROWS = 5.0, 200
"""How long a cross-examination searches, and how many rows near the update it looks at."""
WIDTHS = (80, 110)
"""Between these the tables are as wide as the terminal."""

T = TypeVar("T")


def main(argv: list[str] | None = None) -> int:
    """Runs the tour.

    Args:
        argv: arguments, without the program's name.

    Returns:
        0 if every command did what the tour is to show, and both engines made the same views.
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
        with database.server() as url, _environment(TPCH_URL=url, COLUMNS=_width()):
            update = _set_up(work, url, arguments.scale, orders)
            tour = Tour(work)
            tour.run(url, update)
    finally:
        signal.signal(signal.SIGTERM, before)
        if not arguments.keep:
            shutil.rmtree(work, ignore_errors=True)
    _say(
        f"\n{time.perf_counter() - started:.0f} s in all."
        + (f" The files are in {work}." if arguments.keep else "")
    )
    for problem in tour.problems:
        _say(f"NOT AS IT SHOULD BE: {problem}")
    return 1 if tour.problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="demo", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.01, help="TPC-H's scale factor (default: 0.01)")
    parser.add_argument(
        "--orders", type=int, help="orders inserted, and deleted (default: 1500 times the scale)"
    )
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "tpch", help="the directory to work in")
    parser.add_argument("--keep", action="store_true", help="keep that directory")
    return parser


def _width() -> str:
    least, most = WIDTHS
    return str(min(max(shutil.get_terminal_size((most, 24)).columns, least), most))


@contextlib.contextmanager
def _environment(**settings: str) -> Iterator[None]:
    """Variables of the environment, as they were afterwards."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _set_up(work: Path, url: str, scale: float, orders: int) -> data.Update:
    """Base relations, and the update that is to come; the database is in the state before it."""
    base = work / "base"
    _say("Setting up")
    _step(f"TPC-H at scale factor {scale:g}", lambda: data.generate(scale, base))
    part = data.add_part(base)
    counts = _step("the base relations, in PostgreSQL", lambda: database.load(url, base))
    _say("  " + ", ".join(f"{name} {count:,}" for name, count in counts.items()))
    for name in ("views.dl", "warehouse.toml"):
        shutil.copy(HERE / name, work / name)
    update = data.refresh(base, orders, movers=MOVERS, part=part)
    data.write_update(update, work / "update")
    return update


@dataclass
class Tour:
    """The commands, run one after the other.

    Attributes:
        work: the directory of the warehouse.
        problems: what was not as the tour says.
        seconds: how long each step took, by what it is called at the end.
    """

    work: Path
    problems: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, url: str, update: data.Update) -> None:
        """The whole of it."""
        _say("\nMake a lake with the eight views of views.dl, computed from PostgreSQL this once.\n")
        self.command("init", named="init")
        self.command("query", QUESTION)
        lines = update.inserted["lineitem"].num_rows, update.deleted["lineitem"].num_rows
        orders = update.inserted["orders"].num_rows
        _say(
            f"\nA change comes: {orders} new orders with {lines[0]} line items, one of a part that was never sold;\n"
            f"{orders} old orders deleted with {lines[1]}; {MOVERS} customers change their market segment.\n"
            "Which views can follow without asking PostgreSQL?\n"
        )
        database.apply(url, update)
        given = ("--update", "update")
        self.command("check", *given, expected=1, named="check by DuckDB")
        self.cross_examined("duckdb")
        _say(
            "\nFollow it: ask only for what is missing, commit once, and compare with recomputing everything.\n"
        )
        self.command("maintain", *given, "--verify", shown="base relations read", named="maintain by DuckDB")
        _say("\nThe same update again does nothing. Every state stays there, and can be read.\n")
        self.command("maintain", *given)
        self.command("history")
        first, second = (one.version for one in selfmaint.history(self.work / "warehouse.toml"))
        now = self.command("query", QUESTION)
        before = self.command("query", QUESTION, "--as-of", str(first))
        _say("\nUndo it, and follow it once more on Spark, which is for what outgrows one machine.\n")
        self.command("undo")
        self.require(self.command("query", QUESTION) == before != now, "undoing brings the state before back")
        _step("a session of Spark", _start_spark)
        self.cross_examined("spark")
        on_spark = (*given, "--engine", "spark")
        self.command("maintain", *on_spark, shown="written", named="maintain by Spark")
        third = selfmaint.history(self.work / "warehouse.toml")[-1].version
        same = self.same(second, third)
        _say(f"\nBoth engines made the same rows of all views: {'yes' if same else 'NO'}")
        self.require(same, "both engines make the same rows")
        _say(", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.seconds.items()))

    def command(
        self, name: str, *arguments: str, expected: int = 0, shown: str = "", named: str | None = None
    ) -> str:
        """Runs a command as it is shown, and prints what it says, or only the end of it; what it says."""
        line = [name, "warehouse.toml", *arguments]
        _say("$ selfmaint " + " ".join(f'"{one}"' if " " in one else shlex.quote(one) for one in line))
        out, started = io.StringIO(), time.perf_counter()
        with contextlib.redirect_stdout(out), contextlib.chdir(self.work):
            status = app(line)
        taken = time.perf_counter() - started
        if named is not None:
            self.seconds[named] = taken
        said = out.getvalue().rstrip()
        at = said.find(shown)
        self.require(
            status == expected and at >= 0, f"`selfmaint {' '.join(line)}` ends with status {status}"
        )
        _say(said if at <= 0 else f"...\n{said[at:]}")
        _say(f"({f'exit status {status}, ' if status else ''}{taken:.1f} s)")
        return said

    def cross_examined(self, engine: Literal["duckdb", "spark"]) -> None:
        """Has a solver look for what contradicts the verdicts, for some seconds, and says in a line what came of it."""
        started = time.perf_counter()
        with selfmaint.load(self.work / "warehouse.toml", engine=engine) as warehouse:
            update = selfmaint.Update.from_files(warehouse, self.work / "update")
            budget = selfmaint.CrossExamination(EXAMINED_S, EXAMINED_ROWS, folder=self.work)
            found = warehouse.check(update, cross_examine=budget).examined.values()
        outcomes = Counter(one.outcome.value for one in found)
        self.require("contradicts" not in outcomes, f"nothing contradicts a verdict by {engine}")
        said = f"{outcomes['agrees']} of {len(found)} verdicts agree, {outcomes['contradicts'] or 'none'} contradicted"
        _say(f"Cross-examined by {engine}: {said} ({time.perf_counter() - started:.1f} s)")

    def same(self, one: int, other: int) -> bool:
        """Whether two states have the same rows of all views."""
        with selfmaint.load(self.work / "warehouse.toml") as warehouse:
            names = [view.name for view in warehouse.catalog.views]
            return all(
                warehouse.query(f"FROM {name} ORDER BY ALL", as_of=one)
                == warehouse.query(f"FROM {name} ORDER BY ALL", as_of=other)
                for name in names
            )

    def require(self, is_so: bool, what: str) -> None:
        """Notes what is not as the tour says."""
        if not is_so:
            self.problems.append(what)


def _start_spark() -> None:
    from selfmaint.spark import session

    session()


def _step(what: str, work: Callable[[], T]) -> T:
    started = time.perf_counter()
    result = work()
    _say(f"  {what}: {time.perf_counter() - started:.1f} s")
    return result


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
