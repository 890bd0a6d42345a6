"""Views of rows that have no match: what the update tells of them, condition by condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pyarrow as pa
import pytest

import selfmaint
from selfmaint.decide import differing
from selfmaint.decide.verdict import VerdictKind
from tests import frames
from tests.frames import Rows, rows_of

PROGRAM = """create table orders (id int primary key, customer int not null);
create table payment (id int primary key, order_id int references orders);
create table customer (id int primary key, name string);
create view unpaid as
    select o.id, o.customer from orders o where not exists (select 1 from payment p where p.order_id = o.id);
create view stray as
    select o.id, o.customer from orders o left join customer c on c.id = o.customer where c.id is null;
"""
COLUMNS = {
    "orders": {"id": pa.int32(), "customer": pa.int32()},
    "payment": {"id": pa.int32(), "order_id": pa.int32()},
    "customer": {"id": pa.int32(), "name": pa.string()},
    "unpaid": {"id": pa.int32(), "customer": pa.int32()},
    "stray": {"id": pa.int32(), "customer": pa.int32()},
}
# order 1 of customer 10 is paid, 2 of 20 and 3 of 20 not; nobody is customer 20
STORED = {"unpaid": [(2, 20), (3, 20)], "stray": [(2, 20), (3, 20)]}


def frame(name: str, rows: Rows) -> pa.Table:
    return frames.frame(COLUMNS, name, rows)


def warehouse(engine: Literal["duckdb", "spark"], **more: Any) -> Any:
    views = {name: frame(name, rows) for name, rows in STORED.items()}
    return selfmaint.build(PROGRAM, views, engine=engine, **more)


def update(
    made: Any, inserted: Mapping[str, Rows], deleted: Mapping[str, Rows], *, effective: bool = True
) -> Any:
    return frames.update_of(made, COLUMNS, inserted, deleted, effective=effective)


@pytest.fixture(autouse=True)
def _enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differing, "MOST_SECONDS", 10.0)  # whatever else the machine does


NONE: tuple[set[Any], set[Any]] = (set(), set())
CASES = [
    # a payment comes; a new order, with one and without
    ({"payment": [(7, 2)]}, {}, {"unpaid": (set(), {(2, 20)}), "stray": NONE}),
    (
        {"orders": [(8, 20), (9, 20)], "payment": [(7, 8)]},
        {},
        {"unpaid": ({(9, 20)}, set()), "stray": ({(8, 20), (9, 20)}, set())},
    ),
    # an order goes, not paid or with its payment
    ({}, {"orders": [(2, 20)]}, {"unpaid": (set(), {(2, 20)}), "stray": (set(), {(2, 20)})}),
    ({}, {"orders": [(1, 10)], "payment": [(5, 1)]}, {"unpaid": NONE, "stray": NONE}),
    # one payment for another
    ({"payment": [(6, 1)]}, {"payment": [(5, 1)]}, {"unpaid": NONE, "stray": NONE}),
    # another customer of an order that is not paid: one who is none
    (
        {"orders": [(2, 21)], "customer": [(21, "x")]},
        {"orders": [(2, 20)]},
        {"unpaid": ({(2, 21)}, {(2, 20)}), "stray": (set(), {(2, 20)})},
    ),
    # the customer of two orders comes
    ({"customer": [(20, "new")]}, {}, {"unpaid": NONE, "stray": (set(), {(2, 20), (3, 20)})}),
]


@pytest.mark.parametrize(("inserted", "deleted", "expected"), CASES)
def test_what_is_determined_is_followed(
    inserted: dict[str, Rows], deleted: dict[str, Rows], expected: dict[str, Any]
) -> None:
    made = warehouse("duckdb")
    given = update(made, inserted, deleted)
    found = made.maintain(given, strict=True)
    assert found.reads == ()
    assert {n: (rows_of(d.gained), rows_of(d.lost)) for n, d in found.deltas.items()} == expected


def test_it_is_followed_on_spark(spark: Any) -> None:
    made = warehouse("spark", spark=spark)
    inserted, deleted, expected = CASES[1]
    found = made.maintain(update(made, inserted, deleted), strict=True)
    assert {n: (rows_of(d.gained), rows_of(d.lost)) for n, d in found.deltas.items()} == expected


@pytest.mark.parametrize(
    ("view", "inserted", "deleted"),
    [
        # a payment goes that may be the last of its order; the last customer of orders that nobody shows
        ("unpaid", {}, {"payment": [(5, 1)]}),
        ("stray", {}, {"customer": [(10, "a")]}),
        # a new order of a customer of whom nothing is known
        ("stray", {"orders": [(9, 30)]}, {}),
        # a payment that goes beside its order, which comes again
        ("unpaid", {"orders": [(1, 11)]}, {"orders": [(1, 10)], "payment": [(5, 1)]}),
    ],
)
def test_what_nobody_knows_is_no(view: str, inserted: dict[str, Rows], deleted: dict[str, Rows]) -> None:
    """Two databases explain all of it, and differ (`differing.py`)."""
    made = warehouse("duckdb")
    given = update(made, inserted, deleted)
    assert made.check(given)[view].kind is VerdictKind.NO
    shown = made.explain(given, view).counterexample
    assert shown is not None
    assert shown.complete


def test_a_condition_that_a_row_has_no_value_of_leaves_the_view_text() -> None:
    program = PROGRAM.replace("p.order_id = o.id)", "p.order_id = o.id and 10 / (p.id - 7) > 1)")
    views = {name: frame(name, rows) for name, rows in STORED.items()}
    made = selfmaint.build(program, views, engine="duckdb")
    assert made.check(update(made, {"payment": [(7, 2)]}, {}))["unpaid"].kind is VerdictKind.UNDECIDED


def test_an_update_that_may_not_be_effective_is_undecided() -> None:
    made = warehouse("duckdb")
    given = update(made, {"payment": [(7, 2)]}, {}, effective=False)
    assert made.check(given)["unpaid"].kind is VerdictKind.UNDECIDED


@pytest.mark.parametrize(
    ("shown", "deleted", "kind"),
    [
        # two payments of order 1 are shown with their keys: one goes
        ([(5, 1), (6, 1)], {"payment": [(5, 1)]}, VerdictKind.YES),
        # both go, and nobody knows of a third one
        ([(5, 1), (6, 1)], {"payment": [(5, 1), (6, 1)]}, VerdictKind.NO),
        # the other one is of another order
        ([(5, 1), (6, 4)], {"payment": [(5, 1)]}, VerdictKind.NO),
    ],
)
@pytest.mark.parametrize(
    "view",
    [
        "select p.id, p.order_id from payment p where p.order_id is not null",
        "select p.id, p.order_id, count(*) as n from payment p join orders o on o.id = p.order_id group by 1, 2",
    ],
)
def test_a_match_that_another_view_shows_stays(
    view: str, shown: list[tuple[int, int]], deleted: dict[str, Rows], kind: VerdictKind
) -> None:
    columns = {**COLUMNS, "paid": {**COLUMNS["payment"], **({"n": pa.int64()} if "count" in view else {})}}
    rows = [(*row, 1) if "count" in view else row for row in shown]
    views = {"unpaid": frame("unpaid", STORED["unpaid"]), "paid": frames.frame(columns, "paid", rows)}
    text = PROGRAM[: PROGRAM.index("create view stray")] + f"create view paid as {view};"
    made = selfmaint.build(text, views, engine="duckdb")
    assert made.check(update(made, {}, deleted))["unpaid"].kind is kind


# of order 1 there are two payments, of order 2 none
COUNTED = {
    "per order": (
        "select order_id, count(*) as n from payment where order_id is not null group by order_id",
        [(1, 2)],
    ),
    "beside orders": (
        (
            "select o.id, coalesce(h.n, 0) as n from orders o left join (select order_id, count(*) as n from payment "
            "group by order_id) h on h.order_id = o.id"
        ),
        [(1, 2), (2, 0), (3, 0)],
    ),
    "joined": (
        "select o.id, count(*) as n from orders o join payment p on p.order_id = o.id group by o.id",
        [(1, 2)],
    ),
}


@pytest.mark.parametrize("counts", COUNTED)
@pytest.mark.parametrize(
    ("inserted", "deleted", "kind", "gained"),
    [
        # one of two payments goes; both; one beside one that comes
        ({}, {"payment": [(5, 1)]}, VerdictKind.YES, set()),
        ({}, {"payment": [(5, 1), (6, 1)]}, VerdictKind.NO, set()),
        ({"payment": [(7, 1)]}, {"payment": [(5, 1), (6, 1)]}, VerdictKind.YES, set()),
        # another customer of an order: of which one payment goes, or both, or which has none
        ({"orders": [(1, 11)]}, {"orders": [(1, 10)], "payment": [(5, 1)]}, VerdictKind.YES, set()),
        (
            {"orders": [(1, 11)]},
            {"orders": [(1, 10)], "payment": [(5, 1), (6, 1)]},
            VerdictKind.YES,
            {(1, 11)},
        ),
        ({"orders": [(2, 21)]}, {"orders": [(2, 20)]}, VerdictKind.YES, {(2, 21)}),
    ],
)
def test_a_view_that_counts_matches_tells_whether_some_are_left(
    counts: str, inserted: dict[str, Rows], deleted: dict[str, Rows], kind: VerdictKind, gained: set[Any]
) -> None:
    text, rows = COUNTED[counts]
    name = "order_id" if counts == "per order" else "id"
    columns = {**COLUMNS, "paid": {name: pa.int32(), "n": pa.int64()}}
    views = {"unpaid": frame("unpaid", STORED["unpaid"]), "paid": frames.frame(columns, "paid", rows)}
    program = PROGRAM[: PROGRAM.index("create view stray")] + f"create view paid as {text};"
    made = selfmaint.build(program, views, engine="duckdb")
    given = update(made, inserted, deleted)
    assert made.check(given)["unpaid"].kind is kind
    if kind is VerdictKind.YES:
        change = made.maintain(given, strict=False).deltas["unpaid"]
        assert rows_of(change.gained) == gained
        assert rows_of(change.lost) == (
            {(2, 20)} if "orders" in deleted and deleted["orders"] == [(2, 20)] else set()
        )


@pytest.mark.parametrize(
    "text",
    [
        "select order_id, count(*) as n from payment group by order_id having count(*) > 1",
        "select order_id, count(*) as n from payment where id > 5 group by order_id",
        "select order_id, count(id) as n, sum(id) as s from payment where order_id > 0 group by order_id",
        "select p.order_id, count(*) as n from payment p join customer c on c.id = p.id group by p.order_id",
        "select order_id + 0 as order_id, count(*) as n from payment group by order_id + 0",
    ],
)
def test_a_view_that_counts_some_of_them_does_not(text: str) -> None:
    columns = {**COLUMNS, "paid": {"order_id": pa.int32(), "n": pa.int64(), "s": pa.int64()}}
    rows: list[Any] = [(1, 2)]
    if " as s" in text:
        rows = [(1, 2, 11)]
    else:
        del columns["paid"]["s"]
    views = {"unpaid": frame("unpaid", STORED["unpaid"]), "paid": frames.frame(columns, "paid", rows)}
    program = PROGRAM[: PROGRAM.index("create view stray")] + f"create view paid as {text};"
    made = selfmaint.build(program, views, engine="duckdb")
    assert made.check(update(made, {}, {"payment": [(5, 1)]}))["unpaid"].kind is VerdictKind.UNDECIDED


def test_a_view_that_counts_rows_of_a_narrower_table_tells_nothing() -> None:
    program = """create table owner (id int primary key, name string not null);
        create table ship (id int primary key, name string, flag string, owner int references owner);
        create table call (ship int not null references ship, kind string not null);
        create view daily as select ship, kind, count(*) as n from call group by ship, kind;
        create view idle as
            select o.id, o.name from owner o left join ship s on s.owner = o.id where s.id is null;
    """
    columns = {
        "daily": {"ship": pa.int32(), "kind": pa.string(), "n": pa.int64()},
        "idle": {"id": pa.int32(), "name": pa.string()},
        "ship": {"id": pa.int32(), "name": pa.string(), "flag": pa.string(), "owner": pa.int32()},
    }
    views = {
        name: frames.frame(columns, name, rows) for name, rows in {"daily": [(2, "x", 1)], "idle": []}.items()
    }
    made = selfmaint.build(program, views, engine="duckdb")
    gone = frames.update_of(made, columns, {}, {"ship": [(1, "a", "b", 7)]}, effective=True)
    assert made.check(gone)["idle"].kind is not VerdictKind.YES
