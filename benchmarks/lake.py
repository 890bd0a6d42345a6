"""An update of the tour's eight views, from its files to the durable commit of a lake, against recomputing them.

Every figure is a command of its own, from its start to its end. Recomputing writes the views as Parquet.

    python benchmarks/lake.py --work build/bench --scale 0.1 --json out.json
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "tpch"))

import database
import tpch
from refresh import database_after, recompute, summary, timed

from selfmaint.spark import session

Record = dict[str, Any]


def main(argv: list[str] | None = None) -> int:
    """Prints and writes one record for recomputing, one for making the lake, and one for each update."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--scale", type=float, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--updates", nargs="*", default=tpch.UPDATES)
    given = parser.parse_args(argv)
    place = tpch.prepare(given.work, given.scale)
    found: list[Record] = []

    def show(record: Record) -> None:
        record = {"scale": given.scale, **record}
        found.append(record)
        given.json.write_text(json.dumps(found), encoding="utf-8")  # a run that is stopped keeps what it has
        print(json.dumps(record), flush=True)

    spark = session({"spark.driver.memory": tpch.MEMORY})
    for record in recompute(spark, place, given.repetitions):
        show(record)
    spark.stop()
    file, lake, kept = place / "lake.toml", place / "lake", place / "lake.kept"
    shutil.copy(tpch.EXAMPLE / "warehouse.toml", file)
    for folder in (lake, kept):
        shutil.rmtree(folder, ignore_errors=True)
    made = timed(1, ["-m", "selfmaint", "init", str(file), "--from", str(place / "views")], warm=0)
    show({"what": "init", **summary("", made)})
    lake.rename(kept)
    with database.server() as url:
        os.environ["TPCH_URL"] = url
        database.load(url, place / "base")
        for label in given.updates:
            with database_after(url, place / "updates" / label):
                show(measure(given.repetitions, file, place / "updates" / label, label))
    return 0


def measure(repetitions: int, file: Path, update: Path, label: str) -> Record:
    """One update: `check`, `maintain` up to the commit, and with it, each in the lake as it was."""
    lake, kept = file.with_name("lake"), file.with_name("lake.kept")
    check, dry, maintain, sizes = [], [], [], []
    for _ in range(repetitions):
        shutil.copytree(kept, lake)
        before = size(lake)
        given = [str(file), "--update", str(update)]
        check += timed(1, ["-m", "selfmaint", "check", *given], (0, 1, 3), warm=0)
        dry += timed(1, ["-m", "selfmaint", "maintain", *given, "--dry-run"], warm=0)
        maintain += timed(1, ["-m", "selfmaint", "maintain", *given], warm=0)
        sizes.append(size(lake) - before)
        shutil.rmtree(lake)
    times = {**summary("check_", check), **summary("dry_", dry), **summary("maintain_", maintain)}
    return {"what": "lake", "update": label, **times, "bytes_written": sizes[-1]}


def size(folder: Path) -> int:
    """The bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


if __name__ == "__main__":
    sys.exit(main())
