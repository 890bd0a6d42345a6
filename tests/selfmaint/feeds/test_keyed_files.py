"""`maintain --feed ... --verify` from the command line, on keyed tables: many random batches side by side.

Oracle: the simulated tables' join, in `tests.selfmaint.feeds.orders`; and `--verify`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.command_line import run
from tests.selfmaint.feeds.orders import COLUMNS, PROGRAM, REFERENCE, Batch, Row, batches, side_by_side

few = settings(max_examples=5, deadline=None, phases=[Phase.reuse, Phase.generate])

TYPES = {
    "id": pa.int64(),
    "customer": pa.int64(),
    "total": pa.int32(),
    "name": pa.string(),
    "city": pa.string(),
}
TYPES |= {"o": pa.int64(), "c": pa.int64(), "t": pa.int32(), "n": pa.string(), "y": pa.string()}
WAREHOUSE = """\
program = "views.dl"
feed.full_before_images = true

[views]
customers.path = "customers.parquet"
sales.path = "sales.parquet"

[sources.shop]
kind = "files"

[relations]
customer = { source = "shop", path = "customer.parquet" }
orders = { source = "shop", path = "orders.parquet" }
"""


def write(path: Path, rows: Iterable[Row]) -> None:
    schema = pa.schema([(name, TYPES[name]) for name in COLUMNS[path.stem]])
    records = [dict(zip(schema.names, row, strict=True)) for row in rows]
    pq.write_table(pa.Table.from_pylist(records, schema), path)


def contents(path: Path) -> list[Row]:
    return [tuple(record.values()) for record in pq.read_table(path).to_pylist()]


def stored(folder: Path, batch: Batch, program: str, engine: str) -> tuple[str, str, str]:
    """Writes the warehouse of before the batch, its sources of after it, and the feed: the command line's options."""
    (folder / "views.dl").write_text(program, encoding="utf-8")
    (folder / "warehouse.toml").write_text(f'engine.kind = "{engine}"\n{WAREHOUSE}', encoding="utf-8")
    for name, rows in {**batch.before.views, **batch.after.relations}.items():
        write(folder / f"{name}.parquet", rows)
    lines = "".join(json.dumps(event) + "\n" for event in batch.events)
    (folder / "feed.jsonl").write_text(lines, encoding="utf-8")
    return str(folder / "warehouse.toml"), "--feed", str(folder / "feed.jsonl")


def maintained(batch: Batch, program: str, engine: str) -> dict[str, Any]:
    """What the command prints; the views that it writes are those of after the batch."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        ran = run("maintain", *stored(folder, batch, program, engine), "--verify", "--format", "json")
        assert ran.status == 0, ran.stderr
        for view, rows in batch.after.views.items():
            found = contents(folder / f"{view}.parquet")
            assert len(found) == len(rows)
            assert set(found) == rows
    answer: dict[str, Any] = json.loads(ran.stdout)
    assert answer["verified"] is True
    return answer


def follow_without_a_read(found: list[Batch], engine: str) -> None:
    answer = maintained(side_by_side(found), PROGRAM, engine)
    assert {entry["verdict"] for entry in answer["verdicts"]} == {"yes"}
    assert answer["reads"] == []


many = st.lists(batches(), min_size=10, max_size=20)


@few
@given(found=many)
def test_views_follow_without_a_read(found: list[Batch]) -> None:
    follow_without_a_read(found, "duckdb")


# The first example is always the smallest, without an event.
@settings(max_examples=2, deadline=None, phases=[Phase.reuse, Phase.generate])
@given(found=many)
@pytest.mark.usefixtures("spark")
def test_views_follow_without_a_read_on_spark(found: list[Batch]) -> None:
    follow_without_a_read(found, "spark")


@few
@given(found=many)
def test_views_follow_where_references_are_not_declared(found: list[Batch]) -> None:
    maintained(side_by_side(found), PROGRAM.replace(f" {REFERENCE}", ""), "duckdb")
