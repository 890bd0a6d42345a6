"""Visitors by day, of which two days change: a commit in a lake by whole commands, beside recomputing in DuckDB.

    python benchmarks/days.py --work build/bench --events 5000000 --json out.json

The base rows are Parquet in the order of their time, one each five seconds; the update deletes each hundredth row of
two days, and these are what is read.
"""

# ruff: noqa: S608 - the names in statements are those of this file
from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
from pathlib import Path

import duckdb
from refresh import timed

VIEWS = {
    "active": "SELECT date_trunc('day', moment) AS day, count(DISTINCT account) AS accounts FROM events GROUP BY 1",
    "last_seen": "SELECT CAST(moment AS DATE) AS day, kind, max(moment) AS last, count(DISTINCT account) AS accounts "
    "FROM events GROUP BY 1, 2",
}
TABLE = "create table events (id bigint primary key, account bigint, kind string, moment timestamp_ntz not null);\n"
FILE = """
program = "views.sql"
[store]
kind = "lake"
path = "lake"
[relations.events]
path = "events.parquet"
[update]
effective = true
"""
CHANGED = "moment >= TIMESTAMP '2026-02-03' AND moment < TIMESTAMP '2026-02-05' AND id % 100 = 0"
_REPETITIONS = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--json", type=Path, required=True)
    given = parser.parse_args()
    place = given.work / f"days{given.events}"
    prepare(place, given.events)
    file, update = str(place / "warehouse.toml"), str(place / "update")
    record: dict[str, object] = {"events": given.events}
    runs = {
        "maintain": ["-m", "selfmaint", "maintain", file, "--update", update],
        "recompute": [str(script(place))],
    }
    for what, arguments in runs.items():
        times = []
        for _ in range(_REPETITIONS):
            shutil.rmtree(place / "lake")
            shutil.copytree(place / "kept", place / "lake")
            times += timed(1, arguments, warm=0)
        record |= {
            f"{what}_cpu_s": round(statistics.median(one.cpu_s for one in times), 2),
            f"{what}_s": round(statistics.median(one.clock_s for one in times), 2),
        }
    print(json.dumps(record))
    given.json.write_text(json.dumps(record), encoding="utf-8")
    return 0


def prepare(place: Path, events: int) -> None:
    """The base rows before and after, the update, and the lake."""
    shutil.rmtree(place, ignore_errors=True)
    (place / "update").mkdir(parents=True)
    connection = duckdb.connect()
    connection.sql(
        "CREATE TABLE events AS SELECT i AS id, (hash(i) % 100000)::BIGINT AS account, "
        "['visit', 'signup', 'pay'][1 + i % 3] AS kind, "
        f"TIMESTAMP '2026-01-01' + to_seconds(i * 5) AS moment FROM range({events}) r(i)"
    )
    base = str(place / "events.parquet")
    connection.table("events").write_parquet(base)
    views = "".join(f"create view {name} as {text};\n" for name, text in VIEWS.items())
    (place / "views.sql").write_text(TABLE + views, encoding="utf-8")
    (place / "warehouse.toml").write_text(FILE, encoding="utf-8")
    timed(1, ["-m", "selfmaint", "init", str(place / "warehouse.toml")], warm=0)
    (place / "lake").rename(place / "kept")
    shutil.copytree(place / "kept", place / "lake")
    connection.sql(f"FROM events WHERE {CHANGED}").write_parquet(
        str(place / "update" / "events.delete.parquet")
    )
    connection.sql(f"FROM events WHERE NOT ({CHANGED})").write_parquet(base)


def script(place: Path) -> Path:
    """A script that writes both views anew."""
    lines = ["import duckdb", f"duckdb.sql(\"CREATE VIEW events AS FROM '{place / 'events.parquet'}'\")"]
    lines += [
        f'duckdb.sql("""{text}""").write_parquet("{place / name}.parquet")' for name, text in VIEWS.items()
    ]
    found = place / "recompute.py"
    found.write_text("\n".join(lines), encoding="utf-8")
    return found


if __name__ == "__main__":
    sys.exit(main())
