"""Shapes of views that warehouses have: totals joined again, latest rows, shares, pivots, models over models.

Like those of `sql_shapes`, of which they are a part: random texts over `r(a, b, c)`, `s(f, d, e)`, `t(x, y)`,
`w(k, n, m)`. Orders of rows that name a column without its table need the key of `r`; `r.c` in front says that ties
are rows that are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

Shape = Callable[[Random], str | Mapping[str, str]]


def _one(*texts: str) -> Shape:
    """One of some texts; `{ra}` and such are filled in."""

    def made(random: Random) -> str:
        return random.choice(texts).format(
            where=random.choice(["", "", " where r.c > 1", " where r.c is not null", " where s.e = 1"]),
            test=random.choice(["", "", " where c > 1", " where b is not null", " where b = 1 or c = 1"]),
            join=random.choice(["join", "join", "left join"]),
            more=random.choice(["> 1", ">= 1", "= 1", "is not null", "< 3"]),
            all=random.choice(["", " all"]),
        )

    return made


def _several(*families: Mapping[str, list[str]]) -> Shape:
    """Views over views: of each name one of some texts."""

    def made(random: Random) -> Mapping[str, str]:
        test = random.choice(["", " where c > 1", " where b is not null"])
        family = random.choice(families).items()
        return {name: random.choice(texts).replace("{test}", test) for name, texts in family}

    return made


_OVER_A_TEXT = [
    "select u.f, count(r.a) as z from u left join r on r.b = u.f group by u.f",
    "select u.f, coalesce(sum(r.c), 0) as z from u left join r on r.b = u.f group by u.f",
    "select r.a, u.n from r join u on r.b = u.f",
    "select r.a, u.n from r left join u on r.b = u.f",
    "select r.a, r.b from r where not exists (select 1 from u where u.f = r.b)",
    "select r.a, r.c from r where r.b in (select f from u where n > 1)",
    "select u.n, count(*) as z, sum(r.c) as y from r join u on r.b = u.f group by u.n",
    "select u.n, count(*) as z from r join u on r.b = u.f where u.e = 1 group by u.n having count(*) > 1",
    "select distinct u.n from u join r on r.b = u.f",
    "select u.f, u.n from u where not exists (select 1 from r where r.b = u.f)",
]
"""Over `u(f, e, n)` that cannot be analysed, and `r`."""

WAREHOUSE_SHAPES: Mapping[str, Shape] = {
    "HAVING over a join": _one(
        "select s.f, count(*) as z from r {join} s on r.b = s.f{where} group by s.f having count(*) {more}",
        "select s.d, sum(r.c) as z from r join s on r.b = s.f{where} group by s.d having sum(r.c) {more}",
        "select s.f, s.e from s {join} r on r.b = s.f{where} group by s.f, s.e having count(r.a) {more}",
        "select r.b from r join s on r.b = s.f group by r.b having max(s.e) {more} and count(*) > 1",
        "select s.f, min(r.c) as z from s left join r on r.b = s.f group by s.f having min(r.c) {more}",
    ),
    "totals joined again": _one(
        "with g as (select b, max(c) as m from r{test} group by b) select r.a, r.c "
        "from r join g on r.b = g.b and r.c = g.m",
        "with g as (select b, count(*) as m, sum(c) as z from r group by b) select r.a, r.c, g.z "
        "from r {join} g on r.b = g.b",
        "with g as (select b, sum(c) as z from r group by b), l as (select d, sum(e) as z from s group by d) "
        "select g.b, g.z, l.z as y from g {join} l on g.b = l.d",
        "with g as (select b, count(*) as z from r group by b), l as (select d, count(*) as z from s group by d) "
        "select coalesce(g.b, l.d) as b, g.z, l.z as y from g full join l on g.b = l.d",
        "select s.f, coalesce(g.z, 0) as z from s left join (select b, count(*) as z "
        "from r{test} group by b) g on g.b = s.f",
        "select s.d, sum(g.z) as z from s join (select b, sum(c) as z from r group by b) g on g.b = s.f group by s.d",
        "select s.d, count(*) as n, max(g.z) as z from s {join} (select b, min(c) as z "
        "from r{test} group by b) g on g.b = s.f group by s.d",
    ),
    "COUNT DISTINCT beside SUM": _one(
        "select b, count(distinct c) as z, sum(c) as y from r{test} group by b",
        "select b, count(distinct a) as z, count(*) as y, max(c) as x from r{test} group by b",
        "select s.d, count(distinct r.b) as z, sum(r.c) as y from r join s on r.b = s.f group by s.d",
        "select s.f, count(distinct r.c) as z, count(r.c) as y from s {join} r on r.b = s.f group by s.f",
        "select count(distinct b) as z, count(distinct c) as y, sum(c) as x from r{test}",
        "select b, count(distinct c) as z, avg(c) as y from r group by b having count(distinct c) {more}",
    ),
    "windows over groups": _one(
        "select b, sum(c) as z, rank() over (order by sum(c) desc nulls last) as y from r{test} group by b",
        "select b, count(*) as z, sum(count(*)) over () as y from r{test} group by b",
        "select b, c, count(*) as z, sum(count(*)) over (partition by b) as y from r group by b, c",
        "select b, c, row_number() over (partition by b order by r.c nulls first) as z from r group by b, c",
        "select b, n, lag(n) over (order by g.b nulls first) as z from (select b, count(*) as n from r group by b) g",
        "select b, sum(n) over (order by g.b nulls first rows between unbounded preceding and current row) as z "
        "from (select b, sum(c) as n from r{test} group by b) g",
        "select b from (select b, rank() over (order by count(*) desc) as n from r group by b) g where n = 1",
    ),
    "NOT IN, nulls among them": _one(
        "select a, b from r where b not in (select d from s)",
        "select a, b from r where b not in (select e from s where d = 1)",
        "select a from r where c not in (select e from s where s.d = r.b)",
        "select f from s where f not in (select b from r where c > 1)",
        "select f from s where f not in (select b from r) or e = 1",
        "select b, count(*) as z from r where b not in (select d from s) group by b",
        "select a from r where (b, c) in (select f, e from s)",
        "select f from s where d in (select b from r group by b having count(*) {more})",
        "select distinct b from r where c not in (select e from s where e is not null)",
    ),
    "latest row of a key": _one(
        "select a, b, c from r where c = (select max(p.c) from r p where p.b = r.b)",
        "select r.a, r.b from r where not exists (select 1 from r p where p.b = r.b and p.c > r.c)",
        "select r.a, r.b, r.c from r left join r p on p.b = r.b and p.c > r.c where p.a is null",
        "select a, b, c from (select a, b, c, row_number() over (partition by b order by r.c desc nulls "
        "last, a) as n from r) g where n = 1",
        "select s.f, g.a, g.c from s {join} (select a, b, c, row_number() over (partition by b order by "
        "r.c nulls first, a) as n from r{test}) g "
        "on g.b = s.f and g.n = 1",
        "select b, max(a) as a from r where c = (select max(p.c) from r p where p.b = r.b) group by b",
    ),
    "shares of totals": _one(
        "select a, b, sum(c) over (partition by b) as z from r",
        "select a, c, count(*) over (partition by b) as z, max(c) over (partition by b) as y from r{test}",
        "select a, cast(c as double) / nullif(sum(c) over (partition by b), 0) as z from r",
        "select b, cast(sum(c) as double) / nullif((select sum(c) from r), 0) as z from r group by b",
        "select a, c from r where c > (select avg(c) from r)",
        "select a, c from r where c >= (select avg(p.c) from r p where p.b = r.b)",
        "select b, count(*) as z, (select count(*) from r) as y from r{test} group by b",
    ),
    "pivots": _one(
        "select b, sum(case when c = 1 then 1 else 0 end) as z, sum(case when c > 1 then a end) as y "
        "from r group by b",
        "select b, max(case when c = 1 then a end) as z, max(case when c = 2 then a end) as y "
        "from r{test} group by b",
        "select b, count(case when c > 1 then 1 end) as z, count(*) as y from r group by b",
        "select s.d, sum(case when r.c = 1 then s.e else 0 end) as z, count(*) as y "
        "from r join s on r.b = s.f group by s.d",
        "select case when c > 1 then 1 else 0 end as z, count(*) as n, sum(a) as y "
        "from r{test} group by case when c > 1 then 1 else 0 end",
        "select coalesce(b, 0) as z, count(*) as n, count(c) as y from r group by coalesce(b, 0)",
        "select b % 2 as z, sum(c) as y, count(c) as x, count(*) as n from r group by b % 2",
    ),
    "ROLLUP over a join": _one(
        "select s.d, r.b, count(*) as n from r join s on r.b = s.f group by rollup (s.d, r.b) having count(*) > 0",
        "select s.d, sum(r.c) as n, count(*) as z from r {join} s on r.b = s.f "
        "group by rollup (s.d) having count(*) > 0",
        "select b, grouping(b) as g, count(*) as n, sum(c) as z from r{test} group by rollup (b) having count(*) > 0",
        "select b, c, count(*) as n from r{test} group by grouping sets ((b, c), (b)) having count(*) > 0",
        "select s.e, count(distinct r.b) as n from r join s on r.b = s.f group by cube (s.e) having count(*) > 0",
    ),
    "FULL JOIN with COALESCE": _one(
        "select coalesce(r.b, s.f) as z, r.a, s.e from r full join s on r.b = s.f",
        "select coalesce(r.a, s.f) as z, coalesce(r.c, 0) as y, coalesce(s.e, 0) as x "
        "from r full join s on r.a = s.f",
        "select count(*) as n, count(r.a) as z, count(s.f) as y from r full join s on r.b = s.f",
        "select s.d, count(*) as n from r full join s on r.b = s.f group by s.d",
        "select r.a, s.f from r full join s on r.b = s.f where r.a is null or s.f is null",
    ),
    "outer joins in a row": _one(
        "select r.a, s.e, w.n from r left join s on r.b = s.f left join w on s.d = w.k",
        "select r.a, s.e, w.m from r join s on r.b = s.f left join w on s.e = w.k{where}",
        "select r.a, s.e, p.e as z from r left join s on r.b = s.f left join s p on r.c = p.f",
        "select w.k, count(s.f) as n, sum(s.e) as z from w left join s on s.d = w.k group by w.k",
        "select s.f, count(r.a) as n, sum(r.c) as z, max(r.c) as y from s left join r on r.b = s.f group by s.f",
        "select w.n, count(r.a) as z from w left join s on s.d = w.k left join r on r.b = s.f group by w.n",
    ),
    "sets of copies": _one(
        "select b from r union all select d from s",
        "select z, count(*) as n from (select b as z from r union all select d as z from s) g group by z",
        "select z, sum(y) as n from (select b as z, c as y from r union all select d as z, e as y "
        "from s) g group by z",
        "select b as z from r except{all} select d as z from s",
        "select b as z, c as y from r intersect{all} select d as z, e as y from s",
        "select b as z from r except{all} select g.z from (select d as z from s union all select e as z from s) g",
        "select distinct z from (select b as z from r union all select c as z from r) g",
        "select a as z, 1 as y from r union all select f as z, 2 as y from s where e = 1",
        "select b as z from r{test} union select d as z from s where e {more}",
    ),
    "copies": _one(
        "select * from r",
        "select b, c from r{test}",
        "select b, c, count(*) as n from r{test} group by b, c",
        "select b, count(*) as n, count(c) as z, sum(c) as y, min(c) as x from r group by b",
        "select r.b, s.e from r join s on r.b = s.d{where}",
        "select r.c, t.y from r join t on r.b = t.x",
        "select s.f, count(r.c) as n, sum(r.c) as z from s join r on r.b = s.f group by s.f",
        "select p.c as z, r.c from r join r p on p.b = r.b",
        "select distinct r.b, s.e from r join s on r.b = s.f{where}",
        "select count(*) as n, count(c) as z, sum(c) as y from r{test}",
    ),
    "EXISTS with groups": _one(
        "select f, e from s where exists (select 1 from r where r.b = s.f)",
        "select f from s where exists (select 1 from r where r.b = s.f) and not exists (select 1 "
        "from t where t.x = s.f)",
        "select f, (select count(*) from r where r.b = s.f) as z from s",
        "select d, count(*) as n from s where exists (select 1 from r where r.b = s.f and r.c {more}) group by d",
        "select f from s where (select count(*) from r where r.b = s.f) {more}",
        "select f, exists (select 1 from r where r.b = s.f) as z from s",
        "select f from s where exists (select 1 from r where r.b = s.f) or e {more}",
    ),
    "beside rows without a match": _several(
        {
            "low": [
                "select f, d, e from s where not exists (select 1 from r where r.b = s.f)",
                "select f, d, e from s where f not in (select b from r where b is not null)",
                "select s.f, s.d, s.e from s left join r on r.b = s.f where r.a is null",
                "select f, e, d from s where e > 1 and not exists (select 1 from t where t.x = s.f)",
                "select f, d, e from s where not exists (select 1 from t where t.y = s.d)",
            ],
            "mid": [
                "select f, d, e, count(*) as n from r join s on b = f group by f, d, e having count(*) > 1",
                (
                    "select s.f, s.d, s.e, sum(r.c) as n, count(r.c) as m from r join s on r.b = s.f "
                    "group by s.f, s.d, s.e having sum(r.c) > 2"
                ),
                "select f, d, e from s where not exists (select 1 from t where t.x = s.f)",
                "select b from r",
                "select b, count(*) as n from r group by b",
                "select s.f, s.d, count(r.a) as n from s left join r on r.b = s.f group by s.f, s.d",
                "select y, count(*) as n, sum(x) as z from t group by y",
            ],
            "v": [
                "select r.a, r.b, s.e from r join s on r.b = s.f",
                "select r.a, r.b, s.d, s.e from r join s on r.b = s.f where s.e > 1",
                "select s.d, count(*) as n, sum(s.e) as z, count(s.e) as y from r join s on r.b = s.f group by s.d",
                "select r.a, s.f, s.e from r left join s on r.b = s.f",
                "select distinct s.e from r join s on r.b = s.f",
                "select t.x, t.y, s.e from t join s on t.x = s.f",
            ],
        },
    ),
    "models over models": _several(
        {
            "low": [
                "select a, b, c from r where c > 0",
                "select a, b, c from r",
                "select a, b, coalesce(c, 0) as c from r",
            ],
            "mid": ["select b, count(*) as n, sum(c) as z from low group by b"],
            "v": [
                "select s.f, mid.n, mid.z from s join mid on mid.b = s.f",
                "select s.f, coalesce(mid.n, 0) as n from s left join mid on mid.b = s.f",
                "select n, count(*) as z from mid group by n",
                "select max(z) as z, sum(n) as n from mid",
                "select b from mid where n > 1",
                "select low.a, mid.n from low join mid on mid.b = low.b",
                "select w.k, w.n, mid.n as u, mid.z + w.m as y from w join mid on mid.b = w.k",
                "select b, count(distinct c) as n, count(*) as z from low group by b",
                "select w.n, s.f, mid.z from s join w on s.d = w.k join mid on mid.b = s.f",
                "select w.k, case when mid.n > 1 then 'many' end as z, mid.n from w left join mid on mid.b = w.k",
            ],
        },
        {
            "low": [
                "select r.a, r.b, s.e from r join s on r.b = s.f",
                "select r.a, r.b, s.e from r left join s on r.b = s.f",
            ],
            "v": [
                "select e, count(*) as n from low group by e",
                "select low.a, t.y from low join t on t.x = low.a",
                "select distinct b, e from low",
                "select b, max(e) as z from low group by b having count(*) > 1",
                "select a from low where e > 1 union all select b from low where e = 1",
            ],
        },
        {
            "low": [
                "select f, e from s",
                "select * from s",
                "select distinct f, d from s",
                "select f from s where e = 1",
            ],
            "mid": [
                "select b, count(*) as n from r group by b",
                "select a, b from r",
                "select distinct b from r",
            ],
            "v": [
                "select r.a, r.b, s.e from r join s on r.b = s.f",
                "select s.f, count(*) as n from r join s on r.b = s.f group by s.f",
                "select r.b, s.e from r join s on r.b = s.f",
                "select a from r where not exists (select 1 from s where s.f = r.b)",
                "select mid.b, low.f from mid left join low on low.f = mid.b",
                "select r.b, count(distinct s.e) as z from r join s on r.b = s.f group by r.b",
            ],
        },
    ),
    "over a text": _several(
        {
            "u": [
                "select f, e, row_number() over (order by f) as n from s",
                "select f, e, rank() over (order by s.e nulls first) as n from s",
                "select f, e, count(*) over (partition by s.e) as n from s",
                "select f, e, sum(e) over () as n from s",
            ],
            "v": _OVER_A_TEXT,
        },
        {
            "u": ["select 1 as f, 1 as e, 2 as n union all select 2, 1, 1"],
            "v": _OVER_A_TEXT,
        },
    ),
    "written rows": _several(
        {
            "u": [
                "select a, b, c from r{test} union all select 0, 1, 2",
                "select a, b, c from r union select 0, 1, 2",
                "select a, b, c from r union select 0, 1, 2 from (select 1 as x) as p where p.x > 1",
                "select a, b, c from r union all select 0, 1, 2 union all select 4, null, 1",
            ],
            "v": [
                "select s.f, u.a from s join u on u.b = s.f",
                "select u.b, count(*) as z, sum(u.c) as y from u group by u.b",
                "select u.a, s.e from u left join s on u.b = s.f",
                "select u.b, count(s.f) as z from u left join s on u.b = s.f group by u.b",
                "select a, b from u where b = 1",
            ],
        },
        {"v": ["select b, count(*) as z from r group by b union all select 0, 0"]},
        {"v": ["select b from r union all select 1"]},
        {"v": ["select a, b from r where c = 1 union select 0, 0"]},
        {
            "u": ["select 1 as z, 2 as y"],
            "v": ["select r.a, r.c + u.y as x from r cross join u"],
        },
    ),
}
