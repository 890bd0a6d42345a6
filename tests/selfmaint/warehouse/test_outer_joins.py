"""Views with LEFT JOINs, in what a warehouse is asked for; that the answers are right the random SQL holds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Literal

import pyarrow as pa
import pytest

import selfmaint
from selfmaint.api.audit import AuditOptions, audit_catalog
from selfmaint.api.file.programs import catalog_of
from selfmaint.audit.changes import Kind
from selfmaint.audit.example import Always, Depends
from selfmaint.decide.verdict import VerdictKind
from selfmaint.errors import InputError
from selfmaint.warehouse.situation import Situation
from tests import frames
from tests.frames import Rows, rows_of

OLD, NEW = dt.date(2026, 1, 1), dt.date(2026, 2, 2)
TABLES = """create table customer (id int primary key, name string not null);
create table orders (id int primary key, customer int, day date not null);
"""
LOOKUP = """create view lookup as
    select o.id, o.day, c.id as c, c.name from orders o left join customer c on c.id = o.customer;
"""
TOTALS = """create view totals as
    select c.id, c.name, count(o.id) as n, max(o.day) as last
    from customer c left join orders o on o.customer = c.id group by c.id, c.name;
"""
COLUMNS = {
    "customer": {"id": pa.int32(), "name": pa.string()},
    "orders": {"id": pa.int32(), "customer": pa.int32(), "day": pa.date32()},
    "lookup": {"id": pa.int32(), "day": pa.date32(), "c": pa.int32(), "name": pa.string()},
    "totals": {"id": pa.int32(), "name": pa.string(), "n": pa.int64(), "last": pa.date32()},
}
# customers 1 and 2; order 1 of customer 1, 2 of nobody, 3 of a customer 9 who is none
STORED = {
    "lookup": [(1, OLD, 1, "a"), (2, OLD, None, None), (3, NEW, None, None)],
    "totals": [(1, "a", 1, OLD), (2, "b", 0, None)],
}
BUYERS = {"buyers": {"day": pa.date32(), "n": pa.int64()}}
YES, NO = VerdictKind.YES, VerdictKind.NO


def frame(name: str, rows: Rows) -> pa.Table:
    return frames.frame(COLUMNS, name, rows)


def warehouse(engine: Literal["duckdb", "spark"], stored: Mapping[str, Rows] = STORED, **more: Any) -> Any:
    program = TABLES + "".join(text for text in (LOOKUP, TOTALS) if text.split()[2] in stored)
    views = {name: frame(name, rows) for name, rows in stored.items()}
    return selfmaint.build(program, views, engine=engine, **more)


def update(made: Any, inserted: Mapping[str, Rows], deleted: Mapping[str, Rows]) -> Any:
    return frames.update_of(made, COLUMNS, inserted, deleted)


CHANGES = [
    # an order of a customer whom `totals` names
    (
        {"orders": [(4, 2, NEW)]},
        {},
        {"lookup": ({(4, NEW, 2, "b")}, set()), "totals": ({(2, "b", 1, NEW)}, {(2, "b", 0, None)})},
    ),
    # of one who is none: `totals` has all of them
    ({"orders": [(4, 9, NEW)]}, {}, {"lookup": ({(4, NEW, None, None)}, set()), "totals": (set(), set())}),
    # the last order of a customer
    (
        {},
        {"orders": [(1, 1, OLD)]},
        {"lookup": (set(), {(1, OLD, 1, "a")}), "totals": ({(1, "a", 0, None)}, {(1, "a", 1, OLD)})},
    ),
    # another name: the rows of both change that have a partner
    (
        {"customer": [(1, "x")]},
        {"customer": [(1, "a")]},
        {
            "lookup": ({(1, OLD, 1, "x")}, {(1, OLD, 1, "a")}),
            "totals": ({(1, "x", 1, OLD)}, {(1, "a", 1, OLD)}),
        },
    ),
    # a customer goes, and the order stays
    (
        {},
        {"customer": [(1, "a")]},
        {"lookup": ({(1, OLD, None, None)}, {(1, OLD, 1, "a")}), "totals": (set(), {(1, "a", 1, OLD)})},
    ),
]


@pytest.mark.parametrize(("inserted", "deleted", "expected"), CHANGES)
def test_what_is_determined_is_followed(
    inserted: dict[str, Rows], deleted: dict[str, Rows], expected: dict[str, Any]
) -> None:
    made = warehouse("duckdb")
    given = update(made, inserted, deleted)
    assert all(made.check(given).values())
    found = made.maintain(given, strict=True)
    assert found.reads == ()
    assert {n: (rows_of(d.gained), rows_of(d.lost)) for n, d in found.deltas.items()} == expected


def test_it_is_followed_on_spark(spark: Any) -> None:
    made = warehouse("spark", spark=spark)
    inserted, deleted, expected = CHANGES[0]
    found = made.maintain(update(made, inserted, deleted), strict=True)
    assert {n: (rows_of(d.gained), rows_of(d.lost)) for n, d in found.deltas.items()} == expected


def test_partners_by_a_foreign_key_tell_the_kept_side() -> None:
    """Which customers order on a day `buyers` does not show; `lookup` does, if each order's customer is one."""
    program = TABLES.replace("customer int,", "customer int references customer (id),") + LOOKUP
    program += "create view buyers as select day, count(distinct customer) as n from orders group by day;"
    views = {
        "lookup": frame("lookup", STORED["lookup"][:2]),
        "buyers": frames.frame(BUYERS, "buyers", [(OLD, 1)]),
    }
    made = selfmaint.build(program, views, engine="duckdb")
    given = update(made, {"customer": [(2, "b")], "orders": [(5, 2, OLD)]}, {"orders": [(1, 1, OLD)]})
    assert all(made.check(given).values())
    found = made.maintain(given, strict=True).deltas
    assert (rows_of(found["buyers"].gained), rows_of(found["buyers"].lost)) == (set(), set())
    assert rows_of(found["lookup"].gained) == {(5, OLD, 2, "b")}
    assert rows_of(found["lookup"].lost) == {(1, OLD, 1, "a")}
    unpromised = selfmaint.build(program.replace(" references customer (id)", ""), views, engine="duckdb")
    assert not unpromised.check(update(unpromised, {"customer": [(2, "b")]}, {"orders": [(1, 1, OLD)]}))[
        "buyers"
    ]


SHOWN = """create table customer (id int primary key, name string, mail string);
create table orders (id int primary key, customer int, day date not null);
create view shown as select o.id, c.name, c.mail from orders o left join customer c on c.id = o.customer;
"""


def check_shown(engine: Literal["duckdb", "spark"], **more: Any) -> None:
    """A row with a partner and one without go: any value that is not null says which is which."""
    kinds = pa.schema([("id", pa.int32()), ("name", pa.string()), ("mail", pa.string())])
    columns = ([1, 2, 3], [None, None, "x"], ["a@b", None, None])
    made = selfmaint.build(SHOWN, {"shown": pa.table(list(columns), schema=kinds)}, engine=engine, **more)
    found = made.maintain(update(made, {}, {"orders": [(1, 1, OLD), (2, 5, OLD)]}), strict=True).deltas[
        "shown"
    ]
    assert (rows_of(found.gained), rows_of(found.lost)) == (set(), {(1, None, "a@b"), (2, None, None)})


def test_partners_are_told_by_any_value() -> None:
    check_shown("duckdb")


def test_partners_are_told_by_any_value_on_spark(spark: Any) -> None:
    check_shown("spark", spark=spark)


def test_a_customer_whose_orders_nobody_knows() -> None:
    made = warehouse("duckdb")
    found = made.check(update(made, {"customer": [(9, "z")]}, {}))
    assert [found["lookup"].kind, found["totals"].kind] == [NO, NO]


def test_an_order_of_somebody_of_whom_nothing_is_known() -> None:
    made = warehouse("duckdb", {"lookup": STORED["lookup"]})
    given = update(made, {"orders": [(4, 7, NEW)]}, {})
    assert made.check(given)["lookup"].kind is NO
    found = made.explain(given, "lookup")
    assert found.view.shown == "the join with `c` of `lookup`"
    assert found.counterexample is not None


def test_rows_that_a_left_join_cannot_give_are_named() -> None:
    made = warehouse("duckdb", {"lookup": [(1, OLD, 1, "a"), (2, OLD, None, "none")]})
    with pytest.raises(InputError, match="`lookup` stores rows that its query can never produce"):
        made.check(update(made, {"orders": [(4, 7, NEW)]}, {}))


def test_alternatives_are_one_condition_of_a_part() -> None:
    made = selfmaint.build(
        TABLES + LOOKUP.replace(";", " where o.id in (1, 2);"),
        {"lookup": frame("lookup", [])},
        engine="duckdb",
    )
    assert list(made.catalog.unions) == ["lookup"]
    assert made.check(update(made, {"orders": [(2, 7, NEW)]}, {}))["lookup"].kind is NO
    assert made.check(update(made, {}, {"orders": [(2, 7, NEW)]}))["lookup"].kind is YES


@pytest.mark.parametrize(
    "given",
    [
        f"{TABLES} create view `lookup#1` as select id from orders; {LOOKUP}",
        f"{TABLES.replace('customer (', '`Lookup#1` (')} {LOOKUP.replace('join customer', 'join `Lookup#1`')}",
        f"""{TABLES} create view `v#1` as select id from customer;
        create view v as select id, name from customer where id = 1
        union select id, name from customer where id = 2;""",
    ],
)
def test_a_relation_that_is_called_as_a_part_would_be(given: str) -> None:
    made = catalog_of(given)
    assert made.unions == {}
    assert len(made.views) == given.count("create view")


def test_without_a_key_it_stays_text_and_the_place_is_named() -> None:
    query = "select o.day, c.id from orders o left join customer c on c.id = o.customer"
    made = catalog_of(f"{TABLES} {LOOKUP} create view w as {query};")
    assert list(made.outer) == ["lookup"]
    assert [one.message for one in made.warnings] == ["LEFT JOIN cannot be analysed"]


def test_the_audit_of_what_it_is_made_of() -> None:
    found = audit_catalog(catalog_of(TABLES + LOOKUP), Situation(effective=True), AuditOptions(advise=False))
    (line,) = (one for one in found.audit.views[0].lines if one.relation == "orders")
    assert isinstance(line.outcomes[Kind.DELETE], Always)
    (other,) = (one for one in found.audit.views[0].lines if one.relation == "customer")
    shown = other.outcomes[Kind.INSERT]
    assert isinstance(shown, Depends)
    assert all(len(row) == len(COLUMNS["lookup"]) for row in shown.example.contents["lookup"])
    assert not isinstance(line.outcomes[Kind.INSERT], Always)


def test_groups_rolled_up_from_rows_have_no_more_than_their_own_values() -> None:
    """An order goes, and another one changes only in what no view shows."""
    program = """create table customer (id int primary key, name string not null, city int);
        create table orders (id int primary key, customer int not null references customer, day date not null,
            note string);
        create view counted as select c.id, c.name, sum(o.id) as n
            from customer c left join orders o on o.customer = c.id group by c.id, c.name;
        create view shown as select o.id, o.day, c.id as customer, c.name
            from orders o join customer c on o.customer = c.id;
    """
    number = pa.int32()
    orders = {"id": number, "customer": number, "day": pa.date32(), "note": pa.string()}
    tables = {
        "counted": ({"id": number, "name": pa.string(), "n": pa.int64()}, [(1, "Ann", 10), (2, "Bob", 20)]),
        "shown": (
            {"id": number, "day": pa.date32(), "customer": number, "name": pa.string()},
            [(10, OLD, 1, "Ann"), (20, NEW, 2, "Bob")],
        ),
        "gone": (orders, [(20, 2, NEW, None), (10, 1, OLD, None)]),
        "come": (orders, [(20, 2, NEW, "note")]),
    }
    held = {
        name: pa.Table.from_pylist(
            [dict(zip(kinds, row, strict=True)) for row in rows], pa.schema(list(kinds.items()))
        )
        for name, (kinds, rows) in tables.items()
    }
    gone, come = held.pop("gone"), held.pop("come")
    made = selfmaint.build(program, held, engine="duckdb")
    given = selfmaint.Update.from_frames(made, {"orders": come}, {"orders": gone}, effective=True)
    change = made.maintain(given, strict=True).deltas["counted"]
    assert (rows_of(change.gained), rows_of(change.lost)) == ({(1, "Ann", None)}, {(1, "Ann", 10)})
