"""Arbitrary changes, most of which no table ever made: the statements refuse what the rules refuse.

Oracle: `by_rules`, which evaluates the Datalog rules and shares no code with the window functions.
Every case has a key of its own, so that one statement judges all of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from datalog.model import ColumnType, TypeName
from datalog.sql import changes as sql
from selfmaint.api.platforms.platform import platform_of
from selfmaint.duckdb import DuckEngine
from selfmaint.errors import InputError
from selfmaint.feeds.changes import Change, RowEvent, split
from selfmaint.feeds.condense import Changes, Condensed, condensed, judged_changes
from selfmaint.feeds.lines import PlacedEvent
from selfmaint.feeds.ranges import Scale
from selfmaint.feeds.spilled import spilled
from selfmaint.feeds.table import FeedTable
from tests.selfmaint.feeds.by_rules import NetEffect, net_effect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = (ColumnType(TypeName.INT), ColumnType(TypeName.STRING))
KEYED = FeedTable("r", ("id", "name"), TYPES, (0,), frozenset({0}))
WHOLE = FeedTable("r", ("id", "name"), TYPES, None, frozenset())

names = st.sampled_from([None, "a", "b"])
places = st.sampled_from([(None, 0), (None, 1), ("f", 1), ("f", 2), ("f", 3), ("g", 1)])
events = st.tuples(
    st.sampled_from(["insert", "delete", "update"]), names, names, st.booleans(), st.integers(0, 2), places
)
cases = st.lists(st.lists(events, max_size=5), min_size=30, max_size=60)


Case = list[tuple[str, str | None, str | None, bool, int, tuple[str | None, int]]]
Cases = list[Case]


def placed(case: Case, key: int, scale: Scale) -> Iterator[tuple[RowEvent, str | None, int]]:
    for op, old, new, partial, position, place in case:
        before = None if op == "insert" else (key, None if partial else old)
        after = None if op == "delete" else (key, new)
        yield RowEvent("r", (position,), scale, before, after, partial and before is not None), *place


def expected(changes: list[Change], table: FeedTable) -> NetEffect | None:
    try:
        return net_effect(changes, table)
    except InputError:
        return None


def condensed_by(
    engine: Any, table: FeedTable, stated: list[tuple[RowEvent, str | None, int]]
) -> tuple[set[int], Callable[[], Condensed[Any]]]:
    """The keys of the changes with which something is wrong, and what gives the net effect."""
    exchange = platform_of(engine).exchange
    with tempfile.TemporaryDirectory() as folder:
        events = [PlacedEvent(*one) for one in stated]
        (spill,) = spilled(events, {"r": table}, ["r"], Path(folder), "UTC").values()
        exact = [scale for scale in Scale if scale.is_exact and table.key is not None]
        changes = Changes(sql.events(len(table.columns)), [exchange.entered(spill)], exact)
        rows = engine.sample(judged_changes(exchange, changes, table), 10_000)
        return {row[0] for row in rows if row[-1] is not None}, lambda: condensed(
            engine, exchange, changes, table
        )


def refuses_what_the_rules_refuse(engine: Any, found: Cases, scale: Scale, *, keyed: bool) -> None:
    table = KEYED if keyed else WHOLE
    if not keyed:  # where there is no key, no row is known by its key alone
        found = [[(*event[:3], False, *event[4:]) for event in case] for case in found]
    stated = {key: list(placed(case, key, scale)) for key, case in enumerate(found)}
    answers = {
        key: expected([c for event, *place in events for c in split(event, *place)], table)
        for key, events in stated.items()
    }
    refused, _ = condensed_by(engine, table, [one for events in stated.values() for one in events])
    assert refused == {key for key, answer in answers.items() if answer is None}
    rest = [one for key, events in stated.items() if key not in refused for one in events]
    none, condense = condensed_by(engine, table, rest)
    assert none == set()
    net = condense()
    clean = [answer for answer in answers.values() if answer is not None]
    assert set(engine.sample(net.deleted, 10_000)) == {row for a in clean for row in a.deleted}
    assert set(engine.sample(net.inserted, 10_000)) == {row for a in clean for row in a.inserted}
    assert net.events - net.repeated == sum(a.events for a in clean)


scales = st.sampled_from([Scale.LSN, Scale.TIME, Scale.VERSION])


@settings(max_examples=10, deadline=None)
@given(found=cases, scale=scales, keyed=st.booleans())
def test_duckdb_refuses_what_the_rules_refuse(found: Cases, scale: Scale, keyed: bool) -> None:
    refuses_what_the_rules_refuse(DuckEngine(), found, scale, keyed=keyed)


@settings(max_examples=2, deadline=None, phases=[Phase.reuse, Phase.generate])
@given(found=cases, scale=scales, keyed=st.booleans())
def test_spark_refuses_what_the_rules_refuse(
    spark: SparkSession, found: Cases, scale: Scale, keyed: bool
) -> None:
    from selfmaint.spark import SparkEngine

    refuses_what_the_rules_refuse(SparkEngine(spark, near_values=0), found, scale, keyed=keyed)
