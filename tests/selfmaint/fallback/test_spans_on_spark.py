"""Views by day, month or year on Spark, whose clock may be of any zone. Oracle: the views' texts, run by Spark."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import selfmaint
from tests.many_statements import interpreting_session
from tests.selfmaint.fallback.test_spans import Base, bag, changed, prepare, table, visit, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "America/New_York": {
        "hours": "select date_trunc('hour', at) as k, max(price) as m, median(id) as n from visit group by 1",
        "days": "select cast(moment as date) as k, median(price) as n from visit group by 1",
    },
    "Pacific/Auckland": {
        "months": "select date_trunc('month', day) as k, median(id) as n from visit group by 1",
        "texts": "select date_format(moment, 'yyyy-MM') as k, median(id) as n from visit group by 1",
    },
}


def truth(session: SparkSession, folder: Path, text: str) -> pa.Table:
    session.read.parquet(str(folder / "visit.parquet")).createOrReplaceTempView("visit")
    found = session.sql(text).toArrow()
    session.catalog.dropTempView("visit")
    return found


@pytest.mark.parametrize("zone", VIEWS)
def test_views_are_what_spark_gives_on_any_clock(tmp_path: Path, spark: SparkSession, zone: str) -> None:
    session, random, texts = interpreting_session(spark), Random(zone), VIEWS[zone]
    session.conf.set("spark.sql.session.timeZone", zone)
    set_back = dt.datetime(2026, 11, 1)  # the day on which New York has an hour twice
    hours = [set_back.replace(tzinfo=dt.UTC) + dt.timedelta(hours=n) for n in range(-14, 30, 3)]
    edges = {(800 + i, 1, at.replace(tzinfo=None), at, at.date(), i) for i, at in enumerate(hours)}
    base: Base = {"visit": frozenset(edges | {visit(random, i) for i in range(9)}), "customer": frozenset()}
    moved = {(900 + i, 1, set_back, at, set_back.date(), 9 + i) for i, at in enumerate(hours[5:8])}
    after = {**base, "visit": changed(random, base, 100)["visit"] | moved}
    file = prepare(tmp_path, texts, base)
    stored = "".join(f'[views.{name}]\npath = "{name}.parquet"\n' for name in texts)
    file.write_text(file.read_text().replace('[store]\nkind = "lake"\npath = "lake"\n', stored))
    for name, text in texts.items():
        pq.write_table(truth(session, tmp_path, text), tmp_path / f"{name}.parquet")
    write(tmp_path, after)
    with selfmaint.load(file, session) as warehouse:
        frames = ((after["visit"] - base["visit"]), (base["visit"] - after["visit"]))
        update = selfmaint.Update.from_frames(warehouse, *({"visit": table("visit", one)} for one in frames))
        maintained = warehouse.maintain(update)
        assert set(maintained.keyed) == set(texts)
        assert all(read.is_of_spans for read in maintained.reads)
        warehouse.apply(maintained)
    for name, text in texts.items():
        right = truth(session, tmp_path, text)
        assert bag(pq.read_table(tmp_path / f"{name}.parquet")) == bag(right), name
