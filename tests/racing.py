"""Two processes that maintain one update after another in one store, each as often as it can, and readers in a loop."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import selfmaint
from selfmaint.api.stores.store_upkeep import store_of
from selfmaint.duckdb.store import stored_rows

State = dict[str, Counter[tuple[Any, ...]]]
SCRIPT = (
    "import sys\nfrom selfmaint.cli.app import app\n"
    "for number, folder in enumerate(sys.argv[2:]):\n"
    "    while app(['maintain', sys.argv[1], '--update', folder, '--id', str(number)]): pass\n"
)


class RacedShop(Protocol):
    """A warehouse with updates to come."""

    toml: Path

    def expected(self) -> State:
        """The views' rows after all updates so far."""
        ...


def race(
    shop: RacedShop, rounds: int, change: Callable[[str, random.Random], Path], stored: Callable[[], State]
) -> None:
    """Each state that a reader sees is that after some update, in all views; at the end all are done, each once.

    Args:
        shop: the warehouse, whose sources nobody reads.
        rounds: how many updates there are.
        change: makes an update of a name.
        stored: the rows as somebody sees them who has nothing but DuckDB.
    """
    states, draw, folders = [stored()], random.Random(11), list[Path]()
    for i in range(rounds):
        folders.append(change(f"u{i}", draw))
        states.append(shop.expected())
    text = shop.toml.read_text(encoding="utf-8").split("[sources", maxsplit=1)[0]
    shop.toml.write_text(f"{text}[update]\neffective = true\n", encoding="utf-8")
    seen: Counter[int] = Counter()
    problems: list[BaseException] = []
    stop = threading.Event()

    def look() -> None:
        try:
            while not stop.is_set():
                for looked in (_as_stored, _as_queried):
                    found = looked(shop.toml, [*states[0]])
                    alike = [[name for name in found if state[name] == found[name]] for state in states]
                    assert found in states, (looked, alike)
                    seen[states.index(found)] += 1
        except BaseException as error:  # noqa: BLE001 - told below
            problems.append(error)

    command = [sys.executable, "-c", SCRIPT, str(shop.toml), *map(str, folders)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    watching = threading.Thread(target=look)
    watching.start()
    try:
        for writer in writers:
            writer.communicate(timeout=60 + 10 * rounds)
    finally:
        stop.set()
        for writer in writers:
            writer.kill()
        watching.join()
    print(f"{rounds} rounds of two writers: {seen.total()} looks, {len(seen)} states seen")
    assert not problems, problems
    assert [writer.returncode for writer in writers] == [0, 0]
    assert stored() == states[-1]
    assert len(seen) > 1
    commits = [said.update for _, said in store_of(shop.toml).commits() if said.kind == "maintain"]
    assert commits == [str(i) for i in range(rounds)]


def _as_stored(toml: Path, names: list[str]) -> State:
    open_ = store_of(toml)
    return {
        name: _rows(stored_rows(open_.store.database, open_.table(name)).arrow().to_pylist())
        for name in names
    }


def _as_queried(toml: Path, names: list[str]) -> State:
    with selfmaint.load(toml, engine="duckdb") as warehouse:
        return {name: _rows(warehouse.query(name).to_pylist()) for name in names}


def _rows(found: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in found)
