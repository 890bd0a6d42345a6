"""Shapes of views over dates, times, decimals, doubles, booleans and texts: `o(i, g, day, "
"seen, price, rate, ok, name)"
and `h(code, since, cap, top)`.

Like those of `sql_shapes`, of which they are a part. What DuckDB computes otherwise than Spark is spelled for it in
`sql_engines`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

Shape = Callable[[Random], str]

_TESTS = [
    "day >= date '2026-02-01'",
    "day between date '2026-01-01' and date '2026-01-31'",
    "seen < timestamp '2026-02-01 00:00:00'",
    "year(day) = 2026",
    "price > 0",
    "price <= 1.5",
    "price in (1.50, 2.25)",
    "price is null or price < 1",
    "rate > 1",
    "rate < 1 or rate is null",
    "rate <> 0",
    "isnan(rate)",
    "ok",
    "not ok",
    "ok or price > 1",
    "ok is null or ok",
    "name = ''",
    "name <> 'a'",
    "name like 'a%'",
    "name is not null and ok",
    "coalesce(name, '') = ''",
    "case when ok then price else 0 end > 1",
    "price > rate",
    "name in ('a', '') or ok",
    "day < date '2026-01-31' or rate > 1",
]


def _one(*texts: str) -> Shape:
    def made(random: Random) -> str:
        tests = [f" where {random.choice(_TESTS)}", "", ""]
        by = random.choice(["g", "day", "name", "ok", "rate", "price"])
        return random.choice(texts).format(
            where=random.choice(tests),
            test=random.choice(_TESTS),
            by=by,
            value=random.choice(["day", "seen", "price", "rate", "name", "ok", "g"]),
            extreme=random.choice(["min", "max"]),
            join=random.choice(["join", "join", "left join"]),
            on=random.choice(
                ["o.name = h.code", "o.name = h.code", "o.day = h.since", "o.price = h.cap", "o.rate = h.top"]
            ),
        )

    return made


TYPED_SHAPES: Mapping[str, Shape] = {
    "types: conditions": _one(
        "select i, {value} from o where {test}",
        "select i from o where {test}",
        "select {value} from o where {test}",
        "select distinct {value} from o where {test}",
    ),
    "types: EXTRACT, DATE_TRUNC": _one(
        "select i, extract(month from day) as z from o{where}",
        "select i, date_trunc('day', seen) as z from o",
        "select date_trunc('month', seen) as z, count(*) as n from o{where} group by date_trunc('month', seen)",
        "select trunc(day, 'MM') as z, count(*) as n, sum(price) as y, count(price) as x "
        "from o group by trunc(day, 'MM')",
        "select year(day) as z, month(day) as y, count(*) as n from o{where} group by year(day), month(day)",
        "select month(day) as z, max(day) as y, count(*) as n from o group by month(day)",
        "select distinct quarter(day) as z from o{where}",
        "select i, day + interval 1 month as z from o{where}",
        "select i, datediff(day, date '2026-01-01') as z from o",
        "select hour(seen) as z, count(*) as n from o group by hour(seen)",
        "select date_trunc('month', seen) as z, count(distinct name) as n from o group by date_trunc('month', seen)",
    ),
    "types: sums and averages of decimals": _one(
        "select {by}, sum(price) as z, count(price) as n, count(*) as k from o{where} group by {by}",
        "select {by}, sum(price) as z, count(*) as k from o{where} group by {by}",
        "select {by}, avg(price) as z, sum(price) as y, count(price) as n, count(*) as k from o group by {by}",
        "select {by}, avg(price) as z from o{where} group by {by}",
        "select {by}, avg(price) as z, count(price) as y, max(price) as x from o{where} group by {by}",
        "select sum(price) as z, count(*) as n from o{where}",
        "select g, sum(case when ok then price else 0 end) as z, count(*) as n from o group by g",
        "select g, sum(price * 2) as z, count(price) as y, count(*) as n from o group by g",
        "select g, sum(price) as z from o group by g having sum(price) > 1",
        "select {by}, round(sum(price), 2) as z, cast(count(*) as int) as k from o{where} group by {by}",
        "select {by}, cast(sum(price) as decimal(18,3)) as z, count(price) as n, round(avg(price), 1) as y, "
        "count(*) as k from o{where} group by {by}",
        "select {by}, round(sum(price), 1) as z, round(avg(price), 2) as y, count(*) as k from o group by {by}",
        "select g, sum(distinct price) as z, count(*) as n from o group by g",
    ),
    "types: MIN, MAX": _one(
        "select {by}, {extreme}({value}) as z, count(*) as n from o{where} group by {by}",
        "select {by}, {extreme}({value}) as z from o{where} group by {by}",
        "select {extreme}({value}) as z, count(*) as n from o{where}",
        "select {by}, min({value}) as z, max({value}) as y, count(*) as n from o group by {by}",
        "select {by}, max(day) as z, count(*) as n from o group by {by} having max(day) >= date '2026-01-31'",
    ),
    "types: groups and copies": _one(
        "select {by}, count(*) as n from o{where} group by {by}",
        "select {by}, {value} as z from o{where}",
        "select {by}, count({value}) as z, count(*) as n from o group by {by}",
        "select {by}, count(distinct {value}) as z from o group by {by}",
        "select {by}, count_if(ok) as z, count(*) as n from o group by {by}",
        "select {by}, bool_or(ok) as z, bool_and(ok) as y, count(*) as n from o group by {by}",
        "select distinct {by}, {value} as z from o",
        "select {by}, count(*) filter (where {test}) as z, count(*) as n from o group by {by}",
    ),
    "types: CASE, COALESCE": _one(
        "select i, case when price > 1 then 'high' when price is null then name else '' end as z from o",
        "select i, coalesce(day, date '2026-01-01') as z from o{where}",
        "select i, coalesce(name, '') as z, coalesce(ok, false) as y from o{where}",
        "select i, case when ok then day end as z from o",
        "select i, nullif(name, '') as z from o{where}",
        "select i, case when rate > 1 then rate else cast(0.5 as double) end as z from o",
        "select case when name = '' then null else name end as z, count(*) as n "
        "from o group by case when name = '' then null else name end",
        "select coalesce(name, '') as z, count(*) as n, max(price) as y from o{where} group by coalesce(name, '')",
        "select i, upper(name) as z, length(name) as y from o{where}",
        "select i, name || 'x' as z from o{where}",
        "select i, price > 1 as z, {test} as y from o",
        "select i, price * 2 as z, price + 1 as y from o",
    ),
    "types: joins": _one(
        "select o.i, h.code, {value} from o {join} h on {on}",
        "select o.i, h.since, h.cap from o {join} h on {on}",
        "select o.i, h.top from o {join} h on {on}{where}",
        "select o.name, h.cap from o join h on {on}",
        "select h.code, count(o.i) as n from h left join o on {on} group by h.code",
        "select h.code, sum(o.price) as z, count(o.price) as y, count(*) as n from o join h on {on} group by h.code",
        "select h.since, max(o.day) as z, count(*) as n from o join h on {on} group by h.since",
        "select i, {value} from o where not exists (select 1 from h where {on})",
        "select i, {value} from o where exists (select 1 from h where {on})",
        "select i from o where name not in (select code from h)",
        "select i from o where price in (select cap from h)",
        "select o.i, p.i as z from o join o p on o.{by} = p.{by}",
    ),
    "types: windows": _one(
        "select i, {value} from (select i, {value}, row_number() over (partition by name order by o.day "
        "desc nulls last, i) as n from o) x where n = 1",
        "select i, lag(price) over (partition by name order by o.day nulls first, i) as z from o",
        "select i, max({value}) over (partition by {by}) as z from o",
        "select i, sum(price) over (partition by {by}) as z from o{where}",
        "select i, rank() over (partition by {by} order by o.price desc nulls last) as z from o",
        "select i, day from o where day = (select max(p.day) from o p where p.name = o.name)",
    ),
    "types: sets": _one(
        "select day as z from o union select since as z from h",
        "select price as z from o union all select cap as z from h",
        "select rate as z from o except select top as z from h",
        "select name as z from o except all select code as z from h",
        "select name as z, day as y from o intersect select code as z, since as y from h",
        "select {value} as z from o where {test} union select {value} as z from o where {test}",
        "select i, {value} as z from o where ok union all select i, {value} as z from o where not ok",
    ),
}
