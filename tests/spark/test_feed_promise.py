"""Arbitrary changes, most of which no table ever made: Spark's windows refuse what the rules in memory refuse.

Oracle: `selfmaint.feeds.memory`, which evaluates the Datalog rules and shares no code with the window functions.
Every case has a key of its own, so that one statement judges all of them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from datalog.model import ColumnType, TypeName
from selfmaint.errors import InputError
from selfmaint.feeds.changes import Change, split
from selfmaint.feeds.events import RowEvent
from selfmaint.feeds.memory import NetEffect, net_effect
from selfmaint.feeds.positions import Scale
from selfmaint.feeds.table import FeedTable

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


def placed(
    case: list[tuple[str, str | None, str | None, bool, int, tuple[str | None, int]]], key: int, scale: Scale
):
    for op, old, new, partial, position, place in case:
        before = None if op == "insert" else (key, None if partial else old)
        after = None if op == "delete" else (key, new)
        yield RowEvent("r", (position,), scale, before, after, partial and before is not None), *place


def expected(changes: list[Change], table: FeedTable) -> NetEffect | None:
    try:
        return net_effect(changes, table)
    except InputError:
        return None


@settings(max_examples=4, deadline=None, phases=[Phase.reuse, Phase.generate])
@given(found=cases, scale=st.sampled_from([Scale.LSN, Scale.TIME, Scale.VERSION]), keyed=st.booleans())
def test_spark_refuses_what_the_rules_refuse(
    spark: SparkSession,
    found: list[list[tuple[str, str | None, str | None, bool, int, tuple[str | None, int]]]],
    scale: Scale,
    keyed: bool,
) -> None:
    from pyspark.sql import functions as f

    from selfmaint.spark.feeds.change_frames import ChangesSpill
    from selfmaint.spark.feeds.condense import _distinct, _judged, condensed

    table = KEYED if keyed else WHOLE
    if not keyed:  # where there is no key, no row is known by its key alone
        found = [[(*event[:3], False, *event[4:]) for event in case] for case in found]
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        spill = ChangesSpill(table, Path(folder) / "changes.parquet", "UTC")
        for key, case in enumerate(found):
            stated = list(placed(case, key, scale))
            answers[key] = expected([c for event, *place in stated for c in split(event, *place)], table)
            for event, *place in stated:
                spill.add(event, *place)
        frame = spill.frame(spark)
        wrong = _judged(_distinct(frame, table), table).where("problem IS NOT NULL").select("c0").distinct()
        refused = {row[0] for row in wrong.collect()}
        assert refused == {key for key, answer in answers.items() if answer is None}
        rest = condensed(frame.where(~f.col("c0").isin([-1, *refused])), table)
        clean = [answer for answer in answers.values() if answer is not None]
        assert {tuple(row) for row in rest.deleted.collect()} == {row for a in clean for row in a.deleted}
        assert {tuple(row) for row in rest.inserted.collect()} == {row for a in clean for row in a.inserted}
        assert rest.events - rest.repeated == sum(a.events for a in clean)
