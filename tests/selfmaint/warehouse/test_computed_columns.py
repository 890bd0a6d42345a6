"""Columns computed from counts and sums, and rows with what groups of others come to, as analysts' models have them."""

from __future__ import annotations

import datetime as dt
from typing import Any, Literal

import pyarrow as pa
import pytest

import selfmaint
from selfmaint.api.audit import AuditOptions, audit_catalog
from selfmaint.api.file.programs import catalog_of
from selfmaint.audit.example import Always
from selfmaint.errors import InputError
from selfmaint.warehouse.situation import Situation
from tests import frames
from tests.frames import Rows, rows_of

OLD, NEW = dt.date(2026, 1, 1), dt.date(2026, 2, 2)
PROGRAM = """create table customer (id int primary key, name string not null);
create table orders (id int primary key, customer int not null references customer(id), day date not null, paid int);
create view customers as
    with history as (
        select customer, count(*) as orders, min(day) as first, max(day) as last, coalesce(sum(paid), 0) as paid
        from orders group by customer
    )
    select c.id, c.name, coalesce(h.orders, 0) as orders, h.first, h.last, h.paid,
        case when h.orders > 1 then 'returning' when h.orders = 1 then 'new' else 'none' end as kind
    from customer c left join history h on h.customer = c.id;
create view days as
    select day, count(*) as orders, coalesce(sum(paid), 0) as paid, coalesce(sum(paid), 0) / count(*) as mean,
        count(*) > 1 as busy
    from orders group by day;
"""
COLUMNS = {
    "customer": {"id": pa.int32(), "name": pa.string()},
    "orders": {"id": pa.int32(), "customer": pa.int32(), "day": pa.date32(), "paid": pa.int32()},
    "customers": {
        "id": pa.int32(),
        "name": pa.string(),
        "orders": pa.int64(),
        "first": pa.date32(),
        "last": pa.date32(),
        "paid": pa.int64(),
        "kind": pa.string(),
    },
    "days": {
        "day": pa.date32(),
        "orders": pa.int64(),
        "paid": pa.int64(),
        "mean": pa.float64(),
        "busy": pa.bool_(),
    },
}
# customer 1 has an order of 5, customer 2 none
STORED = {
    "customers": [(1, "a", 1, OLD, OLD, 5, "new"), (2, "b", 0, None, None, None, "none")],
    "days": [(OLD, 1, 5, 5.0, False)],
}


def warehouse(engine: Literal["duckdb", "spark"], **more: Any) -> Any:
    views = {name: frames.frame(COLUMNS, name, rows) for name, rows in STORED.items()}
    return selfmaint.build(PROGRAM, views, engine=engine, **more)


CHANGES = [
    (
        {"orders": [(2, 1, NEW, None), (3, 2, OLD, 7)]},
        {},
        {
            "customers": (
                {(1, "a", 2, OLD, NEW, 5, "returning"), (2, "b", 1, OLD, OLD, 7, "new")},
                {*STORED["customers"]},
            ),
            "days": ({(OLD, 2, 12, 6.0, True), (NEW, 1, 0, 0.0, False)}, {*STORED["days"]}),
        },
    ),
    (
        {},
        {"orders": [(1, 1, OLD, 5)]},
        {
            "customers": ({(1, "a", 0, None, None, None, "none")}, {STORED["customers"][0]}),
            "days": (set(), {*STORED["days"]}),
        },
    ),
    (
        {"customer": [(1, "x"), (3, "c")]},
        {"customer": [(1, "a")]},
        {
            "customers": (
                {(1, "x", 1, OLD, OLD, 5, "new"), (3, "c", 0, None, None, None, "none")},
                {STORED["customers"][0]},
            ),
            "days": (set(), set()),
        },
    ),
]


def followed(made: Any, inserted: dict[str, Rows], deleted: dict[str, Rows]) -> dict[str, Any]:
    found = made.maintain(frames.update_of(made, COLUMNS, inserted, deleted), strict=True)
    assert found.reads == ()
    return {name: (rows_of(one.gained), rows_of(one.lost)) for name, one in found.deltas.items()}


@pytest.mark.parametrize(("inserted", "deleted", "expected"), CHANGES)
def test_what_is_determined_is_followed(
    inserted: dict[str, Rows], deleted: dict[str, Rows], expected: dict[str, Any]
) -> None:
    assert followed(warehouse("duckdb"), inserted, deleted) == expected


def test_it_is_followed_on_spark(spark: Any) -> None:
    inserted, deleted, expected = CHANGES[0]
    assert followed(warehouse("spark", spark=spark), inserted, deleted) == expected


def test_the_audit_says_when() -> None:
    more = (
        "create table line (id int primary key, orders int not null references orders(id), n int not null);"
    )
    more += """create view sold as select o.day, count(*) as n, sum(l.n) as pieces, sum(l.n) / count(*) as mean
        from line l join orders o on o.id = l.orders group by o.day;"""
    given = Situation(effective=True)
    found = audit_catalog(catalog_of(PROGRAM + more, source="p.sql"), given, AuditOptions(advise=False))
    lines = {(one.view.name, line.relation): line for one in found.audit.views for line in one.lines}
    always = [lines["days", "orders"], lines["customers", "customer"]]
    assert all(isinstance(one, Always) for line in always for one in line.outcomes.values())
    assert not isinstance(lines["sold", "line"].any, Always)


def test_rows_that_the_query_can_never_produce() -> None:
    wrong = {**STORED, "customers": [(2, "b", 0, OLD, None, None, "none")]}
    views = {name: frames.frame(COLUMNS, name, rows) for name, rows in wrong.items()}
    made = selfmaint.build(PROGRAM, views, engine="duckdb")
    with pytest.raises(InputError, match="customers"):
        made.check(frames.update_of(made, COLUMNS, {"orders": [(3, 2, OLD, 7)]}, {}))


R = "create table r (k int primary key, g int not null, a int, d double, p decimal(9,2)); create view v as "


@pytest.mark.parametrize(
    ("query", "is_decided"),
    [
        ("select g, count(*) as n, n + 1 as m from r group by g", True),
        ("select g, count(*) as n, g + 1 as m from r group by g", True),
        ("select g, sum(p) as s, count(*) as n, sum(p) / count(*) as m from r group by g", True),
        ("select g, count(*) as n, avg(a) as s, round(avg(a), 1) as m from r group by g", True),
        ("select g, count(*) as n, count(*) > 1 as m from r group by g having count(*) > 1", True),
        ("select g, coalesce(sum(a), 0) as m from r group by g", True),
        ("select count(*) as n, count(*) + 1 as m from r", True),
        ("select g, sum(a) / count(*) as m, count(*) as n from r group by g", False),
        ("select coalesce(sum(a), 0) as m from r", False),
        ("select g, max(d) as x, 1 / max(d) as m from r group by g", False),  # of 0.0 or of -0.0
        ("select d, count(*) as n, 1 / d as m from r group by d", False),
    ],
)
def test_what_is_computed_from_what_is_shown(query: str, is_decided: bool) -> None:
    found = catalog_of(R + query, source="p.sql")
    view = found.view("v")
    assert (view.is_decided or "v" in found.outer) == is_decided


def test_a_number_is_not_one_that_equals_it() -> None:
    found = catalog_of(
        R + "select g, sum(a * 1) as s, sum(a * 1.0) + 1 as m, count(*) as n from r group by g",
        source="p.sql",
    )
    assert "v" not in found.outer
    assert "computes with `sum(...)`" in str(found.view("v").limitation)
