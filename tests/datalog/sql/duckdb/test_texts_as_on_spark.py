"""Texts that look at many rows: what DuckDB gives is what Spark gives, values and types."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from datalog.model import ColumnType, OpaqueView, Predicate, TypeName
from datalog.sql.views import SqlText, read_sql
from selfmaint.duckdb import DuckEngine
from selfmaint.duckdb.text_views import text_rows
from selfmaint.engine.protocol import Facts
from tests.many_statements import interpreting_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = """
create table sale (id int not null primary key, c bigint, i int not null, ts timestamp, a int, p decimal(9,2));
"""
COLUMNS = ("id", "c", "i", "ts", "a", "p")
KINDS = [ColumnType(TypeName(name)) for name in ("int", "bigint", "int", "timestamp", "int")]
KINDS.append(ColumnType(TypeName.DECIMAL, 9, 2))
DAYS = ["2025-01-31", "2024-02-29", "2025-03-30", "2026-01-31"]
STEPS = [
    "",
    ", interval 1 day",
    ", interval 3 days",
    ", interval '2' week",
    ", interval 1 month",
    ", interval 1 year",
]
BACK = ["", ", interval -2 day", ", -interval 1 week", ", interval -1 months", ", interval '-1' year"]
SERIES = [
    *(
        f"select explode(sequence(date '{first}', date '{last}'{step})) as day from sale where id = 3"
        for first, last, steps in ((*DAYS[::3], STEPS), (DAYS[1], DAYS[2], STEPS), (*DAYS[3::-3], BACK))
        for step in steps
    ),
    "select explode(sequence(to_date('2025-10-24'), to_date('2025-11-05')))",
    "select id, explode(sequence(1, i)) from sale where a > 0",
    "select explode(sequence(c, cast(a as bigint), 1)) n, id + 1 as k from sale where a > c",
    "select explode(sequence(5, -3, -3)) as n",
    "select explode(sequence(1, cast(i as bigint), 2)) as n from sale where i > 0",
    "select explode(sequence(cast(1 as smallint), cast(4 as tinyint))) as n",
    "select explode(sequence(cast(1 as smallint), cast(4 as smallint), 2)) as n",
    "select s.id, n.k from sale s lateral view explode(sequence(s.i, s.a)) n as k where k <> 1",
    (
        "select day, count(distinct t.c) as m, count(*) as n from sale join sale t using (id) "
        "lateral view explode(sequence(date(sale.ts), date_add(sale.ts, t.i), interval 1 day)) as day group by day"
    ),
    (
        "with days as (select explode(sequence(date '2025-11-03', date '2025-11-30', interval 1 week)) as day) "
        "select d.day, count(s.id) as n, rank() over (order by count(s.id)) as r from days d "
        "left join sale s on cast(s.ts as date) between d.day and date_add(d.day, 6) group by d.day"
    ),
    "select id, power(2, 10) as b, i * power(2, 3) + pow(10, 0) as c from sale order by id limit 100",
]
FRAME = "rows between unbounded preceding and current row"
AGGREGATES = [
    *(
        "percentile(p, 0.5)",
        "percentile(a, 0.9)",
        "percentile(c, 0)",
        "percentile(id, 1)",
        "percentile(p * p * p, 0.123)",
    ),
    *(
        "median(p)",
        "median(a)",
        "median(i / 2.0) filter (where a > 0)",
        "percentile_cont(0.3) within group (order by p)",
    ),
    *(
        "count(distinct a, c)",
        "count(distinct a, c, p) filter (where i > 0)",
        "count(distinct ts, cast(a as string))",
    ),
    "string_agg(cast(a as string), ', ') within group (order by cast(a as string))",
    "listagg(distinct cast(a as string)) within group (order by cast(a as string) desc)",
    "listagg(cast(p as string), '|') within group (order by id desc)",
    "listagg(cast(c as string), '') within group (order by c desc nulls first, id)",
    "array_join(sort_array(collect_set(cast(c as string))), ', ')",
    "concat_ws('-', sort_array(collect_list(cast(a as string))))",
    "array_join(array_sort(collect_list(cast(p as string))), '')",
    *("max_by(a, id)", "min_by(p, id) - max_by(p, id)", "max_by(ts, date_add(date'2025-01-01', id))"),
]
WINDOWS = [
    *(
        "ntile(4) over (order by id)",
        "ntile(2) over (partition by c order by a, id)",
        "cume_dist() over (order by a)",
    ),
    *("percent_rank() over (order by p)", "percent_rank() over (partition by i order by a desc)"),
]


def several(calls: list[str]) -> str:
    return ", ".join(f"{call} as m{number}" for number, call in enumerate(calls))


QUERIES = [
    "select c, i, grouping(c) as g, grouping(i) as h, count(*) as n from sale group by rollup(c, i)",
    "select c, i, grouping_id(c, i) as g, sum(a) as n from sale group by cube(c, i)",
    "select c, i, grouping_id() as g, count(*) as n from sale group by rollup(c, i)",
    "select c, i, grouping_id() as g, count(*) as n from sale group by c, cube(i)",
    "select i, c, grouping_id() as g, sum(p) as n from sale group by grouping sets ((i), (c, i), ())",
    "select c, grouping(c) as g, count(*) as n from sale where a > 100 group by rollup(c)",
    "select c, count(*) as n from sale group by rollup(c) having grouping(c) = 0 or count(*) > 1",
    f"select id, sum(a) over (partition by c order by i, id {FRAME}) as n from sale",
    f"select id, sum(a) over (order by i) as n, avg(p) over (order by id {FRAME}) as m from sale",
    "select id, sum(a) over (order by i RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) as m from sale",
    "select id, max(p) over (partition by c order by id rows between 2 preceding and 1 following) as n from sale",
    "select id, lag(p, 2) over (order by p desc, id) as n from sale",
    "select id, lag(p, 1, 0) over (partition by i order by id) as n, lead(p, 3, p) over (order by id) as m from sale",
    "select id, lag(a, 2, 9) over (order by id) as n, lead(a, 1, i) over (partition by c order by id) as m from sale",
    "select id, lag(ts, 1, null) over (order by id) as n, lead(a / 2.0D, 1, 7) over (order by id) as m from sale",
    "select id, lead(c) over (partition by i order by ts, id) as m from sale",
    "select id, sum(a) over w as n, max(p) over (v) as m from sale window w as (partition by c order by i), v as w",
    "select id, rank() over (order by a desc) as n, dense_rank() over (partition by i order by c desc) as m from sale",
    "select id, row_number() over (partition by date_trunc('month', ts) order by a, id) as n from sale",
    "select i, sum(a) as t, sum(sum(a)) over (order by i) as r, count(*) * 100 as q from sale group by i",
    "select id, a, date_format(ts, 'yyyy-MM') as m from sale order by a desc, id limit 5",
    "select s.id, s.a as n from sale s order by S.a desc, s.ID limit 5",
    "select s.c as id, t.a as n, s.id as k from sale s join sale t on s.c = t.id order by s.id desc, t.a limit 4",
    "select id, p - (select avg(p) from sale) as d from sale where p >= (select avg(p) from sale where i > 0)",
    "select id, c from sale where c not in (select i from sale where id > 3) or a in (select a from sale where i = 1)",
    "select s.id, t.m from sale s cross join (select max(a) as m, count(*) as n from sale) t where s.a = t.m",
    "select id, a from sale qualify row_number() over (partition by c order by a desc, id) = 1",
    "select id, rank() over (partition by i order by a) as r from sale where a > 0 qualify r = 1 and a < 4",
    "select id from sale window w as (partition by c order by id) qualify row_number() over w = 1",
    "select distinct c from sale qualify count(*) over w > 5 window w as (partition by c, i)",
    "select i, sum(a) as t, rank() over (order by sum(a)) as r from sale group by i having count(*) > 2 qualify r < 3",
    "select c, sum(a) as a, max(i) + 1 as i from sale group by rollup(c) having sum(a) > 1 and max(i) > 0",
    "select id, c as a, i as b from sale qualify lag(b) over (partition by sale.a order by id) = b",
    "select s.id, t.a as b from sale s full join sale t on s.c = t.i and s.id = t.id",
    *(f"select i, {call} as m from sale group by i" for call in AGGREGATES),
    *(f"select {call} as m from sale where a > 2" for call in AGGREGATES[::4]),
    *(f"select c, {call} as m, i + 1 as b from sale group by all" for call in AGGREGATES[1::6]),
    f"select id, {several(WINDOWS)} from sale",
    "select * except (ts, p), row_number() over (order by id) as n from sale",
    "select s.* except (c), t.c as d from sale s full join sale t on s.id = t.a",
    "select id, a from sale where (c, i) in (select a, i from sale where id > 3) order by id limit 100",
    "select id, c in (select a from sale) as m, c not in (select i from sale where id > 3) as n from sale",
    "select id, not (a in (select c from sale) or i > 1) as m from sale",
    "select id, not not (a in (select c from sale)) and not (i > 1 and a in (select c from sale)) as m from sale",
    "select id, coalesce(not a in (select c from sale), i > 0) as m from sale",
    "select id, case when a in (select c from sale) then 1 when a not in (select c from sale) then 2 end n from sale",
    "select id from sale where not (a in (select c from sale where i = 1)) or i not in (select a from sale)",
    "select id, rank() over (order by id) as n from sale where (a, c) in (select i, c from sale) and i > 0",
    (
        "select s.id, coalesce(m.r, 0) as r from sale s left join values (1, 0.19), (2, 0.7), (3, null) as m(c, r) "
        "on m.c = s.c"
    ),
    (
        "with d(x, y) as (values (date '2025-11-03', 'a'), (date '2025-12-01', null)) select s.id, d.y from sale s "
        "left join d on d.x <= cast(s.ts as date)"
    ),
    "select s.id, m.col1 as n, -m.col1 as k from sale s full join (values -1, 1, 3000000000) as m on m.col1 = s.a",
    *SERIES,
]


def rows(random: Random, number: int) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for key in range(number):
        at = dt.datetime(2025, 11, 1) + dt.timedelta(minutes=random.randrange(150_000))
        price = Decimal(random.randrange(-500, 500)).scaleb(-2)
        row = (key, random.choice([1, 2, 3, None]), random.randrange(3), random.choice([at, at, None]))
        found.append((*row, random.choice([None, *range(-2, 5)]), random.choice([price, price, None])))
    return found


@pytest.mark.parametrize("number", [0, 30])
def test_texts(number: int, spark: SparkSession) -> None:
    given = rows(Random(number), number)
    kinds = ", ".join(f"{name} {kind}" for name, kind in zip(COLUMNS, KINDS, strict=True))
    duck = DuckEngine(most_few=0)
    facts = Facts({Predicate("sale"): duck.load(given, COLUMNS, KINDS)})
    session = interpreting_session(spark)
    session.createDataFrame(given, kinds).coalesce(1).createOrReplaceTempView("sale")
    for query in QUERIES:
        found = read_sql([SqlText(TABLE, "tables"), SqlText(query, "v")])
        text = found.opaque[0]
        assert isinstance(text, OpaqueView)
        made = text_rows(duck.database, text, facts)
        right = session.sql(query)
        mine = Counter(tuple(row.values()) for row in pa.table(made).to_pylist())
        its = Counter(tuple(row.values()) for row in right.toArrow().to_pylist())
        assert mine == its, query
        assert [str(kind) for kind in made.types] == [kind for _, kind in right.dtypes], query
