"""What `selfmaint sql` prints for views with outer joins, of unions and of rows without a match, run on DuckDB.

Oracles: the view's own text over all rows after the update, and for what rows of tests mean, `check`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot

import selfmaint
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.printing.printed import Statement, StatementKind
from selfmaint.api.printing.statements import printed
from selfmaint.decide.decision import Decision
from selfmaint.decide.open_groups import UNCOUNTABLE
from selfmaint.decide.verdict import VerdictKind
from selfmaint.warehouse.situation import Situation
from tests.effort import effort

TABLES = """create table customer (id int not null primary key, name string not null, region int);
create table orders (id int not null primary key, customer int, total int not null);
create table line (id int not null primary key, orders int not null references orders, n int not null);
"""
COLUMNS = {
    "customer": ("id", "name", "region"),
    "orders": ("id", "customer", "total"),
    "line": ("id", "orders", "n"),
}
VIEWS = {
    "lookup": "select o.id, o.total, c.id as c, c.name from orders o left join customer c on c.id = o.customer",
    "whole": """select c.id, c.name, c.region, o.id as o, o.total from customer c
        left join orders o on o.customer = c.id""",
    "by any value": """select o.id, o.customer, o.total, c.name, c.region from orders o
        left join customer c on c.id = o.customer""",
    "chain": """select l.id, l.n, o.id as o, o.total, c.id as c from line l left join orders o on o.id = l.orders
        and o.total > 1 left join customer c on c.id = o.customer""",
    "totals": """select c.id, c.name, count(o.id) as k, sum(o.total) as s from customer c
        left join orders o on o.customer = c.id group by c.id, c.name""",
    "model": """select c.id, c.name, coalesce(h.k, 0) as k, h.s, case when h.k > 1 then 'more' end as kind
        from customer c left join (select customer, count(*) as k, sum(total) as s from orders group by customer) h
        on h.customer = c.id""",
    "full": """select o.id, o.customer, o.total, c.id as c, c.name from orders o
        full join customer c on c.id = o.customer""",
    "full groups": """select coalesce(a.k, b.k) as k, a.n, coalesce(b.m, 0) as m, a.n - b.m as more
        from (select customer as k, count(*) as n from orders group by customer) a full join
        (select region as k, count(*) as m from customer group by region) b on a.k = b.k""",
    "means": """select customer, count(*) as k, sum(total) as s, sum(total) / count(*) as m
        from orders group by customer""",
    "in other words": """select customer, cast(count(*) as int) as k, cast(sum(total) as decimal(20,1)) as s,
        round(avg(total), 1) as m, sum(total) - sum(id) as d from orders group by customer""",
    "model in other words": """select c.id, cast(coalesce(h.k, 0) as int) as k, cast(h.s as decimal(20,2)) as s
        from customer c left join (select customer, count(*) as k, sum(total) as s from orders group by customer) h
        on h.customer = c.id""",
    "no lines": """select id, customer, total from orders o
        where not exists (select 1 from line l where l.orders = o.id)""",
    "small": """select o.id, o.total from orders o where o.total > 1 and o.id not in
        (select orders from line where n > 1)""",
    "unknown": """select o.id, o.customer from orders o left join customer c on c.id = o.customer
        where c.id is null""",
    "ids": "select id from orders except select orders from line",
    "union": """select id, 'o' as kind, total as x from orders where total > 0
        union all select id, 'l' as kind, -n as x from line""",
    "union of groups": """select customer as id, 'orders' as kind, count(*) as k, sum(total) as s from orders
        group by customer union all select region as id, 'customers' as kind, count(*) as k, 0 as s from customer
        group by region union all select id, 'line' as kind, 1 as k, n as s from line where n > 0""",
    "either": "select id, customer, total from orders where total = 1 or total > 2",
}
BESIDE = """create view ordered as select id, customer, total from orders where total > 0;
create view customers as select id, name, region from customer;
"""
Rows = set[tuple[Any, ...]]
Run = Callable[[str], list[tuple[Any, ...]]]


@dataclass
class Held:
    """What was compared."""

    followed: int = 0
    changed: int = 0
    proved: int = 0
    unsettled: int = 0


def database(draw: random.Random, size: int) -> dict[str, Rows]:
    some = range(size)
    orders = {
        i: (i, draw.choice([None, *some]), draw.randrange(4))
        for i in draw.sample(some, draw.randint(2, size))
    }
    lines = [
        (i, draw.choice(list(orders)), draw.randrange(4))
        for i in draw.sample(some, draw.randint(2, size))
        if orders
    ]
    customers = {
        (i, draw.choice("ab"), draw.choice([None, 1])) for i in draw.sample(some, draw.randint(2, size))
    }
    return {"customer": customers, "orders": set(orders.values()), "line": set(lines)}


def after(draw: random.Random, before: Mapping[str, Rows], size: int) -> dict[str, Rows]:
    """Another database in which some rows of one relation, and what references them, come and go."""
    name, more = draw.choice(list(before)), database(draw, size)
    kept = {row for row in before[name] if draw.random() < 0.6}
    keys = {row[0] for row in kept}
    found = {**before, name: kept | {row for row in more[name] if row[0] not in keys}}
    there = {row[0] for row in found["orders"]}
    return {**found, "line": {row for row in found["line"] if row[1] in there}}


def literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def fill(run: Run, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
    columns = COLUMNS[name.partition("_")[0]]
    kinds = ", ".join(f"{one} {'STRING' if one == 'name' else 'INT'}" for one in columns)
    run(f"CREATE TABLE {name} ({kinds})")
    every = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
    if every:
        run(f"INSERT INTO {name} VALUES {every}")


def script(query: str, changed: Iterable[str], beside: str = "") -> list[Statement]:
    schema = catalog_of(f"{TABLES}{beside}create view v as {query};")
    situation = Situation.any_update(changed, effective=True)
    found = printed(Decision(schema), "v", situation, {})
    assert found.undecided is None
    return list(found)


def hold(
    run: Run, query: str, old: Mapping[str, Rows], new: Mapping[str, Rows], beside: str, held: Held
) -> None:
    """Runs what is printed over the tables, and compares."""
    for name in COLUMNS:
        fill(run, name, old[name])
    names = ["v", *(["ordered", "customers"] if beside else [])]
    texts = dict(
        zip(names[1:], ("select * from orders where total > 0", "select * from customer"), strict=False)
    )
    for name in names:
        run(f"CREATE TABLE {name}_stored AS {texts.get(name, query)}")
    stored = {name: run(f"SELECT * FROM {name}_stored") for name in names}
    for name in names:
        run(f"CREATE TABLE {name} AS SELECT * FROM {name}_stored")
    for name in COLUMNS:
        run(f"DROP TABLE {name}")
        fill(run, f"{name}_inserted", new[name] - old[name])
        fill(run, f"{name}_deleted", old[name] - new[name])
    doubts, is_proved = 0, False
    gained, lost = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
    changed = [name for name in COLUMNS if old[name] != new[name]]
    for statement in script(query, changed, beside):
        rows = run(statement.sql)
        match statement.kind:
            case StatementKind.TEST | StatementKind.OPEN:
                doubts += bool(rows)
                is_proved |= bool(rows) and bool(statement.exact)
            case StatementKind.GAINED:
                gained = rows
            case StatementKind.LOST:
                lost = rows
    left = Counter(run("SELECT * FROM v")) - Counter(lost) + Counter(gained)
    for name in COLUMNS:
        fill(run, name, new[name])
    expected = Counter(run(query))
    verdict = verdict_of(query, stored, old, new, beside)
    if not doubts:
        assert left == expected, (query, old, new)
        assert verdict is VerdictKind.YES, (query, old, new)
        held.followed += 1
        held.changed += Counter(stored["v"]) != expected
    elif is_proved:
        assert verdict is VerdictKind.NO, (query, old, new)
        held.proved += 1
    else:
        held.unsettled += verdict is VerdictKind.YES


def verdict_of(
    query: str,
    stored: Mapping[str, list[tuple[Any, ...]]],
    old: Mapping[str, Rows],
    new: Mapping[str, Rows],
    beside: str,
) -> VerdictKind:
    program = f"{TABLES}{beside}create view v as {query};"
    schema = catalog_of(program)
    contents = {
        name: [dict(zip(schema.view(name).columns, row, strict=True)) for row in rows]
        for name, rows in stored.items()
    }

    def table(name: str, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
        kinds = [(c, pa.string() if c == "name" else pa.int32()) for c in COLUMNS[name]]
        return pa.Table.from_pylist(
            [dict(zip(COLUMNS[name], row, strict=True)) for row in rows], pa.schema(kinds)
        )

    frames = {}
    for name, rows in contents.items():
        others = {
            "name": pa.string(),
            "kind": pa.string(),
            "k": pa.int64(),
            "s": pa.int64(),
            "m": pa.float64(),
        }
        kinds = [(c, others.get(c, pa.int32())) for c in schema.view(name).columns]
        frames[name] = pa.Table.from_pylist(rows, pa.schema(kinds))
    made = selfmaint.build(program, frames, engine="duckdb")
    changed = [name for name in COLUMNS if old[name] != new[name]]
    update = selfmaint.Update.from_frames(
        made,
        {name: table(name, new[name] - old[name]) for name in changed},
        {name: table(name, old[name] - new[name]) for name in changed},
        effective=True,
    )
    return made.check(update)["v"].kind


def on_duckdb(connection: duckdb.DuckDBPyConnection, text: str) -> list[tuple[Any, ...]]:
    """A statement in Spark's SQL; one that holds rows makes a table."""
    if text.startswith("CACHE TABLE"):
        text = text.replace("CACHE TABLE", "CREATE OR REPLACE TABLE", 1)
    (made,) = sqlglot.transpile(text, read="spark", write="duckdb")
    return connection.execute(made).fetchall()


@pytest.mark.random
@pytest.mark.parametrize("beside", ["", BESIDE], ids=["alone", "beside others"])
def test_what_is_printed_follows_the_views(beside: str) -> None:
    held = Held()
    for name in VIEWS if not beside else ("lookup", "totals"):
        draw = random.Random(name)
        for _ in range(effort(3, 100)):
            old = database(draw, 5)
            new = after(draw, old, 5)
            with duckdb.connect() as connection:
                hold(lambda text, its=connection: on_duckdb(its, text), VIEWS[name], old, new, beside, held)
    assert held.followed > 3
    assert held.changed > 1


def test_rows_of_a_union_that_tell_are_readable_before() -> None:
    union = (
        "create view amounts as select id, customer as n, 'order' as kind from orders where customer is not null "
        "union all select id, n, 'line' as kind from line;"
    )
    schema = catalog_of(f"{TABLES}{union} create view v as {VIEWS['lookup']};")
    found = printed(Decision(schema), "v", Situation.any_update(COLUMNS, effective=True), {})
    made = {one.name for one in found if one.kind is StatementKind.PART}
    assert {"amounts#1@rows", "v#0@rows", "v#1@rows"} <= made


def test_an_update_that_may_have_been_there_is_not_printed_for() -> None:
    schema = catalog_of(f"{TABLES}create view v as {VIEWS['ids']}; create view w as {VIEWS['totals']};")
    for name in ("v", "w"):
        found = printed(Decision(schema), name, Situation.any_update(COLUMNS), {})
        assert (tuple(found), found.undecided) == ((), UNCOUNTABLE)


def test_what_does_not_change_a_view_is_said() -> None:
    schema = catalog_of(f"{TABLES}create view v as {VIEWS['ids']}; create view w as {VIEWS['lookup']};")
    for name, relation in (("v", "customer"), ("w", "line")):
        found = printed(Decision(schema), name, Situation.any_update([relation], effective=True), {})
        assert (tuple(found), found.unchanging) == ((), f"these changes do not change `{name}`")
