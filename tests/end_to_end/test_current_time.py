"""Views that read the current date or time, followed for days. Oracle: plain DuckDB over the base rows, at that moment.

DuckDB has no clock that can be set, so the queries it runs have a parameter in place of the date.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import selfmaint
from datalog.sql.views.written_out.current_time import at_moment, written_moments
from selfmaint.api.following.not_maintained import NotMaintainedError
from selfmaint.api.stores import store
from selfmaint.decide.verdict import SelfMaintainable, Undecided
from selfmaint.errors import Code, InputError
from selfmaint.warehouse import clock
from tests.effort import effort
from tests.keyed_queries import bag
from tests.plain_duckdb import plain_duckdb

Row = tuple[Any, ...]
Base = dict[str, set[Row]]
START = datetime(2026, 11, 24, 23, 30, tzinfo=UTC)
COLUMNS = {"sale": ("id", "day", "at", "shop", "price"), "shop": ("name", "region")}
SCHEMAS = {
    "sale": [pa.int32(), pa.date32(), pa.timestamp("us", "UTC"), pa.string(), pa.int32()],
    "shop": [pa.string(), pa.string()],
}
TABLES = """
create table sale (id int primary key, day date not null, at timestamp not null, shop string not null, price int,
    foreign key (shop) references shop (name));
create table shop (name string primary key, region string not null);
"""
DATED = {
    "recent": "select id, day, shop, price from sale where day >= current_date - interval 3 days",
    "by_region": "select region, count(*) as n, count(price) as m, sum(price) as total from sale join shop "
    "on shop = name where day > current_date - 2 and price is not null group by region",
    "ages": "select id, datediff(current_date, day) as age, price from sale",
    "late": "select shop, avg(price) as mean from sale where day < current_date group by shop",
    "this_month": "select distinct shop from sale where day between date_trunc('month', current_date) and current_date",
    "without": "select name from shop where not exists (select 1 from sale where shop = name and day = current_date)",
    "first": "select id, shop from (select id, shop, row_number() over (partition by shop order by day, id) as k "
    "from sale where day >= current_date - 4) x where k = 1",
    "prices": "select shop, price from sale where day >= current_date - 2",
    "due": "select id, datediff(current_date, day) as late from sale where price > 1 and day < current_date",
    "either": "select shop from sale where day = current_date union all select name from shop",
}
PLAIN = {
    "shops": "select name, region from shop",
    "per_shop": "select shop, count(*) as n, count(price) as m, sum(price) as total from sale group by shop",
}
OVER = {"large": "select region, total from by_region where total > 3"}
TIMED = {"so_far": "select id, shop from sale where at <= now()"}


def at(moment: datetime, text: str) -> str:
    """The query as plain DuckDB runs it at a moment."""
    text = text.replace("datediff(current_date, day)", "date_diff('day', day, current_date)")
    return text.replace("current_date", f"(DATE '{moment:%Y-%m-%d}')").replace(" - interval 3 days", " - 3")


def truth(base: Base, queries: dict[str, str], moment: datetime) -> dict[str, Counter[Row]]:
    """The views' rows by plain DuckDB."""
    with plain_duckdb() as plain:
        for name, rows in base.items():
            plain.register(name, table(name, rows))
        found = {}
        for name, text in queries.items():
            rows = plain.sql(at(moment, text)).fetchall()
            plain.register(name, plain.sql(at(moment, text)).to_arrow_table())
            found[name] = Counter(rows)
        return found


def table(name: str, rows: set[Row]) -> pa.Table:
    columns = zip(COLUMNS[name], SCHEMAS[name], strict=True)
    ordered = sorted(rows, key=repr)
    return pa.table({c: pa.array([row[i] for row in ordered], kind) for i, (c, kind) in enumerate(columns)})


class Days:
    """A warehouse in a lake, its sources, and a clock that is set by hand."""

    def __init__(self, folder: Path, queries: dict[str, str], rng: random.Random, *, helpers: bool) -> None:
        self.folder, self.queries, self.rng = folder, queries, rng
        self.moment, self.number = START, 0
        views = "".join(f"create view {name} as {text};\n" for name, text in queries.items())
        (folder / "views.sql").write_text(TABLES + views)
        relations = "".join(
            f'[relations.{name}]\nsource = "files"\npath = "{name}.parquet"\n' for name in COLUMNS
        )
        (folder / "w.toml").write_text(
            f'program = "views.sql"\n[store]\nkind = "lake"\npath = "lake"\nhelpers = {str(helpers).lower()}\n'
            f'[sources.files]\nkind = "files"\n{relations}[update]\neffective = true\n'
        )
        self.base: Base = {"shop": {(name, rng.choice("nsw")) for name in "abcd"}, "sale": set()}
        self.base["sale"] = {self.sale() for _ in range(12)}
        self.write()

    def sale(self) -> Row:
        """A sale some days before or after."""
        self.number += 1
        day = self.moment + timedelta(days=self.rng.randint(-6, 2), hours=self.rng.randint(0, 23))
        return self.number, day.date(), day, self.rng.choice("abcd"), self.rng.choice([None, 1, 2, 3])

    def write(self) -> None:
        for name, rows in self.base.items():
            pq.write_table(table(name, rows), self.folder / f"{name}.parquet")

    def change(self) -> dict[str, dict[str, pa.Table]]:
        """An update of the sales, which the sources have then."""
        gone = set(self.rng.sample(sorted(self.base["sale"]), self.rng.randint(0, 2)))
        new = {self.sale() for _ in range(self.rng.randint(0, 2))}
        self.base["sale"] = self.base["sale"] - gone | new
        self.write()
        return {"inserted": {"sale": table("sale", new)}, "deleted": {"sale": table("sale", gone)}}


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[datetime], None]:
    def set_(moment: datetime) -> None:
        monkeypatch.setattr(clock, "now", lambda: moment)

    set_(START)
    return set_


def held(warehouse: selfmaint.Warehouse[Any], name: str) -> Counter[Row]:
    return bag(pa.table(warehouse.read(name)))


@pytest.mark.parametrize("helpers", [False, True])
@pytest.mark.parametrize("seed", range(effort(1, 40)))
def test_views_are_followed_from_day_to_day(
    tmp_path: Path, seed: int, helpers: bool, set_clock: Callable[[datetime], None]
) -> None:
    rng = random.Random(seed)
    chosen = dict(rng.sample(sorted(DATED.items()), 4)) | {"by_region": DATED["by_region"]} | PLAIN | OVER
    days = Days(tmp_path, chosen, rng, helpers=helpers)
    assert selfmaint.init(tmp_path / "w.toml")
    kept = selfmaint.load(tmp_path / "w.toml", engine="duckdb")
    for hours in (0, 1, 30, 200):
        days.moment += timedelta(hours=hours)
        set_clock(days.moment)
        warehouse = kept if rng.random() < 0.5 else selfmaint.load(tmp_path / "w.toml", engine="duckdb")
        before = {name: held(warehouse, name) for name in chosen}
        given = days.change()
        update = selfmaint.Update.from_frames(warehouse, **given, id=f"{seed}-{days.moment}")
        verdicts = warehouse.check(update)
        maintained = warehouse.maintain(update, recompute=True, verify=True)
        assert not maintained.differences
        warehouse.apply(maintained)
        right = truth(days.base, chosen, days.moment)
        for name in chosen:
            assert held(warehouse, name) == right[name], (name, days.moment)
            if verdicts[name] and not maintained.deltas[name]:
                assert before[name] == right[name]
        kept = warehouse
    kept.close()


def test_the_time_moves_at_every_update(tmp_path: Path, set_clock: Callable[[datetime], None]) -> None:
    days = Days(tmp_path, TIMED | PLAIN, random.Random(5), helpers=False)
    selfmaint.init(tmp_path / "w.toml")
    with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as warehouse:
        for _ in range(3):
            days.moment += timedelta(hours=7)
            set_clock(days.moment)
            update = selfmaint.Update.from_frames(warehouse, **days.change())
            assert isinstance(warehouse.check(update)["so_far"], Undecided)
            warehouse.apply(warehouse.maintain(update, recompute=True))
            assert set(held(warehouse, "so_far")) == {
                (row[0], row[3]) for row in days.base["sale"] if row[2] <= days.moment
            }


def test_without_helpers_another_day_is_recomputed_or_refused(
    tmp_path: Path, set_clock: Callable[[datetime], None]
) -> None:
    days = Days(tmp_path, {"recent": DATED["recent"], **PLAIN}, random.Random(3), helpers=False)
    selfmaint.init(tmp_path / "w.toml")
    with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as warehouse:
        update = selfmaint.Update.from_frames(warehouse, **days.change())
        assert isinstance(warehouse.check(update)["recent"], SelfMaintainable)
        set_clock(START + timedelta(hours=1))
        found = warehouse.check(update)
        assert "2026-11-25" in found["recent"].because
        assert found["shops"]
        with pytest.raises(NotMaintainedError) as refused:
            warehouse.maintain(update)
        assert [one.code for one in refused.value.diagnostics] == [Code.NOT_MAINTAINED]
        assert "2026-11-24" in str(warehouse.explain(update, "recent"))


def test_with_helpers_another_day_reads_no_base_row(
    tmp_path: Path, set_clock: Callable[[datetime], None]
) -> None:
    names = ("recent", "by_region", "prices", "due")
    queries = {**{name: DATED[name] for name in names}, **PLAIN, **OVER}
    days = Days(tmp_path, queries, random.Random(4), helpers=True)
    selfmaint.init(tmp_path / "w.toml")
    with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as warehouse:
        set_clock(START + timedelta(days=2))
        update = selfmaint.Update.from_frames(warehouse, inserted={"sale": table("sale", set())})
        verdicts = warehouse.check(update)
        assert verdicts
        assert "2026-11-26" in verdicts["by_region"].remarks[-1]
        maintained = warehouse.maintain(update, strict=True)
        assert not maintained.reads
        warehouse.apply(maintained)
        right = truth(days.base, queries, START + timedelta(days=2))
        assert {name: held(warehouse, name) for name in queries} == right
        assert not warehouse.maintain(update, strict=True).moved  # the store knows the new day


def test_over_staging_views_another_day_reads_no_base_row(
    tmp_path: Path, set_clock: Callable[[datetime], None]
) -> None:
    queries = {
        "stg_sale": "select id, day, shop, price from sale where id > 0",
        "stg_shop": "select name, upper(region) as region from shop",
        "days": "select region, count(distinct day) as n, max(price) as top from stg_sale "
        "left join stg_shop on shop = name where day > current_date - 3 group by region",
        "some": "select id, shop from stg_sale where day > current_date - 1",
    }
    days = Days(tmp_path, queries, random.Random(5), helpers=False)
    selfmaint.init(tmp_path / "w.toml")
    with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as warehouse:
        for number in (0, 1, 2, 2):
            moment = START + timedelta(days=number)
            set_clock(moment)
            update = selfmaint.Update.from_frames(warehouse, **days.change())
            verdicts = warehouse.check(update)
            assert verdicts, str(verdicts)
            maintained = warehouse.maintain(update, strict=True, verify=True)
            assert not maintained.reads
            assert not maintained.differences
            warehouse.apply(maintained)
            right = truth(days.base, queries, moment)
            assert {name: held(warehouse, name) for name in queries} == right


def test_what_is_kept_with_copies_is_read_so_on_another_day(
    tmp_path: Path, set_clock: Callable[[datetime], None]
) -> None:
    queries = {
        "recent": "select id, shop, price from sale where day >= current_date - 3",
        "places": "select id, rank() over (partition by shop order by id) as place from recent",
        "kinds": "select shop, count(distinct price) as n from recent group by shop",
    }
    days = Days(tmp_path, queries, random.Random(6), helpers=True)
    selfmaint.init(tmp_path / "w.toml")
    with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as warehouse:
        for number in (0, 1, 2, 2):
            set_clock(START + timedelta(days=number))
            update = selfmaint.Update.from_frames(warehouse, **days.change())
            maintained = warehouse.maintain(update, strict=True)
            warehouse.apply(maintained)
            right = truth(days.base, queries, START + timedelta(days=number))
            assert {name: held(warehouse, name) for name in queries} == right


def test_what_tables_that_are_told_give_on_another_day_is_computed(
    tmp_path: Path, set_clock: Callable[[datetime], None]
) -> None:
    queries = {"all_sales": "select * from sale", "recent": DATED["recent"]}
    days = Days(tmp_path, queries, random.Random(7), helpers=False)
    selfmaint.init(tmp_path / "w.toml")
    with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as warehouse:
        set_clock(START + timedelta(days=1))
        update = selfmaint.Update.from_frames(warehouse, **days.change())
        assert warehouse.check(update)
        warehouse.apply(warehouse.maintain(update))
        right = truth(days.base, {"recent": DATED["recent"]}, START + timedelta(days=1))
        assert held(warehouse, "recent") == right["recent"]


@pytest.mark.usefixtures("set_clock")
def test_rows_of_an_unknown_day_are_refused(tmp_path: Path) -> None:
    Days(tmp_path, {"recent": DATED["recent"], **PLAIN}, random.Random(3), helpers=False)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "recent.parquet")
    with pytest.raises(InputError, match="nobody knows"):
        selfmaint.init(tmp_path / "w.toml", origins={"recent": tmp_path / "recent.parquet"})
    text = (tmp_path / "w.toml").read_text()
    (tmp_path / "files.toml").write_text(
        text.replace('[store]\nkind = "lake"\npath = "lake"\nhelpers = false\n', "")
        + "".join(f'[views.{name}]\npath = "{name}.parquet"\n' for name in ("recent", *PLAIN))
    )
    with pytest.raises(InputError, match="nothing says of which"):
        selfmaint.load(tmp_path / "files.toml")


def test_views_come_in_anew_as_of_the_day_of_the_others(
    tmp_path: Path, set_clock: Callable[[datetime], None]
) -> None:
    queries = {"recent": DATED["recent"], "by_region": DATED["by_region"], **PLAIN}
    days = Days(tmp_path, queries, random.Random(9), helpers=False)
    selfmaint.init(tmp_path / "w.toml")
    set_clock(START + timedelta(days=3))
    selfmaint.init(tmp_path / "w.toml", views=["recent"])
    with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as warehouse:
        assert held(warehouse, "recent") == truth(days.base, queries, START)["recent"]
        assert (
            "2026-11-24"
            in warehouse.check(
                selfmaint.Update.from_frames(warehouse, inserted={"sale": table("sale", set())})
            )["recent"].because
        )


OF_A_DAY = {
    "bag": "select shop, price from sale where day >= current_date - 2",
    "commented": "select id, day from sale where day >= DATE '2026-11-20' /* current_date */ and day <= current_date",
    "unnamed": "select id, current_date from sale",
    "later": "select shop from sale where day >= current_date - 2 and day <= DATE '2026-11-24'",
    "sooner": "select shop from sale where day >= DATE '2026-11-27' and day <= current_date",
}
"""Views that would be of another kind on another day."""


@pytest.mark.parametrize("helpers", [False, True])
def test_views_of_one_kind_on_every_day(
    tmp_path: Path, helpers: bool, set_clock: Callable[[datetime], None]
) -> None:
    days = Days(tmp_path, OF_A_DAY, random.Random(11), helpers=helpers)
    selfmaint.init(tmp_path / "w.toml")
    for day in (0, 1, 4, -3):
        days.moment = START + timedelta(days=day)
        set_clock(days.moment)
        with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as warehouse:
            update = selfmaint.Update.from_frames(warehouse, **days.change())
            maintained = warehouse.maintain(update, recompute=True, verify=True)
            assert not maintained.differences
            warehouse.apply(maintained)
            right = truth(days.base, OF_A_DAY, days.moment)
            assert {name: held(warehouse, name) for name in OF_A_DAY} == right


def test_what_reads_the_date() -> None:
    def read(text: str) -> tuple[str, bool]:
        found = at_moment(text, START)
        return found.text, found.reads_date

    assert read("SELECT a FROM r WHERE d < DATE 'Today'")[1]
    today = "DATE /* current_date */ '2026-11-24' /* current_date */"
    own = "SELECT 'a' -- current_date\n, current_date /* its current_date */ FROM r"
    assert read(own) == (f"SELECT 'a' -- current date\n, {today} /* its current date */ FROM r", True)
    for text in (
        "CREATE TABLE r (a INT, d DATE DEFAULT current_date)",
        "CREATE TABLE r (`current_date` DATE); CREATE VIEW v AS SELECT current_date FROM r",
        "SELECT r.current_date FROM r",
        "SELECT '/* current_date */' FROM r",
    ):
        assert read(text) == (text, False)
    assert not written_moments("SELECT DATE '2026-11-24' -- current_date\n, 'a' /* current_date */ FROM r")


def test_definitions_that_nobody_edited_are_not_read_at_another_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, set_clock: Callable[[datetime], None]
) -> None:
    """The last commit says of which program its rows are; of an edited one it is found out what was edited."""
    days = Days(tmp_path, {"recent": DATED["recent"], **PLAIN}, random.Random(3), helpers=True)
    selfmaint.init(tmp_path / "w.toml")

    def follow() -> None:
        """One more sale."""
        row = days.sale()
        days.base["sale"] |= {row}
        days.write()
        with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as warehouse:
            update = selfmaint.Update.from_frames(warehouse, {"sale": table("sale", {row})})
            warehouse.apply(warehouse.maintain(update))

    asked: list[object] = []
    written = store.written
    monkeypatch.setattr(store, "written", lambda catalog: asked.append(catalog) or written(catalog))
    for hours in range(2):
        set_clock(START + timedelta(hours=hours / 10))
        follow()
    assert not asked
    program = tmp_path / "views.sql"
    text = program.read_text()
    program.write_text(text + "-- another text of the same views\n")
    for _ in range(2):
        follow()
        assert len(asked) == 1
    program.write_text(text.replace("interval 3 days", "interval 4 days"))
    with pytest.raises(InputError) as refused:
        selfmaint.load(tmp_path / "w.toml", engine="duckdb")
    assert [one.code for one in refused.value.diagnostics] == [Code.EDITED]
