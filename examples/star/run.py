"""A retail star: what the audit says before any data is there, then one day's changes.

python examples/star/run.py [--sales 2000] [--work build/star] [--keep]
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import data  # noqa: E402 - found beside this file, wherever it is started from

from selfmaint.cli import app  # noqa: E402


def main(argv: list[str] | None = None) -> int:
    """Runs the example; 0 if the views were maintained and recomputing them gave the same rows."""
    parser = argparse.ArgumentParser(prog="star", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sales", type=int, default=2000, help="rows of the fact table (default: 2000)")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "star", help="the directory to work in")
    parser.add_argument("--keep", action="store_true", help="keep that directory")
    arguments = parser.parse_args(argv)
    work = arguments.work.resolve()
    shutil.rmtree(work, ignore_errors=True)
    try:
        set_up(work, arguments.sales)
        command("audit", str(work / "warehouse.toml"))
        command("audit", str(work / "warehouse.toml"), "--without", "sales")
        command("check", str(work / "warehouse.toml"), "--update", str(work / "day"))
        return command("maintain", str(work / "warehouse.toml"), "--update", str(work / "day"), "--verify")
    finally:
        if not arguments.keep:
            shutil.rmtree(work, ignore_errors=True)


def set_up(work: Path, sales: int) -> None:
    """The views before the day, its changes, and the base relations after it."""
    before = data.base(sales)
    changes = data.day(before)
    data.write(work / "views", data.VIEWS, data.contents(before))
    data.write(work / "day", data.BASE, changes.inserted, ".insert")
    data.write(work / "day", data.BASE, changes.deleted, ".delete")
    data.write(work / "base", data.BASE, data.after(before, changes))
    for name in ("views.dl", "warehouse.toml"):
        shutil.copy(HERE / name, work / name)


def command(*arguments: str) -> int:
    """One of the product's commands, and its exit status."""
    shown = [Path(argument).name if argument.startswith("/") else argument for argument in arguments]
    print(f"\n$ selfmaint {' '.join(shown)}", flush=True)
    status = app(arguments)
    print(f"(exit status {status})", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
