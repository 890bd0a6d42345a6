"""Groups that show the key of a deleted row lose all their rows, whatever these are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import pytest

from datalog.model import Row
from selfmaint import Update
from selfmaint.api.check import check
from selfmaint.api.maintain import new_contents
from selfmaint.api.warehouse import build
from selfmaint.decide.verdict import SelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from tests.large_engine import LargeEngine

RENT = """
create table plan (id int primary key, price int not null);
create table subscription (id int primary key, plan int not null references plan, seats int not null, ended date);
create view rent as
  select s.id, p.price * s.seats as rent from subscription s join plan p on s.plan = p.id where s.ended is null;
create view seats as select s.id, s.seats from subscription s;
"""
LINES = """
create table orders (id int primary key, customer string not null);
create table line (id int primary key, orders int not null references orders, amount int not null);
create view by_order as
  select o.id, o.customer, min(l.amount) as least from orders o join line l on l.orders = o.id
  group by o.id, o.customer;
"""
STORED = {"rent": {(7, 30), (8, 5)}, "seats": {(7, 3), (8, 5), (9, 1)}}
ENDED = (7, 1, 3, dt.date(2026, 1, 1))


def verdict_and_state(
    program: str,
    stored: Mapping[str, set[Row]],
    deleted: Mapping[str, set[Row]],
    inserted: Mapping[str, set[Row]],
) -> tuple[bool, frozenset[Row] | None]:
    """Whether the first view is self-maintainable, and its new rows; the same on data that counts as large."""
    found = []
    for engine in (MemoryEngine(), LargeEngine()):
        warehouse = build(program, {n: frozenset(r) for n, r in stored.items()}, engine)
        update = Update(
            {n: frozenset(r) for n, r in inserted.items()},
            {n: frozenset(r) for n, r in deleted.items()},
            effective=True,
        )
        view = next(iter(stored))
        decided = isinstance(check(warehouse, update)[view], SelfMaintainable)
        change = warehouse.maintain(update).deltas[view] if decided else None
        found.append(
            (decided, None if change is None else new_contents(warehouse, warehouse.view(view), change))
        )
    assert found[0] == found[1]
    return found[0]


def test_a_row_that_computes_with_what_is_not_known_goes_by_its_key() -> None:
    assert verdict_and_state(RENT, STORED, {"subscription": {(7, 1, 3, None)}}, {}) == (True, {(8, 5)})


def test_a_row_that_no_longer_qualifies_goes_by_its_key() -> None:
    ended = {"subscription": {ENDED}}
    assert verdict_and_state(RENT, STORED, {"subscription": {(7, 1, 3, None)}}, ended) == (True, {(8, 5)})


def test_a_row_that_comes_back_needs_what_is_not_known() -> None:
    more = {"subscription": {(7, 1, 4, None)}}
    assert verdict_and_state(RENT, STORED, {"subscription": {(7, 1, 3, None)}}, more)[0] is False


@pytest.mark.parametrize("lines", [set(), {(1, 7, 10)}, {(1, 7, 10), (2, 7, 20)}])
def test_a_group_goes_with_all_its_rows(lines: set[Row]) -> None:
    stored: dict[str, set[Row]] = {"by_order": {(7, "ann", 10), (8, "ann", 3)}}
    deleted: dict[str, set[Row]] = {"orders": {(7, "ann")}, "line": {(1, 7, 10), (2, 7, 20)}}
    assert verdict_and_state(LINES, stored, {**deleted, "line": {*deleted["line"], *lines}}, {}) == (
        True,
        {(8, "ann", 3)},
    )


def test_a_group_that_is_dropped_holds_what_it_gains() -> None:
    stored: dict[str, set[Row]] = {"by_order": {(7, "ann", 10), (8, "ann", 3)}}
    deleted: dict[str, set[Row]] = {"orders": {(7, "ann")}, "line": {(1, 7, 10)}}
    inserted: dict[str, set[Row]] = {"orders": {(7, "bob")}, "line": {(3, 7, 40), (4, 7, 50)}}
    decided, rows = verdict_and_state(LINES, stored, deleted, inserted)
    assert decided is False  # line 2 of order 7 may stay
    assert rows is None


def test_a_lost_row_of_a_group_that_stays_is_asked_for() -> None:
    """A line goes, its order stays: the least of the rest is not known."""
    stored: dict[str, set[Row]] = {"by_order": {(7, "ann", 10)}}
    assert verdict_and_state(LINES, stored, {"line": {(1, 7, 10)}}, {})[0] is False
