"""Views that keep or remove duplicates, some with computed columns, against the oracles of views that group.

Oracles: every database over small domains, and recomputation after random mixed batches, both with multiplicities, by
`tests/oracle/aggregates.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from tests.effort import effort
from tests.oracle.aggregates import Schema
from tests.oracle.random_stars import random_bag_above, random_star
from tests.selfmaint.decide.test_group_decision import decided
from tests.selfmaint.maintain.test_group_maintenance import maintained

random_bags = partial(random_star, bags=0.8)
"""Schemas in which most of the views that are not plain keep or remove duplicates."""

LEAST_DECIDED = 0.7
"""Of the views that are determined in the small domains, how many must be decided at least."""


@pytest.mark.parametrize("make", [random_bags, random_bag_above])
def test_a_yes_holds_for_every_database(make: Callable[[Random], Schema]) -> None:
    found = decided(range(1000, 1000 + effort(3, 40)), make)
    determined = found[True, True] + found[True, False]
    assert found[True, True] > LEAST_DECIDED * determined


@pytest.mark.parametrize("make", [random_bags, random_bag_above])
def test_maintenance_is_recomputation_with_multiplicities(make: Callable[[Random], Schema]) -> None:
    assert maintained(range(1000, 1000 + effort(5, 40)), make) > effort(5, 40)
