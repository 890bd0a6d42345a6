"""The oracle of views in SQL, on cases small enough to check by hand, and its two engines held against each other."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random

import pytest

from tests.effort import effort
from tests.oracle.sql_databases import Everything
from tests.oracle.sql_engines import evaluated, runs_in_sqlite
from tests.oracle.sql_schemas import tables
from tests.oracle.sql_shapes import SHAPES, views
from tests.oracle.sql_tables import NAN, Table, updated

CUSTOMER = Table("c", ("id", "n"), ("int", "int"), ((1, 2), (7, 8)))
ORDER = Table(
    "o", ("id", "c", "t"), ("int", "int", "int"), ((1, 2), (1, 2, None), (5,)), references=((1, "c"),)
)


def test_databases_satisfy_keys_and_foreign_keys() -> None:
    # No customer: orders without one (2 * 2); one customer, of two names and two keys: 3 * 3; two: 4 * 4.
    assert len(Everything([CUSTOMER, ORDER], {}).databases) == 4 + 4 * 9 + 4 * 16
    linked = Table("t", ("x", "y"), ("int", "int"), ((1, 2), (1, 2)), key=2)
    assert len(Everything([linked], {}).databases) == 16
    unique = Table("u", ("k", "m"), ("int", "int"), ((1, 2), (1, None)), unique=(1,))
    assert len(Everything([unique], {}).databases) == 9 - 1


def test_what_an_effective_update_says_of_the_rows_before() -> None:
    none, row = frozenset[tuple[int]](), frozenset({(1,)})
    assert updated((none,), [row], [none], is_effective=True) == (row,)
    assert updated((row,), [row], [none], is_effective=True) is None
    assert updated((row,), [row], [none], is_effective=False) == (row,)
    assert updated((none,), [none], [row], is_effective=True) is None


def test_a_table_without_a_key_holds_rows_several_times() -> None:
    log = Table("l", ("a",), ("int",), ((1, 2),), key=0, most=2)
    every = Everything([log], {"v": "select a, count(*) as n from l group by a", "w": "select a from l"})
    assert every.databases == [
        ((),),
        (((1,),),),
        (((2,),),),
        (((1,), (1,)),),
        (((1,), (2,)),),
        (((2,), (2,)),),
    ]
    assert log.size == 6
    assert every.states((((1,), (1,)),)) == {"v": {((1, 2), 1)}, "w": {((1,), 2)}}
    twice, once = ((1,), (1,)), ((1,),)
    assert updated((once,), [once], [()], is_effective=True) == (twice,)
    assert updated((twice,), [()], [once], is_effective=True) == (once,)
    assert updated((once,), [()], [twice], is_effective=True) is None


def test_values_of_all_types_are_those_of_spark() -> None:
    day, time = dt.date(2026, 1, 31), dt.datetime(2026, 1, 31, 23, 59, 59)
    row = (1, day, time, Decimal("0.01"), NAN, None)
    columns, types = ("i", "day", "seen", "price", "rate", "ok"), ("int", "date", "timestamp", "decimal(6,2)")
    table = Table(
        "o", columns, (*types, "double", "boolean"), tuple((value,) for value in row), key=0, most=3
    )
    views = {
        "v": "select i, avg(price) as p, max(rate) as r, count_if(ok) as n from o group by i",
        "w": "select date_trunc('month', seen) as m, trunc(day, 'MM') as d, day + interval 1 month as e, "
        "datediff(day, date '2026-01-01') as n, rate > 1e300 and rate = rate as b from o",
    }
    ((v, w),) = zip(*evaluated([table], views, [((row, row),)]).values(), strict=True)
    assert v == {((1, Decimal("0.010000"), NAN, 0), 1)}
    first = dt.datetime(2026, 1, 1), dt.date(2026, 1, 1), dt.date(2026, 2, 28)
    assert w == {((*first, 30, True), 2)}


def test_an_order_of_a_customer_whose_name_is_nowhere() -> None:
    """Of a customer who has an order already the name is known, of another it is not."""
    every = Everything([CUSTOMER, ORDER], {"v": "select o.id, o.c, n from o join c on o.c = c.id"})
    found = {True: 0, False: 0}
    for seed in range(600):
        question = every.question(Random(seed))
        if question is None or question.deleted or [*question.inserted] != ["o"]:
            continue
        known = {row[1] for row, _ in question.contents["v"]}
        is_known = {row[1] for row in question.inserted["o"]} - {None} <= known
        assert is_known == (len(question.states["v"]) == 1)
        found[is_known] += 1
    assert min(found.values()) > 5


@pytest.mark.parametrize("shape", SHAPES)
def test_both_engines_give_the_same_rows(shape: str) -> None:
    for number in range(effort(1, 20)):
        random = Random(f"{shape}.{number}")
        texts = views(random, shape)
        its = tables(random, texts.values(), 300)
        if not runs_in_sqlite(its, texts):
            continue
        databases = Everything(its, {}).databases
        databases = random.sample(databases, min(3, len(databases)))
        by_sqlite, by_duckdb = (evaluated(its, texts, databases, by_duckdb=which) for which in (False, True))
        assert by_sqlite == by_duckdb, texts
