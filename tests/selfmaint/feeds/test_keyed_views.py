"""Updates from feeds of keyed tables, decided and maintained: a changed row is a deletion and an insertion of a key.

Oracle: the simulated tables' join, in `orders`; and `verify`, which recomputes every view from its sources.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from selfmaint import Update
from selfmaint.api.maintain import maintain, new_contents
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.decide.verdict import SelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from selfmaint.fallback.settle import Readable
from selfmaint.feeds.settings import FeedSettings
from selfmaint.sources.memory import RowsSource
from tests.large_engine import LargeEngine
from tests.selfmaint.feeds.orders import COLUMNS, PROGRAM, REFERENCE, Batch, Shop, batches

Rows = frozenset[tuple[Any, ...]]


def warehouse(batch: Batch, program: str, engine: MemoryEngine) -> Warehouse[Rows]:
    after = {name: (COLUMNS[name], rows) for name, rows in batch.after.relations.items()}
    readable = Readable(RowsSource("shop", after))
    made = build(program, batch.before.views, engine, readable=dict.fromkeys(after, readable))
    settings = FeedSettings(full_before_images=True)
    return Warehouse(made.catalog, engine, made.contents, readable=made.readable, feeds=settings)


def follow(batch: Batch, program: str, engine: MemoryEngine) -> tuple[bool, int]:
    """Whether every view is self-maintainable, and how often a base relation was read."""
    with tempfile.TemporaryDirectory() as folder, warehouse(batch, program, engine) as opened:
        feed = Path(folder) / "feed.jsonl"
        feed.write_text("".join(json.dumps(event) + "\n" for event in batch.events), encoding="utf-8")
        update = Update.from_feed(opened, feed)
        assert update.effective
        found = maintain(opened, update, verify=True, full=True)
        assert found.differences == ()
        for view in opened.catalog.views:
            assert new_contents(opened, view, found.deltas[view.name]) == batch.after.views[view.name]
        verdicts = found.verdicts.values()
        return all(isinstance(verdict, SelfMaintainable) for verdict in verdicts), len(found.reads)


@pytest.mark.parametrize("engine", [MemoryEngine, LargeEngine])
@given(batch=batches())
def test_views_follow_without_a_read(engine: type[MemoryEngine], batch: Batch) -> None:
    """Every order has a customer, so the stored join shows every order, and the copy every customer."""
    assert follow(batch, PROGRAM, engine()) == (True, 0)


@given(batch=batches())
def test_views_follow_with_reads_where_references_are_not_declared(batch: Batch) -> None:
    """An order may have waited for its customer: then the source is asked."""
    follow(batch, PROGRAM.replace(f" {REFERENCE}", ""), MemoryEngine())


ANN, BOB = (1, "Ann", "Aachen"), (2, "Bob", "Bonn")


def changed(table: str, old: tuple[Any, ...], new: tuple[Any, ...]) -> dict[str, Any]:
    before, after = (dict(zip(COLUMNS[table], row, strict=True)) for row in (old, new))
    return {"before": before, "after": after, "op": "u", "source": {"table": table, "lsn": 7}}


@pytest.mark.parametrize("reference", [True, False])
def test_a_changed_row_of_a_key_that_was_there_needs_no_read(reference: bool) -> None:
    """The copy knows the customer of before, so the join showed all its orders: no reference is needed."""
    program = PROGRAM if reference else PROGRAM.replace(f" {REFERENCE}", "")
    before = Shop({1: ANN, 2: BOB}, {10: (10, 1, 5), 11: (11, 2, 6), 12: (12, 2, 7)})
    moved = (2, "Bob", "Cork")
    dimension = Batch(before, [changed("customer", BOB, moved)], Shop({1: ANN, 2: moved}, before.orders))
    assert follow(dimension, program, MemoryEngine()) == (True, 0)
    fact = Batch(
        before,
        [changed("orders", (11, 2, 6), (11, 1, 9))],
        Shop(before.customer, {**before.orders, 11: (11, 1, 9)}),
    )
    assert follow(fact, program, MemoryEngine()) == (True, 0)


def test_a_new_customer_without_declared_references_is_asked_for() -> None:
    before = Shop({1: ANN}, {10: (10, 1, 5)})
    event = {
        "before": None,
        "after": {"id": 2, "name": "Bob", "city": "Bonn"},
        "op": "c",
        "source": {"table": "customer", "lsn": 7},
    }
    batch = Batch(before, [event], Shop({1: ANN, 2: BOB}, before.orders))
    assert follow(batch, PROGRAM, MemoryEngine()) == (True, 0)
    assert follow(batch, PROGRAM.replace(f" {REFERENCE}", ""), MemoryEngine()) == (False, 1)
