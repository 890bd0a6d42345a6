"""One `check`, or one `maintain` with its deltas written: what an ETL job does with an update.

python benchmarks/follow.py WAREHOUSE.toml UPDATE [--out DIRECTORY] [--engine duckdb]
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from selfmaint import Update, load

Engine: TypeAlias = Literal["duckdb", "spark"]


def check(file: Path, update: Path, engine: Engine) -> None:
    """Decides all views."""
    with load(file, engine=engine) as warehouse:
        warehouse.check(Update.from_files(warehouse, update))


def maintain(file: Path, update: Path, out: Path, engine: Engine) -> None:
    """Writes each delta as Parquet, and what was said of it as JSON."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    with load(file, engine=engine) as warehouse:
        found = warehouse.maintain(Update.from_files(warehouse, update))
        for name, delta in found.deltas.items():
            for part, rows in (("gained", delta.gained), ("lost", delta.lost)):
                _write(rows, out / f"{name}.{part}")
        said = {
            "no": [name for name, verdict in found.verdicts.items() if not verdict],
            "reads": [_read(read) for read in found.reads],
            "rows_read": sum(read.rows_read for read in found.reads),
            "bytes_read": sum(read.bytes_read for read in found.reads),
        }
    (out / "said.json").write_text(json.dumps(said), encoding="utf-8")


def _write(rows: Any, folder: Path) -> None:
    folder.mkdir()
    pq.write_table(pa.table(rows), folder / "part-0.parquet")


def _read(read: Any) -> dict[str, Any]:
    return {
        "relation": read.relation,
        "by": list(read.key_columns),
        "keys": read.keys_asked,
        "rows": read.rows_read,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("warehouse", type=Path)
    parser.add_argument("update", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--engine", default="duckdb")
    given = parser.parse_args()
    if given.out is None:
        check(given.warehouse, given.update, given.engine)
    else:
        maintain(given.warehouse, given.update, given.out, given.engine)
