"""Budgets in time: which limit holds, who is named, and who is told."""

from __future__ import annotations

import math

import pytest

from datalog.budget import BudgetSpentError, check, left, limit, observed, share


def spend(what: str = "a search", seconds: float = 0.0) -> None:
    with limit(seconds, what):
        check()


def test_without_a_limit_a_search_may_take_any_time() -> None:
    check()
    assert left() == math.inf
    spend(seconds=60)


def test_a_spent_budget_says_on_what_and_what_raises_it() -> None:
    with pytest.raises(
        BudgetSpentError, match=r"^budget of 0 s spent on a search \(`--budget SECONDS` or"
    ) as found:
        spend()
    assert (found.value.what, found.value.seconds) == ("a search", 0.0)


def test_of_nested_limits_the_tighter_holds() -> None:
    with limit(0, "the outer one"), pytest.raises(BudgetSpentError, match="the outer one"):
        spend("the inner one", 60)
    with limit(60, "the outer one"), pytest.raises(BudgetSpentError, match="the inner one"):
        spend("the inner one")


def test_a_limit_ends_with_its_block() -> None:
    with limit(60, "the outer one"):
        with pytest.raises(BudgetSpentError):
            spend()
        check()
        assert 0 < left() <= 60
    assert left() == math.inf


def test_a_share_is_of_what_is_left() -> None:
    with limit(60, "all"), share(0.5, "a part"):
        assert 0 < left() <= 30
    with share(0.5, "a part of no end"):
        assert left() == math.inf


def test_observers_are_told_what_begins() -> None:
    told: list[str] = []
    with observed(told.append), limit(60, "one"), limit(60, "two"):
        pass
    with limit(60, "three"):
        pass
    assert told == ["one", "two"]
