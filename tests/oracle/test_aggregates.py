"""The oracle of views that group, on cases small enough to check by hand."""

from __future__ import annotations

from collections import Counter
from random import Random

from .aggregates import Aggregate, Relation, Schema, View, questions
from .random_stars import changed, random_database, random_star

SALE = Relation("sale", (("s1",), ("k1", None), (1, 2, None)))
CUST = Relation("cust", (("k1",), ("eu", "us")))
ALL = (Aggregate("count", "*"), Aggregate("count", "A"), Aggregate("sum", "A"), Aggregate("min", "A"))


def test_aggregates_pass_over_nulls_and_no_group_is_one_row() -> None:
    body = (("sale", ("I", "C", "A")),)
    rows = frozenset({("s1", "k1", 1), ("s2", "k1", None), ("s3", None, None)})
    grouped = View("v", ("C",), ALL, body)
    assert grouped.rows({"sale": rows}) == Counter({("k1", 2, 1, 1, 1): 1, (None, 1, 0, None, None): 1})
    assert View("v", (), ALL, body).rows({"sale": frozenset()}) == Counter({(0, 0, None, None): 1})


def test_null_does_not_join() -> None:
    view = View("v", ("R",), ALL[:1], (("sale", ("I", "C", "A")), ("cust", ("C", "R"))))
    database = {"sale": frozenset({("s1", None, 1)}), "cust": frozenset({("k1", "eu")})}
    assert view.rows(database) == Counter()


def test_databases_satisfy_keys_and_foreign_keys() -> None:
    referring = Relation(SALE.name, SALE.domains, 0, ((1, "cust"),))
    schema = Schema((referring, CUST), (1, 1), ())
    # cust: none, eu or us; sale: none, or one of 3 amounts with null, and with k1 where cust has it
    assert len(schema.databases()) == 4 + 2 * 7


def test_a_deleted_sale_of_an_unknown_customer_leaves_the_region_open() -> None:
    view = View("v", ("R",), (Aggregate("count", "*"),), (("sale", ("I", "C", "A")), ("cust", ("C", "R"))))
    schema = Schema((Relation("sale", (("s1", "s2"), ("k1", "k2"), (1,))), CUST), (2, 1), (view,))
    found = list(questions(schema, Random(1), 40, 10))
    assert any(len(q.states["v"]) == 1 for q in found)
    assert any(len(q.states["v"]) > 1 for q in found)


def test_random_batches_keep_the_constraints() -> None:
    for seed in range(200):
        random = Random(seed)
        schema = random_star(random)
        before = random_database(random, schema)
        assert schema.is_sound(before)
        assert schema.is_sound(changed(random, schema, before))
