"""Keys that are looked for in parts: what comes, and which parts."""

from __future__ import annotations

from operator import eq, ge, gt, le, lt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datalog.model import ColumnType, Comparison, Constant, TypeName
from datalog.syntax import parse_program
from selfmaint.duckdb import DuckEngine, keys_apart
from selfmaint.duckdb.extensions import Extension

RULE = parse_program("v(K, N) :- keys(K), stored(K, N).").rules[0]
INT = ColumnType(TypeName.INT)


def parts(keys: list[int], rows: int = keys_apart.MANY_ROWS) -> list[set[int]]:
    """Which keys each part of them has; the tests of the rules are applied as Python does."""
    engine = DuckEngine()
    its = Extension(engine.load([(k,) for k in keys], ["k"], [INT]).stored)
    stored = Extension(engine.load([(i, i) for i in range(10)], ["k", "n"], [INT, INT]).stored)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys_apart, "MANY_ROWS", 10 if rows else 11)
        rules = keys_apart.by_parts(RULE, its, stored)
    means = {"=": eq, "<": lt, ">": gt, "<=": le, ">=": ge}
    found = []
    for rule in rules:
        tests = [
            (t.operator, t.right.value)
            for t in rule.body
            if isinstance(t, Comparison) and isinstance(t.right, Constant)
        ]
        assert len(rule.body) == len(RULE.body) + len(tests)
        found.append({k for k in keys if all(means[operator](k, value) for operator, value in tests)})
    return found


def test_new_rows_lie_together_and_a_few_old_ones_do_not() -> None:
    new, old = set(range(5_000, 6_500)), {3, 77, 1_000, 2_000_000}
    assert parts([*new, *old]) == [new, {3, 77, 1_000}, {2_000_000}]


def test_what_lies_everywhere_is_looked_for_at_once() -> None:
    assert parts(list(range(0, 200_000, 100))) == [set(range(0, 200_000, 100))]


def test_few_keys_are_looked_for_by_themselves_and_some_more_by_the_engine() -> None:
    assert sorted(map(sorted, parts([7, 1, 900]))) == [[1], [7], [900]]
    assert parts([7, 1, 900, 1_000_000]) == [{7, 1, 900, 1_000_000}]


def test_a_small_relation_is_read_at_once() -> None:
    assert len(parts([*range(100), 10**6], rows=0)) == 1


@given(random=st.randoms(use_true_random=False))
def test_each_key_is_in_one_part(random: Random) -> None:
    keys = {random.choice([random.randrange(40), random.randrange(10**6)]) for _ in range(200)}
    its = parts(sorted(keys))
    assert sorted(k for part in its for k in part) == sorted(keys)
