"""The views that pg_ivm and OpenIVM document, in `published.sql`: how each follows every kind of change.

    python benchmarks/published_views.py --work /tmp/published [--helpers]

An update inserts accounts, deletes some, changes balances, moves branches, or changes tellers; or all at once.
"""

# ruff: noqa: S608 - the names in statements are those of this file
from __future__ import annotations

import argparse
import shutil
import sys
from collections import Counter
from pathlib import Path

import duckdb
import sqlglot
from query_views import Queries, follow, write_update
from sqlglot import exp

FILE = Path(__file__).resolve().with_name("published.sql")
NAMES = ("branches", "accounts", "tellers")
CHANGES: dict[str, dict[str, tuple[str, str]]] = {
    "insert": {
        "accounts": (
            "select aid + 1000000, bid, kind, abalance + 5 from accounts where hash(aid + $seed) % 50 = 0",
            "false",
        )
    },
    "delete": {"accounts": ("select * from accounts limit 0", "hash(aid + $seed) % 50 = 1")},
    "update": {
        "accounts": (
            "select * replace (coalesce(abalance, 0) + 7 as abalance) from accounts where hash(aid + $seed) % 50 = 2",
            "hash(aid + $seed) % 50 = 2",
        )
    },
    "branches": {
        "branches": (
            "select * replace (city || '!' as city) from branches where hash(bid + $seed) % 5 = 0",
            "hash(bid + $seed) % 5 = 0",
        )
    },
    "tellers": {
        "tellers": (
            "select tid + tid % 2 * 1000, (bid + 3) % 20, tbalance + 40 from tellers where hash(tid + $seed) % 6 = 0",
            "hash(tid + $seed) % 6 = 0",
        )
    },
}
CHANGES["all"] = {
    **CHANGES["branches"],
    **CHANGES["tellers"],
    "accounts": (
        f"{CHANGES['insert']['accounts'][0]} union all {CHANGES['update']['accounts'][0]}",
        "hash(aid + $seed) % 50 in (1, 2)",
    ),
}


def prepare(work: Path, kind: str, accounts: int, seed: int) -> Path:
    """The base relations before and after a kind of change, and the update."""
    place = work / f"{kind}_{accounts}_{seed}"
    shutil.rmtree(place, ignore_errors=True)
    with duckdb.connect() as database:
        database.execute(
            "create table branches as select i::int as bid, 'city ' || i % 7 as city, "
            "if(i % 6 = 0, null, i * 37 % 400)::bigint as bbalance from range(20) t(i)"
        )
        database.execute(
            "create table accounts as select i::int as aid, (i * 7 % 20)::int as bid, "
            "if(i % 3 = 0, 'savings', 'giro') as kind, if(i % 11 = 0, null, i * 31 % 977)::bigint as abalance "
            f"from range({accounts}) t(i)"
        )
        database.execute(
            "create table tellers as select i::int as tid, if(i % 9 = 0, null, i * 3 % 23)::int as bid, "
            "(i * 53 % 800)::bigint as tbalance from range(60) t(i)"
        )
        changed = {
            name: (new.replace("$seed", str(seed)), old.replace("$seed", str(seed)))
            for name, (new, old) in CHANGES[kind].items()
        }
        write_update(database, place, NAMES, changed)
    return place


def queries() -> Queries:
    """The queries."""
    tables, texts = [], {}
    for tree in sqlglot.parse(FILE.read_text(), read="spark"):
        assert isinstance(tree, exp.Create)
        if tree.kind == "TABLE":
            tables.append(f"{tree.sql('spark')};")
        else:
            texts[tree.this.name] = tree.expression.sql("spark")
    return Queries("\n".join(tables), NAMES, texts)


def main() -> int:
    """Prints the table; 1 if a view is wrong."""
    parser = argparse.ArgumentParser(description="Follows the views that pg_ivm and OpenIVM document.")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--accounts", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--helpers", action="store_true")
    parser.add_argument("--changes", nargs="*", default=list(CHANGES))
    parser.add_argument("--only", nargs="*")
    given = parser.parse_args()
    every = queries()
    places = {kind: prepare(given.work, kind, given.accounts, given.seed) for kind in given.changes}
    print(f"| view | {' | '.join(places)} |\n|---{'|---' * len(places)}|")
    counts = {kind: Counter[str]() for kind in places}
    wrong = 0
    for name in given.only or every.texts:
        cells = []
        for kind, place in places.items():
            one = follow(every, place, name, helpers=given.helpers)
            wrong += one.is_right is False
            counts[kind][one.how] += 1
            cells.append(
                one.how
                + (f", {one.reads} rows read" if one.reads else "")
                + (" **WRONG**" if one.is_right is False else "")
                + (f" ({one.why})" if one.why else "")
            )
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    for kind, found in counts.items():
        print(kind, dict(found))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
