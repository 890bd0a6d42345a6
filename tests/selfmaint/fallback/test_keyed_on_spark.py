"""Keyed reads on Spark: texts that only Spark understands, by keys of their rows and by what groups gain and lose.

Oracle: the views' texts, run by Spark over tables of the new state.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import selfmaint
from selfmaint.api.following import others
from tests.many_statements import interpreting_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = """
create table customer (id int not null primary key, region string);
create table sale (id int not null primary key, customer int, day date not null, amount decimal(9,2) not null);
"""
QUERIES = {
    "monthly": """select trunc(day, 'MM') as month, count(*) as n, sum(amount) as total from sale
        where not exists (select 1 from customer c where c.id = sale.customer and c.region = 'x')
        group by trunc(day, 'MM')""",
    "latest": """select customer, id, amount from sale
        qualify row_number() over (partition by customer order by day desc, id) = 1""",
    "beside": """select l.id, c.region, rank() over (partition by c.region order by l.amount) as place
        from latest l join customer c on c.id = l.customer""",
    "alone": "select customer, count(distinct amount) as amounts, max(id) as last from latest l group by customer",
    "kinds": """select s.customer, max(c.region) as region, count(distinct day) as days
        from sale s left join customer c on c.id = s.customer group by s.customer having count(*) > 1""",
    "both": "select coalesce(c.id, s.id) as id, c.region, s.amount from customer c full join sale s on c.id = s.id",
    "steps": "select id, amount - lag(amount) over (partition by customer order by day, id) as more from sale",
    "all_of_both": """select s.id, s.amount, c.region from sale s full join customer c on s.customer = c.id
        where s.amount > 1 or c.region is not null""",
    "neither": "select id, region from customer where id not in (select id from sale)",
}
HOW = {
    "monthly": "sale",
    "latest": None,
    "beside": None,
    "alone": None,
    "kinds": None,
    "both": None,
    "neither": None,
    "steps": "sale",
    "all_of_both": "sale",
}
"""The relation whose changed rows are added up; None where the rows of the affected keys are computed anew."""

COLUMNS = {
    "customer": {"id": pa.int32(), "region": pa.string()},
    "sale": {"id": pa.int32(), "customer": pa.int32(), "day": pa.date32(), "amount": pa.decimal128(9, 2)},
}


def sale(number: int, customer: int | None, month: int, amount: int) -> tuple[Any, ...]:
    return number, customer, dt.date(2026, month, number % 28 + 1), Decimal(amount)


OLD = {
    "customer": [(1, "a"), (2, "x"), (3, None), (4, "d"), (12, "e")],
    "sale": [
        sale(10, 1, 1, 5),
        sale(11, 1, 1, 2),
        sale(12, 2, 1, 1),
        sale(13, 3, 2, 7),
        sale(14, None, 2, 1),
    ],
}
NEW = {
    "customer": [(1, "a"), (2, "y"), (3, None), (4, "d"), (13, "e")],
    "sale": [
        sale(10, 1, 1, 5),
        sale(11, 1, 3, 2),
        sale(12, 2, 1, 1),
        sale(14, 4, 2, 1),
        sale(15, None, 2, 3),
    ],
}


def arrow(rows: list[tuple[Any, ...]], name: str) -> pa.Table:
    columns = COLUMNS[name]
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], pa.schema(columns))


def truth(session: SparkSession, state: dict[str, list[tuple[Any, ...]]], text: str) -> pa.Table:
    for name, rows in state.items():
        session.createDataFrame(arrow(rows, name)).createOrReplaceTempView(name)
    found = session.sql(text.replace("latest l", f"({QUERIES['latest']}) l")).toArrow()
    for name in state:
        session.catalog.dropTempView(name)
    return found


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return interpreting_session(spark)


@pytest.fixture(scope="module")
def right(session: SparkSession) -> dict[str, tuple[pa.Table, pa.Table]]:
    """The views' rows before and after the update."""
    return {name: (truth(session, OLD, text), truth(session, NEW, text)) for name, text in QUERIES.items()}


def test_texts_of_spark_are_followed_by_keys(
    session: SparkSession,
    right: dict[str, tuple[pa.Table, pa.Table]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some sources are right after the update, and some right before it."""
    monkeypatch.setattr(others, "MANY_ROWS", 0)
    monkeypatch.setattr(others, "SHARE", 0)
    program = TABLES + "".join(f"create view {name} as {text};" for name, text in QUERIES.items())
    names = [*QUERIES]
    (tmp_path / "views.sql").write_text(program, encoding="utf-8")
    lines = ['program = "views.sql"', "[update]", "effective = true", "[sources.ops]", 'kind = "files"']
    for name in names:
        pq.write_table(right[name][0], tmp_path / f"{name}.parquet")
        lines += [f"[views.{name}]", f'path = "{name}.parquet"']
    for i, name in enumerate(NEW):
        rows = (NEW, OLD)[i % 2][name]
        pq.write_table(arrow(rows, name), tmp_path / f"{name}_base.parquet")
        lines += [f"[relations.{name}]", 'source = "ops"', f'path = "{name}_base.parquet"']
    (tmp_path / "w.toml").write_text("\n".join(lines), encoding="utf-8")
    with selfmaint.load(tmp_path / "w.toml", session) as warehouse:
        inserted = {n: arrow([r for r in NEW[n] if r not in OLD[n]], n) for n in NEW}
        deleted = {n: arrow([r for r in OLD[n] if r not in NEW[n]], n) for n in NEW}
        update = selfmaint.Update.from_frames(warehouse, inserted, deleted)
        found = warehouse.maintain(update)
        assert {name: one.of for name, one in found.keyed.items()} == {name: HOW[name] for name in names}
        assert not found.recomputed
        assert all(read.key_columns for read in found.reads)
        warehouse.apply(found)
    for name in names:
        expected = right[name][1].to_pylist()
        now = pq.read_table(tmp_path / f"{name}.parquet").select(list(expected[0])).to_pylist()
        assert Counter(map(str, now)) == Counter(map(str, expected)), name
