"""Views by day, month or year, followed by the base rows of those spans. Oracle: plain DuckDB over all base rows."""

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
from datalog.sql.affected import Period
from selfmaint.errors import Code
from tests.effort import effort
from tests.plain_duckdb import plain_duckdb

Row = tuple[Any, ...]
Base = dict[str, frozenset[Row]]
TABLES = """
create table visit (id int primary key, customer int, at timestamp_ntz, moment timestamp, day date, price int);
create table customer (name int primary key, since date, region string);
"""
SCHEMAS = {
    "visit": {
        "id": pa.int32(),
        "customer": pa.int32(),
        "at": pa.timestamp("us"),
        "moment": pa.timestamp("us", "UTC"),
        "day": pa.date32(),
        "price": pa.int32(),
    },
    "customer": {"name": pa.int32(), "since": pa.date32(), "region": pa.string()},
}
START = dt.datetime(2025, 12, 28)
FIRST, LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)
MARKS: dict[type, tuple[Any, Any]] = {
    dt.datetime: (FIRST, LAST),
    dt.date: (dt.date.min, dt.date.max),
}
"""What stands for "always" and "never"."""


def shown(random: Random, columns: list[str]) -> str:
    """What is shown of a column; both engines write it so."""
    column = random.choice(columns)
    unit = random.choice(["day", "week", "month", "quarter", "year", "hour"])
    if column.endswith(("day", "since")):
        return random.choice([f"cast(date_trunc('{unit}', {column}) as date)", f"year({column})"])
    return random.choice([f"date_trunc('{unit}', {column})", f"cast({column} as date)", f"year({column})"])


def query(random: Random) -> str:
    """A view by spans that no count tells."""
    one = shown(random, ['"at"', "moment", "day"])
    day, part = random.choice(['"at"', "moment", "day"]), random.choice(["month", "quarter"])
    values = ["count(distinct customer)", "max(price)", "min(day)", "median(id)", "sum(price)", "max(moment)"]
    first, second = random.sample(values, 2)
    where = random.choice(["", "", " where price > 2", " where customer is not null"])
    joined = shown(random, ['v."at"', "v.moment", "c.since", "v.day"])
    left = shown(random, ['v."at"', "v.moment", "v.day"])
    with_customer = "visit v {} join customer c on v.customer = c.name group by 1"
    return random.choice(
        [
            f"select {one} as k, {first} as a, {second} as b from visit{where} group by 1",
            f"select {one} as k, customer, {first} as a from visit{where} group by 1, 2",
            f"select distinct {one} as k, price from visit{where}",
            f"select year({day}) as k, {part}({day}) as m, {first} as a from visit{where} group by 1, 2",
            f"select k, max(n) as n from (select {one} as k, count(*) as n from visit group by 1, id) as q group by k",
            f"select {joined} as k, count(distinct c.region) as n from {with_customer.format('')}",
            f"select {joined} as k, max(v.price) as n, c.region from {with_customer.format('')}, 3",
            f"select {left} as k, count(distinct c.region) as n, max(c.since) as m from {with_customer.format('left')}",
            f"select k, id, rank() over (partition by k order by id) as r from (select {one} as k, id from visit) as q",
            f"select {one} as k from visit union select {one} from visit where price < 3",
        ]
    )


def visit(random: Random, number: int) -> Row:
    at = START + dt.timedelta(days=random.choice([0, 1, 3, 4, 4, 9, 400]), seconds=random.randrange(86_400))
    at = random.choice([at, at, at.replace(hour=0, minute=0, second=0)])
    at -= dt.timedelta(microseconds=random.choice([0, 0, 1]))
    instant = at.replace(tzinfo=dt.UTC) + dt.timedelta(hours=random.randint(-30, 30))
    day = at.date() + dt.timedelta(days=random.randint(0, 40))
    at, instant, day = (
        one if random.random() < 0.9 else random.choice(MARKS[type(one)]) for one in (at, instant, day)
    )
    values = [at, instant, day, random.randint(0, 5)]
    return number, random.choice([None, 1, 2, 3]), *(v if random.random() < 0.85 else None for v in values)


def customer(random: Random, number: int) -> Row:
    since = START.date() + dt.timedelta(days=random.randrange(500))
    return number, random.choice([since, since, None]), random.choice(["n", "s", None])


def changed(random: Random, base: Base, number: int) -> Base:
    """A base after an update."""
    visits = {row for row in base["visit"] if random.random() < 0.85}
    visits |= {visit(random, number + i) for i in range(random.randint(0, 3))}
    customers = {row[0]: row for row in base["customer"]}
    if random.random() < 0.5:
        one = customer(random, random.randint(1, 4))
        customers[one[0]] = one
    return {"visit": frozenset(visits), "customer": frozenset(customers.values())}


def table(name: str, rows: frozenset[Row]) -> pa.Table:
    ordered = sorted(rows, key=repr)
    columns = enumerate(SCHEMAS[name].items())
    return pa.table({c: pa.array([row[i] for row in ordered], kind) for i, (c, kind) in columns})


def plain(value: Any) -> Any:
    """A date as the midnight that it begins with, an instant on the clock of UTC: Spark's types are others."""
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    return dt.datetime(value.year, value.month, value.day) if isinstance(value, dt.date) else value


def bag(rows: pa.Table) -> Counter[Row]:
    return Counter(tuple(map(plain, row.values())) for row in rows.to_pylist())


def truth(base: Base, text: str) -> Counter[Row]:
    with plain_duckdb() as connection:
        connection.execute("set timezone = 'UTC'")
        for name, rows in base.items():
            connection.register(name, table(name, rows))
        return bag(connection.sql(text).to_arrow_table())


def prepare(folder: Path, texts: dict[str, str], base: Base) -> Path:
    views = "".join(f"create view {n} as {text.replace(chr(34), '')};\n" for n, text in texts.items())
    (folder / "views.sql").write_text(TABLES + views)
    relations = "".join(f'[relations.{n}]\nsource = "files"\npath = "{n}.parquet"\n' for n in SCHEMAS)
    (folder / "w.toml").write_text(
        'program = "views.sql"\n[store]\nkind = "lake"\npath = "lake"\n'
        f'[sources.files]\nkind = "files"\n{relations}[update]\neffective = true\n'
    )
    write(folder, base)
    return folder / "w.toml"


def write(folder: Path, base: Base) -> None:
    for name, rows in base.items():
        pq.write_table(table(name, rows), folder / f"{name}.parquet")


def nights(folder: Path, seed: str, number: int) -> Counter[str]:
    """Some nights of four views: how many reads were of what kind."""
    random = Random(seed)
    base: Base = {
        "visit": frozenset(visit(random, i) for i in range(12)),
        "customer": frozenset(customer(random, i) for i in range(1, 4)),
    }
    texts = {f"v{i}": query(random) for i in range(4)}
    file = prepare(folder, texts, base)
    assert selfmaint.init(file)
    reads = Counter[str]()
    with selfmaint.load(file, engine="duckdb") as warehouse:
        for night in range(number):
            after = changed(random, base, 100 * (night + 1))
            write(folder, after if random.random() < 0.5 else base)
            new, gone = (
                {n: table(n, rows) for n in base if (rows := one[n] - other[n])}
                for one, other in ((after, base), (base, after))
            )
            update = selfmaint.Update.from_frames(warehouse, new, gone, id=f"{seed}-{night}")
            maintained = warehouse.maintain(update)
            warehouse.apply(maintained)
            base = after
            for read in maintained.reads:
                how = "spans" if read.is_of_spans else "keys" if read.key_columns else "whole"
                reads[how] += 1
            for name, text in texts.items():
                assert bag(pa.table(warehouse.read(name))) == truth(base, text), (text, night)
    return reads


@pytest.mark.parametrize("seed", range(effort(3, 200)))
def test_views_are_what_recomputing_gives(tmp_path: Path, seed: int) -> None:
    reads = nights(tmp_path, f"spans-{seed}", 3)
    assert not reads["whole"]
    assert reads["spans"] or seed > 3


def test_spans_that_are_too_short_are_found_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Period, "ahead", dt.timedelta(hours=1))
    with pytest.raises(AssertionError):  # noqa: PT012 - in one of these
        for seed in range(4):
            (folder := tmp_path / str(seed)).mkdir()
            nights(folder, f"spans-{seed}", 3)


@pytest.fixture
def one_view(tmp_path: Path) -> tuple[Path, Base]:
    """Customers by day, of visits on four days."""
    days = [(START + dt.timedelta(days=n, hours=n), n) for n in (0, 1, 1, 2, 5)]
    visits = [(i, n, at, None, at.date(), 1) for i, (at, n) in enumerate(days)]
    base: Base = {"visit": frozenset(visits), "customer": frozenset()}
    text = 'select cast("at" as date) as k, count(distinct customer) as n from visit group by 1'
    return prepare(tmp_path, {"v": text}, base), base


def _update(warehouse: selfmaint.Warehouse[Any], new: list[Row], gone: list[Row]) -> selfmaint.Update[Any]:
    frames = ({"visit": table("visit", frozenset(rows))} if rows else {} for rows in (new, gone))
    return selfmaint.Update.from_frames(warehouse, *frames)


def test_the_days_that_change_are_read_and_no_others(one_view: tuple[Path, Base]) -> None:
    file, base = one_view
    selfmaint.init(file)
    new = (9, 7, START + dt.timedelta(days=1), None, None, 1)
    write(file.parent, {**base, "visit": base["visit"] | {new}})
    with selfmaint.load(file, engine="duckdb") as warehouse:
        update = _update(warehouse, [new], [])
        assert warehouse.check(update).ways["v"].by == "keyed reads"
        found = warehouse.maintain(update)
        (read,) = found.reads
        assert (read.key_columns, read.keys_asked, read.rows_read) == (("at",), 1, 3)
        assert bag(pa.table(found.deltas["v"].gained)) == {(START.replace(day=29), 2): 1}


def test_many_days_are_read_in_few_spans(
    one_view: tuple[Path, Base], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, base = one_view
    selfmaint.init(file)
    new = [(10 + n, 7, START + dt.timedelta(days=n), None, None, 1) for n in (0, 2, 5, 40)]
    write(file.parent, {**base, "visit": base["visit"] | set(new)})
    with selfmaint.load(file, engine="duckdb") as warehouse:
        monkeypatch.setattr("selfmaint.fallback.spans.MOST_SPANS", 2)
        maintained = warehouse.maintain(_update(warehouse, new, []), verify=True)
        assert not maintained.differences
        (read,) = maintained.reads
        assert (read.keys_asked, read.rows_read) == (2, 9)
        monkeypatch.setattr("selfmaint.fallback.spans.MOST_PERIODS", 3)
        with pytest.raises(selfmaint.NotMaintainedError) as refused:
            warehouse.maintain(_update(warehouse, new, []))
        assert "spans" in refused.value.diagnostics[0].message


def test_rows_without_a_time_are_read_of_groups_without_one(one_view: tuple[Path, Base]) -> None:
    file, base = one_view
    selfmaint.init(file)
    new = [(10, 7, None, None, None, 1), (11, 8, None, None, None, 1)]
    with selfmaint.load(file, engine="duckdb") as warehouse:
        for one in new:
            base = {**base, "visit": base["visit"] | {one}}
            write(file.parent, base)
            warehouse.apply(warehouse.maintain(_update(warehouse, [one], [])))
        assert bag(pa.table(warehouse.read("v")))[None, 2] == 1


@pytest.mark.parametrize("has_moved", [False, True])
def test_a_source_in_another_state_is_refused(one_view: tuple[Path, Base], has_moved: bool) -> None:
    file, base = one_view
    selfmaint.init(file)
    (gone, *_), new = sorted(base["visit"], key=repr), (9, 7, START, None, None, 1)
    left = base["visit"] - {gone} if has_moved else base["visit"]
    write(file.parent, {**base, "visit": left})
    with selfmaint.load(file, engine="duckdb") as warehouse:
        update = _update(warehouse, [new], [gone])
        if not has_moved:  # right before the update
            maintained = warehouse.maintain(update, verify=True)
            assert not maintained.differences
            assert maintained.reads[0].is_before
            return
        with pytest.raises(selfmaint.SourceError) as refused:
            warehouse.maintain(update)
        assert refused.value.diagnostics[0].code is Code.SOURCE_MOVED


@pytest.mark.parametrize("at", [FIRST, LAST])
def test_the_first_and_the_last_day_are_read_alone(one_view: tuple[Path, Base], at: dt.datetime) -> None:
    file, base = one_view
    selfmaint.init(file)
    new = (9, 7, at, None, None, 1)
    write(file.parent, {**base, "visit": base["visit"] | {new}})
    with selfmaint.load(file, engine="duckdb") as warehouse:
        maintained = warehouse.maintain(_update(warehouse, [new], []), verify=True)
        assert not maintained.differences
        assert maintained.reads[0].rows_read == 1


@pytest.mark.parametrize("kind", ["date", "timestamp"])
@pytest.mark.parametrize("far", ["infinity", "-infinity"])
def test_infinity_has_no_year_and_is_read_with_what_has_none(tmp_path: Path, kind: str, far: str) -> None:
    """DuckDB has null for it, as for null."""
    declared = "timestamp_ntz" if kind == "timestamp" else kind
    (tmp_path / "views.sql").write_text(
        f"create table visit (id int primary key, customer int, ts {declared});\n"
        "create view v as select year(ts) as k, count(distinct customer) as n from visit group by 1;\n"
    )
    (tmp_path / "w.toml").write_text(
        'program = "views.sql"\n[store]\nkind = "lake"\npath = "lake"\n'
        '[relations.visit]\npath = "visit.parquet"\n[update]\neffective = true\n'
    )
    with plain_duckdb() as connection:
        connection.execute(f"create table visit (id int, customer int, ts {kind})")

        def brought(*rows: tuple[int, int, str | None]) -> None:
            connection.executemany("insert into visit values (?, ?, ?)", list(map(list, rows)))
            connection.execute(f"copy visit to '{tmp_path / 'visit.parquet'}'")

        brought((1, 1, far), (2, 2, None), (4, 4, "2026-01-01"))
        selfmaint.init(tmp_path / "w.toml", engine="duckdb")
        brought((3, 3, None))
        with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as warehouse:
            new = connection.sql("from visit where id = 3").to_arrow_table()
            maintained = warehouse.maintain(selfmaint.Update.from_frames(warehouse, {"visit": new}))
            warehouse.apply(maintained)
            assert [(read.keys_asked, read.rows_read) for read in maintained.reads] == [(3, 3)]
            found = bag(pa.table(warehouse.read("v")))
        assert found == bag(
            connection.sql("select year(ts), count(distinct customer) from visit group by 1").to_arrow_table()
        )
