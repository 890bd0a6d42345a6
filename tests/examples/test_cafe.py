"""The café's dbt project: what its page shows is printed, and the marts are what DuckDB makes of dbt's compiled SQL."""

from __future__ import annotations

import json
import runpy
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import selfmaint
from tests.command_line import run

CAFE = Path(__file__).resolve().parents[2] / "examples" / "cafe"
TYPES = {
    "customers": "id int, name varchar, city varchar",
    "products": "sku varchar, name varchar, kind varchar, price decimal(8, 2)",
    "orders": "id int, customer int, ordered_at timestamp, status varchar",
    "items": "id int, order_id int, sku varchar, quantity int",
}


@pytest.fixture(scope="module")
def cafe(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A copy of the example after its commands, and what `maintain` printed."""
    folder = tmp_path_factory.mktemp("cafe") / "cafe"
    shutil.copytree(CAFE, folder, ignore=shutil.ignore_patterns("lake", "__pycache__"))
    toml = str(folder / "warehouse.toml")
    assert run("init", toml).status == 0
    runpy.run_path(str(folder / "move_on.py"), run_name="__main__")
    done = run("maintain", toml, "--update", str(folder / "monday"), "--verify")
    assert done.status == 0, done.stderr
    return folder, [line.rstrip() for line in done.stdout.splitlines()]


def test_the_page_shows_what_is_printed(cafe: tuple[Path, list[str]]) -> None:
    page = (CAFE / "README.md").read_text(encoding="utf-8")
    shown = page.split("```console")[1].split("```")[0].splitlines()
    expected = [line for line in shown if line and not line.startswith("$") and line != "..."]
    assert expected
    assert [line for line in cafe[1] if line in expected] == expected


def test_the_marts_are_what_dbt_makes_of_the_sources(cafe: tuple[Path, list[str]]) -> None:
    """dbt runs the compiled SQL of its models in order of their reads; so does this."""
    manifest = json.loads((CAFE / "target" / "manifest.json").read_text(encoding="utf-8"))
    models = {i: n for i, n in manifest["nodes"].items() if n["resource_type"] == "model"}
    with duckdb.connect() as plain, selfmaint.load(cafe[0] / "warehouse.toml") as warehouse:
        plain.execute("attach ':memory:' as cafe")
        plain.execute("create schema cafe.raw")
        for name, columns in TYPES.items():
            plain.execute(f"create table cafe.raw.{name} ({columns})")
            plain.execute(f"copy cafe.raw.{name} from '{cafe[0] / 'base' / name}.csv' (header)")
        waiting = dict(models)
        while waiting:
            ready = [i for i, n in waiting.items() if not set(n["depends_on"]["nodes"]) & set(waiting)]
            for one in ready:
                node = waiting.pop(one)
                plain.execute(f"create table cafe.main.{node['name']} as {node['compiled_code']}")
        marts = [n["name"] for n in models.values() if n["config"]["materialized"] == "table"]
        assert len(marts) == 8
        for mart in marts:
            stored = warehouse.read(mart if mart not in TYPES else f"main.{mart}")
            names = pa.table(stored).column_names
            expected = plain.sql(f"select {', '.join(names)} from cafe.main.{mart}").to_arrow_table()
            assert bag(stored) == bag(expected), mart


def bag(rows: Any) -> Counter[tuple[str, ...]]:
    """Rows, each as often as it stands; whole numbers that DuckDB adds up as others are these."""
    table = pa.table(rows)
    return Counter(tuple(str(v).removesuffix(".0") for v in row.values()) for row in table.to_pylist())
