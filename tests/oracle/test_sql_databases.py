"""The oracle of views in SQL, on cases small enough to check by hand, and its two engines held against each other."""

from __future__ import annotations

from random import Random

import pytest

from tests.effort import effort
from tests.oracle.sql_databases import NOT_SQLITE, Everything, Table, evaluated, updated
from tests.oracle.sql_shapes import SHAPES, tables, views

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
        names, texts = views(random, shape)
        if any(NOT_SQLITE.search(text) for text in texts.values()):
            continue
        its = tables(random, names, 300)
        databases = random.sample(Everything(its, {}).databases, 3)
        by_sqlite, by_duckdb = (evaluated(its, texts, databases, by_duckdb=which) for which in (False, True))
        assert by_sqlite == by_duckdb, texts
