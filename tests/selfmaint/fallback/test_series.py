"""Calendars and nights of stays, followed by keys where that can be. Oracle: plain DuckDB over all base rows."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import selfmaint
from tests.effort import effort
from tests.plain_duckdb import plain_duckdb

Row = tuple[Any, ...]
TABLE = "create table stay (id int primary key, room int, arrival date, departure date, price int);\n"
SCHEMA = {
    "id": pa.int32(),
    "room": pa.int32(),
    "arrival": pa.date32(),
    "departure": pa.date32(),
    "price": pa.int32(),
}
FIRST, LAST = dt.date(2026, 1, 1), dt.date(2026, 2, 3)
IN_SPARK = {
    "days": f"(select explode(sequence(date '{FIRST}', date '{LAST}')) as day)",
    "weeks": f"(select explode(sequence(date '{FIRST}', date '{LAST}', interval 1 week)) as day)",
    "rooms": "(select explode(sequence(1, 5)) as room)",
    "nights": "stay s lateral view explode(sequence(s.arrival, s.departure, interval 1 day)) n as night",
}
IN_DUCKDB = {
    "days": f"(select unnest(generate_series(date '{FIRST}', date '{LAST}', interval 1 day))::date as day)",
    "weeks": f"(select unnest(generate_series(date '{FIRST}', date '{LAST}', interval 7 day))::date as day)",
    "rooms": "(select unnest(range(1, 6))::int as room)",
    "nights": "(select *, unnest(generate_series(arrival, departure, interval 1 day))::date as night from stay) s",
}
QUERIES = [
    "select d.day, count(s.id) as n, sum(price) as p from {days} d left join stay s on s.arrival = d.day group by 1",
    "select d.day, max(s.price) as p from {days} d join stay s on d.day = s.departure where s.room > 1 group by d.day",
    "select d.day as k, count(distinct s.room) as n from {weeks} d join stay s on s.arrival = d.day group by 1",
    "select d.day from {days} d where not exists (select 1 from stay s where s.arrival = d.day)",
    "select d.day, s.id from {days} d left join stay s on s.arrival = d.day and s.departure is not null",
    "select date_trunc('month', d.day) as k, max(s.id) as n from {days} d join stay s on s.arrival = d.day group by 1",
    (
        "select r.room, d.day, count(s.id) as n from {rooms} r cross join {days} d "
        "left join stay s on s.room = r.room and s.arrival = d.day group by 1, 2"
    ),
    "select r.room, count(distinct s.price) as n from {rooms} r left join stay s on s.room = r.room group by 1",
    (
        "select day, n, sum(n) over (order by day) as t from (select d.day, count(s.id) as n from {days} d "
        "left join stay s on s.arrival = d.day group by 1) as q"
    ),
    "select s.id, s.room, night from {nights}",
    "select s.room, count(*) as n, min(night) as f from {nights} group by s.room",
    "select night, count(distinct s.room) as n, sum(s.price) as p from {nights} group by night",
    "select s.id, night, rank() over (partition by s.id order by night) as k from {nights} where night > '2026-01-05'",
    "select day as k from {days} as d union select arrival from stay",
]


def stay(random: Random, number: int) -> Row:
    arrival = FIRST + dt.timedelta(days=random.randint(-3, 35))
    departure = arrival + dt.timedelta(days=random.randint(0, 4))
    arrival, departure = (day if random.random() < 0.85 else None for day in (arrival, departure))
    return number, random.choice([None, *range(1, 7)]), arrival, departure, random.choice([None, 1, 2, 5])


def table(rows: frozenset[Row]) -> pa.Table:
    ordered = sorted(rows, key=repr)
    return pa.table(
        {c: pa.array([row[i] for row in ordered], kind) for i, (c, kind) in enumerate(SCHEMA.items())}
    )


def plain(value: Any) -> Any:
    """A date as the midnight that it begins with: `date_trunc` of Spark gives a time."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    return dt.datetime(value.year, value.month, value.day) if isinstance(value, dt.date) else value


def bag(rows: pa.Table) -> Counter[Row]:
    return Counter(tuple(map(plain, row.values())) for row in rows.to_pylist())


@pytest.mark.parametrize("seed", range(effort(4, 100)))
def test_views_are_what_recomputing_gives(tmp_path: Path, seed: int) -> None:
    random = Random(f"series-{seed}")
    texts = {f"v{i}": text for i, text in enumerate(QUERIES) if (i + seed) % 2 == 0}
    views = "".join(f"create view {name} as {text.format(**IN_SPARK)};\n" for name, text in texts.items())
    (tmp_path / "views.sql").write_text(TABLE + views)
    (tmp_path / "w.toml").write_text(
        'program = "views.sql"\n[store]\nkind = "lake"\npath = "lake"\n'
        '[relations.stay]\npath = "stay.parquet"\n[update]\neffective = true\n'
    )
    base = frozenset(stay(random, i) for i in range(15))
    pq.write_table(table(base), tmp_path / "stay.parquet")
    selfmaint.init(tmp_path / "w.toml", engine="duckdb")
    followed = set[str]()
    with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as warehouse, plain_duckdb() as connection:
        for night in range(3):
            kept = {row for row in base if random.random() < 0.8}
            after = frozenset(
                kept | {stay(random, 100 * (night + 1) + i) for i in range(random.randint(0, 3))}
            )
            pq.write_table(table(after if random.random() < 0.5 else base), tmp_path / "stay.parquet")
            sides = ({"stay": table(one - other)} for one, other in ((after, base), (base, after)))
            update = selfmaint.Update.from_frames(warehouse, *sides, id=f"{night}")
            maintained = warehouse.maintain(update, recompute=True)
            followed |= {*maintained.keyed}
            warehouse.apply(maintained)
            base = after
            connection.register("stay", table(base))
            for name, text in texts.items():
                right = connection.sql(text.format(**IN_DUCKDB)).to_arrow_table()
                assert bag(pa.table(warehouse.read(name))) == bag(right), (text, night)
    assert {name for name in ("v0", "v7", "v9", "v10") if name in texts} <= followed


@pytest.mark.parametrize(
    "query",
    [
        "select id, explode_outer(sequence(1, room)) as n from stay",
        "select id, n from stay lateral view explode_outer(sequence(1, room)) t as n",
        "select id, n from stay lateral view outer explode(sequence(1, room)) t as n",
        "select id, posexplode(sequence(1, room)) from stay",
        "select id, explode(sequence(cast(room as smallint), 4S, 1S)) as n from stay",
        "select id, explode(sequence(room, 4, 3000000000)) as n from stay",
        "select explode(sequence(cast(arrival as timestamp), timestamp '2026-02-02', interval 1 day)) as n from stay",
        "select id, explode(sequence(arrival, departure, interval 1 hour)) as n from stay",
        "select id, explode(sequence(1, room, 0)) as n from stay",
        "select id, 1 + explode(sequence(1, room)) as n from stay",
    ],
)
def test_what_makes_other_rows_is_left_to_spark(tmp_path: Path, query: str) -> None:
    (tmp_path / "views.sql").write_text(f"{TABLE}create view v as {query};\n")
    (tmp_path / "w.toml").write_text(
        'program = "views.sql"\n[store]\nkind = "lake"\npath = "lake"\n[relations.stay]\npath = "stay.parquet"\n'
    )
    pq.write_table(table(frozenset({(1, 2, FIRST, LAST, 1)})), tmp_path / "stay.parquet")
    with pytest.raises(selfmaint.InputError, match="SM502"):
        selfmaint.init(tmp_path / "w.toml", engine="duckdb")
