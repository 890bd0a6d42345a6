"""Coarser groups from finer views, facts that stored groups make certain, and what they have no room for."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest

from selfmaint.api.check import check
from selfmaint.api.explain import explain
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.warehouse import build
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from selfmaint.fallback.settle import Readable
from selfmaint.maintain import roll_ups
from selfmaint.sources.memory import RowsSource
from tests.large_engine import LargeEngine
from tests.selfmaint.decide.test_groups import changes, rows, state

DECLARED = """.decl sale(id: int not null, cust: string not null, amount: int not null) key(id).
.decl cust(id: string not null, region: string not null) key(id).
"""
REFERRING = DECLARED.replace("key(id).\n", "key(id) foreign key (cust) references cust(id).\n", 1)
BY_CUST = "by_cust(C, count(*), sum(A), max(A)) :- sale(I, C, A).\n"
BY_REGION = "by_region(R, count(*), sum(A), max(A)) :- sale(I, C, A), cust(C, R).\n"
COPY = "customers(C, R) :- cust(C, R).\n"
DAILY = """CREATE TABLE sale (id INT NOT NULL PRIMARY KEY, day DATE NOT NULL, amount INT NOT NULL);
CREATE VIEW daily AS SELECT day, count(*) AS n, sum(amount) AS total, max(amount) AS most FROM sale GROUP BY day;
CREATE VIEW monthly AS SELECT month(day) AS m, count(*) AS n, max(amount) AS most, avg(amount) AS mean,
  sum(amount) AS total FROM sale GROUP BY month(day);
"""


@pytest.mark.parametrize("engine", [MemoryEngine(), LargeEngine()], ids=lambda e: e.name)
def test_a_customer_who_moves_takes_all_sales_along(engine: MemoryEngine) -> None:
    contents = {"by_cust": rows(("k1", 2, 7, 4), ("k2", 1, 9, 9)), "by_region": rows(("eu", 3, 16, 9))}
    warehouse = build(REFERRING + BY_CUST + BY_REGION, contents, engine)
    update = changes(no_cust=rows(("k1", "eu")), cust=rows(("k1", "us")), sale=rows((8, "k1", 5)))
    assert all(isinstance(v, SelfMaintainable) for v in check(warehouse, update).values())
    assert state(warehouse, update, "by_region") == rows(("eu", 1, 9, 9), ("us", 3, 12, 5))


def test_without_the_finer_view_nobody_knows_what_moves() -> None:
    warehouse = build(REFERRING + BY_REGION, {"by_region": rows(("eu", 3, 16, 9))}, MemoryEngine())
    update = changes(no_cust=rows(("k1", "eu")), cust=rows(("k1", "us")))
    assert isinstance(check(warehouse, update)["by_region"], NotSelfMaintainable)


@pytest.mark.parametrize("copied", [True, False])
def test_a_lost_maximum_is_taken_from_the_finer_view(copied: bool) -> None:
    contents = {
        "by_cust": rows(("k1", 2, 7, 4), ("k2", 2, 9, 8)),
        "by_region": rows(("eu", 4, 16, 8)),
        "customers": rows(("k1", "eu"), ("k2", "eu")),
    }
    program = REFERRING + BY_CUST + BY_REGION + (COPY if copied else "")
    update = changes(no_sale=rows((1, "k2", 8), (2, "k2", 1)))
    given = contents if copied else {n: c for n, c in contents.items() if n != "customers"}
    warehouse = build(program, given, MemoryEngine())
    verdict = check(warehouse, update)["by_region"]
    assert isinstance(verdict, SelfMaintainable) == copied
    if copied:
        assert state(warehouse, update, "by_region") == rows(("eu", 2, 7, 4))


def test_a_lost_maximum_is_taken_from_a_plain_view() -> None:
    program = DECLARED + "sales(I, C, A) :- sale(I, C, A).\nmost(C, max(A)) :- sale(I, C, A).\n"
    contents = {"sales": rows((1, "k", 5), (2, "k", 3), (3, "m", 1)), "most": rows(("k", 5), ("m", 1))}
    warehouse = build(program, contents, MemoryEngine())
    update = changes(no_sale=rows((1, "k", 5), (3, "m", 1)))
    assert isinstance(check(warehouse, update)["most"], SelfMaintainable)
    assert state(warehouse, update, "most") == rows(("k", 3))


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("is_read", [False, True])
def test_an_average_that_a_roll_up_would_cut_off_is_open(is_long: bool, is_read: bool) -> None:
    """What is divided has 18 digits before the point."""
    one, lost = (Decimal(f"{n}E{18 if is_long else 17}") for n in (2, 4))
    program = DECLARED.replace("amount: int", "amount: decimal(26, 6)")
    program += (
        "fine(C, I, count(*), sum(A), max(A)) :- sale(I, C, A).\nmean(C, avg(A), max(A)) :- sale(I, C, A).\n"
    )
    contents = {
        "fine": rows(("k", 1, 1, one, one), ("k", 2, 1, lost, lost)),
        "mean": rows(("k", Decimal("3E18" if is_long else "3E17"), lost)),
    }
    after = RowsSource("sales", {"sale": (("id", "cust", "amount"), rows((1, "k", one)))})
    readable = {"sale": Readable(after, 1.0)} if is_read else {}
    warehouse = build(program, contents, MemoryEngine(), readable=readable)
    update = changes(no_sale=rows((2, "k", lost)))
    assert isinstance(check(warehouse, update)["mean"], SelfMaintainable) != is_long
    if is_read or not is_long:
        assert state(warehouse, update, "mean") == rows(("k", one, one))


JANUARY, ALSO, FEBRUARY = dt.date(2026, 1, 1), dt.date(2026, 1, 9), dt.date(2026, 2, 1)
DAYS = {
    "daily": rows((JANUARY, 2, 7, 4), (ALSO, 1, 9, 9), (FEBRUARY, 1, 2, 2)),
    "monthly": rows((1, 3, 9, 16 / 3, 16), (2, 1, 2, 2.0, 2)),
}


@pytest.mark.parametrize("engine", [MemoryEngine(), LargeEngine()], ids=lambda e: e.name)
def test_months_from_days_where_an_expression_tells_the_month(engine: MemoryEngine) -> None:
    warehouse = build(DAILY, DAYS, engine)
    update = changes(no_sale=rows((3, ALSO, 9)), sale=rows((9, FEBRUARY, 1)))
    assert all(isinstance(v, SelfMaintainable) for v in check(warehouse, update).values())
    assert state(warehouse, update, "monthly") == rows((1, 2, 4, 3.5, 7), (2, 2, 2, 1.5, 3))


def test_a_month_whose_day_is_open_too_is_read_and_computed_anew() -> None:
    base = {"sale": rows((1, JANUARY, 4), (2, JANUARY, 3), (4, FEBRUARY, 2))}
    source = RowsSource("base", {"sale": (("id", "day", "amount"), base["sale"])})
    warehouse = build(
        DAILY.replace("max(amount) AS most FROM", "count(*) AS again FROM"),
        {**DAYS, "daily": rows((JANUARY, 2, 7, 2), (ALSO, 1, 9, 1), (FEBRUARY, 1, 2, 1))},
        MemoryEngine(),
        readable={"sale": Readable(source, 1.0)},
    )
    update = changes(no_sale=rows((3, ALSO, 9)))
    assert isinstance(check(warehouse, update)["monthly"], NotSelfMaintainable)
    assert state(warehouse, update, "monthly") == rows((1, 2, 4, 3.5, 7), (2, 1, 2, 2.0, 2))


def test_a_total_that_belongs_to_one_customer() -> None:
    program = REFERRING + BY_REGION + "sales(I, C, A) :- sale(I, C, A).\n"
    sales = rows((1, "k2", 3), (2, "k9", 3), (3, "k9", 1), (8, "k2", 5))
    update = changes(no_sale=rows((8, "k2", 5)), sale=rows((9, "k2", 1)))
    told = {"by_region": rows(("eu", 2, 4, 3), ("us", 2, 8, 5)), "sales": sales}
    warehouse = build(program, told, MemoryEngine())
    assert isinstance(check(warehouse, update)["by_region"], SelfMaintainable)
    assert state(warehouse, update, "by_region") == rows(("eu", 2, 4, 3), ("us", 2, 4, 3))
    same = rows((1, "k2", 3), (2, "k9", 3), (3, "k9", 5), (8, "k2", 5))
    untold = {"by_region": rows(("eu", 2, 8, 5), ("us", 2, 8, 5)), "sales": same}
    assert isinstance(check(build(program, untold, MemoryEngine()), update)["by_region"], NotSelfMaintainable)


def test_the_only_region_that_there_is() -> None:
    warehouse = build(REFERRING + BY_REGION, {"by_region": rows(("us", 2, 8, 5))}, MemoryEngine())
    update = changes(no_sale=rows((3, "k2", 3)))
    assert isinstance(check(warehouse, update)["by_region"], SelfMaintainable)
    assert state(warehouse, update, "by_region") == rows(("us", 1, 5, 5))
    nullable = REFERRING.replace("region: string not null", "region: string")
    warehouse = build(nullable + BY_REGION, {"by_region": rows(("us", 2, 8, 5))}, MemoryEngine())
    assert isinstance(check(warehouse, update)["by_region"], SelfMaintainable)
    unreferenced = build(DECLARED + BY_REGION, {"by_region": rows(("us", 2, 8, 5))}, MemoryEngine())
    assert isinstance(check(unreferenced, update)["by_region"], NotSelfMaintainable)


def names_of(program: str, view: str) -> set[str]:
    schema = catalog_of(program)
    return {found.name for found in roll_ups(schema, schema.view(view))}


def test_what_a_view_can_be_rolled_up_from() -> None:
    """Conditions of `finer.py` and `roll_up.py`, in their numbers."""
    assert names_of(DECLARED + BY_CUST + BY_REGION, "by_region") == {"by_cust"}
    assert names_of(DECLARED + BY_CUST + BY_REGION, "by_cust") == set()  # 1: it has a subgoal more
    positive = "by_cust(C, count(*), sum(A), max(A)) :- sale(I, C, A), A > 0.\n"
    assert names_of(DECLARED + positive + BY_REGION, "by_region") == set()  # 2: not all sales
    by_amount = "by_cust(A, count(*)) :- sale(I, C, A).\n"
    assert (
        names_of(DECLARED + by_amount + BY_REGION, "by_region") == set()
    )  # 3: joins with what is not stored
    least = "by_cust(C, count(*), sum(A), min(A)) :- sale(I, C, A).\n"
    assert names_of(DECLARED + least + BY_REGION, "by_region") == set()  # no maximum


def test_a_no_beside_views_that_group_is_shown_by_two_databases() -> None:
    """Customer `k9` has one sale of 3, whose number nobody knows, and a region from now on."""
    program = DECLARED + BY_CUST + "detail(I, C, A, R) :- sale(I, C, A), cust(C, R).\n"
    contents = {"by_cust": rows(("k1", 1, 5, 5), ("k9", 1, 3, 3)), "detail": rows((1, "k1", 5, "eu"))}
    warehouse = build(program, contents, MemoryEngine())
    found = explain(warehouse, changes(cust=rows(("k9", "eu"))), "detail")
    assert isinstance(found.verdict, NotSelfMaintainable)
    proof = found.counterexample
    assert proof is not None
    hidden = [proof.database(second, after=False)["sale"] - {(1, "k1", 5)} for second in (False, True)]
    assert hidden[0] != hidden[1]
    assert all({row[1:] for row in each} == {("k9", 3)} for each in hidden)


@pytest.mark.parametrize("function", ["min", "max"])
def test_no_number_is_above_all_numbers_where_room_is_asked_for(function: str) -> None:
    program = REFERRING.replace("amount: int", "amount: double") + (
        f"sales(I, C, A) :- sale(I, C, A).\nby_region(R, count(*), {function}(A)) :- sale(I, C, A), cust(C, R).\n"
    )
    nan = math.nan
    sales = (
        rows((1, "k2", nan), (2, "k3", 1.0)) if function == "min" else rows((1, "k2", 1.0), (2, "k3", nan))
    )
    eu = ("eu", 2, 1.0 if function == "min" else nan)
    contents = {"sales": sales | rows((3, "k4", 1.0), (4, "k5", 1.0)), "by_region": rows(eu, ("us", 2, 1.0))}
    warehouse = build(program, contents, MemoryEngine())
    # Customer k2 may be of `eu` or of `us`.
    assert not isinstance(check(warehouse, changes(sale=rows((9, "k2", 5.0))))["by_region"], SelfMaintainable)
