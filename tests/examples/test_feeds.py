"""The example of a change feed does what its page says."""

from __future__ import annotations

import json
from pathlib import Path

from tests.command_line import run

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "feeds"


def test_the_views_follow_the_feed() -> None:
    arguments = (str(FOLDER / "warehouse.toml"), "--feed", str(FOLDER / "feed.jsonl"), "--dry-run")
    ran = run("maintain", *arguments, "--format", "json")
    assert ran.status == 0, ran.stderr
    said = json.loads(ran.stdout)
    sizes = {entry["relation"]: entry for entry in said["feed"]["relations"]}
    assert {n: (e["events"], e["deleted"], e["inserted"], e["upto"]) for n, e in sizes.items()} == {
        "customer": (3, 0, 1, "137"),
        "orders": (5, 1, 1, "140"),
    }
    assert said["feed"]["ignored"] == {"events of ignored tables": 1, "tombstones": 2}
    assert said["changes"] == [
        {"view": "customers", "how": "decided exactly", "gained": 1, "lost": 0},
        {"view": "order_list", "how": "decided exactly", "gained": 1, "lost": 1},
        {"view": "sales", "how": "decided exactly", "gained": 1, "lost": 1},
    ]
    assert said["reads"] == []
    table = run(
        "check", str(FOLDER / "warehouse.toml"), "--feed", str(FOLDER / "feed.jsonl"), "--upto", "115"
    )
    assert table.status == 0
    assert "4 events outside the range left out" in table.stdout
