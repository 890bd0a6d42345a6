"""Views of numbers that are written out, cast or null, in and over unions: values and types are Spark's.

Oracle: Spark runs each view's text over all rows after the update. Compared are texts, which show all digits, and the
columns' types.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import selfmaint
from selfmaint.api.maintain import new_contents
from selfmaint.api.platforms.platform import platform_of
from tests.many_statements import interpreting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    "id": "int",
    "g": "int",
    "n": "int",
    "bi": "bigint",
    "x": "double",
    "d": "decimal(5,2)",
    "d32": "decimal(3,2)",
    "d380": "decimal(38,0)",
    "d3810": "decimal(38,10)",
    "r": "decimal(2,2)",
    "r4": "decimal(4,4)",
    "r38": "decimal(38,38)",
    "dt": "date",
    "ts": "timestamp",
}
OF_T = ", ".join(f"{name} {kind} not null" for name, kind in COLUMNS.items())
TABLES = f"""create table t ({OF_T}, primary key (id));
create table u (id int not null primary key);
"""
SMALLEST = "-0.00000000000000000000000000000000000001"
ROWS = {
    "t": [
        (
            1,
            1,
            3,
            3,
            0.1,
            "1.25",
            "1.25",
            "3",
            "0.5",
            "0.50",
            "-0.0700",
            "0.5",
            "2024-01-01",
            "2024-01-01 10:00:00",
        ),
        (
            3,
            2,
            10,
            10,
            3.0,
            "3.00",
            "0.01",
            "2",
            "0.123456789",
            "0.00",
            "0.25",
            "0",
            "2024-02-02",
            "2024-03-02 00:00:00",
        ),
    ],
    "u": [(1,)],
}
MORE = {
    "t": [
        (
            2,
            1,
            7,
            10,
            0.5,
            "-2.50",
            "2.50",
            "7",
            "2.5",
            "-0.07",
            "0",
            SMALLEST,
            "2024-01-02",
            "2024-01-02 00:00:00",
        )
    ],
    "u": [(3,)],
}
QUERIES = [
    "select * from below",
    "select id, 1.00 / y as q, d / z as r, d32 / w as s from below join t using (id)",
    "select g, sum(1.00 / y) as s, max(z) / w as m, count(*) as k from below group by g, w",
    "select a.id, 1.00 / a.n as q, b.id as j, b.bi from t a join t b on a.n = b.bi",
    "select b.id as j, a.id, 1.00 / a.n as q, a.n + 1 as p from t b join t a on a.n = b.bi",
    "select a.g, sum(1.00 / a.n) as s, count(*) as k from t a join t b on a.n = b.bi group by a.g",
    "select b.g, sum(1.00 / a.n) as s, count(*) as k from t b join t a on a.n = b.bi group by b.g",
    "select id, 1.00 / n as q, n, bi from t where n = bi",
    "select id, 1.00 / bi as q from t where bi = 10",
    "select id, 1.00 / n as q, n from t where n in (7)",
    "select id, 10.00 / d as q from t where d = -2.50",
    "select id, bi * 2000000000 as q from t where bi = 10",
    "select bi, sum(1.00 / bi) as q, count(*) as k from t where bi = 10 group by bi",
    "select id, 'x' as k, 1.00 / bi as q from t where bi = 10 union all select id, 'y', 1.00 from u",
    "select id, r38 from t where r38 = 0.5",
    "select r38 as a, id from t union all select 0.5, id from t",
    "select id, cast('0.1' as decimal(38,38)) as a from t",
    "select id, 0.12345678901234567890123456789012345678 as a, -.1 as b from t",
    "select id, a from (select id, x as a from t union all select id, 0.1 from u) q where a = 0.1",
    "select id, a from (select id, x as a from t union all select id, 0.1 from u) q where a <= 0.1",
    "select id from t where 0.1e0 = 0.1",
    "select id, a from (select id, 0.1e0 as a from t) q where a = 0.1",
    "select id from (select id, d380 as a from t union all select id, 2.50 from u) x where a = 3",
    """select id, cast(a as double) as x1, cast(a as decimal(20,2)) as x2, cast(a as int) as x3 from
        (select id, d380 as a from t union all select id, 2.50 from u) x""",
    """select id, cast(a as string) as s, length(cast(a as string)) as l from (select id, d380 as a
        from t union all select id, 2.50 from u) x""",
    """select id, cast(a as string) as s, length(cast(a as string)) as l from (select id, d380 as a
        from t union all select id, cast('1.5' as decimal(4,2)) from u) x""",
    """select cast(a as string) as s, id from (select d3810 as a, id from t union all select
        0.123456789012345, id from u) x""",
    "select id, cast(r as string) as s from t",
    "select id, concat(r4,'%') as s, cast(r38 as string) as z from t",
    """select id, cast(0.5 as string) as a, cast(-0.5 as string) as b, cast(-0.0 as string) as c,
        concat('a', 0.25) as d from t""",
    "select id, length(cast(r as string)) as l from t",
    "select cast(r as string) as s, count(*) as k from t group by cast(r as string)",
    "select g, cast(max(r) as string) as s, count(*) as k from t group by g",
    "select id, 1 as z, 1.00 / z as q from t",
    "select id, cast(1 as bigint) as z, 1.00 / z as q from t",
    "select id, 100 as pct, d * pct as q, d / pct as r from t",
    "select id, 3 as z, d32 / z as q from t",
    """select g, sum(q) as s, count(*) as k from (select g, cast(2 as bigint) as z, 1.00 / z as q from
        t) x group by g""",
    "select id, d32 / cast(3 as int) as b from t",
    "select id, d32 / cast(3000000000 as bigint) as b from t",
    "select id, d32 / -3 as b, d32 / 3 as c, d32 / (cast(-3 as int)) as e from t",
    """select x, 1.00 / nullif(x, 0) as q from (select n as x from t intersect select cast(3 as bigint)
        from u) q""",
    """select x, 1.00 / x as q from (select d32 as x from t intersect select cast('1.25' as
        decimal(4,2)) from u) q""",
    "select n from t intersect select 3 from u",
    """select id, 1.00 / nullif(b, 0) as q from (select id, n as a, n as b from t union all select id,
        bi, n from t) x""",
    """select id, b + 1 as p, coalesce(b,0) as c, greatest(b,1) as g from (select id, n as a, n as b
        from t union all select id, bi, n from t) x""",
    """select x.id, 1.00 / x.a as q, 1.00 / y.a as r from (select id, 1.0 as a from t union all select
        id, cast(2 as decimal(20,1)) from t) x join (select id, 1.0 as a from u union all select id,
        cast(2 as decimal(10,1)) from u) y on x.id = y.id""",
    "select cast(3 as bigint) as a, id from t",
    """select g, max(cast(3 as bigint)) as m, sum(cast('3.1' as decimal(9,1))) as s, avg(cast('3.1' as
        decimal(9,1))) as v, count(*) as k from t group by g""",
    """select g, max(a) as m, sum(a) as s, count(*) as k from (select g, cast(3 as bigint) as a from t)
        x group by g""",
    "select g, sum(cast('3.1' as decimal(9,1))) / 7 as s, count(*) as k from t group by g",
    "select id, 1.00 / null as a, null + 1 as b, d32 * null as c, null - n as e from t",
    "select dt as a, id from t union all select ts, id from t",
    """select id, z from (select id, 1 as z from t) q join (select cast(1 as bigint) as z, id as i2
        from u) p using (z)""",
    """select id, 1.00 / z as q from (select id, 1 as z from t) q join (select cast(1 as bigint) as z,
        id as i2 from u) p using (z)""",
    "select z, count(*) as k, sum(d32 / z) as s from (select 3 as z, d32 from t) q group by z",
    "select g, 3 as z, sum(d32) / z as s, count(*) as k from t group by g having sum(d32) / z > 0.1",
    "select id, 2.5 as z, d / z as q, d * z as p, round(d / z, 3) as rr from t",
    "select id, n as m, 1.00 / m as q from t",
    """select id, coalesce(d32, cast(3 as int)) as c, greatest(d32, cast(1 as bigint)) as h, case when
        n > 2 then cast(1 as bigint) else n end as k from t""",
    "select id, sum(1) as s, avg(cast(2 as int)) as v, count(*) as k from t group by id",
    "select dt as a from t union select ts from t",
    "select a, count(*) as k from (select dt as a, id from t union all select ts, id from t) q group by a",
    "select cast(ts as date) as a, id from t union all select dt, id from t",
    "select id, r from t where r = 0.5 or r < -0.01",
    """select id, cast(r as string) = '0.50' as b, case when cast(r as string) like '0%' then 1 else 0
        end as c from t""",
    "select id, cast(id as string) || cast(r as string) || cast(d as string) as s from t",
    "select array_join(sort_array(collect_set(cast(r as string))), ',') as s from t",
    "select id, z2 / 3 as q from (select id, z as z2 from (select id, 1.00 as z from t) a) b",
    """select id, z, z + 1 as y, y * 2 as w, w / 7.0 as v2 from (select id, cast(5 as smallint) as z
        from t) a""",
    "select id, cast(2 as smallint) as z, z / 3.0 as q, z * cast(1.5 as decimal(4,2)) as p from t",
    "select id, cast(2 as tinyint) / 3.0 as q, cast(100000 as int) * 1.50 as p from t",
    "select id, -z as m, 1.00 / -z as q from (select id, 3 as z from t) a",
    """select id, abs(z) as m, 1.00 / abs(z) as q, 1.00 / coalesce(z, 1) as c from (select id, 3 as z
        from t) a""",
    """select id, 1.00 / abs(-3) as q, 1.00 / coalesce(null, 3) as c, 1.00 / greatest(2, 3) as gg, 1.00
        / nullif(3, 4) as nn from t""",
    "select id, 1.00 / case when n > 3 then 3 else 4 end as q, d32 * if(n > 3, 3, 4) as w from t",
    "select id, 1.00 / (1 + 2) as q, d32 / (2 * 3) as w, (1 + 2) * d32 as v2 from t",
    "select id, 10 % 4 * d32 as w, d32 / (7 % 4) as ww from t",
    "select id, 1.00 / cast('3' as int) as q, d / cast(d32 as int) as w from t where d32 >= 1",
    """select g, sum(n) / 3 as a, sum(d32) / 3 as b, avg(d32) / 3 as c, sum(d32) / count(*) as e,
        count(*) as k from t group by g""",
    "select g, k, 1.00 / k as q from (select g, count(*) as k from t group by g) a",
    "select id, round(1.00 / z, 4) as q from (select id, 7 as z from t union all select id, n from t) a",
    """select id, z from (select id, 7 as z from t union all select id, cast(8 as bigint) from u union
        all select id, 9.5 from u) a""",
    "select id, 1 / z as q from (select id, 0.3 as z from t union all select id, 0.25 from u) a",
    "select id, x from t where x > 0.1 and x < 0.6",
    "select id from t where 0.1e0 + 0.2e0 = 0.3 or n = 3",
    "select id, 0.1e0 = 0.1 as b, 0.3e0 > 0.3 as c, x = 0.1 as e from t",
    """select id, coalesce(ts, dt) as a, case when id > 1 then dt else ts end as b, greatest(dt, ts) as
        c from t""",
    "select a.id from t a join t b on a.dt = b.ts",
    "select id from t where dt = ts or dt < ts",
    "select dt as a from t intersect select ts from t",
    "select dt as a from t except select ts from t",
    "select id from t where dt in (select ts from t)",
    "select id, nullif(dt, ts) as x from t",
]
BELOW = "select id, g, cast(2 as bigint) as y, cast('3' as decimal(9,4)) as z, 4 as w from t"
"""The text of a view `below`, which others read."""


def csv(path: Path, name: str, rows: list[tuple[object, ...]]) -> None:
    columns = list(COLUMNS) if name == "t" else ["id"]
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def shown(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Decimal():
            return f"{value:f}"
        case dt.datetime():
            return value.replace(tzinfo=None).isoformat(sep=" ")
        case _:
            return str(value)


def bind(spark: SparkSession, rows: dict[str, list[tuple[object, ...]]]) -> None:
    for name, its in rows.items():
        kinds = list(COLUMNS.values()) if name == "t" else ["int"]
        made = ", ".join(
            f"({', '.join(f'cast({value!r} as {kind})' for value, kind in zip(map(str, row), kinds, strict=True))})"
            for row in its
        )
        names = ", ".join(COLUMNS if name == "t" else ["id"])
        spark.sql(f"select * from values {made} as v({names})").createOrReplaceTempView(name)
    spark.sql(BELOW).createOrReplaceTempView("below")


def test_values_and_types_are_sparks(spark: SparkSession, tmp_path: Path) -> None:
    views = "".join(f"create view v{i} as {query};\n" for i, query in enumerate(QUERIES))
    (tmp_path / "views.sql").write_text(f"{TABLES}create view below as {BELOW};\n{views}", encoding="utf-8")
    sources = "".join(f"[relations.{name}]\nsource = 'files'\npath = 'base/{name}.csv'\n" for name in ROWS)
    (tmp_path / "warehouse.toml").write_text(
        "program = 'views.sql'\n[store]\nkind = 'lake'\npath = 'lake'\n[sources.files]\nkind = 'files'\n"
        f"{sources}[update]\neffective = true\n",
        encoding="utf-8",
    )
    for name, rows in ROWS.items():
        csv(tmp_path / "base" / f"{name}.csv", name, rows)
        csv(tmp_path / "night" / f"{name}.insert.csv", name, MORE[name])
    selfmaint.init(tmp_path / "warehouse.toml", engine="duckdb")
    after = {name: [*ROWS[name], *MORE[name]] for name in ROWS}
    for name, rows in after.items():
        csv(tmp_path / "base" / f"{name}.csv", name, rows)
    found, types = dict[int, Counter[str]](), dict[int, dict[str, str]]()
    with selfmaint.load(tmp_path / "warehouse.toml", engine="duckdb") as warehouse:
        update = selfmaint.Update.from_files(warehouse, tmp_path / "night")
        made = warehouse.maintain(update, recompute=True)
        for i, _ in enumerate(QUERIES):
            view, engine = warehouse.catalog.view(f"v{i}"), warehouse.engine
            rows = new_contents(warehouse, view, made.deltas[f"v{i}"])
            names = engine.columns(rows)
            rows = engine.bags.expanded(rows) if view.is_counted else rows
            found[i] = Counter("|".join(map(shown, row)) for row in engine.sample(rows, 1000))
            types[i] = dict(zip(names, map(str, platform_of(engine).types(rows)), strict=False))
    bind(spark, after)
    expected, kinds = dict[int, Counter[str]](), dict[int, dict[str, str]]()
    with interpreting(spark):
        for i, query in enumerate(QUERIES):
            frame = spark.sql(query)
            kinds[i] = {name.lower(): kind for name, kind in frame.dtypes}
            names = [f"coalesce(cast(`{name}` as string), 'null')" for name in types[i] if name in kinds[i]]
            frame.selectExpr(
                f"concat_ws('|', {', '.join(names)}) as row", f"{i} as i"
            ).createOrReplaceTempView(f"q{i}")
        every = " union all ".join(f"select * from q{i}" for i, _ in enumerate(QUERIES))
        for row, i in spark.sql(every).collect():
            expected.setdefault(i, Counter())[row] += 1
    for name in ("t", "u", "below", *(f"q{i}" for i, _ in enumerate(QUERIES))):
        spark.catalog.dropTempView(name)
    for i, query in enumerate(QUERIES):
        assert found[i] == expected.get(i, Counter()), query
        assert types[i] == kinds[i], query
